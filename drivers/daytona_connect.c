/* SPDX-License-Identifier: ISC */
/*
 * From nothing to a sandbox that runs commands:
 *
 *	a known id or name   look at it
 *	otherwise            list what has our label; look at that, or create
 *	then                 start it when it is stopped, and look until it is started
 *	at last              a first command tells directory and user
 *
 * A create whose outcome is unknown is followed by a look at the name that it was to have, so that
 *it leaves no second sandbox behind.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/json.h"
#include "core/marker.h"
#include "drivers/daytona_control.h"
#include "drivers/daytona_driver.h"
#include "drivers/operation.h"
#include "drivers/probe.h"

/* ms; create and start answer within 30 s of the server's own waiting. */
#define SLOW_TIMEOUT 60000
#define QUICK_TIMEOUT 20000
/* ms between two looks, the first and the longest. */
#define LOOK_DELAY 250
#define LOOK_DELAY_MAX 1000
#define PAGES_MAX 20
#define PROBE_OUTPUT_MAX 4096

struct daytona_connect {
	struct driver_sandbox *sandbox;
	driver_connected_fn *done;
	void *argument;
	bool may_create;
	char *id;     /* or name, to look at */
	bool adopted; /* id is from the list: it may be gone meanwhile */
	bool created, started;
	bool in_doubt; /* a create was sent, and its answer lost */
	unsigned pages;
	int64_t delay;
	struct http_request *request;
	struct loop_timer *again, *deadline;
	void (*step)(struct daytona_connect *connect); /* what again begins */
	struct driver_operation *probe;
	char *word;           /* the state that was seen last */
	struct error failure; /* of the last attempt at what is tried again */
	bool may_exist;       /* what was found, or what a create may have made */
};

static void
free_connect(struct daytona_connect *connect)
{
	if (connect == NULL)
		return;
	connect->sandbox->connect = NULL;
	http_cancel(connect->request);
	if (connect->probe != NULL)
		operation_cancel(connect->probe);
	loop_timer_free(connect->again);
	loop_timer_free(connect->deadline);
	memory_free(connect->id);
	memory_free(connect->word);
	memory_free(connect);
}

static void
fail(struct daytona_connect *connect, const struct error *err, const char *what)
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
	struct daytona_connect *connect = argument;

	connect->step(connect);
}

/* Begins step after a while, each time a longer one, until the deadline. */
static void
try_again(struct daytona_connect *connect, void (*step)(struct daytona_connect *))
{
	connect->step = step;
	loop_timer_start(connect->again, connect->delay);
	connect->delay = connect->delay * 3 / 2;
	if (connect->delay > LOOK_DELAY_MAX)
		connect->delay = LOOK_DELAY_MAX;
}

static void
deadline_expired(void *argument)
{
	struct daytona_connect *connect = argument;
	long long seconds;
	struct error err;

	seconds = (long long)settings_number(connect->sandbox->context.settings, "start_timeout") /
		  1000;
	if (connect->failure.code != ERROR_NONE) {
		err = connect->failure;
		error_wrap(&err, "not started within %lld s", seconds);
	} else {
		error_set(&err, ERROR_TIMEOUT, "the sandbox did not start within %lld s%s%s",
		    seconds, connect->word == NULL ? "" : "; it is ",
		    connect->word == NULL ? "" : connect->word);
	}
	fail(connect, &err, NULL);
}

/* ms for one request, so that none outlasts the deadline by much. */
static int64_t
limit_timeout(const struct daytona_connect *connect, int64_t timeout)
{
	int64_t whole;

	whole = settings_number(connect->sandbox->context.settings, "start_timeout");
	return timeout < whole ? timeout : whole;
}

static void
succeed(struct daytona_connect *connect)
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

static void probe(struct daytona_connect *connect);

