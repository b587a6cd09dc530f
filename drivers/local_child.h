/* SPDX-License-Identifier: ISC */
/*
 * A child process of the local driver: bubblewrap, or our init without it. It gets only the
 * descriptors it is given, and what it says on stderr is kept for the error and logged.
 */
#ifndef DRIVERS_LOCAL_CHILD_H
#define DRIVERS_LOCAL_CHILD_H

#include <stdbool.h>
#include <stddef.h>

struct error;
struct local_child;
struct loop;

#define LOCAL_CHILD_FDS 12

/* status is as waitpid gives it; complaint is what it said, in one line, maybe empty. */
typedef void local_child_fn(void *argument, int status, const char *complaint);

struct local_child_spec {
	char *const *argv;        /* argv[0] is a path */
	char *const *environment; /* all it gets */
	const int *fds;           /* become 3, 4, … in it; stay the caller's here */
	size_t count;             /* at most LOCAL_CHILD_FDS */
	bool tied;                /* is killed when we die */
};

/* Starts it and calls ended once, later; a program that cannot be run ends with status 127. */
struct local_child *local_child_start(struct loop *loop, const struct local_child_spec *spec,
    local_child_fn *ended, void *argument, struct error *err);

/* With KILL; ended is called as for any end. */
void local_child_kill(struct local_child *child);

/*
 * Forgets it without a callback; accepts NULL. One that still runs is given wait ms to end by
 * itself and is then killed: this is the one place that waits, when a worker shuts down.
 */
void local_child_free(struct local_child *child, int wait);

#endif
