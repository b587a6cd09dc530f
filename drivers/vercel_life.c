/* SPDX-License-Identifier: ISC */
/*
 * Vercel ends a session its timeout after its start, used or not. We push that end back to a
 * lifetime from now: before an operation once half of it has passed, and every minute while a
 * command runs. What is asked for is an addition, so nothing that somebody else asked for is ever
 * shortened.
 */
#include <string.h>
#include <time.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "drivers/vercel_control.h"
#include "drivers/vercel_driver.h"

#define MINUTE INT64_C(60000)
/* ms */
#define REQUEST_TIMEOUT 20000
/* The shortest addition that Vercel takes. */
#define ADDITION_MIN 1000

/* The session is gone, or does not run any more: the next use starts with a connect. */
static void
lose(struct driver_sandbox *sandbox, const struct error *err)
{
	if (sandbox->is_lost)
		return;
	sandbox->is_lost = true;
	loop_timer_stop(sandbox->tick);
	terminal_pool_drop_spares(&sandbox->terminals);
	terminal_pool_fail(&sandbox->terminals, err);
	sandbox->context.lost(sandbox->context.argument, err);
}

/* What the answer to a look at the session means; 0 when it runs, or will. */
static int
read_fate(const struct driver_sandbox *sandbox, const struct http_answer *answer, struct error *err)
{
	struct vercel_look look;
	int result;

	if (answer->status == 404 || answer->status == 410)
		return error_set(err, ERROR_UNAVAILABLE, "sandbox %s is gone", sandbox->name);
	if (answer->outcome != HTTP_DONE || vercel_read_look(sandbox, answer, &look, err) != 0)
		return 0;
	result = 0;
	if (look.state != VERCEL_RUNNING && look.state != VERCEL_PENDING)
		result = error_set(err, ERROR_UNAVAILABLE,
		    "sandbox %s is %.32s: it was stopped, or its lifetime is over", sandbox->name,
		    look.word);
	vercel_look_clear(&look);
	return result;
}

static void
checked(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct driver_sandbox *sandbox = argument;
	struct error err;

	sandbox->checking = NULL;
	if (reason != NULL)
		log_debug("vercel: look at sandbox %s: %s", sandbox->name, reason->message);
	if (read_fate(sandbox, answer, &err) != 0)
		lose(sandbox, &err);
}

void
vercel_life_check(struct driver_sandbox *sandbox)
{
	/* Who connects looks for itself, and finds doubts of a life before no reason to give up. */
	if (sandbox->checking != NULL || sandbox->session == NULL || sandbox->is_lost ||
	    sandbox->connect != NULL)
		return;
	sandbox->checking = vercel_session_call(sandbox, "",
	    &(struct vercel_call){ .method = "GET",
		.repeat = HTTP_IDEMPOTENT,
		.timeout = REQUEST_TIMEOUT,
		.done = checked,
		.argument = sandbox });
}

/* ms until the session's end. */
static int64_t
time_left(const struct driver_sandbox *sandbox)
{
	int64_t left;

	left = sandbox->ends - loop_now();
	return left > 0 ? left : 0;
}

/* The plan's longest session is as long as it gets; said once. */
static void
take_cap(struct driver_sandbox *sandbox, struct error *err)
{
	sandbox->is_capped = true;
	error_set(err, ERROR_UNSUPPORTED,
	    "sandbox %s cannot live longer on this plan: it ends in %lld min", sandbox->name,
	    (long long)(time_left(sandbox) / MINUTE));
	log_info("vercel: %s", err->message);
}

static void
extended(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct driver_sandbox *sandbox = argument;
	struct vercel_look look;
	struct error err;

	sandbox->extending = NULL;
	if (reason == NULL) {
		/* The session's timeout counts from a beginning by the server's clock: the
		 * difference is what was added. */
		if (vercel_read_look(sandbox, answer, &look, &err) == 0) {
			if (look.timeout > 0) {
				sandbox->ends += look.timeout - sandbox->timeout;
				sandbox->timeout = look.timeout;
			}
			vercel_look_clear(&look);
		}
		waiting_tell(&sandbox->waiting, NULL);
		return;
	}
	if (vercel_is_code(answer, "sandbox_timeout_invalid")) {
		take_cap(sandbox, &err);
	} else {
		err = *reason;
		error_wrap(&err, "extend the lifetime of sandbox %s", sandbox->name);
		log_error("vercel: %s", err.message);
		if (vercel_is_suspicious(answer))
			vercel_life_check(sandbox);
	}
	waiting_tell(&sandbox->waiting, &err);
}

static void
push_back(struct driver_sandbox *sandbox)
{
	struct json_object *body;
	int64_t addition;

	sandbox->used = false;
	addition = sandbox->lifetime - time_left(sandbox);
	if (addition < ADDITION_MIN)
		return;
	body = json_object_new_object();
	json_object_object_add(body, "duration", json_object_new_int64(addition));
	/* Not again when its outcome is unknown: twice would add twice. */
	sandbox->extending = vercel_session_call(sandbox, "/extend-timeout",
	    &(struct vercel_call){ .method = "POST",
		.body = body,
		.timeout = REQUEST_TIMEOUT,
		.done = extended,
		.argument = sandbox });
}

static bool
may_extend(const struct driver_sandbox *sandbox)
{
	return sandbox->session != NULL && !sandbox->is_lost && !sandbox->is_capped &&
	       sandbox->extending == NULL;
}

static bool
is_due(const struct driver_sandbox *sandbox)
{
	return may_extend(sandbox) && time_left(sandbox) <= sandbox->lifetime / 2;
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
	bool runs = sandbox->terminals.streams != NULL || sandbox->operations != NULL;

	loop_timer_start(sandbox->tick, tick_period(sandbox));
	if (time_left(sandbox) == 0)
		vercel_life_check(sandbox);
	else if ((runs && may_extend(sandbox)) || (sandbox->used && is_due(sandbox)))
		push_back(sandbox);
}

void
vercel_life_begin(struct driver_sandbox *sandbox, const struct vercel_look *look)
{
	int64_t left;

	if (sandbox->tick == NULL)
		sandbox->tick = loop_timer_new(sandbox->context.loop, tick, sandbox);
	/* By two clocks, of which ours may be wrong: the end is neither past nor later than it can
	 * be. */
	left = look->timeout;
	if (look->began > 0)
		left = look->began + look->timeout - (int64_t)time(NULL) * 1000;
	if (left > look->timeout)
		left = look->timeout;
	if (left < 0)
		left = 0;
	sandbox->timeout = look->timeout;
	sandbox->ends = loop_now() + left;
	sandbox->is_capped = sandbox->used = false;
	loop_timer_start(sandbox->tick, tick_period(sandbox));
}

void
vercel_life_end(struct driver_sandbox *sandbox)
{
	loop_timer_free(sandbox->tick);
	sandbox->tick = NULL;
	http_cancel(sandbox->extending);
	http_cancel(sandbox->checking);
	sandbox->extending = sandbox->checking = NULL;
	waiting_clear(&sandbox->waiting);
}

void
vercel_life_use(struct driver_sandbox *sandbox)
{
	sandbox->used = true;
	if (is_due(sandbox))
		push_back(sandbox);
}

void
vercel_extend(struct driver_sandbox *sandbox, driver_done_fn *done, void *argument)
{
	waiting_add(&sandbox->waiting, done, argument);
	vercel_life_use(sandbox);
	if (sandbox->extending == NULL)
		waiting_tell_soon(&sandbox->waiting, sandbox->context.loop);
}
