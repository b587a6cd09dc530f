/* SPDX-License-Identifier: ISC */
/*
 * From nothing to a sandbox that runs commands:
 *
 *	a known id      connect, which resumes it when it is paused
 *	otherwise       list what has our label; connect to that, or create
 *
 * A create whose outcome is unknown is followed by a look at the list before it is tried again, so
 *that it leaves no second sandbox behind. At last a first command tells directory and user, and
 *proves that commands can run.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/json.h"
#include "drivers/e2b_control.h"
#include "drivers/e2b_driver.h"
#include "drivers/operation.h"
#include "drivers/probe.h"

/* ms; the server itself gives up after 70 s. */
#define START_TIMEOUT 90000
/* Creates whose outcome stayed unknown, moments of transition, first commands. */
#define ATTEMPTS_MAX 5
/* ms before another attempt, doubled each time. */
#define AGAIN_DELAY 500
#define PAGES_MAX 20
#define PROBE_OUTPUT_MAX 4096

struct e2b_connect {
	struct driver_sandbox *sandbox;
	driver_connected_fn *done;
	void *argument;
	bool may_create;
	char *id;     /* to connect to, or NULL */
	bool adopted; /* id is from the list: it may be gone meanwhile */
	bool created, started;
	bool old_list, no_default;
	unsigned pages, attempts;
	struct http_request *request;
	struct loop_timer *again;
	void (*step)(struct e2b_connect *connect); /* what again begins */
	struct driver_operation *probe;
	struct error doubt; /* why the last create may not have worked */
	bool may_exist;     /* what was found, or what a create may have made */
};

static void
free_connect(struct e2b_connect *connect)
{
	if (connect == NULL)
		return;
	connect->sandbox->connect = NULL;
	http_cancel(connect->request);
	if (connect->probe != NULL)
		operation_cancel(connect->probe);
	loop_timer_free(connect->again);
	memory_free(connect->id);
	memory_free(connect);
}

static void
fail(struct e2b_connect *connect, const struct error *err, const char *what)
{
	static const struct driver_connected nothing = { .nothing = true };
	const struct driver_connected *found = connect->may_exist ? NULL : &nothing;
	driver_connected_fn *done = connect->done;
	void *argument = connect->argument;
	struct error copy = *err;

	if (what != NULL)
		error_wrap(&copy, "%s", what);
	free_connect(connect);
	done(argument, found, &copy);
}

static void
again_expired(void *argument)
{
	struct e2b_connect *connect = argument;

	connect->step(connect);
}

static void
begin_step(struct e2b_connect *connect, void (*step)(struct e2b_connect *), int64_t delay)
{
	connect->step = step;
	loop_timer_start(connect->again, delay);
}

/* Begins step after a while, each time a longer one; false when that was done often enough. */
static bool
try_again(struct e2b_connect *connect, void (*step)(struct e2b_connect *))
{
	if (connect->attempts >= ATTEMPTS_MAX)
		return false;
	begin_step(connect, step, (int64_t)AGAIN_DELAY << connect->attempts);
	connect->attempts++;
	return true;
}

static int64_t
start_timeout(const struct driver_sandbox *sandbox)
{
	return settings_has(sandbox->context.settings, "request_timeout") ? sandbox->request_timeout
									  : START_TIMEOUT;
}

static void
succeed(struct e2b_connect *connect)
{
	struct driver_sandbox *sandbox = connect->sandbox;
	struct driver_connected connected = { 0 };
	driver_connected_fn *done = connect->done;
	void *argument = connect->argument;

	connected.id = sandbox->id;
	connected.directory = sandbox->directory;
	connected.user = sandbox->user;
	connected.created = connect->created;
	connected.attached = sandbox->is_attached;
	connected.started = connect->started;
	free_connect(connect);
	done(argument, &connected, NULL);
}

static void probe(struct e2b_connect *connect);

static void
probed(void *argument, const struct driver_result *result, const struct error *reason)
{
	struct e2b_connect *connect = argument;
	struct error err;

	connect->probe = NULL;
	if (reason != NULL) {
		/* The proxy may not know yet of what the control plane has just made. */
		if (reason->code == ERROR_UNAVAILABLE && !connect->sandbox->is_lost &&
		    try_again(connect, probe))
			return;
		/* The default directory is not there any more; create_root may make it again. */
		if (reason->code == ERROR_INVALID && !connect->no_default) {
			connect->no_default = true;
			probe(connect);
			return;
		}
		fail(connect, reason, "first command");
		return;
	}
	if (probe_read(result, &connect->sandbox->directory, &connect->sandbox->user, &err) != 0)
		fail(connect, &err, "first command");
	else
		succeed(connect);
}

static void
probe(struct e2b_connect *connect)
{
	struct driver_command command = { 0 };
	char shell[] = "sh", flag[] = "-c";
	char in_default[] = "pwd && id -un", in_root[] = "printf '%s\\n' \"${HOME:-/}\" && id -un";
	char *argv[] = { shell, flag, connect->no_default ? in_root : in_default, NULL };

	command.argv = argv;
	command.directory = connect->no_default ? "/" : NULL;
	connect->probe = e2b_run_command(
	    connect->sandbox, &command, NULL, 0, PROBE_OUTPUT_MAX, probed, connect);
}

