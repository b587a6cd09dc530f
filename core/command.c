/* SPDX-License-Identifier: ISC */
/*
 * The life of a command:
 *
 *	WAITING   for the workspace
 *	STARTING  the driver was asked
 *	RUNNING   its descriptors are with the owner
 *	ENDED     the owner knows; processes of its group may be left
 *	          (freed once they are gone and the owner has closed it)
 *
 * Stopping is one ladder whatever the reason: HUP first when the client is gone, then TERM, KILL
 * after kill_grace, and when not even that ends it, the stream is given up after LAST_WAIT.
 */
#include <signal.h>
#include <string.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/base/option.h"
#include "core/command.h"
#include "core/command_environment.h"
#include "core/drain.h"
#include "core/driver.h"
#include "core/file_path.h"
#include "core/protocol.h"
#include "core/workspace.h"
#include "core/wrapped.h"

#define STATUS_TIMEOUT 124
#define STATUS_LIMIT 143
/* ms after KILL for the end to arrive from the far side. */
#define LAST_WAIT 10000
/* The share of kill_grace between HUP and TERM, for programs that save their work on HUP. */
#define HUP_SHARE 4

enum stage {
	STAGE_WAITING,
	STAGE_STARTING,
	STAGE_RUNNING,
	STAGE_ENDED,
};

/* Why it was stopped, which decides how its end is told. */
enum reason {
	REASON_NONE,
	REASON_TIMEOUT,
	REASON_LIMIT,
	REASON_ABORT,
	REASON_CLOSED,
};

/* How hard it was stopped so far. */
enum rung {
	RUNG_NONE,
	RUNG_HUP, /* only when the client is gone */
	RUNG_TERM,
	RUNG_KILL,
};

struct command {
	struct command *next; /* of the workspace */
	struct workspace *workspace;
	enum stage stage;
	enum reason reason;
	const struct command_events *events; /* NULL once closed */
	void *argument;
	struct workspace_waiter *waiter;
	struct driver_stream *stream; /* of a driver that can do it all */
	struct wrapped *wrapped;      /* else */
	bool gone;                    /* no process of the group is left */
	enum rung rung;               /* of the ladder: what was sent last */
	int early_signal;
	uint64_t limit;
	struct loop_timer *timeout, *ladder;
	struct loop_timer *again; /* to start it anew, once, in place of a sandbox that was gone */
	struct error refusal;     /* why it could not be started */
	unsigned losses;          /* of the workspace when it was */
	struct drain *drains[2];  /* of the output of what may be kept running */

	char **argv, **environment;
	char *directory, *term;
	struct command_request request; /* its pointers are not used */
};

static const struct driver *
driver_of(const struct command *command)
{
	return workspace_driver(command->workspace);
}

/* Does the driver itself lead groups and tell exact ends? */
static bool
is_complete(const struct driver *driver)
{
	return (driver->kind->supports & DRIVER_GROUP) != 0 &&
	       (driver->kind->supports & DRIVER_EXIT) != 0;
}

static void
close_stream(struct command *command)
{
	if (command->stream != NULL)
		driver_of(command)->close_stream(command->stream);
	if (command->wrapped != NULL)
		wrapped_close(command->wrapped);
	command->stream = NULL;
	command->wrapped = NULL;
}

static void
free_command(struct command *command)
{
	workspace_remove_command(command->workspace, command);
	workspace_waiter_cancel(command->waiter);
	close_stream(command);
	drain_free(command->drains[0]);
	drain_free(command->drains[1]);
	loop_timer_free(command->timeout);
	loop_timer_free(command->ladder);
	loop_timer_free(command->again);
	memory_list_free(command->argv);
	memory_list_free(command->environment);
	memory_free(command->directory);
	memory_free(command->term);
	memory_free(command);
}

/* Freed when nobody needs it any more: no owner, no process. */
static void
free_if_done(struct command *command)
{
	if (command->events == NULL && command->stage == STAGE_ENDED && command->gone)
		free_command(command);
}

