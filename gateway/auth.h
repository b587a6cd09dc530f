/* SPDX-License-Identifier: ISC */
/* The auth process. */
#ifndef GATEWAY_AUTH_H
#define GATEWAY_AUTH_H

struct process_user;

/* Entry of the process; returns its exit status. The head comment of auth.c says the rest. */
int auth_main(const struct process_user *user);

#endif
