/* SPDX-License-Identifier: ISC */
/*
 * From nothing to a sandbox that runs commands:
 *
 *	a known name    get it, which resumes it when it is stopped; the option's is made when it is
 *			not there
 *	otherwise       list what has our tag; get that, or create under a name of our own
 *	then            look until its session runs
 *	at last         a first command tells the user
 *
 * A create is not idempotent, but its name is: one whose outcome is unknown, or which is told that
 * the name is taken, is followed by a get, so that it leaves no second sandbox behind.
 */
#include <string.h>
#include <time.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/json.h"
#include "core/marker.h"
#include "drivers/probe.h"
#include "drivers/vercel_control.h"
#include "drivers/vercel_driver.h"

/* ms for all of it; workspaces wait for 3 minutes. A create answers when the session runs. */
#define START_TIMEOUT 150000
#define SLOW_TIMEOUT 120000
#define QUICK_TIMEOUT 30000
/* ms between two looks, and before an image that is being made ready is tried again. */
#define LOOK_DELAY 500
#define IMAGE_DELAY 5000
#define PAGES_MAX 20
#define CREATES_MAX 3
/* First commands that failed; between them LOOK_DELAY, doubled each time. */
#define PROBES_MAX 5
#define PROBE_OUTPUT_MAX 4096

struct vercel_connect {
	struct driver_sandbox *sandbox;
	driver_connected_fn *done;
	void *argument;
	bool may_create;
	bool may_remake; /* what is of no use any more, without telling */
	bool is_named;   /* by the option: whoever made it, it is the one */
	char *name;      /* to get */
	bool adopted;    /* name is from the list: it may be gone meanwhile */
	bool in_doubt;   /* a create was sent, and whether name is its work is not known */
	bool created, started;
	unsigned pages, creates, probes;
	struct http_request *request;
	struct loop_timer *soon, *again, *deadline;
	void (*step)(struct vercel_connect *connect); /* what again begins */
	struct driver_operation *probe;
	char *word;           /* the state that was seen last */
	struct error failure; /* of the last attempt at what is tried again, or of the call */
	bool may_exist;       /* what was found, or what a create may have made */
};

static void get(struct vercel_connect *connect);
static void create(struct vercel_connect *connect);
static void probe(struct vercel_connect *connect);

static void
free_connect(struct vercel_connect *connect)
{
	if (connect == NULL)
		return;
	connect->sandbox->connect = NULL;
	http_cancel(connect->request);
	if (connect->probe != NULL)
		operation_cancel(connect->probe);
	loop_timer_free(connect->soon);
	loop_timer_free(connect->again);
	loop_timer_free(connect->deadline);
	memory_free(connect->name);
	memory_free(connect->word);
	memory_free(connect);
}

static void
fail(struct vercel_connect *connect, const struct error *err, const char *what)
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

/* Fails with a code and a text of ours about the name. */
static void
fail_name(struct vercel_connect *connect, enum error_code code, const char *text)
{
	struct error err;

	error_set(&err, code, "sandbox %.128s %s", connect->name, text);
	fail(connect, &err, NULL);
}

static void
again_expired(void *argument)
{
	struct vercel_connect *connect = argument;

	connect->step(connect);
}

static void
try_again(struct vercel_connect *connect, void (*step)(struct vercel_connect *), int64_t delay)
{
	connect->step = step;
	loop_timer_start(connect->again, delay);
}

static void
deadline_expired(void *argument)
{
	struct vercel_connect *connect = argument;
	struct error err;

	if (connect->failure.code != ERROR_NONE) {
		err = connect->failure;
		error_wrap(&err, "not started within %d s", START_TIMEOUT / 1000);
	} else {
		error_set(&err, ERROR_TIMEOUT, "the sandbox did not start within %d s%s%s",
		    START_TIMEOUT / 1000, connect->word == NULL ? "" : "; it is ",
		    connect->word == NULL ? "" : connect->word);
	}
	fail(connect, &err, NULL);
}

static void
succeed(struct vercel_connect *connect)
{
	struct driver_sandbox *sandbox = connect->sandbox;
	struct driver_connected connected = { 0 };
	driver_connected_fn *done = connect->done;
	void *argument = connect->argument;

	connected.id = sandbox->name;
	connected.directory = sandbox->directory;
	connected.user = sandbox->user;
	connected.created = connect->created;
	connected.started = connect->started;
	connected.attached = connect->is_named;
	free_connect(connect);
	done(argument, &connected, NULL);
}

