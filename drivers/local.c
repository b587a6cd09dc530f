/* SPDX-License-Identifier: ISC */
/*
 * The local driver: a sandbox is a directory of this machine with bubblewrap around it, and our
 * init inside, to which this side hands commands over a socket. It runs as long as this process
 * does: when the worker dies, however it dies, so does everything in the sandbox; its files stay.
 */
#include <string.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/option.h"
#include "core/base/peer.h"
#include "drivers/kinds.h"
#include "drivers/local.h"
#include "drivers/local_driver.h"
#include "drivers/local_protocol.h"

/* ms; a start takes some ten, an end less. */
#define START_DEADLINE 30000
#define END_DEADLINE 5000

/* States of the peer. */
enum {
	BEFORE_READY = 1,
	AFTER_READY = 2,
};

/* The answer to a call that is done at once: it must not come from within the call. */
struct local_answer {
	struct local_answer *next;
	struct driver_sandbox *sandbox;
	struct loop_timer *timer;
	driver_done_fn *done;
	void *argument;
};

static void
free_answer(struct local_answer *answer)
{
	struct local_answer **place;

	for (place = &answer->sandbox->answers; *place != answer; place = &(*place)->next)
		continue;
	*place = answer->next;
	loop_timer_free(answer->timer);
	memory_free(answer);
}

static void
give_answer(void *argument)
{
	struct local_answer *answer = argument;
	driver_done_fn *done = answer->done;
	void *done_argument = answer->argument;

	free_answer(answer);
	done(done_argument, NULL);
}

static void
answer_later(struct driver_sandbox *sandbox, driver_done_fn *done, void *argument)
{
	struct local_answer *answer;

	answer = memory_zeroed(1, sizeof(*answer));
	answer->sandbox = sandbox;
	answer->done = done;
	answer->argument = argument;
	answer->timer = loop_timer_new(sandbox->context.loop, give_answer, answer);
	answer->next = sandbox->answers;
	sandbox->answers = answer;
	loop_timer_start(answer->timer, 0);
}

uint32_t
local_next_id(struct driver_sandbox *sandbox)
{
	/* 2^32 commands in the life of one worker do not happen; 0 stands for none. */
	return ++sandbox->last_id;
}

static void
report_connected(struct driver_sandbox *sandbox, bool started)
{
	struct driver_connected connected = { 0 };
	driver_connected_fn *done = sandbox->connected;

	connected.id = sandbox->id;
	connected.directory = sandbox->shape.home;
	connected.user = sandbox->shape.user;
	connected.created = sandbox->created;
	connected.started = started && !sandbox->created;
	sandbox->created = false;
	sandbox->connected = NULL;
	done(sandbox->connect_argument, &connected, NULL);
}

static void
report_connect_failure(struct driver_sandbox *sandbox, const struct error *err)
{
	driver_connected_fn *done = sandbox->connected;

	sandbox->connected = NULL;
	done(sandbox->connect_argument, NULL, err);
}

/* Ends all that waits for the sandbox; false when the driver was closed meanwhile. */
static bool
lose_all(struct driver_sandbox *sandbox, const struct error *err)
{
	sandbox->losing = true;
	while (!sandbox->closed && local_stream_lose(sandbox, err))
		continue;
	while (!sandbox->closed && local_operation_lose(sandbox, err))
		continue;
	sandbox->losing = false;
	if (!sandbox->closed)
		return true;
	memory_free(sandbox);
	return false;
}

static void sweep(struct driver_sandbox *sandbox);

static void
report_released(struct driver_sandbox *sandbox, const struct error *err)
{
	driver_done_fn *done = sandbox->released;

	sandbox->released = NULL;
	if (sandbox->connected != NULL)
		loop_timer_start(sandbox->connect, 0);
	done(sandbox->release_argument, err);
}

static void
removal_ended(void *argument, int status, const char *complaint)
{
	struct driver_sandbox *sandbox = argument;
	struct error err;

	sandbox->removal = NULL;
	if (status == 0) {
		sweep(sandbox);
		return;
	}
	error_set(&err, ERROR_UNAVAILABLE, "files of a sandbox were left: %s", complaint);
	if (sandbox->released != NULL && sandbox->destroy)
		report_released(sandbox, &err);
	else
		log_error("%s", err.message);
}

/*
 * Removes trees that belong to no sandbox, one after another; a destroy is done when none is left.
 */
static void
sweep(struct driver_sandbox *sandbox)
{
	char name[LOCAL_ID_SIZE];
	struct error err;

	if (sandbox->removal != NULL)
		return;
	error_clear(&err);
	if (local_store_leftover(sandbox->context.state_directory, sandbox->id, name)) {
		sandbox->removal = local_sandbox_remove(sandbox->context.state_directory, name,
		    sandbox->context.loop, removal_ended, sandbox, &err);
		if (sandbox->removal != NULL)
			return;
		log_error("%s", err.message);
	}
	if (sandbox->released != NULL && sandbox->destroy)
		report_released(sandbox, err.code == ERROR_NONE ? NULL : &err);
}

