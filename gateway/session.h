/* SPDX-License-Identifier: ISC */
/* The session process: one SSH connection. */
#ifndef GATEWAY_SESSION_H
#define GATEWAY_SESSION_H

struct process_user;

/* Entry of the process; returns its exit status. The head comment of session.c says the rest. */
int session_main(const struct process_user *user);

#endif
