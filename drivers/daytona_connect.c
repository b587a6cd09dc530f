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
 * it leaves no second sandbox behind.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/json.h"
#include "core/marker.h"
#include "drivers/connecting.h"
#include "drivers/daytona_control.h"
#include "drivers/daytona_driver.h"
#include "drivers/probe.h"

/* ms; create and start answer within 30 s of the server's own waiting. */
#define SLOW_TIMEOUT 60000
#define QUICK_TIMEOUT 20000
/* ms between two looks, the first and the longest. */
#define LOOK_DELAY 250
#define LOOK_DELAY_MAX 1000
#define PROBE_OUTPUT_MAX 4096

struct daytona_connect {
	struct connecting common; /* first: it is one */
	int64_t delay;            /* ms before the next look */
};

static struct daytona_connect *
own(struct connecting *connect)
{
	return (struct daytona_connect *)connect;
}

/* Begins step after a while, each time a longer one, until the deadline. */
static void
try_again(struct connecting *connect, connecting_step_fn *step)
{
	int64_t *delay = &own(connect)->delay;

	connecting_begin_later(connect, step, *delay);
	*delay = *delay * 3 / 2;
	if (*delay > LOOK_DELAY_MAX)
		*delay = LOOK_DELAY_MAX;
}

/* ms for one request, so that none outlasts the deadline by much. */
static int64_t
limit_timeout(const struct connecting *connect, int64_t timeout)
{
	int64_t whole;

	whole = settings_number(connect->sandbox->context.settings, "start_timeout");
	return timeout < whole ? timeout : whole;
}

static void
succeed(struct connecting *connect)
{
	const struct driver_sandbox *sandbox = connect->sandbox;

	connecting_succeed(connect, &(struct driver_connected){ .id = sandbox->id,
					.directory = sandbox->directory,
					.user = sandbox->user,
					.created = connect->created,
					.attached = sandbox->is_attached,
					.started = connect->started });
}

static void probe(struct connecting *connect);

static void
probed(void *argument, const struct driver_result *result, const struct error *reason)
{
	struct connecting *connect = argument;
	struct error err;

	connect->probe = NULL;
	if (reason != NULL && reason->code == ERROR_UNAVAILABLE && !connect->sandbox->is_lost) {
		/* The proxy, or the daemon, may lag behind the control plane. */
		connect->failure = *reason;
		try_again(connect, probe);
	} else if (reason != NULL) {
		connecting_fail(connect, reason, "first command");
	} else if (probe_read(
		       result, &connect->sandbox->directory, &connect->sandbox->user, &err) != 0) {
		connecting_fail(connect, &err, "first command");
	} else {
		succeed(connect);
	}
}

static void
probe(struct connecting *connect)
{
	char shell[] = "sh", flag[] = "-c", script[] = "pwd && id -un";
	char *argv[] = { shell, flag, script, NULL };

	connect->probe = daytona_run(
	    connect->sandbox, argv, NULL, 0, PROBE_OUTPUT_MAX, probed, connect);
}

/* The sandbox is started and known. */
static void
begin_life(struct connecting *connect, const char *toolbox)
{
	struct driver_sandbox *sandbox = connect->sandbox;

	memory_free(sandbox->base);
	sandbox->base = memory_text_format("%s/%s", toolbox, sandbox->id);
	log_debug("daytona: sandbox %s at %s", sandbox->id, sandbox->base);
	own(connect)->delay = LOOK_DELAY;
	connect->failure.code = ERROR_NONE;
	daytona_life_begin(sandbox);
	probe(connect);
}

static void ask_toolbox(struct connecting *connect);

static void
toolbox_told(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct connecting *connect = argument;
	struct json_object *object;
	const char *url;
	struct error err;

	connect->request = NULL;
	if (reason != NULL) {
		connecting_fail(connect, reason, "ask for the toolbox");
		return;
	}
	object = json_parse_object(answer->body, answer->size, NULL);
	url = json_text(object, "url");
	if (url != NULL && strncmp(url, "http", 4) == 0) {
		begin_life(connect, url);
	} else {
		error_set(&err, ERROR_UNAVAILABLE, "the control plane tells no URL of the toolbox");
		connecting_fail(connect, &err, NULL);
	}
	json_object_put(object);
}

static void
ask_toolbox(struct connecting *connect)
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

static void look(struct connecting *connect);

static void
starting(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct connecting *connect = argument;

	connect->request = NULL;
	/* 409: somebody else starts it, or it is still being stopped. Else its outcome is seen by
	 * looking. */
	if (reason != NULL && answer->outcome == HTTP_REFUSED && answer->status != 409 &&
	    answer->status < 500) {
		connecting_fail(connect, reason, "start sandbox");
		return;
	}
	if (reason != NULL)
		connect->failure = *reason;
	else
		connect->started = true;
	try_again(connect, look);
}

