/* SPDX-License-Identifier: ISC */
/* The listener process. */
#ifndef GATEWAY_LISTENER_H
#define GATEWAY_LISTENER_H

struct conf;
struct error;
struct settings;

/* conf_load with the drivers of this build. */
struct conf *listener_load_conf(const char *path, char *const *overrides, struct error *err);

/* conf_check, whether each inline key is one, and whether libssh has the algorithms. */
int listener_check_conf(const struct conf *conf, struct error *err);

/*
 * For rwsd -t: can the database of the records be used? Asks it, and changes nothing. -1 with err when it
 * cannot before somebody has seen to it, 1 with err when it merely does not answer.
 */
int listener_check_records(const struct conf *conf, struct error *err);

/* The entries of a list option as one new text with commas, or NULL: how libssh wants algorithms. */
char *listener_join_list(const struct settings *settings, const char *name);

/*
 * Entry of the process, with a checked configuration that it takes over; path and overrides are
 * for reloads. Returns the exit status of the daemon. The head comment of listener.c says the rest.
 */
int listener_main(struct conf *conf, const char *path, char *const *overrides);

#endif