static void
probed(void *argument, const struct driver_result *result, const struct error *reason)
{
	struct daytona_connect *connect = argument;
	struct error err;

	connect->probe = NULL;
	if (reason != NULL && reason->code == ERROR_UNAVAILABLE && !connect->sandbox->is_lost) {
		/* The proxy, or the daemon, may lag behind the control plane. */
		connect->failure = *reason;
		try_again(connect, probe);
	} else if (reason != NULL) {
		fail(connect, reason, "first command");
	} else if (probe_read(
		       result, &connect->sandbox->directory, &connect->sandbox->user, &err) != 0) {
		fail(connect, &err, "first command");
	} else {
		succeed(connect);
	}
}

static void
probe(struct daytona_connect *connect)
{
	char shell[] = "sh", flag[] = "-c", script[] = "pwd && id -un";
	char *argv[] = { shell, flag, script, NULL };

	connect->probe = daytona_run(
	    connect->sandbox, argv, NULL, 0, PROBE_OUTPUT_MAX, probed, connect);
}

/* The sandbox is started and known. */
static void
begin_life(struct daytona_connect *connect, const char *toolbox)
{
	struct driver_sandbox *sandbox = connect->sandbox;

	memory_free(sandbox->base);
	sandbox->base = memory_text_format("%s/%s", toolbox, sandbox->id);
	log_debug("daytona: sandbox %s at %s", sandbox->id, sandbox->base);
	connect->delay = LOOK_DELAY;
	connect->failure.code = ERROR_NONE;
	daytona_life_begin(sandbox);
	probe(connect);
}

static void ask_toolbox(struct daytona_connect *connect);

static void
toolbox_told(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct daytona_connect *connect = argument;
	struct json_object *object;
	const char *url;
	struct error err;

	connect->request = NULL;
	if (reason != NULL) {
		fail(connect, reason, "ask for the toolbox");
		return;
	}
	object = json_parse_object(answer->body, answer->size, NULL);
	url = json_text(object, "url");
	if (url != NULL && strncmp(url, "http", 4) == 0) {
		begin_life(connect, url);
	} else {
		error_set(&err, ERROR_UNAVAILABLE, "the control plane tells no URL of the toolbox");
		fail(connect, &err, NULL);
	}
	json_object_put(object);
}

static void
ask_toolbox(struct daytona_connect *connect)
{
	char *path;

	path = memory_text_format("/sandbox/%s/toolbox-proxy-url", connect->sandbox->id);
	connect->request = daytona_control_call(connect->sandbox,
	    &(struct daytona_call){ .method = "GET",
		.path = path,
		.repeat = HTTP_IDEMPOTENT,
		.timeout = limit_timeout(connect, QUICK_TIMEOUT) },
	    toolbox_told, connect);
	memory_free(path);
}

static void look(struct daytona_connect *connect);
static void create(struct daytona_connect *connect);

static void
starting(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct daytona_connect *connect = argument;

	connect->request = NULL;
	/* 409: somebody else starts it, or it is still being stopped. Else its outcome is seen by
	 * looking. */
	if (reason != NULL && answer->outcome == HTTP_REFUSED && answer->status != 409 &&
	    answer->status < 500) {
		fail(connect, reason, "start sandbox");
		return;
	}
	if (reason != NULL)
		connect->failure = *reason;
	else
		connect->started = true;
	try_again(connect, look);
}

static void
start(struct daytona_connect *connect)
{
	char *path;

	path = memory_text_format("/sandbox/%s/start", connect->sandbox->id);
	connect->request = daytona_control_call(connect->sandbox,
	    &(struct daytona_call){ .method = "POST", .path = path, .timeout = SLOW_TIMEOUT },
	    starting, connect);
	memory_free(path);
}

