/* SPDX-License-Identifier: ISC */
/*
 * Daytona stops a sandbox after auto_stop_interval without a request; commands that run do not
 * count. So we give a sign of activity every 50 s while there are any, and before operations.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "drivers/daytona_control.h"
#include "drivers/daytona_driver.h"

/* ms */
#define TICK 50000
#define TOUCH_TIMEOUT 20000

bool
daytona_is_suspicious(const struct http_answer *answer)
{
	/* 400: "Is the Sandbox started?", 404: no container, 502 and up: nobody there. */
	return answer->outcome == HTTP_UNKNOWN || answer->outcome == HTTP_BROKEN ||
	       answer->status == 400 || answer->status == 404 || answer->status >= 502;
}

static void
touched(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct driver_sandbox *sandbox = argument;

	(void)answer;
	sandbox->touching = NULL;
	if (err != NULL)
		log_info("daytona: a sign of activity did not arrive: %s", err->message);
	waiting_tell(&sandbox->waiting, err);
}

static void
touch(struct driver_sandbox *sandbox)
{
	char *path;

	if (sandbox->touching != NULL || sandbox->id == NULL || sandbox->is_lost)
		return;
	sandbox->touched = loop_now();
	path = memory_text_format("/sandbox/%s/last-activity", sandbox->id);
	sandbox->touching = daytona_control_call(sandbox,
	    &(struct daytona_call){ .method = "POST",
		.path = path,
		.repeat = HTTP_IDEMPOTENT,
		.timeout = TOUCH_TIMEOUT },
	    touched, sandbox);
	memory_free(path);
}

static void
tick(void *argument)
{
	struct driver_sandbox *sandbox = argument;

	loop_timer_start(sandbox->tick, TICK);
	if (sandbox->terminals.streams != NULL || sandbox->operations != NULL)
		touch(sandbox);
}

void
daytona_life_begin(struct driver_sandbox *sandbox)
{
	if (sandbox->tick == NULL)
		sandbox->tick = loop_timer_new(sandbox->context.loop, tick, sandbox);
	sandbox->touched = loop_now();
	loop_timer_start(sandbox->tick, TICK);
}

void
daytona_life_end(struct driver_sandbox *sandbox)
{
	loop_timer_free(sandbox->tick);
	sandbox->tick = NULL;
	http_cancel(sandbox->touching);
	http_cancel(sandbox->checking);
	sandbox->touching = sandbox->checking = NULL;
	waiting_clear(&sandbox->waiting);
}

void
daytona_extend(struct driver_sandbox *sandbox, driver_done_fn *done, void *argument)
{
	waiting_add(&sandbox->waiting, done, argument);
	if (loop_now() - sandbox->touched >= TICK)
		touch(sandbox);
	if (sandbox->touching == NULL)
		waiting_tell_soon(&sandbox->waiting, sandbox->context.loop);
}

/* What the answer to a look at the sandbox means; 0 when it runs, or will. */
static int
read_fate(const struct driver_sandbox *sandbox, const struct http_answer *answer, struct error *err)
{
	struct daytona_look look;
	int result;

	if (answer->status == 404)
		return error_set(err, ERROR_UNAVAILABLE, "sandbox %s is gone", sandbox->id);
	if (answer->outcome != HTTP_DONE || daytona_read_look(sandbox, answer, &look, err) != 0)
		return 0;
	result = 0;
	if (look.state == DAYTONA_FAILED)
		result = error_set(
		    err, ERROR_UNAVAILABLE, "sandbox %s failed: %.200s", sandbox->id, look.reason);
	else if (look.state != DAYTONA_STARTED)
		result = error_set(
		    err, ERROR_UNAVAILABLE, "sandbox %s is %.32s", sandbox->id, look.word);
	daytona_look_clear(&look);
	return result;
}

static void
checked(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct driver_sandbox *sandbox = argument;
	struct error err;

	sandbox->checking = NULL;
	if (reason != NULL)
		log_debug("daytona: look at sandbox %s: %s", sandbox->id, reason->message);
	if (sandbox->is_lost || read_fate(sandbox, answer, &err) == 0)
		return;
	sandbox->is_lost = true;
	terminal_pool_drop_spares(&sandbox->terminals);
	terminal_pool_fail(&sandbox->terminals, &err);
	sandbox->context.lost(sandbox->context.argument, &err);
}

void
daytona_life_check(struct driver_sandbox *sandbox)
{
	char *path;

	/* Who connects looks for itself, and finds doubts of a life before no reason to give up. */
	if (sandbox->checking != NULL || sandbox->id == NULL || sandbox->is_lost ||
	    sandbox->connect != NULL)
		return;
	path = memory_text_format("/sandbox/%s", sandbox->id);
	sandbox->checking = daytona_control_call(sandbox,
	    &(struct daytona_call){ .method = "GET",
		.path = path,
		.repeat = HTTP_IDEMPOTENT,
		.timeout = TOUCH_TIMEOUT },
	    checked, sandbox);
	memory_free(path);
}