/* The sandbox is stopped. */
static void
finish_release(void *argument)
{
	struct driver_sandbox *sandbox = argument;
	struct error err;

	if (!sandbox->destroy) {
		report_released(sandbox, NULL);
		return;
	}
	if (local_store_forget(sandbox->context.state_directory, &err) != 0) {
		report_released(sandbox, &err);
		return;
	}
	sandbox->id[0] = '\0';
	sweep(sandbox);
}

static void
child_ended(void *argument, int status, const char *complaint)
{
	struct driver_sandbox *sandbox = argument;
	enum local_state state = sandbox->state;
	struct error err = sandbox->trouble;

	sandbox->child = NULL;
	sandbox->state = LOCAL_STOPPED;
	loop_timer_stop(sandbox->deadline);
	peer_free(sandbox->init);
	sandbox->init = NULL;
	if (state == LOCAL_ENDING) {
		finish_release(sandbox);
	} else if (state == LOCAL_STARTING) {
		if (err.code == ERROR_NONE)
			local_sandbox_explain(&sandbox->shape, status, complaint, &err);
		report_connect_failure(sandbox, &err);
	} else {
		error_set(&err, ERROR_UNAVAILABLE, "sandbox %s ended unexpectedly%s%s", sandbox->id,
		    sandbox->trouble.code == ERROR_INVALID ? ": " : "",
		    sandbox->trouble.code == ERROR_INVALID ? sandbox->trouble.message : "");
		if (!sandbox->shape.isolated)
			local_stream_kill_all(sandbox);
		if (lose_all(sandbox, &err))
			sandbox->context.lost(sandbox->context.argument, &err);
	}
}

/* A bubblewrap that ends by itself is left to say why. */
static void
init_closed(void *argument, const struct error *err)
{
	struct driver_sandbox *sandbox = argument;

	if (sandbox->state == LOCAL_STARTING && err->code != ERROR_INVALID)
		return;
	if (err->code == ERROR_INVALID)
		sandbox->trouble = *err;
	local_child_kill(sandbox->child);
}

static void
deadline_expired(void *argument)
{
	struct driver_sandbox *sandbox = argument;

	if (sandbox->state == LOCAL_STARTING)
		error_set(&sandbox->trouble, ERROR_UNAVAILABLE,
		    "the sandbox did not start within %d s", START_DEADLINE / 1000);
	local_child_kill(sandbox->child);
}

static int
take_ready(void *argument, struct message *message, struct error *err)
{
	struct driver_sandbox *sandbox = argument;

	if (message_end(message, err) != 0)
		return -1;
	loop_timer_stop(sandbox->deadline);
	sandbox->state = LOCAL_RUNNING;
	peer_set_state(sandbox->init, AFTER_READY);
	report_connected(sandbox, true);
	return 0;
}

static const struct peer_rule init_rules[] = {
	{ LOCAL_READY, "READY", BEFORE_READY, take_ready },
	{ LOCAL_STREAM, "STREAM", AFTER_READY, local_stream_take },
	{ LOCAL_STARTED, "STARTED", AFTER_READY, local_started_take },
	{ LOCAL_ENDED, "ENDED", AFTER_READY, local_ended_take },
	{ LOCAL_GONE, "GONE", AFTER_READY, local_gone_take },
	{ LOCAL_DONE, "DONE", AFTER_READY, local_done_take },
	{ 0, NULL, 0, NULL },
};

static const struct peer_events init_events = { .rules = init_rules, .closed = init_closed };

static int
start_sandbox(struct driver_sandbox *sandbox, struct error *err)
{
	int directory, socket;

	directory = local_store_open(sandbox->context.state_directory, sandbox->wanted,
	    sandbox->may_create, sandbox->id, &sandbox->created, err);
	if (directory < 0)
		return -1;
	descriptor_close(&sandbox->shape.directory);
	sandbox->shape.directory = directory;
	if (local_sandbox_describe(&sandbox->shape, err) != 0)
		return -1;
	sandbox->child = local_sandbox_start(
	    &sandbox->shape, sandbox->context.loop, child_ended, sandbox, &socket, err);
	if (sandbox->child == NULL)
		return -1;
	error_clear(&sandbox->trouble);
	sandbox->init = peer_new(
	    sandbox->context.loop, socket, "driver", "init", &init_events, sandbox);
	sandbox->state = LOCAL_STARTING;
	loop_timer_start(sandbox->deadline, START_DEADLINE);
	sweep(sandbox);
	return 0;
}

static void
begin_connect(void *argument)
{
	struct driver_sandbox *sandbox = argument;
	struct error err;

	if (sandbox->state == LOCAL_RUNNING) {
		if (sandbox->wanted == NULL || strcmp(sandbox->wanted, sandbox->id) == 0) {
			report_connected(sandbox, false);
			return;
		}
		error_set(&err, ERROR_NOT_FOUND, "there is no sandbox %s here", sandbox->wanted);
		report_connect_failure(sandbox, &err);
	} else if (start_sandbox(sandbox, &err) != 0) {
		report_connect_failure(sandbox, &err);
	}
}