/* Goes on as the sandbox's state demands. */
static void
take_look(struct daytona_connect *connect, const struct daytona_look *found)
{
	struct driver_sandbox *sandbox = connect->sandbox;
	struct error err;

	memory_free(sandbox->id);
	sandbox->id = memory_text(found->id);
	memory_free(connect->word);
	connect->word = memory_text(found->word);
	switch (found->state) {
	case DAYTONA_STARTED:
		if (found->toolbox != NULL)
			begin_life(connect, found->toolbox);
		else
			ask_toolbox(connect);
		break;
	case DAYTONA_STOPPED:
		start(connect);
		break;
	case DAYTONA_MOVING:
		try_again(connect, look);
		break;
	case DAYTONA_GONE:
		if (connect->adopted) {
			create(connect);
			break;
		}
		error_set(&err, ERROR_NOT_FOUND, "sandbox %.64s is destroyed", found->id);
		fail(connect, &err, NULL);
		break;
	case DAYTONA_FAILED:
		error_set(&err, ERROR_UNAVAILABLE, "sandbox %.64s failed (%.32s): %.200s",
		    found->id, found->word, found->reason);
		fail(connect, &err, NULL);
		break;
	}
}

/* Is what has the name of our lost create, or the name we wanted, ours? */
static bool
is_welcome(const struct daytona_connect *connect, const struct daytona_look *found)
{
	return !connect->in_doubt || found->is_ours;
}

static void
looked(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct daytona_connect *connect = argument;
	struct daytona_look found;
	struct error err;

	connect->request = NULL;
	if (reason != NULL && answer->status == 404 && (connect->adopted || connect->in_doubt)) {
		connect->in_doubt = false;
		create(connect);
		return;
	}
	if (reason != NULL) {
		err = *reason;
		error_wrap(&err, "sandbox %.64s", connect->id);
		fail(connect, &err, NULL);
		return;
	}
	if (daytona_read_look(connect->sandbox, answer, &found, &err) != 0) {
		fail(connect, &err, NULL);
		return;
	}
	if (is_welcome(connect, &found)) {
		take_look(connect, &found);
	} else {
		error_set(&err, ERROR_EXISTS,
		    "there is a sandbox %.64s already, and it is not ours", connect->id);
		fail(connect, &err, NULL);
	}
	daytona_look_clear(&found);
}

static void
look(struct daytona_connect *connect)
{
	char *id, *path;

	id = http_escape(connect->id);
	path = memory_text_format("/sandbox/%s", id);
	connect->request = daytona_control_call(connect->sandbox,
	    &(struct daytona_call){ .method = "GET",
		.path = path,
		.repeat = HTTP_IDEMPOTENT,
		.timeout = limit_timeout(connect, QUICK_TIMEOUT) },
	    looked, connect);
	memory_free(path);
	memory_free(id);
}

/* Looks at what has this id or name from now on. */
static void
aim(struct daytona_connect *connect, const char *id)
{
	char *copy = memory_text(id);

	memory_free(connect->id);
	connect->id = copy;
}

static void
created(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct daytona_connect *connect = argument;
	struct daytona_look found;
	struct error err;

	connect->request = NULL;
	if (reason != NULL && answer->outcome == HTTP_REFUSED && answer->status < 500 &&
	    answer->status != 409) {
		/* Of an earlier create of this call nothing is known either way. */
		connect->may_exist = connect->failure.code != ERROR_NONE;
		fail(connect, reason, "create sandbox");
		return;
	}
	connect->adopted = false;
	if (reason != NULL) {
		/* Not known, or the name is taken: by an earlier attempt of ours? */
		connect->failure = *reason;
		connect->in_doubt = true;
		connect->created = answer->status != 409;
		try_again(connect, look);
		return;
	}
	connect->created = true;
	if (daytona_read_look(connect->sandbox, answer, &found, &err) != 0) {
		fail(connect, &err, "create sandbox");
		return;
	}
	/* What the answer tells is the state before the server's own waiting. */
	aim(connect, found.id);
	daytona_look_clear(&found);
	look(connect);
}