/* Tells the owner of the end. */
static void
tell_ended(struct command *command, struct command_exit *ended)
{
	char size[NUMBER_TEXT_MAX];
	char *note;

	note = NULL;
	if (command->reason == REASON_TIMEOUT) {
		ended->failed = ended->signaled = false;
		ended->status = STATUS_TIMEOUT;
	} else if (command->reason == REASON_LIMIT) {
		ended->failed = ended->signaled = false;
		ended->status = STATUS_LIMIT;
		note = memory_text_format("stopped: more than %s of output",
		    number_describe_size(size, (int64_t)command->limit));
		ended->note = note;
	} else if (command->reason == REASON_ABORT) {
		ended->failed = true;
		error_set(&ended->failure, ERROR_ABORTED, "the command was stopped on request");
	}
	command->stage = STAGE_ENDED;
	loop_timer_stop(command->timeout);
	if (command->events != NULL)
		command->events->ended(command->argument, ended);
	memory_free(note);
}

static void
tell_gone(struct command *command)
{
	if (command->events != NULL && command->events->gone != NULL)
		command->events->gone(command->argument);
	workspace_command_gone(command->workspace);
}

static void
fail(struct command *command, const struct error *err)
{
	struct command_exit ended = { 0 };

	ended.failed = true;
	ended.failure = *err;
	command->gone = true;
	tell_ended(command, &ended);
	tell_gone(command);
	free_if_done(command);
}

static void
send_signal(struct command *command, int number)
{
	if (command->gone)
		return;
	if (command->stream != NULL)
		driver_of(command)->signal(command->stream, number);
	if (command->wrapped != NULL)
		wrapped_signal(command->wrapped, number);
}

/* Not even KILL ended it: the stream is given up. */
static void
give_up(struct command *command)
{
	struct error err;

	log_error("a command does not end after KILL; its stream is given up");
	close_stream(command);
	error_set(&err, ERROR_UNAVAILABLE, "the command did not end after KILL");
	if (command->stage != STAGE_ENDED) {
		fail(command, &err);
	} else {
		command->gone = true;
		tell_gone(command);
		free_if_done(command);
	}
}

static uint32_t
kill_grace(const struct command *command)
{
	if (command->request.kill_grace != 0)
		return command->request.kill_grace;
	return (uint32_t)settings_number(workspace_settings(command->workspace), "kill_grace");
}

/* The next rung: each is sent once, and has its time before the one after it. */
static void
climb(void *argument)
{
	struct command *command = argument;
	uint32_t grace = kill_grace(command);

	if (command->rung == RUNG_KILL) {
		give_up(command);
		return;
	}
	command->rung++;
	if (command->rung == RUNG_HUP) {
		send_signal(command, SIGHUP);
		send_signal(command, SIGCONT);
		loop_timer_start(command->ladder, grace / HUP_SHARE);
	} else if (command->rung == RUNG_TERM) {
		send_signal(command, SIGTERM);
		loop_timer_start(command->ladder, grace);
	} else {
		send_signal(command, SIGKILL);
		loop_timer_start(command->ladder, LAST_WAIT);
	}
}

/* Steps onto the ladder. A command that only waits for its workspace ends at once. */
static void
stop(struct command *command, enum reason reason)
{
	struct error err;

	if (command->stage == STAGE_WAITING) {
		command->reason = reason;
		workspace_waiter_cancel(command->waiter);
		command->waiter = NULL;
		error_set(&err, ERROR_ABORTED, "the command was stopped before it started");
		fail(command, &err);
		return;
	}
	if (command->reason == REASON_NONE && command->stage != STAGE_ENDED)
		command->reason = reason;
	if (command->rung != RUNG_NONE)
		return;
	if (reason != REASON_CLOSED)
		command->rung = RUNG_HUP; /* passed over */
	/* What is not started yet has no group: stream_started comes back here. */
	if (command->stage != STAGE_STARTING)
		climb(command);
}

static void
timeout_expired(void *argument)
{
	stop(argument, REASON_TIMEOUT);
}

/* Keeps a second descriptor of each output stream of a command that may leave processes behind. */
static void
prepare_drains(struct command *command, const struct driver_descriptors *descriptors)
{
	struct loop *loop = workspace_loop(command->workspace);

	if (!command->request.keep_background || command->request.pty)
		return;
	command->drains[0] = drain_new(loop, descriptors->output);
	command->drains[1] = drain_new(loop, descriptors->errors);
}

