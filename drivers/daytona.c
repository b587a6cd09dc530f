/* SPDX-License-Identifier: ISC */
/* The Daytona driver: its object, and giving the sandbox back. daytona_driver.h says what is where.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "drivers/check.h"
#include "drivers/connecting.h"
#include "drivers/daytona.h"
#include "drivers/daytona_driver.h"
#include "drivers/kinds.h"
#include "drivers/operation.h"
#include "drivers/others.h"

/* ms; the control plane may need a while to see that a change is over. */
#define RELEASE_TIMEOUT 30000
#define RELEASE_AGAIN 1000
#define RELEASE_ATTEMPTS 30
/* ms between two looks at what is still to be cleaned up in a sandbox that is kept. */
#define CHORE_AGAIN 50
#define CHORE_ATTEMPTS 100

static void
report_released(struct driver_sandbox *sandbox, const struct error *err)
{
	driver_done_fn *done = sandbox->released;

	sandbox->released = NULL;
	done(sandbox->release_argument, err);
}

/* Gone is as good as destroyed, and whatever does not run is as good as stopped. */
static bool
is_released(const struct driver_sandbox *sandbox, const struct http_answer *answer)
{
	if (sandbox->release == DRIVER_DESTROY)
		return answer->status == 404;
	return answer->status == 400 && answer->size > 0 &&
	       memmem(answer->body, answer->size, "not in a stoppable state", 24) != NULL;
}

static void
releasing_done(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct driver_sandbox *sandbox = argument;
	struct error err;

	sandbox->releasing = NULL;
	if (reason == NULL || is_released(sandbox, answer)) {
		daytona_forget(sandbox);
		report_released(sandbox, NULL);
		return;
	}
	/* It is on its way to another state. */
	if (answer->status == 409 && ++sandbox->release_attempts < RELEASE_ATTEMPTS) {
		loop_timer_start(sandbox->release_again, RELEASE_AGAIN);
		return;
	}
	err = *reason;
	error_wrap(&err, "%s sandbox %s", sandbox->release == DRIVER_DESTROY ? "destroy" : "stop",
	    sandbox->id);
	report_released(sandbox, &err);
}

/* Ends what is under way, which would else wait for a sandbox that does not answer. */
static void
end_all(struct driver_sandbox *sandbox)
{
	struct error err;

	daytona_life_end(sandbox);
	sandbox->is_lost = true;
	error_set(&err, ERROR_ABORTED, "the sandbox is being released");
	terminal_pool_fail(&sandbox->terminals, &err);
}

static void
begin_release(void *argument)
{
	struct driver_sandbox *sandbox = argument;
	bool destroys;
	char *path;

	connecting_cancel(sandbox->connect);
	others_cancel(&sandbox->others);
	terminal_pool_drop_spares(&sandbox->terminals);
	if (sandbox->release == DRIVER_KEEP || sandbox->id == NULL) {
		/* What is not asked for by now is not asked for at all: we are closed next. */
		if (sandbox->chores != NULL && ++sandbox->release_attempts < CHORE_ATTEMPTS) {
			loop_timer_start(sandbox->release_again, CHORE_AGAIN);
			return;
		}
		report_released(sandbox, NULL);
		return;
	}
	end_all(sandbox);
	destroys = sandbox->release == DRIVER_DESTROY;
	path = memory_text_format("/sandbox/%s%s", sandbox->id, destroys ? "" : "/stop");
	sandbox->releasing = daytona_control_call(sandbox,
	    &(struct daytona_call){ .method = destroys ? "DELETE" : "POST",
		.path = path,
		.repeat = HTTP_IDEMPOTENT,
		.timeout = RELEASE_TIMEOUT },
	    releasing_done, sandbox);
	memory_free(path);
}

/* What the option sandbox names is not ours: it is destroyed on explicit wish only. */
static bool
spares(const struct driver_sandbox *sandbox)
{
	const struct settings *settings = sandbox->context.settings;

	return sandbox->is_attached && (settings_option(settings, "on_dispose") == NULL ||
					   !settings_has(settings, "on_dispose"));
}

