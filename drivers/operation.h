/* SPDX-License-Identifier: ISC */
/*
 * What the operations of drivers over HTTP have in common, whatever they do: a place in their
 * sandbox's list, and a way to end. Each kind of operation has its own behind it.
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

/* Enters an operation into its sandbox's list. */
void operation_link(struct driver_operation *operation, struct driver_sandbox *sandbox,
    struct driver_operation **list, void (*destroy)(struct driver_operation *operation));

/* cancel of core/driver.h: takes it out of the list and destroys it. */
void operation_cancel(struct driver_operation *operation);

/* Cancels all of a list. */
void operation_cancel_all(struct driver_operation **list);

#endif
