/* SPDX-License-Identifier: ISC */
/*
 * Starting our own processes: a socket pair, a fork, and a fresh exec of one of our binaries with
 * nothing but its control socket. A child shares no memory layout and no descriptor with its
 * parent.
 */
#ifndef CORE_BASE_PROCESS_H
#define CORE_BASE_PROCESS_H

#include <sys/types.h>

struct error;

/* The descriptor on which every child finds its control socket. */
#define PROCESS_CONTROL_FD 3

/* The user a child becomes; uid 0 means: stay who you are. */
struct process_user {
	uid_t uid;
	gid_t gid;
};

/*
 * Opens a binary for process_start: name in the directory of the running program, or the running
 * program itself for NULL. The descriptor stays valid when the file is replaced by an upgrade.
 */
int process_open_program(const char *name, struct error *err);

/*
 * Starts program as role with its control socket, standard input and output on /dev/null, the
 * caller's standard error, an environment of PATH and time zone, and a session of its own. Gives
 * its pid and our end of the socket.
 */
int process_start(int program, const char *role, const char *name, const struct process_user *user,
    pid_t *pid, int *control, struct error *err);

/*
 * At the start of a child: reads what process_start passed on. Returns the role, or NULL when this
 * is no child of ours. Opens the log as the parent's. Keeps argv for process_set_title.
 */
const char *process_enter(int argc, char **argv, struct process_user *user);

/* What ps shows; may be called at any time after process_enter. */
void process_set_title(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
