/* SPDX-License-Identifier: ISC */
#include "drivers/connecting.h"

#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "drivers/http.h"
#include "drivers/operation.h"

#define PAGES_MAX 20

static void
again_expired(void *argument)
{
	struct connecting *connect = argument;

	connect->step(connect);
}

static void
deadline_expired(void *argument)
{
	struct connecting *connect = argument;
	long long seconds = (long long)connect->limit / 1000;
	struct error err;

	if (connect->failure.code != ERROR_NONE) {
		err = connect->failure;
		error_wrap(&err, "not started within %lld s", seconds);
	} else {
		error_set(&err, ERROR_TIMEOUT, "the sandbox did not start within %lld s%s%s",
		    seconds, connect->word == NULL ? "" : "; it is ",
		    connect->word == NULL ? "" : connect->word);
	}
	connecting_fail(connect, &err, NULL);
}

struct connecting *
connecting_new(const struct connecting_kind *kind, const struct connecting_setup *setup)
{
	struct connecting *connect;

	if (*setup->place != NULL)
		log_fatal("%s: connect while connecting", kind->provider);
	connect = memory_zeroed(1, kind->size);
	connect->sandbox = setup->sandbox;
	connect->kind = kind;
	connect->place = setup->place;
	connect->may_create = setup->may_create;
	connect->done = setup->done;
	connect->argument = setup->argument;
	connect->again = loop_timer_new(setup->loop, again_expired, connect);
	connect->deadline = loop_timer_new(setup->loop, deadline_expired, connect);
	*setup->place = connect;
	return connect;
}

void
connecting_cancel(struct connecting *connect)
{
	if (connect == NULL)
		return;
	*connect->place = NULL;
	http_cancel(connect->request);
	if (connect->probe != NULL)
		operation_cancel(connect->probe);
	loop_timer_free(connect->again);
	loop_timer_free(connect->deadline);
	memory_free(connect->id);
	memory_free(connect->word);
	memory_free(connect);
}

void
connecting_start_deadline(struct connecting *connect, int64_t limit)
{
	connect->limit = limit;
	loop_timer_start(connect->deadline, limit);
}

void
connecting_begin_later(struct connecting *connect, connecting_step_fn *step, int64_t delay)
{
	connect->step = step;
	loop_timer_start(connect->again, delay);
}

void
connecting_aim(struct connecting *connect, const char *id)
{
	char *copy = memory_text(id);

	memory_free(connect->id);
	connect->id = copy;
	connect->may_exist = true;
}

void
connecting_note_state(struct connecting *connect, const char *word)
{
	memory_free(connect->word);
	connect->word = memory_text(word);
}

void
connecting_list(struct connecting *connect)
{
	connect->pages = 0;
	connect->kind->list(connect, NULL);
}

void
connecting_find(struct connecting *connect)
{
	if (connect->id != NULL)
		connect->kind->visit(connect);
	else
		connecting_list(connect);
}

void
connecting_create(struct connecting *connect)
{
	struct error err;

	if (connect->may_create) {
		connect->kind->create(connect);
		return;
	}
	error_set(&err, ERROR_NOT_FOUND, "there is no sandbox with this %s", connect->kind->label);
	connecting_fail(connect, &err, NULL);
}

void
connecting_listed(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct connecting *connect = argument;
	char *id = NULL, *page = NULL;
	struct error err;

	connect->request = NULL;
	if (reason != NULL) {
		connecting_fail(connect, reason, "list sandboxes");
		return;
	}
	if (connect->kind->find(connect->sandbox, answer, &id, &page, &err) != 0) {
		connecting_fail(connect, &err, NULL);
	} else if (id != NULL) {
		connecting_aim(connect, id);
		connect->adopted = true;
		connect->kind->visit(connect);
	} else if (page != NULL && ++connect->pages < PAGES_MAX) {
		connect->kind->list(connect, page);
	} else {
		connecting_create(connect);
	}
	memory_free(id);
	memory_free(page);
}

void
connecting_succeed(struct connecting *connect, const struct driver_connected *connected)
{
	driver_connected_fn *done = connect->done;
	void *argument = connect->argument;

	connecting_cancel(connect);
	done(argument, connected, NULL);
}

void
connecting_fail(struct connecting *connect, const struct error *err, const char *what)
{
	static const struct driver_connected nothing = { .nothing = true };
	const struct driver_connected *found = connect->may_exist ? NULL : &nothing;
	driver_connected_fn *done = connect->done;
	void *argument = connect->argument;
	struct error copy = *err;

	if (what != NULL)
		error_wrap(&copy, "%s", what);
	connecting_cancel(connect);
	done(argument, found, &copy);
}
