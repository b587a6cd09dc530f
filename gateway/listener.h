/* SPDX-License-Identifier: ISC */
/* The listener process. */
#ifndef GATEWAY_LISTENER_H
#define GATEWAY_LISTENER_H

struct conf;
struct error;
struct process_user;
struct settings;

/* conf_load with the drivers of this build. */
struct conf *listener_load_conf(const char *path, char *const *overrides, struct error *err);

/*
 * conf_check, whether each inline key is one, whether libssh has the algorithms, and whether the user and the
 * places for our sockets are such.
 */
int listener_check_conf(const struct conf *conf, struct error *err);

/*
 * For rwsd -t: can the database of the records be used? Asks it, and changes nothing. -1 with err when it
 * cannot before somebody has seen to it, 1 with err when it merely does not answer.
 */
int listener_check_records(const struct conf *conf, struct error *err);

/* The entries of a list option as one new text with commas, or NULL: how libssh wants algorithms. */
char *listener_join_list(const struct settings *settings, const char *name);

/*
 * Whom the children become when we are root: the configured user, or nobody where the default one is
 * missing; else user stays as it is. 0, or -1 with the place in the file.
 */
int listener_find_user(const struct conf *conf, struct process_user *user, struct error *err);

/*
 * Entry of the process, with a checked configuration that it takes over; path and overrides are
 * for reloads. Returns the exit status of the daemon. The head comment of listener.c says the rest.
 */
int listener_main(struct conf *conf, const char *path, char *const *overrides);

#endif