static void
probed(void *argument, const struct driver_result *result, const struct error *reason)
{
	struct vercel_connect *connect = argument;
	struct driver_sandbox *sandbox = connect->sandbox;
	char *home = NULL;
	struct error err;

	connect->probe = NULL;
	if (reason != NULL && reason->code == ERROR_UNAVAILABLE && ++connect->probes < PROBES_MAX) {
		/* It was stopped right now, or is not as ready as was said. */
		connect->failure = *reason;
		try_again(connect, get, (int64_t)LOOK_DELAY << (connect->probes - 1));
	} else if (reason != NULL) {
		fail(connect, reason, "first command");
	} else if (probe_read(result, &home, &sandbox->user, &err) != 0) {
		fail(connect, &err, "first command");
	} else {
		/* Where it is was told before, but by a server that does not. */
		if (sandbox->directory == NULL) {
			sandbox->directory = home;
			home = NULL;
		}
		succeed(connect);
	}
	memory_free(home);
}

static void
probe(struct vercel_connect *connect)
{
	char shell[] = "sh", flag[] = "-c", script[] = "printf '%s\\n' \"${HOME:-/}\" && id -un";
	char *argv[] = { shell, flag, script, NULL };

	connect->probe = vercel_run(
	    connect->sandbox, argv, NULL, 0, PROBE_OUTPUT_MAX, probed, connect);
}

static void look(struct vercel_connect *connect);

/* Goes on as the session's state demands. */
static void
take_look(struct vercel_connect *connect, const struct vercel_look *found)
{
	struct driver_sandbox *sandbox = connect->sandbox;

	memory_free(sandbox->session);
	sandbox->session = memory_text(found->session);
	memory_free(connect->word);
	connect->word = memory_text(found->word);
	if (found->directory != NULL) {
		memory_free(sandbox->directory);
		sandbox->directory = memory_text(found->directory);
	}
	switch (found->state) {
	case VERCEL_RUNNING:
		log_debug("vercel: sandbox %s, session %s", sandbox->name, sandbox->session);
		vercel_life_begin(sandbox, found);
		vercel_life_use(sandbox);
		probe(connect);
		break;
	case VERCEL_PENDING:
		try_again(connect, look, LOOK_DELAY);
		break;
	case VERCEL_ENDING:
	case VERCEL_STOPPED:
		try_again(connect, get, LOOK_DELAY);
		break;
	case VERCEL_FAILED:
		fail_name(connect, ERROR_UNAVAILABLE, "failed to start");
		break;
	}
}

/* An answer with the sandbox in it, of a create or a get. */
static void
take_sandbox(struct vercel_connect *connect, const struct http_answer *answer)
{
	struct driver_sandbox *sandbox = connect->sandbox;
	struct vercel_look found;
	struct error err;

	if (vercel_read_look(sandbox, answer, &found, &err) != 0) {
		fail(connect, &err, NULL);
		return;
	}
	if (connect->in_doubt && !connect->is_named && !found.is_ours) {
		fail_name(connect, ERROR_EXISTS, "is there already, and it is not ours");
	} else {
		memory_free(sandbox->name);
		sandbox->name = memory_text(found.name != NULL ? found.name : connect->name);
		sandbox->is_persistent = found.is_persistent;
		connect->started = connect->started || found.is_resumed;
		take_look(connect, &found);
	}
	vercel_look_clear(&found);
}

static void
looked(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct vercel_connect *connect = argument;
	struct vercel_look found;
	struct error err;

	connect->request = NULL;
	if (reason != NULL) {
		fail(connect, reason, "look at the session");
	} else if (vercel_read_look(connect->sandbox, answer, &found, &err) != 0) {
		fail(connect, &err, NULL);
	} else {
		take_look(connect, &found);
		vercel_look_clear(&found);
	}
}

static void
look(struct vercel_connect *connect)
{
	connect->request = vercel_session_call(connect->sandbox, "",
	    &(struct vercel_call){ .method = "GET",
		.repeat = HTTP_IDEMPOTENT,
		.timeout = QUICK_TIMEOUT,
		.done = looked,
		.argument = connect });
}

/* A request about the sandbox's name. */
static void
call_name(struct vercel_connect *connect, const char *method, const char *query, http_done_fn *done)
{
	char *name, *path, *whole;

	name = http_escape(connect->name);
	path = memory_text_format("/v2/sandboxes/%s", name);
	whole = memory_text_format("&projectId=%s%s", connect->sandbox->credentials.project, query);
	connect->request = vercel_start_call(
	    connect->sandbox, &(struct vercel_call){ .method = method,
				  .path = path,
				  .query = whole,
				  .repeat = HTTP_IDEMPOTENT,
				  .timeout = SLOW_TIMEOUT,
				  .done = done,
				  .argument = connect });
	memory_free(whole);
	memory_free(path);
	memory_free(name);
}