/* The sandbox is known: its life begins, for us, and its first command. */
static void
begin_life(struct e2b_connect *connect)
{
	log_debug("e2b: sandbox %s at %s", connect->sandbox->id, connect->sandbox->base);
	connect->attempts = 0;
	e2b_life_begin(connect->sandbox);
	probe(connect);
}

static void list(struct e2b_connect *connect);

/* A sandbox that was made for nothing: nobody would ever find a use for it. */
static void
discard(struct driver_sandbox *sandbox)
{
	if (sandbox->id != NULL)
		e2b_chore_destroy(sandbox);
	e2b_forget(sandbox);
}

/* May it have been created, or would it be if it were asked for again? */
static bool
is_doubtful(const struct http_answer *answer)
{
	return answer->outcome == HTTP_UNKNOWN || answer->outcome == HTTP_BROKEN ||
	       answer->status >= 500;
}

static void
created(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct e2b_connect *connect = argument;
	struct error err;

	connect->request = NULL;
	if (reason != NULL) {
		connect->doubt = *reason;
		connect->may_exist = connect->may_exist || is_doubtful(answer);
		if (!is_doubtful(answer) || !try_again(connect, list))
			fail(connect, reason, "create sandbox");
		return;
	}
	connect->created = connect->may_exist = true;
	if (e2b_take_answer(connect->sandbox, answer, &err) == 0) {
		begin_life(connect);
		return;
	}
	discard(connect->sandbox);
	fail(connect, &err, "create sandbox");
}

static void
create(struct e2b_connect *connect)
{
	struct driver_sandbox *sandbox = connect->sandbox;
	struct error err;

	if (!connect->may_create) {
		error_set(&err, ERROR_NOT_FOUND, "there is no sandbox with this label");
		fail(connect, &err, NULL);
		return;
	}
	connect->request = e2b_create_call(
	    sandbox, e2b_create_body(sandbox), start_timeout(sandbox), created, connect);
}

static void resume(struct e2b_connect *connect);

static void
resumed(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct e2b_connect *connect = argument;
	struct error err;

	connect->request = NULL;
	if (reason == NULL) {
		connect->started = answer->status == 201;
		if (e2b_take_answer(connect->sandbox, answer, &err) == 0)
			begin_life(connect);
		else
			fail(connect, &err, "connect");
		return;
	}
	if (answer->status == 404 && connect->adopted) {
		create(connect);
		return;
	}
	/* It is on its way to another state. */
	if (answer->status == 409 && try_again(connect, resume))
		return;
	err = *reason;
	error_wrap(&err, "connect to sandbox %.64s", connect->id);
	fail(connect, &err, NULL);
}

static void
resume(struct e2b_connect *connect)
{
	char *id, *path;

	connect->may_exist = true;
	id = http_escape(connect->id);
	path = memory_text_format("/sandboxes/%s/connect", id);
	connect->request = e2b_control_call(connect->sandbox, "POST", path,
	    e2b_timeout_body(connect->sandbox), start_timeout(connect->sandbox), resumed, connect);
	memory_free(path);
	memory_free(id);
}

static void list_page(struct e2b_connect *connect, const char *next_page);

static void
listed(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct e2b_connect *connect = argument;
	struct error err;

	connect->request = NULL;
	if (reason != NULL && !connect->old_list &&
	    (answer->status == 404 || answer->status == 405)) {
		connect->old_list = true;
		list(connect);
		return;
	}
	if (reason != NULL) {
		fail(connect, reason, "list sandboxes");
		return;
	}
	if (e2b_find_ours(connect->sandbox, answer, &connect->id, &err) != 0) {
		fail(connect, &err, NULL);
	} else if (connect->id != NULL) {
		connect->adopted = true;
		/* A create of ours that we heard nothing of had worked. */
		connect->created = connect->doubt.code != ERROR_NONE;
		resume(connect);
	} else if (answer->next_page != NULL && ++connect->pages < PAGES_MAX) {
		list_page(connect, answer->next_page);
	} else {
		create(connect);
	}
}

static void
list_page(struct e2b_connect *connect, const char *next_page)
{
	char *path;

	path = e2b_list_path(connect->sandbox, connect->old_list, next_page);
	connect->request = e2b_control_call(connect->sandbox, "GET", path, NULL,
	    connect->sandbox->request_timeout, listed, connect);
	memory_free(path);
}

static void
list(struct e2b_connect *connect)
{
	connect->pages = 0;
	list_page(connect, NULL);
}

void
e2b_connect(struct driver_sandbox *sandbox, const struct driver_target *target,
    driver_connected_fn *done, void *argument)
{
	struct e2b_connect *connect;
	const char *id;

	if (sandbox->connect != NULL)
		log_fatal("e2b: connect while connecting");
	connect = memory_zeroed(1, sizeof(*connect));
	sandbox->connect = connect;
	connect->sandbox = sandbox;
	connect->done = done;
	connect->argument = argument;
	connect->may_create = target->may_create;
	connect->again = loop_timer_new(sandbox->context.loop, again_expired, connect);
	id = target->id;
	if (id == NULL) {
		id = settings_text(sandbox->context.settings, "sandbox_id");
		sandbox->is_attached = id != NULL;
	}
	if (id != NULL) {
		connect->id = memory_text(id);
		resume(connect);
	} else {
		list(connect);
	}
}

void
e2b_connect_cancel(struct driver_sandbox *sandbox)
{
	free_connect(sandbox->connect);
}