static void
stream_started(void *argument, const struct driver_descriptors *descriptors, uint32_t pid)
{
	struct command *command = argument;
	struct driver_descriptors unwanted = *descriptors;

	(void)pid;
	command->stage = STAGE_RUNNING;
	if (command->events == NULL) {
		descriptor_close(&unwanted.input);
		descriptor_close(&unwanted.output);
		descriptor_close(&unwanted.errors);
		climb(command);
		return;
	}
	prepare_drains(command, descriptors);
	command->events->started(command->argument, descriptors);
	if (command->request.timeout > 0)
		loop_timer_start(command->timeout, command->request.timeout);
	if (command->early_signal != 0)
		send_signal(command, command->early_signal);
	if (command->reason != REASON_NONE)
		climb(command);
}

static void
stream_exited(void *argument, const struct driver_exit *driver_ended, const struct error *err)
{
	struct command *command = argument;
	struct command_exit ended = { 0 };

	/* Whether it ran is known: where that is not so, it is not for us to run it twice. */
	if (driver_ended == NULL && command->stage == STAGE_STARTING &&
	    err->code == ERROR_NOT_FOUND && command->refusal.code == ERROR_NONE) {
		command->refusal = *err;
		loop_timer_start(command->again, 0);
		return;
	}
	if (driver_ended == NULL) {
		fail(command, err);
		return;
	}
	ended.signaled = driver_ended->signaled;
	ended.status = (uint32_t)driver_ended->status;
	ended.core = driver_ended->core;
	tell_ended(command, &ended);
}

static void
stream_gone(void *argument)
{
	struct command *command = argument;

	command->gone = true;
	loop_timer_stop(command->ladder);
	tell_gone(command);
	free_if_done(command);
}

static const struct driver_stream_events stream_events = {
	.started = stream_started,
	.exited = stream_exited,
	.gone = stream_gone,
};

/* Where it runs: the root, or the directory in it that was asked for, or else the login's cwd. */
static char *
make_directory(const struct command *command, struct error *err)
{
	const char *root = workspace_root(command->workspace), *below;
	char *directory;

	below = command->directory;
	if (below == NULL)
		below = settings_text(workspace_settings(command->workspace), "cwd");
	if (below == NULL || *below == '\0')
		return memory_text(root);
	directory = path_normalize(root, below, err);
	if (directory == NULL || path_is_within(root, directory))
		return directory;
	memory_free(directory);
	error_set(err, ERROR_OUTSIDE_ROOT, "%s is outside the root %s", below, root);
	return NULL;
}

static void
start_stream(struct command *command, const struct driver_command *start)
{
	struct wrapped_setup setup = { 0 };

	setup.loop = workspace_loop(command->workspace);
	setup.driver = driver_of(command);
	setup.sandbox = workspace_sandbox(command->workspace);
	setup.directory = workspace_directory(command->workspace);
	setup.id = workspace_id(command->workspace);
	setup.is_script = command->request.internal;
	setup.follow_background = command->request.keep_background &&
				  command->request.follow_background;
	if (is_complete(setup.driver))
		command->stream = setup.driver->start(
		    setup.sandbox, start, &stream_events, command);
	else
		command->wrapped = wrapped_start(&setup, start, &stream_events, command);
}

static void
workspace_ready(void *argument, const struct error *err)
{
	struct command *command = argument;
	struct driver_command start = { 0 };
	char *shell[3], **environment, *directory = NULL, login[] = "-l";
	struct error outside;

	command->waiter = NULL;
	if (err == NULL) {
		directory = make_directory(command, &outside);
		err = &outside;
	}
	if (directory == NULL) {
		fail(command, err);
		return;
	}
	shell[0] = memory_text(workspace_shell(command->workspace));
	shell[1] = login;
	shell[2] = NULL;
	environment = command_environment(
	    command->workspace, command->environment, command->request.internal);
	start.argv = command->argv != NULL ? command->argv : shell;
	start.environment = environment;
	start.directory = directory;
	start.want_stdin = command->request.want_stdin;
	start.pty = command->request.pty;
	start.term = command->term;
	start.columns = command->request.columns;
	start.rows = command->request.rows;
	start.x_pixels = command->request.x_pixels;
	start.y_pixels = command->request.y_pixels;
	start.keep_background = command->request.keep_background;
	start.kill_grace = kill_grace(command);
	command->stage = STAGE_STARTING;
	command->losses = workspace_losses(command->workspace);
	start_stream(command, &start);
	memory_free(shell[0]);
	memory_free(directory);
	memory_list_free(environment);
}