static void
deleted(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct vercel_connect *connect = argument;

	connect->request = NULL;
	if (reason != NULL && answer->status != 404) {
		fail(connect, reason, "delete a sandbox without a snapshot");
		return;
	}
	connect->adopted = false;
	create(connect);
}

static bool
may_delete(const struct vercel_connect *connect, const struct vercel_look *found)
{
	const struct settings *settings = connect->sandbox->context.settings;

	return found->is_ours && settings_option(settings, "never_delete") != NULL &&
	       !settings_boolean(settings, "never_delete");
}

/*
 * What cannot be resumed holds nothing any more but its name. One word of that is not enough: it is
 * deleted only when it does not run either, and its snapshots are let be.
 */
static void
judge_dead(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct vercel_connect *connect = argument;
	struct vercel_look found;
	struct error err;

	connect->request = NULL;
	if (reason != NULL || vercel_read_look(connect->sandbox, answer, &found, &err) != 0) {
		fail(connect, reason != NULL ? reason : &err,
		    "look at a sandbox without a snapshot");
		return;
	}
	if (found.state != VERCEL_STOPPED && found.state != VERCEL_FAILED) {
		try_again(connect, get, LOOK_DELAY);
	} else if (may_delete(connect, &found)) {
		connect->may_remake = false;
		call_name(connect, "DELETE", "", deleted);
	} else {
		fail_name(connect, ERROR_NOT_FOUND,
		    "cannot be resumed, as it has no snapshot, and is not ours to be made anew");
	}
	vercel_look_clear(&found);
}

static void
take_refusal(
    struct vercel_connect *connect, const struct http_answer *answer, const struct error *reason)
{
	struct error err;

	if (answer->status == 404 && (connect->adopted || connect->in_doubt || connect->is_named) &&
	    connect->may_create) {
		connect->in_doubt = false;
		create(connect);
	} else if (vercel_is_code(answer, "snapshot_not_found") && connect->may_remake) {
		connect->failure = *reason;
		call_name(connect, "GET", "", judge_dead);
	} else if (vercel_is_code(answer, "snapshot_not_found")) {
		fail_name(
		    connect, ERROR_NOT_FOUND, "is stopped and has no snapshot to be resumed from");
	} else if (answer->status == 409 || answer->status == 410 || answer->status == 422) {
		/* It is on its way to another state. */
		connect->failure = *reason;
		try_again(connect, get, LOOK_DELAY);
	} else {
		err = *reason;
		error_wrap(&err, "sandbox %.128s", connect->name);
		fail(connect, &err, NULL);
	}
}

static void
got(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct vercel_connect *connect = argument;

	connect->request = NULL;
	if (reason == NULL)
		take_sandbox(connect, answer);
	else
		take_refusal(connect, answer, reason);
}

static void
get(struct vercel_connect *connect)
{
	call_name(connect, "GET", "&resume=true", got);
}

/* Gets what has this name from now on. */
static void
aim(struct vercel_connect *connect, const char *name)
{
	char *copy = memory_text(name);

	memory_free(connect->name);
	connect->name = copy;
}

/* Is the name taken? Vercel says so in words only. */
static bool
is_taken(const struct http_answer *answer)
{
	return answer->status == 409 ||
	       (answer->status == 400 && answer->size > 0 &&
		   memmem(answer->body, answer->size, "already exists", 14) != NULL);
}

static void
created(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct vercel_connect *connect = argument;

	connect->request = NULL;
	if (reason == NULL) {
		connect->created = true;
		take_sandbox(connect, answer);
	} else if (is_taken(answer)) {
		/* By an earlier attempt of ours, or by somebody else who was quicker. */
		connect->in_doubt = true;
		get(connect);
	} else if (answer->outcome == HTTP_UNKNOWN || answer->outcome == HTTP_BROKEN ||
		   answer->status >= 500) {
		connect->failure = *reason;
		connect->in_doubt = connect->created = true;
		if (connect->creates < CREATES_MAX)
			try_again(connect, get, LOOK_DELAY);
		else
			fail(connect, reason, "create sandbox");
	} else if (vercel_is_code(answer, "image_not_ready")) {
		connect->failure = *reason;
		connect->creates = 0;
		try_again(connect, create, IMAGE_DELAY);
	} else {
		/* Of an earlier create of this call nothing is known either way. */
		connect->may_exist = connect->failure.code != ERROR_NONE;
		fail(connect, reason, "create sandbox");
	}
}

