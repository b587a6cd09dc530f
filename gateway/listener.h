/* SPDX-License-Identifier: ISC */
/* The listener process. */
#ifndef GATEWAY_LISTENER_H
#define GATEWAY_LISTENER_H

struct conf;
struct error;

/* conf_load with the drivers of this build. */
struct conf *listener_load_conf(const char *path, char *const *overrides, struct error *err);

/* conf_check, and whether each inline key is one. */
int listener_check_conf(const struct conf *conf, struct error *err);

/*
 * Entry of the process, with a checked configuration that it takes over; path and overrides are
 * for reloads. Returns the exit status of the daemon. The head comment of listener.c says the rest.
 */
int listener_main(struct conf *conf, const char *path, char *const *overrides);

#endif
