/* SPDX-License-Identifier: ISC */
/* The Vercel driver: its object, and giving the sandbox back. vercel_driver.h says what is where. */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/json.h"
#include "drivers/check.h"
#include "drivers/connecting.h"
#include "drivers/kinds.h"
#include "drivers/others.h"
#include "drivers/vercel.h"
#include "drivers/vercel_control.h"
#include "drivers/vercel_driver.h"

/* ms; a stop waits for the disk to be saved, which takes most of a minute when it is big. */
#define RELEASE_TIMEOUT 80000
#define RELEASE_AGAIN 1000
#define RELEASE_ATTEMPTS 60
/* ms between two looks at what is still to be cleaned up in a sandbox that is kept. */
#define CHORE_AGAIN 50
#define CHORE_ATTEMPTS 100
/* How long the disk of a stopped sandbox is kept, in ms: as long as what Vercel saves by itself. */
#define SNAPSHOT_TIME (INT64_C(30) * 86400 * 1000)

static void
report_released(struct driver_sandbox *sandbox, const struct error *err)
{
	driver_done_fn *done = sandbox->released;

	sandbox->released = NULL;
	done(sandbox->release_argument, err);
}

/* Gone is as good as destroyed, and what does not run is as good as stopped. */
static bool
is_released(const struct driver_sandbox *sandbox, const struct http_answer *answer)
{
	if (sandbox->release == DRIVER_DESTROY)
		return answer->status == 404;
	return answer->status == 410;
}

/* A stop that should have left a snapshot, and says that it did not. */
static bool
has_lost_files(const struct driver_sandbox *sandbox, const struct http_answer *answer)
{
	struct vercel_look look;
	bool is_lost;

	if (sandbox->release != DRIVER_STOPPED || sandbox->is_persistent ||
	    vercel_read_look(sandbox, answer, &look, NULL) != 0)
		return false;
	is_lost = !look.has_snapshot;
	vercel_look_clear(&look);
	return is_lost;
}

static void
releasing_done(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct driver_sandbox *sandbox = argument;
	struct error err;

	sandbox->releasing = NULL;
	if (reason == NULL && has_lost_files(sandbox, answer)) {
		error_set(&err, ERROR_UNAVAILABLE,
		    "sandbox %s was stopped, and its files were not saved", sandbox->name);
		report_released(sandbox, &err);
		return;
	}
	if (reason == NULL || is_released(sandbox, answer)) {
		vercel_forget(sandbox);
		report_released(sandbox, NULL);
		return;
	}
	/* It is on its way to another state. */
	if ((answer->status == 409 || answer->status == 422) &&
	    ++sandbox->release_attempts < RELEASE_ATTEMPTS) {
		loop_timer_start(sandbox->release_again, RELEASE_AGAIN);
		return;
	}
	err = *reason;
	error_wrap(&err, "%s sandbox %s", sandbox->release == DRIVER_DESTROY ? "destroy" : "stop",
	    sandbox->name);
	report_released(sandbox, &err);
}

/* Ends what is under way, which would else wait for a sandbox that does not answer. */
static void
end_all(struct driver_sandbox *sandbox)
{
	struct error err;

	vercel_life_end(sandbox);
	sandbox->is_lost = true;
	error_set(&err, ERROR_ABORTED, "the sandbox is being released");
	terminal_pool_fail(&sandbox->terminals, &err);
}

/* What only this sandbox used is of no use to anybody any more: its snapshots go with it. */
static void
destroy_sandbox(struct driver_sandbox *sandbox)
{
	char *name, *path, *query;

	name = http_escape(sandbox->name);
	path = memory_text_format("/v2/sandboxes/%s", name);
	query = memory_text_format(
	    "&projectId=%s&deleteOrphanSnapshots=true", sandbox->credentials.project);
	sandbox->releasing = vercel_start_call(sandbox, &(struct vercel_call){ .method = "DELETE",
							    .path = path,
							    .query = query,
							    .repeat = HTTP_IDEMPOTENT,
							    .timeout = RELEASE_TIMEOUT,
							    .done = releasing_done,
							    .argument = sandbox });
	memory_free(name);
	memory_free(path);
	memory_free(query);
}