static void
workspace_progress(void *argument, const char *text)
{
	struct command *command = argument;

	if (command->events != NULL)
		command->events->progress(command->argument, text);
}

/* By now the driver has said whether the sandbox is gone. */
static void
again_expired(void *argument)
{
	struct command *command = argument;

	if (command->reason != REASON_NONE || command->rung != RUNG_NONE ||
	    workspace_losses(command->workspace) == command->losses) {
		fail(command, &command->refusal);
		return;
	}
	close_stream(command);
	command->stage = STAGE_WAITING;
	command->waiter = workspace_use(
	    command->workspace, workspace_ready, workspace_progress, command);
}

struct command *
command_start(struct workspace *workspace, const struct command_request *request,
    const struct command_events *events, void *argument)
{
	struct command *command;

	command = memory_zeroed(1, sizeof(*command));
	command->workspace = workspace;
	command->events = events;
	command->argument = argument;
	command->request = *request;
	command->argv = memory_list(request->argv);
	command->environment = memory_list(request->environment);
	command->directory = request->directory == NULL ? NULL : memory_text(request->directory);
	command->term = request->term == NULL ? NULL : memory_text(request->term);
	command->timeout = loop_timer_new(workspace_loop(workspace), timeout_expired, command);
	command->ladder = loop_timer_new(workspace_loop(workspace), climb, command);
	command->again = loop_timer_new(workspace_loop(workspace), again_expired, command);
	workspace_add_command(workspace, command);
	command->waiter = workspace_use(workspace, workspace_ready, workspace_progress, command);
	return command;
}

void
command_signal(struct command *command, int number)
{
	/* A person who does not want to wait for the sandbox. */
	if (command->stage == STAGE_WAITING && command->request.pty && number == SIGINT)
		stop(command, REASON_ABORT);
	else if (command->stage == STAGE_RUNNING || command->stage == STAGE_ENDED)
		send_signal(command, number);
	else
		command->early_signal = number;
}

void
command_resize(
    struct command *command, uint32_t columns, uint32_t rows, uint32_t x_pixels, uint32_t y_pixels)
{
	command->request.columns = columns;
	command->request.rows = rows;
	command->request.x_pixels = x_pixels;
	command->request.y_pixels = y_pixels;
	if (command->stage == STAGE_ENDED || !command->request.pty)
		return;
	if (command->stream != NULL)
		driver_of(command)->resize(command->stream, columns, rows, x_pixels, y_pixels);
	if (command->wrapped != NULL)
		wrapped_resize(command->wrapped, columns, rows, x_pixels, y_pixels);
}

void
command_limit(struct command *command, uint64_t limit)
{
	command->limit = limit;
	if (command->stage == STAGE_RUNNING)
		stop(command, REASON_LIMIT);
}

void
command_abort(struct command *command)
{
	if (command->stage != STAGE_ENDED)
		stop(command, REASON_ABORT);
}

void
command_close(struct command *command)
{
	command->events = NULL;
	drain_start(command->drains[0]);
	drain_start(command->drains[1]);
	if (command->stage != STAGE_ENDED)
		stop(command, REASON_CLOSED);
	else
		free_if_done(command);
}

void
command_drop(struct command *command)
{
	free_command(command);
}

bool
command_lives(const struct command *command)
{
	return command->stage != STAGE_WAITING && (command->stage != STAGE_ENDED || !command->gone);
}

bool
command_busy(const struct command *command)
{
	return !command->request.internal &&
	       (command->stage == STAGE_WAITING || command_lives(command));
}

bool
command_has_ended(const struct command *command)
{
	return command->stage == STAGE_ENDED;
}

struct command *
command_next(const struct command *command)
{
	return command->next;
}

void
command_set_next(struct command *command, struct command *next)
{
	command->next = next;
}

void
command_kill(struct command *command)
{
	if (command->stage == STAGE_WAITING)
		stop(command, REASON_CLOSED);
	else if (command->rung != RUNG_KILL) {
		command->rung = RUNG_TERM;
		climb(command);
	}
}
