/* SPDX-License-Identifier: ISC */
/*
 * From nothing to a sandbox that runs commands:
 *
 *	a known id      connect, which resumes it when it is paused
 *	otherwise       list what has our label; connect to that, or create
 *
 * A create whose outcome is unknown is followed by a look at the list before it is tried again, so
 * that it leaves no second sandbox behind. At last a first command tells directory and user, and
 * proves that commands can run.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "drivers/connecting.h"
#include "drivers/e2b_control.h"
#include "drivers/e2b_driver.h"
#include "drivers/probe.h"

/* ms; the server itself gives up after 70 s. */
#define START_TIMEOUT 90000
/* Creates whose outcome stayed unknown, moments of transition, first commands. */
#define ATTEMPTS_MAX 5
/* ms before another attempt, doubled each time. */
#define AGAIN_DELAY 500
#define PROBE_OUTPUT_MAX 4096

struct e2b_connect {
	struct connecting common; /* first: it is one */
	bool old_list, no_default;
	unsigned attempts;
};

static struct e2b_connect *
own(struct connecting *connect)
{
	return (struct e2b_connect *)connect;
}

/* Begins step after a while, each time a longer one; false when that was done often enough. */
static bool
try_again(struct connecting *connect, connecting_step_fn *step)
{
	unsigned *attempts = &own(connect)->attempts;

	if (*attempts >= ATTEMPTS_MAX)
		return false;
	connecting_begin_later(connect, step, (int64_t)AGAIN_DELAY << *attempts);
	(*attempts)++;
	return true;
}

static int64_t
start_timeout(const struct driver_sandbox *sandbox)
{
	return settings_has(sandbox->context.settings, "request_timeout") ? sandbox->request_timeout
									  : START_TIMEOUT;
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
	if (reason != NULL) {
		/* The proxy may not know yet of what the control plane has just made. */
		if (reason->code == ERROR_UNAVAILABLE && !connect->sandbox->is_lost &&
		    try_again(connect, probe))
			return;
		/* The default directory is not there any more; create_root may make it again. */
		if (reason->code == ERROR_INVALID && !own(connect)->no_default) {
			own(connect)->no_default = true;
			probe(connect);
			return;
		}
		connecting_fail(connect, reason, "first command");
		return;
	}
	if (probe_read(result, &connect->sandbox->directory, &connect->sandbox->user, &err) != 0)
		connecting_fail(connect, &err, "first command");
	else
		succeed(connect);
}

static void
probe(struct connecting *connect)
{
	struct driver_command command = { 0 };
	char shell[] = "sh", flag[] = "-c";
	char in_default[] = "pwd && id -un", in_root[] = "printf '%s\\n' \"${HOME:-/}\" && id -un";
	char *argv[] = { shell, flag, own(connect)->no_default ? in_root : in_default, NULL };

	command.argv = argv;
	command.directory = own(connect)->no_default ? "/" : NULL;
	connect->probe = e2b_run_command(
	    connect->sandbox, &command, NULL, 0, PROBE_OUTPUT_MAX, probed, connect);
}

/* The sandbox is known: its life begins, for us, and its first command. */
static void
begin_life(struct connecting *connect)
{
	log_debug("e2b: sandbox %s at %s", connect->sandbox->id, connect->sandbox->base);
	own(connect)->attempts = 0;
	e2b_life_begin(connect->sandbox);
	probe(connect);
}

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
	struct connecting *connect = argument;
	struct error err;

	connect->request = NULL;
	if (reason != NULL) {
		connect->in_doubt = true;
		connect->may_exist = connect->may_exist || is_doubtful(answer);
		if (!is_doubtful(answer) || !try_again(connect, connecting_list))
			connecting_fail(connect, reason, "create sandbox");
		return;
	}
	connect->created = connect->may_exist = true;
	if (e2b_take_answer(connect->sandbox, answer, &err) == 0) {
		begin_life(connect);
		return;
	}
	discard(connect->sandbox);
	connecting_fail(connect, &err, "create sandbox");
}

static void
create(struct connecting *connect)
{
	struct driver_sandbox *sandbox = connect->sandbox;

	connect->request = e2b_create_call(
	    sandbox, e2b_create_body(sandbox), start_timeout(sandbox), created, connect);
}

static void resume(struct connecting *connect);

static void
resumed(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct connecting *connect = argument;
	struct error err;

	connect->request = NULL;
	if (reason == NULL) {
		connect->started = answer->status == 201;
		if (e2b_take_answer(connect->sandbox, answer, &err) == 0)
			begin_life(connect);
		else
			connecting_fail(connect, &err, "connect");
		return;
	}
	if (answer->status == 404 && connect->adopted) {
		connecting_create(connect);
		return;
	}
	/* It is on its way to another state. */
	if (answer->status == 409 && try_again(connect, resume))
		return;
	err = *reason;
	error_wrap(&err, "connect to sandbox %.64s", connect->id);
	connecting_fail(connect, &err, NULL);
}

static void
resume(struct connecting *connect)
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

/* What is in the list after a create of which we heard nothing is what that made. */
static void
visit(struct connecting *connect)
{
	connect->created = connect->in_doubt;
	resume(connect);
}

static void
listed(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct connecting *connect = argument;

	if (reason == NULL || own(connect)->old_list ||
	    (answer->status != 404 && answer->status != 405)) {
		connecting_listed(connect, answer, reason);
		return;
	}
	own(connect)->old_list = true;
	connecting_list(connect);
}

static void
list(struct connecting *connect, const char *page)
{
	char *path;

	path = e2b_list_path(connect->sandbox, own(connect)->old_list, page);
	connect->request = e2b_control_call(connect->sandbox, "GET", path, NULL,
	    connect->sandbox->request_timeout, listed, connect);
	memory_free(path);
}

static const struct connecting_kind kind = {
	.provider = "e2b",
	.label = "label",
	.size = sizeof(struct e2b_connect),
	.list = list,
	.find = e2b_find_ours,
	.visit = visit,
	.create = create,
};

void
e2b_connect(struct driver_sandbox *sandbox, const struct driver_target *target,
    driver_connected_fn *done, void *argument)
{
	struct connecting *connect;
	const char *id;

	connect = connecting_new(&kind, &(struct connecting_setup){ .sandbox = sandbox,
					    .place = &sandbox->connect,
					    .loop = sandbox->context.loop,
					    .may_create = target->may_create,
					    .done = done,
					    .argument = argument });
	id = target->id;
	if (id == NULL) {
		id = settings_text(sandbox->context.settings, "sandbox_id");
		sandbox->is_attached = id != NULL;
	}
	if (id != NULL)
		connecting_aim(connect, id);
	connecting_find(connect);
}
