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
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/marker.h"
#include "drivers/connecting.h"
#include "drivers/probe.h"
#include "drivers/vercel_connect.h"
#include "drivers/vercel_control.h"
#include "drivers/vercel_driver.h"

/* ms for all of it; workspaces wait for 3 minutes. A create answers when the session runs. */
#define START_TIMEOUT 150000
#define QUICK_TIMEOUT 30000
/* ms before an image that is being made ready is tried again. */
#define IMAGE_DELAY 5000
#define CREATES_MAX 3
/* First commands that failed; between them VERCEL_LOOK_DELAY, doubled each time. */
#define PROBES_MAX 5
#define PROBE_OUTPUT_MAX 4096

static struct vercel_connect *
own(struct connecting *connect)
{
	return (struct vercel_connect *)connect;
}

static void
succeed(struct connecting *connect)
{
	const struct driver_sandbox *sandbox = connect->sandbox;

	connecting_succeed(connect, &(struct driver_connected){ .id = sandbox->name,
					.directory = sandbox->directory,
					.user = sandbox->user,
					.created = connect->created,
					.attached = own(connect)->is_named,
					.started = connect->started });
}

static void get(struct connecting *connect);

static void
probed(void *argument, const struct driver_result *result, const struct error *reason)
{
	struct connecting *connect = argument;
	struct driver_sandbox *sandbox = connect->sandbox;
	char *home = NULL;
	struct error err;

	connect->probe = NULL;
	if (reason != NULL && reason->code == ERROR_UNAVAILABLE &&
	    ++own(connect)->probes < PROBES_MAX) {
		/* It was stopped right now, or is not as ready as was said. */
		connect->failure = *reason;
		connecting_begin_later(
		    connect, get, (int64_t)VERCEL_LOOK_DELAY << (own(connect)->probes - 1));
	} else if (reason != NULL) {
		connecting_fail(connect, reason, "first command");
	} else if (probe_read(result, &home, &sandbox->user, &err) != 0) {
		connecting_fail(connect, &err, "first command");
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
probe(struct connecting *connect)
{
	char shell[] = "sh", flag[] = "-c", script[] = "printf '%s\\n' \"${HOME:-/}\" && id -un";
	char *argv[] = { shell, flag, script, NULL };

	connect->probe = vercel_run(
	    connect->sandbox, argv, NULL, 0, PROBE_OUTPUT_MAX, probed, connect);
}

static void look(struct connecting *connect);

/* Goes on as the session's state demands. */
static void
take_look(struct connecting *connect, const struct vercel_look *found)
{
	struct driver_sandbox *sandbox = connect->sandbox;

	memory_free(sandbox->session);
	sandbox->session = memory_text(found->session);
	connecting_note_state(connect, found->word);
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
		connecting_begin_later(connect, look, VERCEL_LOOK_DELAY);
		break;
	case VERCEL_ENDING:
	case VERCEL_STOPPED:
		connecting_begin_later(connect, get, VERCEL_LOOK_DELAY);
		break;
	case VERCEL_FAILED:
		vercel_connect_fail(connect, ERROR_UNAVAILABLE, "failed to start");
		break;
	}
}

/* An answer with the sandbox in it, of a create or a get. */
static void
take_sandbox(struct connecting *connect, const struct http_answer *answer)
{
	struct driver_sandbox *sandbox = connect->sandbox;
	struct vercel_look found;
	struct error err;

	if (vercel_read_look(sandbox, answer, &found, &err) != 0) {
		connecting_fail(connect, &err, NULL);
		return;
	}
	if (connect->in_doubt && !own(connect)->is_named && !found.is_ours) {
		vercel_connect_fail(connect, ERROR_EXISTS, "is there already, and it is not ours");
	} else {
		memory_free(sandbox->name);
		sandbox->name = memory_text(found.name != NULL ? found.name : connect->id);
		sandbox->is_persistent = found.is_persistent;
		connect->started = connect->started || found.is_resumed;
		take_look(connect, &found);
	}
	vercel_look_clear(&found);
}

static void
looked(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct connecting *connect = argument;
	struct vercel_look found;
	struct error err;

	connect->request = NULL;
	if (reason != NULL) {
		connecting_fail(connect, reason, "look at the session");
	} else if (vercel_read_look(connect->sandbox, answer, &found, &err) != 0) {
		connecting_fail(connect, &err, NULL);
	} else {
		take_look(connect, &found);
		vercel_look_clear(&found);
	}
}

static void
look(struct connecting *connect)
{
	connect->request = vercel_session_call(connect->sandbox, "",
	    &(struct vercel_call){ .method = "GET",
		.repeat = HTTP_IDEMPOTENT,
		.timeout = QUICK_TIMEOUT,
		.done = looked,
		.argument = connect });
}

static void
take_refusal(
    struct connecting *connect, const struct http_answer *answer, const struct error *reason)
{
	struct error err;

	if (answer->status == 404 &&
	    (connect->adopted || connect->in_doubt || own(connect)->is_named) &&
	    connect->may_create) {
		connect->in_doubt = false;
		connecting_create(connect);
	} else if (vercel_is_code(answer, "snapshot_not_found") && own(connect)->may_remake) {
		connect->failure = *reason;
		vercel_remake(connect);
	} else if (vercel_is_code(answer, "snapshot_not_found")) {
		vercel_connect_fail(
		    connect, ERROR_NOT_FOUND, "is stopped and has no snapshot to be resumed from");
	} else if (answer->status == 409 || answer->status == 410 || answer->status == 422) {
		/* It is on its way to another state. */
		connect->failure = *reason;
		connecting_begin_later(connect, get, VERCEL_LOOK_DELAY);
	} else {
		err = *reason;
		error_wrap(&err, "sandbox %.128s", connect->id);
		connecting_fail(connect, &err, NULL);
	}
}

static void
got(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct connecting *connect = argument;

	connect->request = NULL;
	if (reason == NULL)
		take_sandbox(connect, answer);
	else
		take_refusal(connect, answer, reason);
}

static void
get(struct connecting *connect)
{
	connect->request = vercel_name_call(connect->sandbox, connect->id,
	    &(struct vercel_call){ .method = "GET",
		.query = "&resume=true",
		.timeout = VERCEL_SLOW_TIMEOUT,
		.done = got,
		.argument = connect });
}

/* Is the name taken? Vercel says so in words only. */
static bool
is_taken(const struct http_answer *answer)
{
	return answer->status == 409 ||
	       (answer->status == 400 && answer->size > 0 &&
		   memmem(answer->body, answer->size, "already exists", 14) != NULL);
}

static void create(struct connecting *connect);

static void
created(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct connecting *connect = argument;

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
		if (own(connect)->creates < CREATES_MAX)
			connecting_begin_later(connect, get, VERCEL_LOOK_DELAY);
		else
			connecting_fail(connect, reason, "create sandbox");
	} else if (vercel_is_code(answer, "image_not_ready")) {
		connect->failure = *reason;
		own(connect)->creates = 0;
		connecting_begin_later(connect, create, IMAGE_DELAY);
	} else {
		/* Of an earlier create of this call nothing is known either way. */
		connect->may_exist = connect->failure.code != ERROR_NONE;
		connecting_fail(connect, reason, "create sandbox");
	}
}

