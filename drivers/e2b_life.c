/* SPDX-License-Identifier: ISC */
/*
 * E2B ends a sandbox after its lifetime unless somebody pushes that back. We do: before an
 * operation once half of it has passed, every minute while a command runs, and at half of it when
 * the sandbox was used meanwhile, so that lifetime is a time of disuse. It is done with connect,
 * which never shortens what somebody else asked for.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "drivers/e2b_control.h"
#include "drivers/e2b_driver.h"

#define MINUTE INT64_C(60000)

static char *
sandbox_path(const struct driver_sandbox *sandbox, const char *rest)
{
	return memory_text_format("/sandboxes/%s%s", sandbox->id, rest);
}

/* The sandbox is gone, or does not run any more: the next use starts with a connect. */
static void
lose(struct driver_sandbox *sandbox, const struct error *err)
{
	if (sandbox->is_lost)
		return;
	sandbox->is_lost = true;
	loop_timer_stop(sandbox->tick);
	e2b_process_judge(sandbox, err);
	/* While a connect is under way its own first command tells of the loss. */
	if (sandbox->connect == NULL)
		sandbox->context.lost(sandbox->context.argument, err);
}

static void
extended(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct driver_sandbox *sandbox = argument;
	struct error err;

	sandbox->extending = NULL;
	if (reason != NULL) {
		err = *reason;
		error_wrap(&err, "extend the lifetime of sandbox %s", sandbox->id);
		log_error("e2b: %s", err.message);
	}
	if (answer->status == 404)
		e2b_life_check(sandbox);
	waiting_tell(&sandbox->waiting, reason == NULL ? NULL : &err);
}

static void
push_back(struct driver_sandbox *sandbox)
{
	char *path;

	sandbox->extended = loop_now();
	sandbox->used = false;
	path = sandbox_path(sandbox, "/connect");
	sandbox->extending = e2b_control_call(sandbox, "POST", path, e2b_timeout_body(sandbox),
	    sandbox->request_timeout, extended, sandbox);
	memory_free(path);
}

static bool
is_due(const struct driver_sandbox *sandbox)
{
	return sandbox->id != NULL && !sandbox->is_lost && sandbox->extending == NULL &&
	       loop_now() - sandbox->extended >= sandbox->lifetime / 2;
}

static int64_t
tick_period(const struct driver_sandbox *sandbox)
{
	return sandbox->lifetime / 2 < MINUTE ? sandbox->lifetime / 2 : MINUTE;
}

static void
tick(void *argument)
{
	struct driver_sandbox *sandbox = argument;

	loop_timer_start(sandbox->tick, tick_period(sandbox));
	if ((sandbox->processes != NULL && sandbox->extending == NULL) ||
	    (sandbox->used && is_due(sandbox)))
		push_back(sandbox);
}

void
e2b_life_begin(struct driver_sandbox *sandbox)
{
	if (sandbox->tick == NULL)
		sandbox->tick = loop_timer_new(sandbox->context.loop, tick, sandbox);
	sandbox->extended = loop_now();
	sandbox->used = false;
	loop_timer_start(sandbox->tick, tick_period(sandbox));
}

void
e2b_life_end(struct driver_sandbox *sandbox)
{
	loop_timer_free(sandbox->tick);
	sandbox->tick = NULL;
	http_cancel(sandbox->extending);
	http_cancel(sandbox->checking);
	sandbox->extending = sandbox->checking = NULL;
	waiting_clear(&sandbox->waiting);
}

void
e2b_life_use(struct driver_sandbox *sandbox)
{
	sandbox->used = true;
	if (is_due(sandbox))
		push_back(sandbox);
}

void
e2b_extend(struct driver_sandbox *sandbox, driver_done_fn *done, void *argument)
{
	waiting_add(&sandbox->waiting, done, argument);
	e2b_life_use(sandbox);
	if (sandbox->extending == NULL)
		waiting_tell_soon(&sandbox->waiting, sandbox->context.loop);
}

/* What the answer to a look at the sandbox means; 0 when it runs. */
static int
read_state(
    const struct driver_sandbox *sandbox, const struct http_answer *answer, struct error *err)
{
	struct json_object *object;
	const char *state;
	int result;

	if (answer->status == 404)
		return error_set(err, ERROR_UNAVAILABLE,
		    "sandbox %s is gone: it was killed, or its lifetime is over", sandbox->id);
	if (answer->outcome != HTTP_DONE)
		return 0;
	object = json_parse_object(answer->body, answer->size, NULL);
	state = json_text(object, "state");
	result = 0;
	if (state != NULL && strcmp(state, "paused") == 0)
		result = error_set(err, ERROR_UNAVAILABLE, "sandbox %s was paused", sandbox->id);
	json_object_put(object);
	return result;
}

static void
checked(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct driver_sandbox *sandbox = argument;
	struct error err;

	sandbox->checking = NULL;
	if (reason != NULL)
		log_debug("e2b: look at sandbox %s: %s", sandbox->id, reason->message);
	if (read_state(sandbox, answer, &err) != 0)
		lose(sandbox, &err);
	else
		e2b_process_judge(sandbox, NULL);
}

void
e2b_life_check(struct driver_sandbox *sandbox)
{
	char *path;

	if (sandbox->checking != NULL)
		return;
	path = sandbox_path(sandbox, "");
	sandbox->checking = e2b_control_call(
	    sandbox, "GET", path, NULL, sandbox->request_timeout, checked, sandbox);
	memory_free(path);
}
