/* SPDX-License-Identifier: ISC */
/*
 * What one read, write or run under way is in drivers whose operations come in several kinds: each
 * kind has its own behind it, and all of a sandbox are in one list.
 */
#ifndef DRIVERS_OPERATION_H
#define DRIVERS_OPERATION_H

struct driver_sandbox;

struct driver_operation {
	struct driver_operation *next, **list;
	struct driver_sandbox *sandbox;
	/* Frees what is the kind's own, and itself. */
	void (*destroy)(struct driver_operation *operation);
};

/* Fills operation and puts it into the list of its sandbox. */
void operation_link(struct driver_operation *operation, struct driver_operation **list,
    struct driver_sandbox *sandbox, void (*destroy)(struct driver_operation *operation));

/* As driver->cancel: takes it out of its list and destroys it. */
void operation_cancel(struct driver_operation *operation);

#endif