static void
create(struct connecting *connect)
{
	struct driver_sandbox *sandbox = connect->sandbox;
	char token[MARKER_TOKEN_SIZE], *name;

	own(connect)->creates++;
	if (!own(connect)->is_named && own(connect)->creates == 1) {
		marker_make_token(token);
		name = memory_text_format("rws-%.16s", token);
		connecting_aim(connect, name);
		memory_free(name);
	}
	connect->may_exist = true;
	connect->request = vercel_start_call(
	    sandbox, &(struct vercel_call){ .method = "POST",
			 .path = vercel_create_path(sandbox),
			 .body = vercel_create_body(sandbox, connect->id),
			 .timeout = VERCEL_SLOW_TIMEOUT,
			 .done = created,
			 .argument = connect });
}

static void
list(struct connecting *connect, const char *page)
{
	char *query;

	query = vercel_list_query(connect->sandbox, page);
	connect->request = vercel_start_call(
	    connect->sandbox, &(struct vercel_call){ .method = "GET",
				  .path = "/v2/sandboxes",
				  .query = query,
				  .repeat = HTTP_IDEMPOTENT,
				  .timeout = QUICK_TIMEOUT,
				  .done = connecting_listed,
				  .argument = connect });
	memory_free(query);
}

/* In the loop, so that the credentials' error does not come within the call. */
static void
begin(struct connecting *connect)
{
	const struct vercel_credentials *credentials = &connect->sandbox->credentials;
	struct error err;

	if (vercel_credentials_check(credentials, (int64_t)time(NULL), &err) != 0) {
		connecting_fail(connect, &err, NULL);
		return;
	}
	vercel_credentials_warn(credentials, (int64_t)time(NULL));
	connecting_find(connect);
}

static const struct connecting_kind kind = {
	.provider = "vercel",
	.label = "tag",
	.size = sizeof(struct vercel_connect),
	.list = list,
	.find = vercel_find_ours,
	.visit = get,
	.create = create,
};

void
vercel_connect_fail(struct connecting *connect, enum error_code code, const char *text)
{
	struct error err;

	error_set(&err, code, "sandbox %.128s %s", connect->id, text);
	connecting_fail(connect, &err, NULL);
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
	struct connecting *connect;
	char *name;

	vercel_life_end(sandbox);
	terminal_pool_drop_spares(&sandbox->terminals);
	vercel_forget(sandbox);
	connect = connecting_new(&kind, &(struct connecting_setup){ .sandbox = sandbox,
					    .place = &sandbox->connect,
					    .loop = sandbox->context.loop,
					    .may_create = target->may_create,
					    .done = done,
					    .argument = argument });
	own(connect)->may_remake = target->may_create && target->id == NULL;
	connecting_begin_later(connect, begin, 0);
	connecting_start_deadline(connect, START_TIMEOUT);
	name = target->id != NULL ? memory_text(target->id) : vercel_own_name(sandbox);
	if (name != NULL)
		connecting_aim(connect, name);
	own(connect)->is_named = name != NULL && target->id == NULL;
	memory_free(name);
}