/*
 * A sandbox that is not persistent loses its files with its session, so what is asked for is a
 * snapshot, which ends the session as well. When such a snapshot ends by itself the documents do
 * not agree on (sheet, section 12), so it is said.
 */
static void
stop_sandbox(struct driver_sandbox *sandbox)
{
	struct json_object *body = NULL;

	if (!sandbox->is_persistent) {
		body = json_object_new_object();
		json_object_object_add(body, "expiration", json_object_new_int64(SNAPSHOT_TIME));
	}
	sandbox->releasing = vercel_session_call(sandbox,
	    sandbox->is_persistent ? "/stop" : "/snapshot",
	    &(struct vercel_call){ .method = "POST",
		.body = body,
		.repeat = HTTP_IDEMPOTENT,
		.timeout = RELEASE_TIMEOUT,
		.done = releasing_done,
		.argument = sandbox });
}

/* What does not run is as good as stopped; else it is stopped by its session. */
static void
looked_up(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct driver_sandbox *sandbox = argument;
	struct vercel_look found;
	struct error err;

	sandbox->releasing = NULL;
	if (reason != NULL) {
		err = *reason;
		error_wrap(&err, "sandbox %.128s", sandbox->name);
		report_released(sandbox, &err);
	} else if (vercel_read_look(sandbox, answer, &found, &err) != 0) {
		report_released(sandbox, &err);
	} else {
		sandbox->is_persistent = found.is_persistent;
		if (found.state == VERCEL_RUNNING || found.state == VERCEL_PENDING) {
			sandbox->session = memory_text(found.session);
			loop_timer_start(sandbox->release_again, 0);
		} else {
			report_released(sandbox, NULL);
		}
		vercel_look_clear(&found);
	}
}

/* Without resuming it. */
static void
look_up(struct driver_sandbox *sandbox)
{
	char *name, *path, *query;

	name = http_escape(sandbox->name);
	path = memory_text_format("/v2/sandboxes/%s", name);
	query = memory_text_format("&projectId=%s", sandbox->credentials.project);
	sandbox->releasing = vercel_start_call(sandbox, &(struct vercel_call){ .method = "GET",
							    .path = path,
							    .query = query,
							    .repeat = HTTP_IDEMPOTENT,
							    .timeout = RELEASE_TIMEOUT,
							    .done = looked_up,
							    .argument = sandbox });
	memory_free(name);
	memory_free(path);
	memory_free(query);
}

static void
begin_release(void *argument)
{
	struct driver_sandbox *sandbox = argument;

	connecting_cancel(sandbox->connect);
	others_cancel(&sandbox->others);
	terminal_pool_drop_spares(&sandbox->terminals);
	if (sandbox->release == DRIVER_KEEP || sandbox->name == NULL) {
		/* What is not asked for by now is not asked for at all: we are closed next. */
		if (sandbox->operations != NULL && !sandbox->is_lost &&
		    ++sandbox->release_attempts < CHORE_ATTEMPTS) {
			loop_timer_start(sandbox->release_again, CHORE_AGAIN);
			return;
		}
		report_released(sandbox, NULL);
		return;
	}
	end_all(sandbox);
	if (sandbox->release == DRIVER_DESTROY)
		destroy_sandbox(sandbox);
	else if (sandbox->session == NULL)
		look_up(sandbox);
	else
		stop_sandbox(sandbox);
}

static void
vercel_release(struct driver_sandbox *sandbox, enum driver_release release, driver_done_fn *done,
    void *argument)
{
	if (sandbox->released != NULL)
		log_fatal("vercel: release while releasing");
	sandbox->release = release;
	sandbox->released = done;
	sandbox->release_argument = argument;
	sandbox->release_attempts = 0;
	loop_timer_start(sandbox->release_again, 0);
}