static void
daytona_release(struct driver_sandbox *sandbox, enum driver_release release, driver_done_fn *done,
    void *argument)
{
	if (sandbox->released != NULL)
		log_fatal("daytona: release while releasing");
	sandbox->release = release == DRIVER_DESTROY && spares(sandbox) ? DRIVER_KEEP : release;
	sandbox->released = done;
	sandbox->release_argument = argument;
	sandbox->release_attempts = 0;
	loop_timer_start(sandbox->release_again, 0);
}

/* No more is needed for it than the id. */
static void
daytona_put_away(struct driver_sandbox *sandbox, const char *id, enum driver_release release,
    driver_done_fn *done, void *argument)
{
	daytona_forget(sandbox);
	sandbox->id = memory_text(id);
	sandbox->is_attached = false;
	daytona_release(sandbox, release, done, argument);
}

static struct driver_stream *
daytona_start(struct driver_sandbox *sandbox, const struct driver_command *command,
    const struct driver_stream_events *events, void *argument)
{
	struct error refusal;

	error_set(&refusal, ERROR_UNAVAILABLE, "the sandbox does not run");
	return terminal_stream_start(&sandbox->terminals,
	    sandbox->base == NULL || sandbox->is_lost ? &refusal : NULL, command, events, argument);
}

static struct driver_sandbox *
daytona_open(const struct driver_context *context, struct error *err)
{
	const struct settings *settings = context->settings;
	struct driver_sandbox *sandbox;
	const char *url;

	if (check_options(&driver_daytona_kind, settings, err) != 0)
		return NULL;
	sandbox = memory_zeroed(1, sizeof(*sandbox));
	sandbox->context = *context;
	sandbox->setup.loop = context->loop;
	sandbox->setup.ca_file = settings_text(settings, "ca_file");
	sandbox->setup.proxy = settings_text(settings, "proxy");
	sandbox->setup.no_proxy = settings_text(settings, "no_proxy");
	sandbox->http = http_new(&sandbox->setup, err);
	if (sandbox->http == NULL) {
		memory_free(sandbox);
		return NULL;
	}
	terminal_pool_init(&sandbox->terminals, &daytona_pty, &sandbox->setup, sandbox);
	url = settings_text(settings, "api_url");
	sandbox->api = memory_text(url);
	if (url[0] != '\0' && url[strlen(url) - 1] == '/')
		sandbox->api[strlen(url) - 1] = '\0';
	sandbox->auth_header = memory_text_format(
	    "Authorization: Bearer %s", settings_text(settings, "api_key"));
	sandbox->release_again = loop_timer_new(context->loop, begin_release, sandbox);
	return sandbox;
}

static void
daytona_close(struct driver_sandbox *sandbox)
{
	sandbox->is_closing = true;
	connecting_cancel(sandbox->connect);
	others_cancel(&sandbox->others);
	terminal_pool_close(&sandbox->terminals);
	operation_cancel_all(&sandbox->operations);
	daytona_chore_free_all(sandbox);
	daytona_life_end(sandbox);
	daytona_forget(sandbox);
	http_free(sandbox->http);
	loop_timer_free(sandbox->release_again);
	memory_text_wipe(sandbox->auth_header);
	memory_free(sandbox->api);
	memory_free(sandbox);
}

const struct driver driver_daytona = {
	.kind = &driver_daytona_kind,
	.open = daytona_open,
	.close = daytona_close,
	.connect = daytona_connect,
	.release = daytona_release,
	.put_away = daytona_put_away,
	.extend = daytona_extend,
	.read = daytona_read,
	.write = daytona_write,
	.run = daytona_run,
	.cancel = operation_cancel,
	.start = daytona_start,
	.resize = terminal_stream_resize,
	.signal = terminal_stream_signal,
	.close_stream = terminal_stream_close,
	.release_others = daytona_release_others,
};
