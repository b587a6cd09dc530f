/* SPDX-License-Identifier: ISC */
/*
 * Those who wait for a workspace. Whoever is told may wait again, cancel others that wait, or have
 * everybody told something else meanwhile.
 */
#ifndef CORE_WORKSPACE_WAITER_H
#define CORE_WORKSPACE_WAITER_H

#include <stdbool.h>

#include "core/workspace.h"

struct error;

struct waiters {
	struct workspace_waiter *waiting; /* in the order they came */
	struct workspace_waiter *telling; /* came before them, and are being told */
};

/* A new waiter, which lives until it is told or cancelled (workspace_waiter_cancel). */
struct workspace_waiter *waiters_add(struct waiters *waiters, workspace_ready_fn *ready,
    workspace_progress_fn *progress, void *argument);

/* Tells all who wait, and want to know, how far it is. */
void waiters_tell_progress(const struct waiters *waiters, const char *text);

/* Begins to tell all who wait by now. */
void waiters_begin(struct waiters *waiters);

/* Tells the next of them how it went, and frees it; false when there is none left. */
bool waiters_tell(struct waiters *waiters, const struct error *err);

/* Those who were not told wait on. */
void waiters_end(struct waiters *waiters);

#endif