static void
create(struct vercel_connect *connect)
{
	struct driver_sandbox *sandbox = connect->sandbox;
	char token[MARKER_TOKEN_SIZE], *name;
	struct error err;

	if (!connect->may_create) {
		error_set(&err, ERROR_NOT_FOUND, "there is no sandbox with this tag");
		fail(connect, &err, NULL);
		return;
	}
	connect->creates++;
	if (!connect->is_named && connect->creates == 1) {
		marker_make_token(token);
		name = memory_text_format("rws-%.16s", token);
		aim(connect, name);
		memory_free(name);
	}
	connect->may_exist = true;
	connect->request = vercel_start_call(
	    sandbox, &(struct vercel_call){ .method = "POST",
			 .path = vercel_create_path(sandbox),
			 .body = vercel_create_body(sandbox, connect->name),
			 .timeout = SLOW_TIMEOUT,
			 .done = created,
			 .argument = connect });
}

static void list(struct vercel_connect *connect, const char *cursor);

static void
listed(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct vercel_connect *connect = argument;
	char *name = NULL, *cursor = NULL;
	struct error err;

	connect->request = NULL;
	if (reason != NULL) {
		fail(connect, reason, "list sandboxes");
		return;
	}
	if (vercel_find_ours(connect->sandbox, answer, &name, &cursor, &err) != 0) {
		fail(connect, &err, NULL);
	} else if (name != NULL) {
		aim(connect, name);
		connect->adopted = connect->may_exist = true;
		get(connect);
	} else if (cursor != NULL && ++connect->pages < PAGES_MAX) {
		list(connect, cursor);
	} else {
		create(connect);
	}
	memory_free(name);
	memory_free(cursor);
}

static void
list(struct vercel_connect *connect, const char *cursor)
{
	char *query;

	query = vercel_list_query(connect->sandbox, cursor);
	connect->request = vercel_start_call(
	    connect->sandbox, &(struct vercel_call){ .method = "GET",
				  .path = "/v2/sandboxes",
				  .query = query,
				  .repeat = HTTP_IDEMPOTENT,
				  .timeout = QUICK_TIMEOUT,
				  .done = listed,
				  .argument = connect });
	memory_free(query);
}

static void
soon_expired(void *argument)
{
	struct vercel_connect *connect = argument;
	struct driver_sandbox *sandbox = connect->sandbox;

	if (vercel_credentials_check(
		&sandbox->credentials, (int64_t)time(NULL), &connect->failure) != 0) {
		fail(connect, &connect->failure, NULL);
		return;
	}
	vercel_credentials_warn(&sandbox->credentials, (int64_t)time(NULL));
	if (connect->name != NULL)
		get(connect);
	else
		list(connect, NULL);
}

void
vercel_forget(struct driver_sandbox *sandbox)
{
	memory_free(sandbox->name);
	memory_free(sandbox->session);
	memory_free(sandbox->directory);
	memory_free(sandbox->user);
	sandbox->name = sandbox->session = sandbox->directory = sandbox->user = NULL;
	sandbox->is_persistent = sandbox->is_healthy = sandbox->is_lost = false;
}

void
vercel_connect(struct driver_sandbox *sandbox, const struct driver_target *target,
    driver_connected_fn *done, void *argument)
{
	struct vercel_connect *connect;

	if (sandbox->connect != NULL)
		log_fatal("vercel: connect while connecting");
	vercel_life_end(sandbox);
	terminal_pool_drop_spares(&sandbox->terminals);
	vercel_forget(sandbox);
	connect = memory_zeroed(1, sizeof(*connect));
	sandbox->connect = connect;
	connect->sandbox = sandbox;
	connect->done = done;
	connect->argument = argument;
	connect->may_create = target->may_create;
	connect->may_remake = target->may_create && target->id == NULL;
	connect->soon = loop_timer_new(sandbox->context.loop, soon_expired, connect);
	connect->again = loop_timer_new(sandbox->context.loop, again_expired, connect);
	connect->deadline = loop_timer_new(sandbox->context.loop, deadline_expired, connect);
	loop_timer_start(connect->soon, 0);
	loop_timer_start(connect->deadline, START_TIMEOUT);
	if (target->id != NULL) {
		connect->name = memory_text(target->id);
		connect->may_exist = true;
	} else {
		connect->name = vercel_own_name(sandbox);
		connect->is_named = connect->may_exist = connect->name != NULL;
	}
}

void
vercel_connect_cancel(struct driver_sandbox *sandbox)
{
	free_connect(sandbox->connect);
}
