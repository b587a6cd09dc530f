/* SPDX-License-Identifier: ISC */
#include "drivers/waiting.h"
#include "core/base/loop.h"
#include "core/base/memory.h"

struct waiting_caller {
	struct waiting_caller *next;
	driver_done_fn *done;
	void *argument;
};

void
waiting_add(struct waiting *waiting, driver_done_fn *done, void *argument)
{
	struct waiting_caller *caller;

	caller = memory_zeroed(1, sizeof(*caller));
	caller->done = done;
	caller->argument = argument;
	caller->next = waiting->callers;
	waiting->callers = caller;
}

void
waiting_tell(struct waiting *waiting, const struct error *err)
{
	struct waiting_caller *list, *caller;

	list = waiting->callers;
	waiting->callers = NULL;
	while ((caller = list) != NULL) {
		list = caller->next;
		caller->done(caller->argument, err);
		memory_free(caller);
	}
}

static void
soon_expired(void *argument)
{
	waiting_tell(argument, NULL);
}

void
waiting_tell_soon(struct waiting *waiting, struct loop *loop)
{
	if (waiting->soon == NULL)
		waiting->soon = loop_timer_new(loop, soon_expired, waiting);
	loop_timer_start(waiting->soon, 0);
}

void
waiting_clear(struct waiting *waiting)
{
	struct waiting_caller *caller;

	loop_timer_free(waiting->soon);
	waiting->soon = NULL;
	while ((caller = waiting->callers) != NULL) {
		waiting->callers = caller->next;
		memory_free(caller);
	}
}