/* No more is needed for it than the name, which is what connect told as the id. */
static void
vercel_put_away(struct driver_sandbox *sandbox, const char *id, enum driver_release release,
    driver_done_fn *done, void *argument)
{
	vercel_forget(sandbox);
	sandbox->name = memory_text(id);
	vercel_release(sandbox, release, done, argument);
}

static struct driver_stream *
vercel_start(struct driver_sandbox *sandbox, const struct driver_command *command,
    const struct driver_stream_events *events, void *argument)
{
	struct error refusal;
	bool is_usable;

	is_usable = vercel_check_usable(sandbox, &refusal) == 0;
	if (is_usable)
		vercel_life_use(sandbox);
	return terminal_stream_start(
	    &sandbox->terminals, is_usable ? NULL : &refusal, command, events, argument);
}

static int
set_up(struct driver_sandbox *sandbox, struct error *err)
{
	const struct settings *settings = sandbox->context.settings;
	const char *url;

	if (check_options(&driver_vercel_kind, settings, err) != 0 ||
	    vercel_credentials_read(settings, &sandbox->credentials, err) != 0)
		return -1;
	sandbox->setup.loop = sandbox->context.loop;
	sandbox->setup.ca_file = settings_text(settings, "ca_file");
	sandbox->setup.proxy = settings_text(settings, "proxy");
	sandbox->setup.no_proxy = settings_text(settings, "no_proxy");
	sandbox->http = http_new(&sandbox->setup, err);
	if (sandbox->http == NULL)
		return -1;
	url = settings_text(settings, "api_url");
	sandbox->api = memory_text_bounded(
	    url, strlen(url) - (url[0] != '\0' && url[strlen(url) - 1] == '/' ? 1 : 0));
	sandbox->auth_header = memory_text_format(
	    "Authorization: Bearer %s", sandbox->credentials.token);
	sandbox->lifetime = settings_number(settings, "lifetime");
	return 0;
}

static void
vercel_close(struct driver_sandbox *sandbox)
{
	sandbox->is_closing = true;
	connecting_cancel(sandbox->connect);
	others_cancel(&sandbox->others);
	terminal_pool_close(&sandbox->terminals);
	operation_cancel_all(&sandbox->operations);
	http_cancel(sandbox->releasing);
	vercel_life_end(sandbox);
	vercel_forget(sandbox);
	http_free(sandbox->http);
	loop_timer_free(sandbox->release_again);
	vercel_credentials_free(&sandbox->credentials);
	memory_text_wipe(sandbox->auth_header);
	memory_free(sandbox->api);
	memory_free(sandbox);
}

static struct driver_sandbox *
vercel_open(const struct driver_context *context, struct error *err)
{
	struct driver_sandbox *sandbox;

	sandbox = memory_zeroed(1, sizeof(*sandbox));
	sandbox->context = *context;
	sandbox->release_again = loop_timer_new(context->loop, begin_release, sandbox);
	if (set_up(sandbox, err) != 0) {
		vercel_close(sandbox);
		return NULL;
	}
	terminal_pool_init(&sandbox->terminals, &vercel_pty, &sandbox->setup, sandbox);
	return sandbox;
}

const struct driver driver_vercel = {
	.kind = &driver_vercel_kind,
	.open = vercel_open,
	.close = vercel_close,
	.connect = vercel_connect,
	.release = vercel_release,
	.put_away = vercel_put_away,
	.extend = vercel_extend,
	.read = vercel_read,
	.write = vercel_write,
	.run = vercel_run,
	.cancel = operation_cancel,
	.start = vercel_start,
	.resize = terminal_stream_resize,
	.signal = terminal_stream_signal,
	.close_stream = terminal_stream_close,
	.release_others = vercel_release_others,
};