static void
create(struct daytona_connect *connect)
{
	struct driver_sandbox *sandbox = connect->sandbox;
	char token[MARKER_TOKEN_SIZE], *name;
	struct json_object *body;
	struct error err;

	if (!connect->may_create) {
		error_set(&err, ERROR_NOT_FOUND, "there is no sandbox with this label");
		fail(connect, &err, NULL);
		return;
	}
	marker_make_token(token);
	name = settings_text(sandbox->context.settings, "name") == NULL
		   ? memory_text_format("rws-%.16s", token)
		   : memory_text(settings_text(sandbox->context.settings, "name"));
	aim(connect, name);
	body = daytona_create_body(sandbox, name, &err);
	memory_free(name);
	if (body == NULL) {
		fail(connect, &err, NULL);
		return;
	}
	connect->may_exist = true;
	connect->request = daytona_control_call(sandbox,
	    &(struct daytona_call){
		.method = "POST", .path = "/sandbox", .body = body, .timeout = SLOW_TIMEOUT },
	    created, connect);
}

static void list(struct daytona_connect *connect, const char *cursor);

static void
listed(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct daytona_connect *connect = argument;
	char *id = NULL, *cursor = NULL;
	struct error err;

	connect->request = NULL;
	if (reason != NULL) {
		fail(connect, reason, "list sandboxes");
		return;
	}
	if (daytona_find_ours(connect->sandbox, answer, &id, &cursor, &err) != 0) {
		fail(connect, &err, NULL);
	} else if (id != NULL) {
		aim(connect, id);
		connect->adopted = connect->may_exist = true;
		look(connect);
	} else if (cursor != NULL && ++connect->pages < PAGES_MAX) {
		list(connect, cursor);
	} else {
		create(connect);
	}
	memory_free(id);
	memory_free(cursor);
}

static void
list(struct daytona_connect *connect, const char *cursor)
{
	char *path;

	path = daytona_list_path(connect->sandbox, cursor);
	connect->request = daytona_control_call(connect->sandbox,
	    &(struct daytona_call){ .method = "GET",
		.path = path,
		.repeat = HTTP_IDEMPOTENT,
		.timeout = limit_timeout(connect, QUICK_TIMEOUT) },
	    listed, connect);
	memory_free(path);
}

void
daytona_forget(struct driver_sandbox *sandbox)
{
	memory_free(sandbox->id);
	memory_free(sandbox->base);
	memory_free(sandbox->directory);
	memory_free(sandbox->user);
	sandbox->id = sandbox->base = sandbox->directory = sandbox->user = NULL;
	sandbox->no_create_connect = sandbox->is_lost = false;
}

void
daytona_connect(struct driver_sandbox *sandbox, const struct driver_target *target,
    driver_connected_fn *done, void *argument)
{
	struct daytona_connect *connect;
	const char *id;

	if (sandbox->connect != NULL)
		log_fatal("daytona: connect while connecting");
	daytona_life_end(sandbox);
	terminal_pool_drop_spares(&sandbox->terminals);
	daytona_forget(sandbox);
	connect = memory_zeroed(1, sizeof(*connect));
	sandbox->connect = connect;
	connect->sandbox = sandbox;
	connect->done = done;
	connect->argument = argument;
	connect->may_create = target->may_create;
	connect->delay = LOOK_DELAY;
	connect->again = loop_timer_new(sandbox->context.loop, again_expired, connect);
	connect->deadline = loop_timer_new(sandbox->context.loop, deadline_expired, connect);
	loop_timer_start(
	    connect->deadline, settings_number(sandbox->context.settings, "start_timeout"));
	id = target->id;
	if (id == NULL) {
		id = settings_text(sandbox->context.settings, "sandbox");
		sandbox->is_attached = id != NULL;
	}
	if (id != NULL) {
		connect->may_exist = true;
		aim(connect, id);
		look(connect);
	} else {
		list(connect, NULL);
	}
}

void
daytona_connect_cancel(struct driver_sandbox *sandbox)
{
	free_connect(sandbox->connect);
}
