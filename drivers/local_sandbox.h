/* SPDX-License-Identifier: ISC */
/* What a local sandbox looks like from inside, and starting one. */
#ifndef DRIVERS_LOCAL_SANDBOX_H
#define DRIVERS_LOCAL_SANDBOX_H

#include <limits.h>
#include <stdbool.h>

#include "drivers/local_child.h"

struct error;
struct loop;

struct local_sandbox {
	const char *id;
	int directory; /* of this sandbox, as in drivers/local_store.h */
	bool isolated; /* under bubblewrap */
	bool network;  /* the host's */
	char home[PATH_MAX];
	char user[64];
};

/* Fills home and user, as the sandbox knows them. */
int local_sandbox_describe(struct local_sandbox *sandbox, struct error *err);

/*
 * Starts its init and returns it, with our end of the socket to it in *socket. Init sends READY, or
 * ended is called: local_sandbox_explain makes an error of what that is given.
 */
struct local_child *local_sandbox_start(const struct local_sandbox *sandbox, struct loop *loop,
    local_child_fn *ended, void *argument, int *socket, struct error *err);

/* Why it did not start, and what a person can do about it. */
void local_sandbox_explain(
    const struct local_sandbox *sandbox, int status, const char *complaint, struct error *err);

/* Removes the tree name in directory, by a process of its own. */
struct local_child *local_sandbox_remove(int directory, const char *name, struct loop *loop,
    local_child_fn *ended, void *argument, struct error *err);

#endif
