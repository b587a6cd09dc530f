/* SPDX-License-Identifier: ISC */
/* Two lists: of those who wait, and of those whose turn it is to be told. */
#include <stddef.h>

#include "core/base/memory.h"
#include "core/workspace_waiter.h"

struct workspace_waiter {
	struct workspace_waiter *next;
	struct waiters *waiters; /* NULL while it is told */
	workspace_ready_fn *ready;
	workspace_progress_fn *progress;
	void *argument;
};

static void
append(struct workspace_waiter **list, struct workspace_waiter *more)
{
	while (*list != NULL)
		list = &(*list)->next;
	*list = more;
}

struct workspace_waiter *
waiters_add(struct waiters *waiters, workspace_ready_fn *ready, workspace_progress_fn *progress,
    void *argument)
{
	struct workspace_waiter *waiter;

	waiter = memory_zeroed(1, sizeof(*waiter));
	waiter->waiters = waiters;
	waiter->ready = ready;
	waiter->progress = progress;
	waiter->argument = argument;
	append(&waiters->waiting, waiter);
	return waiter;
}

void
waiters_tell_progress(const struct waiters *waiters, const char *text)
{
	const struct workspace_waiter *waiter;

	for (waiter = waiters->waiting; waiter != NULL; waiter = waiter->next)
		if (waiter->progress != NULL)
			waiter->progress(waiter->argument, text);
}

void
waiters_begin(struct waiters *waiters)
{
	append(&waiters->telling, waiters->waiting);
	waiters->waiting = NULL;
}

bool
waiters_tell(struct waiters *waiters, const struct error *err)
{
	struct workspace_waiter *waiter = waiters->telling;

	if (waiter == NULL)
		return false;
	waiters->telling = waiter->next;
	waiter->waiters = NULL;
	waiter->ready(waiter->argument, err);
	memory_free(waiter);
	return true;
}

void
waiters_end(struct waiters *waiters)
{
	append(&waiters->telling, waiters->waiting);
	waiters->waiting = waiters->telling;
	waiters->telling = NULL;
}

static bool
take_out(struct workspace_waiter **list, const struct workspace_waiter *waiter)
{
	for (; *list != NULL; list = &(*list)->next) {
		if (*list == waiter) {
			*list = waiter->next;
			return true;
		}
	}
	return false;
}

void
workspace_waiter_cancel(struct workspace_waiter *waiter)
{
	/* The one that is told just now is freed by waiters_tell. */
	if (waiter == NULL || waiter->waiters == NULL)
		return;
	if (take_out(&waiter->waiters->waiting, waiter) ||
	    take_out(&waiter->waiters->telling, waiter))
		memory_free(waiter);
}
