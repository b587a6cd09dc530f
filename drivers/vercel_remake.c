/* SPDX-License-Identifier: ISC */
/*
 * What cannot be resumed holds nothing any more but its name. One word of that is not enough: it is
 * deleted only when it does not run either, and its snapshots are let be.
 */
#include "core/base/error.h"
#include "core/base/option.h"
#include "drivers/vercel_connect.h"
#include "drivers/vercel_control.h"
#include "drivers/vercel_driver.h"

/* A request about the sandbox's name. */
static void
call_name(struct connecting *connect, const char *method, http_done_fn *done)
{
	connect->request = vercel_name_call(connect->sandbox, connect->id,
	    &(struct vercel_call){ .method = method,
		.timeout = VERCEL_SLOW_TIMEOUT,
		.done = done,
		.argument = connect });
}

static void
deleted(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct connecting *connect = argument;

	connect->request = NULL;
	if (reason != NULL && answer->status != 404) {
		connecting_fail(connect, reason, "delete a sandbox without a snapshot");
		return;
	}
	connect->adopted = false;
	connecting_create(connect);
}

static bool
may_delete(const struct connecting *connect, const struct vercel_look *found)
{
	const struct settings *settings = connect->sandbox->context.settings;

	return found->is_ours && settings_option(settings, "never_delete") != NULL &&
	       !settings_boolean(settings, "never_delete");
}

static void
judge_dead(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct connecting *connect = argument;
	struct vercel_look found;
	struct error err;

	connect->request = NULL;
	if (reason != NULL || vercel_read_look(connect->sandbox, answer, &found, &err) != 0) {
		connecting_fail(connect, reason != NULL ? reason : &err,
		    "look at a sandbox without a snapshot");
		return;
	}
	if (found.state != VERCEL_STOPPED && found.state != VERCEL_FAILED) {
		connecting_begin_later(connect, connect->kind->visit, VERCEL_LOOK_DELAY);
	} else if (may_delete(connect, &found)) {
		((struct vercel_connect *)connect)->may_remake = false;
		call_name(connect, "DELETE", deleted);
	} else {
		vercel_connect_fail(connect, ERROR_NOT_FOUND,
		    "cannot be resumed, as it has no snapshot, and is not ours to be made anew");
	}
	vercel_look_clear(&found);
}

void
vercel_remake(struct connecting *connect)
{
	call_name(connect, "GET", judge_dead);
}
