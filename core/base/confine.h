/* SPDX-License-Identifier: ISC */
/*
 * Giving up rights: the first thing a process does. One call drops root, capabilities, the right
 * to gain privileges, core dumps, file system access (Landlock, where the kernel has it) and all
 * system calls the role has no use for (seccomp).
 */
#ifndef CORE_BASE_CONFINE_H
#define CORE_BASE_CONFINE_H

#include <stdbool.h>

struct error;
struct process_user;

enum confine_calls {
	CONFINE_CALLS_LISTENER, /* may fork and exec; what only an attacker needs is refused */
	/* memory, time and descriptors that are there: no files, sockets or children of its own */
	CONFINE_CALLS_PLAIN,
	CONFINE_CALLS_FILES,   /* the same, and opening files */
	CONFINE_CALLS_NETWORK, /* the same, and connecting sockets and threads */
};

struct confine {
	const struct process_user *user; /* becomes this user; uid 0: stays */
	bool keep_reading;               /* keeps CAP_DAC_READ_SEARCH when root becomes user */
	enum confine_calls calls;
	bool files;                  /* false: Landlock refuses every path but those below */
	const char *const *readable; /* NULL-ended, or NULL */
	const char *const *writable; /* NULL-ended, or NULL */
};

/* All or nothing but Landlock, whose absence is logged at level debug. */
int confine_enter(const struct confine *confine, struct error *err);

#endif
