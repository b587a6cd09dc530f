/* SPDX-License-Identifier: ISC */
/* The E2B driver: its object, and giving the sandbox back. e2b_driver.h says what is where. */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/json.h"
#include "drivers/check.h"
#include "drivers/connecting.h"
#include "drivers/e2b.h"
#include "drivers/e2b_control.h"
#include "drivers/e2b_driver.h"
#include "drivers/kinds.h"
#include "drivers/operation.h"
#include "drivers/others.h"

/* ms; a pause of a big sandbox takes most of a minute. */
#define RELEASE_TIMEOUT 80000

static char *
make_api(const struct settings *settings)
{
	const char *url;

	url = settings_text(settings, "api_url");
	if (url == NULL)
		return memory_text_format("https://api.%s", settings_text(settings, "domain"));
	return memory_text_bounded(url, strlen(url) - (url[strlen(url) - 1] == '/' ? 1 : 0));
}

static void
report_released(struct driver_sandbox *sandbox, const struct error *err)
{
	driver_done_fn *done = sandbox->released;

	sandbox->released = NULL;
	done(sandbox->release_argument, err);
}

static void
releasing_done(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct driver_sandbox *sandbox = argument;
	struct error err;
	bool is_gone, was_paused;

	sandbox->releasing = NULL;
	is_gone = sandbox->release == DRIVER_DESTROY && answer->status == 404;
	was_paused = sandbox->release == DRIVER_STOPPED && answer->status == 409;
	if (reason == NULL || is_gone || was_paused) {
		e2b_forget(sandbox);
		report_released(sandbox, NULL);
		return;
	}
	err = *reason;
	error_wrap(&err, "%s sandbox %s", sandbox->release == DRIVER_DESTROY ? "destroy" : "pause",
	    sandbox->id);
	report_released(sandbox, &err);
}

/* Ends what is under way, whose streams would else wait for a sandbox that does not answer. */
static void
end_all(struct driver_sandbox *sandbox)
{
	struct error err;

	connecting_cancel(sandbox->connect);
	others_cancel(&sandbox->others);
	e2b_life_end(sandbox);
	error_set(&err, ERROR_ABORTED, "the sandbox is being released");
	e2b_process_judge(sandbox, &err);
}

static void
begin_release(void *argument)
{
	struct driver_sandbox *sandbox = argument;
	struct json_object *body;
	bool destroys;
	char *path;

	if (sandbox->release == DRIVER_KEEP || sandbox->id == NULL) {
		report_released(sandbox, NULL);
		return;
	}
	end_all(sandbox);
	destroys = sandbox->release == DRIVER_DESTROY;
	path = memory_text_format("/sandboxes/%s%s", sandbox->id, destroys ? "" : "/pause");
	body = destroys ? NULL : json_object_new_object();
	sandbox->releasing = e2b_control_call(sandbox, destroys ? "DELETE" : "POST", path, body,
	    RELEASE_TIMEOUT, releasing_done, sandbox);
	memory_free(path);
}

/* What the option sandbox_id names is not ours: it is destroyed on explicit wish only. */
static bool
spares(const struct driver_sandbox *sandbox)
{
	const struct settings *settings = sandbox->context.settings;

	return sandbox->is_attached && (settings_option(settings, "on_dispose") == NULL ||
					   !settings_has(settings, "on_dispose"));
}

static void
e2b_release(struct driver_sandbox *sandbox, enum driver_release release, driver_done_fn *done,
    void *argument)
{
	if (sandbox->released != NULL)
		log_fatal("e2b: release while releasing");
	sandbox->release = release == DRIVER_DESTROY && spares(sandbox) ? DRIVER_KEEP : release;
	sandbox->released = done;
	sandbox->release_argument = argument;
	loop_timer_start(sandbox->release_soon, 0);
}

/* No more is needed for it than the id. */
static void
e2b_put_away(struct driver_sandbox *sandbox, const char *id, enum driver_release release,
    driver_done_fn *done, void *argument)
{
	e2b_forget(sandbox);
	sandbox->id = memory_text(id);
	sandbox->is_attached = false;
	e2b_release(sandbox, release, done, argument);
}

static struct driver_sandbox *
e2b_open(const struct driver_context *context, struct error *err)
{
	const struct settings *settings = context->settings;
	struct http_setup setup = { 0 };
	struct driver_sandbox *sandbox;

	if (check_options(&driver_e2b_kind, settings, err) != 0)
		return NULL;
	sandbox = memory_zeroed(1, sizeof(*sandbox));
	sandbox->context = *context;
	setup.loop = context->loop;
	setup.ca_file = settings_text(settings, "ca_file");
	setup.proxy = settings_text(settings, "proxy");
	setup.no_proxy = settings_text(settings, "no_proxy");
	sandbox->http = http_new(&setup, err);
	if (sandbox->http == NULL) {
		memory_free(sandbox);
		return NULL;
	}
	sandbox->api = make_api(settings);
	sandbox->key_header = memory_text_format(
	    "X-API-Key: %s", settings_text(settings, "api_key"));
	sandbox->lifetime = settings_number(settings, "lifetime");
	sandbox->request_timeout = settings_number(settings, "request_timeout");
	sandbox->release_soon = loop_timer_new(context->loop, begin_release, sandbox);
	return sandbox;
}

static void
e2b_close(struct driver_sandbox *sandbox)
{
	sandbox->is_closing = true;
	connecting_cancel(sandbox->connect);
	others_cancel(&sandbox->others);
	while (sandbox->streams != NULL)
		e2b_close_stream(sandbox->streams);
	operation_cancel_all(&sandbox->operations);
	e2b_chore_free_all(sandbox);
	e2b_life_end(sandbox);
	e2b_forget(sandbox);
	http_free(sandbox->http);
	loop_timer_free(sandbox->release_soon);
	memory_text_wipe(sandbox->key_header);
	memory_free(sandbox->api);
	memory_free(sandbox);
}

const struct driver driver_e2b = {
	.kind = &driver_e2b_kind,
	.open = e2b_open,
	.close = e2b_close,
	.connect = e2b_connect,
	.release = e2b_release,
	.put_away = e2b_put_away,
	.extend = e2b_extend,
	.read = e2b_read,
	.write = e2b_write,
	.run = e2b_run,
	.cancel = operation_cancel,
	.start = e2b_start,
	.resize = e2b_resize,
	.signal = e2b_signal,
	.close_stream = e2b_close_stream,
	.release_others = e2b_release_others,
};