static void
local_connect(struct driver_sandbox *sandbox, const struct driver_target *target,
    driver_connected_fn *done, void *argument)
{
	if (sandbox->connected != NULL)
		log_fatal("local: connect while connecting");
	sandbox->connected = done;
	sandbox->connect_argument = argument;
	memory_free(sandbox->wanted);
	sandbox->wanted = target->id == NULL ? NULL : memory_text(target->id);
	sandbox->may_create = target->may_create;
	/* A release under way is waited for; it begins the connect then. */
	if (sandbox->released == NULL)
		loop_timer_start(sandbox->connect, 0);
}

/* Init sees the closed socket and ends, and everything with it. */
static void
stop_sandbox(struct driver_sandbox *sandbox)
{
	enum local_state state = sandbox->state;
	struct error err;

	sandbox->state = LOCAL_ENDING;
	peer_free(sandbox->init);
	sandbox->init = NULL;
	loop_timer_start(sandbox->deadline, END_DEADLINE);
	error_set(&err, ERROR_ABORTED, "sandbox %s was stopped", sandbox->id);
	if (lose_all(sandbox, &err) && state == LOCAL_STARTING)
		report_connect_failure(sandbox, &err);
}

static void
local_release(struct driver_sandbox *sandbox, enum driver_release release, driver_done_fn *done,
    void *argument)
{
	if (release == DRIVER_KEEP) {
		answer_later(sandbox, done, argument);
		return;
	}
	if (sandbox->released != NULL)
		log_fatal("local: release while releasing");
	sandbox->released = done;
	sandbox->release_argument = argument;
	sandbox->destroy = release == DRIVER_DESTROY;
	loop_timer_start(sandbox->finish, 0);
}

/* There is one in the directory of the workspace, and what does not run has stopped. */
static void
local_put_away(struct driver_sandbox *sandbox, const char *id, enum driver_release release,
    driver_done_fn *done, void *argument)
{
	(void)id;
	local_release(sandbox, release, done, argument);
}

static void
begin_release(void *argument)
{
	struct driver_sandbox *sandbox = argument;

	if (sandbox->child != NULL)
		stop_sandbox(sandbox);
	else
		finish_release(sandbox);
}

static void
local_extend(struct driver_sandbox *sandbox, driver_done_fn *done, void *argument)
{
	answer_later(sandbox, done, argument);
}

static struct driver_sandbox *
local_open(const struct driver_context *context, struct error *err)
{
	const char *isolation, *network;
	struct driver_sandbox *sandbox;

	if (context->state_directory < 0) {
		error_set(err, ERROR_INVALID, "the local driver needs a state directory");
		return NULL;
	}
	sandbox = memory_zeroed(1, sizeof(*sandbox));
	sandbox->context = *context;
	sandbox->shape.id = sandbox->id;
	sandbox->shape.directory = -1;
	isolation = settings_text(context->settings, "isolation");
	network = settings_text(context->settings, "network");
	sandbox->shape.isolated = strcmp(isolation, "none") != 0;
	sandbox->shape.network = strcmp(network, "host") == 0;
	sandbox->deadline = loop_timer_new(context->loop, deadline_expired, sandbox);
	sandbox->connect = loop_timer_new(context->loop, begin_connect, sandbox);
	sandbox->finish = loop_timer_new(context->loop, begin_release, sandbox);
	return sandbox;
}

static void
local_close(struct driver_sandbox *sandbox)
{
	local_operation_free_all(sandbox);
	local_stream_free_all(sandbox);
	while (sandbox->answers != NULL)
		free_answer(sandbox->answers);
	peer_free(sandbox->init);
	local_child_free(sandbox->child, END_DEADLINE);
	local_child_free(sandbox->removal, END_DEADLINE);
	loop_timer_free(sandbox->deadline);
	loop_timer_free(sandbox->connect);
	loop_timer_free(sandbox->finish);
	descriptor_close(&sandbox->shape.directory);
	memory_free(sandbox->wanted);
	sandbox->closed = true;
	/* Closed by a callback of lose_all, which frees what it still asks. */
	if (!sandbox->losing)
		memory_free(sandbox);
}

static int
local_open_files(struct driver_sandbox *sandbox, struct error *err)
{
	struct message message;
	int pair[2];

	if (strcmp(settings_text(sandbox->context.settings, "files"), "native") != 0)
		return error_set(err, ERROR_UNSUPPORTED, "the login asks for the script");
	if (sandbox->state != LOCAL_RUNNING)
		return error_set(err, ERROR_UNAVAILABLE, "the sandbox does not run");
	if (descriptor_pair(pair, err) != 0)
		return -1;
	message_start(&message, LOCAL_FILES);
	message.fd = pair[1];
	peer_send(sandbox->init, &message);
	return pair[0];
}

const struct driver driver_local = {
	.kind = &driver_local_kind,
	.open = local_open,
	.close = local_close,
	.connect = local_connect,
	.release = local_release,
	.put_away = local_put_away,
	.extend = local_extend,
	.read = local_read,
	.write = local_write,
	.run = local_run,
	.cancel = local_cancel,
	.start = local_stream_start,
	.resize = local_stream_resize,
	.signal = local_stream_signal,
	.close_stream = local_stream_close,
	.open_files = local_open_files,
};