static void
start(struct connecting *connect)
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
take_look(struct connecting *connect, const struct daytona_look *found)
{
	struct driver_sandbox *sandbox = connect->sandbox;
	struct error err;

	memory_free(sandbox->id);
	sandbox->id = memory_text(found->id);
	connecting_note_state(connect, found->word);
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
			connecting_create(connect);
			break;
		}
		error_set(&err, ERROR_NOT_FOUND, "sandbox %.64s is destroyed", found->id);
		connecting_fail(connect, &err, NULL);
		break;
	case DAYTONA_FAILED:
		error_set(&err, ERROR_UNAVAILABLE, "sandbox %.64s failed (%.32s): %.200s",
		    found->id, found->word, found->reason);
		connecting_fail(connect, &err, NULL);
		break;
	}
}

/* Is what has the name of our lost create, or the name we wanted, ours? */
static bool
is_welcome(const struct connecting *connect, const struct daytona_look *found)
{
	return !connect->in_doubt || found->is_ours;
}

static void
looked(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct connecting *connect = argument;
	struct daytona_look found;
	struct error err;

	connect->request = NULL;
	if (reason != NULL && answer->status == 404 && (connect->adopted || connect->in_doubt)) {
		connect->in_doubt = false;
		connecting_create(connect);
		return;
	}
	if (reason != NULL) {
		err = *reason;
		error_wrap(&err, "sandbox %.64s", connect->id);
		connecting_fail(connect, &err, NULL);
		return;
	}
	if (daytona_read_look(connect->sandbox, answer, &found, &err) != 0) {
		connecting_fail(connect, &err, NULL);
		return;
	}
	if (is_welcome(connect, &found)) {
		take_look(connect, &found);
	} else {
		error_set(&err, ERROR_EXISTS,
		    "there is a sandbox %.64s already, and it is not ours", connect->id);
		connecting_fail(connect, &err, NULL);
	}
	daytona_look_clear(&found);
}

static void
look(struct connecting *connect)
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

static void
created(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct connecting *connect = argument;
	struct daytona_look found;
	struct error err;

	connect->request = NULL;
	if (reason != NULL && answer->outcome == HTTP_REFUSED && answer->status < 500 &&
	    answer->status != 409) {
		/* Of an earlier create of this call nothing is known either way. */
		connect->may_exist = connect->failure.code != ERROR_NONE;
		connecting_fail(connect, reason, "create sandbox");
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
		connecting_fail(connect, &err, "create sandbox");
		return;
	}
	/* What the answer tells is the state before the server's own waiting. */
	connecting_aim(connect, found.id);
	daytona_look_clear(&found);
	look(connect);
}

static void
create(struct connecting *connect)
{
	struct driver_sandbox *sandbox = connect->sandbox;
	char token[MARKER_TOKEN_SIZE], *name;
	struct json_object *body;

	marker_make_token(token);
	name = settings_text(sandbox->context.settings, "name") == NULL
		   ? memory_text_format("rws-%.16s", token)
		   : memory_text(settings_text(sandbox->context.settings, "name"));
	connecting_aim(connect, name);
	body = daytona_create_body(sandbox, name);
	memory_free(name);
	connect->may_exist = true;
	connect->request = daytona_control_call(sandbox,
	    &(struct daytona_call){
		.method = "POST", .path = "/sandbox", .body = body, .timeout = SLOW_TIMEOUT },
	    created, connect);
}

static void
list(struct connecting *connect, const char *page)
{
	char *path;

	path = daytona_list_path(connect->sandbox, page);
	connect->request = daytona_control_call(connect->sandbox,
	    &(struct daytona_call){ .method = "GET",
		.path = path,
		.repeat = HTTP_IDEMPOTENT,
		.timeout = limit_timeout(connect, QUICK_TIMEOUT) },
	    connecting_listed, connect);
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

static const struct connecting_kind kind = {
	.provider = "daytona",
	.label = "label",
	.size = sizeof(struct daytona_connect),
	.list = list,
	.find = daytona_find_ours,
	.visit = look,
	.create = create,
};

void
daytona_connect(struct driver_sandbox *sandbox, const struct driver_target *target,
    driver_connected_fn *done, void *argument)
{
	struct connecting *connect;
	const char *id;

	daytona_life_end(sandbox);
	terminal_pool_drop_spares(&sandbox->terminals);
	daytona_forget(sandbox);
	connect = connecting_new(&kind, &(struct connecting_setup){ .sandbox = sandbox,
					    .place = &sandbox->connect,
					    .loop = sandbox->context.loop,
					    .may_create = target->may_create,
					    .done = done,
					    .argument = argument });
	own(connect)->delay = LOOK_DELAY;
	connecting_start_deadline(
	    connect, settings_number(sandbox->context.settings, "start_timeout"));
	id = target->id;
	if (id == NULL) {
		id = settings_text(sandbox->context.settings, "sandbox");
		sandbox->is_attached = id != NULL;
	}
	if (id != NULL)
		connecting_aim(connect, id);
	connecting_find(connect);
}
