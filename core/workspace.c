/* SPDX-License-Identifier: ISC */
/*
 * A workspace connects on first use and again after its sandbox was lost. Everybody who wants to
 * use it meanwhile waits in one list and is told the same outcome.
 */
#include <inttypes.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/command.h"
#include "core/driver.h"
#include "core/files.h"
#include "core/scripts.h"
#include "core/workspace.h"
#include "core/workspace_waiter.h"

/* ms: nobody is told of a start that is quicker. */
#define PROGRESS_AFTER 500
/* ms for the provider to give us a sandbox, and for the start check in it. */
#define CONNECT_WAIT 180000
#define CHECK_OUTPUT_MAX 65536

enum stage {
	STAGE_CLOSED,
	STAGE_CONNECTING,
	STAGE_CHECKING, /* the start check runs in the sandbox */
	STAGE_READY,
	STAGE_RELEASING,
};

struct workspace {
	struct workspace_setup setup;
	struct driver_sandbox *sandbox;
	enum stage stage;
	struct waiters waiters;
	struct loop_timer *soon;     /* tells waiters of a workspace that is ready already */
	struct loop_timer *slow;     /* tells them that it takes a while */
	struct loop_timer *deadline;
	struct driver_operation *check;
	int64_t started; /* loop_now */
	bool told;       /* that it takes a while */

	char *id, *directory, *root, *shell;
	bool created;
	struct command *commands;
	struct files *files;

	bool dispose;
	workspace_done_fn *done;
	void *done_argument;
	/* while it is put away for now only */
	enum driver_release away;
	workspace_done_fn *away_done;
	void *away_argument;
};

static void release_sandbox(struct workspace *workspace);

static void
slow_expired(void *argument)
{
	struct workspace *workspace = argument;

	workspace->told = true;
	waiters_tell_progress(&workspace->waiters, "starting sandbox...");
}

/*
 * Tells everybody who waits. What one of them does may end the workspace's being ready: those after it
 * wait on, and have it connect once more when nothing else will.
 */
static void
tell_waiters(struct workspace *workspace, const struct error *err)
{
	waiters_begin(&workspace->waiters);
	while ((err != NULL || workspace->stage == STAGE_READY) &&
	       waiters_tell(&workspace->waiters, err))
		continue;
	waiters_end(&workspace->waiters);
	if (workspace->stage == STAGE_CLOSED && workspace->waiters.waiting != NULL)
		loop_timer_start(workspace->soon, 0);
}

static void
stop_connecting(struct workspace *workspace)
{
	loop_timer_stop(workspace->slow);
	loop_timer_stop(workspace->deadline);
	if (workspace->check != NULL)
		workspace->setup.driver->cancel(workspace->check);
	workspace->check = NULL;
}

static void
fail(struct workspace *workspace, const struct error *reason)
{
	struct error err = *reason;

	stop_connecting(workspace);
	log_error("workspace %s: %s", workspace->setup.name, err.message);
	if (workspace->stage != STAGE_RELEASING)
		workspace->stage = STAGE_CLOSED;
	tell_waiters(workspace, &err);
}

static void
deadline_expired(void *argument)
{
	struct workspace *workspace = argument;
	struct error err;

	error_set(&err, ERROR_TIMEOUT, "%s: the sandbox did not start within %d s",
	    workspace->setup.driver->kind->name, CONNECT_WAIT / 1000);
	/* What the provider does with the request is unknown, so a fresh driver object starts over. */
	workspace->setup.driver->close(workspace->sandbox);
	workspace->sandbox = NULL;
	fail(workspace, &err);
}

static void
become_ready(struct workspace *workspace)
{
	char *line;

	stop_connecting(workspace);
	workspace->stage = STAGE_READY;
	log_info("workspace %s: sandbox %s is ready, root %s", workspace->setup.name, workspace->id,
	    workspace->root);
	if (workspace->told) {
		line = memory_text_format(
		    "ready in %.1f s", (double)(loop_now() - workspace->started) / 1000.0);
		waiters_tell_progress(&workspace->waiters, line);
		memory_free(line);
		line = memory_text_format("sandbox-id: %s", workspace->id);
		waiters_tell_progress(&workspace->waiters, line);
		memory_free(line);
	}
	tell_waiters(workspace, NULL);
}

/* The value behind "NAME " at the start of a line of the check's output; a new text or NULL. */
static char *
find_line(const char *output, const char *name)
{
	size_t length;

	length = strlen(name);
	for (; *output != '\0'; output += *output == '\n' ? 1 : 0) {
		if (strncmp(output, name, length) == 0 && output[length] == ' ')
			return memory_text_bounded(
			    output + length + 1, strcspn(output + length + 1, "\n"));
		output += strcspn(output, "\n");
	}
	return NULL;
}

/* Reads what core/scripts/start.sh printed. */
static int
take_check(struct workspace *workspace, const char *output, struct error *err)
{
	char *missing, *problem;
	int result;

	result = 0;
	missing = find_line(output, "missing");
	problem = find_line(output, "problem");
	memory_free(workspace->root);
	memory_free(workspace->shell);
	workspace->root = find_line(output, "root");
	workspace->shell = find_line(output, "shell");
	if (missing != NULL)
		result = error_set(err, ERROR_UNSUPPORTED, "the sandbox's image lacks %s", missing);
	else if (problem != NULL)
		result = error_set(err, ERROR_NOT_FOUND, "%s", problem);
	else if (workspace->root == NULL || workspace->root[0] != '/' || workspace->shell == NULL)
		result = error_set(err, ERROR_UNAVAILABLE, "the start check gave no root");
	memory_free(missing);
	memory_free(problem);
	return result;
}

static void
checked(void *argument, const struct driver_result *result, const struct error *reason)
{
	struct workspace *workspace = argument;
	struct error err;
	char *output;

	workspace->check = NULL;
	if (reason != NULL) {
		err = *reason;
		error_wrap(&err, "start check");
		fail(workspace, &err);
		return;
	}
	output = memory_text_bounded(result->output, result->output_size);
	if (take_check(workspace, output, &err) == 0)
		become_ready(workspace);
	else
		fail(workspace, &err);
	memory_free(output);
}

/* Runs the start check: are the tools there, is the root, and what is the login shell? */
static void
check(struct workspace *workspace)
{
	const struct settings *settings = workspace->setup.settings;
	char *arguments[3], create[] = "create", find[] = "find", **argv;
	const char *root;
	char *path;

	root = settings_text(settings, "root");
	if (root == NULL)
		path = memory_text(workspace->directory);
	else if (root[0] == '/')
		path = memory_text(root);
	else
		path = memory_text_format("%s/%s", workspace->directory, root);
	arguments[0] = path;
	arguments[1] = settings_boolean(settings, "create_root") ? create : find;
	arguments[2] = NULL;
	argv = script_argv("start", arguments);
	workspace->stage = STAGE_CHECKING;
	workspace->check = workspace->setup.driver->run(
	    workspace->sandbox, argv, NULL, 0, CHECK_OUTPUT_MAX, checked, workspace);
	memory_list_free(argv);
	memory_free(path);
}

static void
connected(void *argument, const struct driver_connected *found, const struct error *reason)
{
	struct workspace *workspace = argument;
	struct error err;

	if (workspace->stage != STAGE_CONNECTING)
		return;
	if (reason != NULL) {
		err = *reason;
		error_wrap(&err, "%s", workspace->setup.driver->kind->name);
		fail(workspace, &err);
		return;
	}
	memory_free(workspace->id);
	memory_free(workspace->directory);
	workspace->id = memory_text(found->id);
	workspace->directory = memory_text(found->directory);
	if (found->created)
		workspace->created = true;
	check(workspace);
}

/* The sandbox went away by itself. Streams end by themselves; the next use connects again. */
static void
lost(void *argument, const struct error *err)
{
	struct workspace *workspace = argument;

	log_error("workspace %s: sandbox %s is lost: %s", workspace->setup.name,
	    workspace->id == NULL ? "(none)" : workspace->id, err->message);
	if (workspace->stage == STAGE_READY)
		workspace->stage = STAGE_CLOSED;
	else if (workspace->stage == STAGE_CONNECTING || workspace->stage == STAGE_CHECKING)
		fail(workspace, err);
}

static int
open_driver(struct workspace *workspace, struct error *err)
{
	struct driver_context context = { 0 };

	context.loop = workspace->setup.loop;
	context.settings = workspace->setup.settings;
	context.instance = workspace->setup.instance;
	context.login = workspace->setup.name;
	context.state_directory = workspace->setup.directory;
	context.lost = lost;
	context.argument = workspace;
	workspace->sandbox = workspace->setup.driver->open(&context, err);
	if (workspace->sandbox == NULL)
		return error_wrap(err, "%s", workspace->setup.driver->kind->name);
	return 0;
}

static void
connect_sandbox(struct workspace *workspace)
{
	struct driver_target target = { 0 };
	const char *attached;
	struct error err;

	workspace->started = loop_now();
	workspace->told = false;
	if (workspace->sandbox == NULL && open_driver(workspace, &err) != 0) {
		fail(workspace, &err);
		return;
	}
	attached = strchr(workspace->setup.name, '=');
	target.id = attached == NULL ? NULL : attached + 1;
	target.created = attached == NULL;
	target.may_create = attached == NULL;
	workspace->stage = STAGE_CONNECTING;
	loop_timer_start(workspace->slow, PROGRESS_AFTER);
	loop_timer_start(workspace->deadline, CONNECT_WAIT);
	workspace->setup.driver->connect(workspace->sandbox, &target, connected, workspace);
}

/* Even with nothing to wait for the answer comes from the loop, never from within workspace_use. */
static void
soon_expired(void *argument)
{
	struct workspace *workspace = argument;

	if (workspace->stage == STAGE_CLOSED && workspace->waiters.waiting != NULL)
		connect_sandbox(workspace);
	else if (workspace->stage == STAGE_READY)
		tell_waiters(workspace, NULL);
	else if (workspace->stage == STAGE_RELEASING && workspace->commands == NULL)
		release_sandbox(workspace);
}

struct workspace *
workspace_new(const struct workspace_setup *setup, struct error *err)
{
	struct workspace *workspace;

	workspace = memory_zeroed(1, sizeof(*workspace));
	workspace->setup = *setup;
	workspace->soon = loop_timer_new(setup->loop, soon_expired, workspace);
	workspace->slow = loop_timer_new(setup->loop, slow_expired, workspace);
	workspace->deadline = loop_timer_new(setup->loop, deadline_expired, workspace);
	workspace->files = files_new(workspace);
	if (open_driver(workspace, err) != 0) {
		workspace_free(workspace);
		return NULL;
	}
	return workspace;
}

void
workspace_free(struct workspace *workspace)
{
	if (workspace == NULL)
		return;
	files_free(workspace->files);
	loop_timer_free(workspace->soon);
	loop_timer_free(workspace->slow);
	loop_timer_free(workspace->deadline);
	if (workspace->sandbox != NULL)
		workspace->setup.driver->close(workspace->sandbox);
	memory_free(workspace->id);
	memory_free(workspace->directory);
	memory_free(workspace->root);
	memory_free(workspace->shell);
	memory_free(workspace);
}

struct workspace_waiter *
workspace_use(struct workspace *workspace, workspace_ready_fn *ready,
    workspace_progress_fn *progress, void *argument)
{
	struct workspace_waiter *waiter;

	waiter = waiters_add(&workspace->waiters, ready, progress, argument);
	if (workspace->stage == STAGE_CLOSED || workspace->stage == STAGE_READY)
		loop_timer_start(workspace->soon, 0);
	return waiter;
}

const char *
workspace_root(const struct workspace *workspace)
{
	return workspace->root;
}

const char *
workspace_shell(const struct workspace *workspace)
{
	return workspace->shell;
}

const char *
workspace_id(const struct workspace *workspace)
{
	return workspace->id;
}

struct loop *
workspace_loop(const struct workspace *workspace)
{
	return workspace->setup.loop;
}

const struct driver *
workspace_driver(const struct workspace *workspace)
{
	return workspace->setup.driver;
}

const struct settings *
workspace_settings(const struct workspace *workspace)
{
	return workspace->setup.settings;
}

struct driver_sandbox *
workspace_sandbox(const struct workspace *workspace)
{
	return workspace->sandbox;
}

const char *
workspace_login(const struct workspace *workspace)
{
	return workspace->setup.name;
}

struct files *
workspace_files(const struct workspace *workspace)
{
	return workspace->files;
}

bool
workspace_busy(const struct workspace *workspace)
{
	const struct command *command;

	for (command = workspace->commands; command != NULL; command = command_next(command))
		if (command_busy(command))
			return true;
	return false;
}

void
workspace_add_command(struct workspace *workspace, struct command *command)
{
	command_set_next(command, workspace->commands);
	workspace->commands = command;
}

void
workspace_remove_command(struct workspace *workspace, struct command *command)
{
	struct command *at;

	if (workspace->commands == command)
		workspace->commands = command_next(command);
	for (at = workspace->commands; at != NULL; at = command_next(at))
		if (command_next(at) == command)
			command_set_next(at, command_next(command));
	if (workspace->commands == NULL && workspace->stage == STAGE_RELEASING)
		release_sandbox(workspace);
}

/* Put away for now: whoever asked for it meanwhile connects anew. */
static void
released_for_now(struct workspace *workspace, const struct error *err)
{
	workspace_done_fn *done = workspace->away_done;

	workspace->away_done = NULL;
	workspace->stage = STAGE_CLOSED;
	done(workspace->away_argument, err);
	if (workspace->waiters.waiting != NULL)
		loop_timer_start(workspace->soon, 0);
}

static void
released(void *argument, const struct error *err)
{
	struct workspace *workspace = argument;

	if (workspace->away_done != NULL)
		released_for_now(workspace, err);
	else
		workspace->done(workspace->done_argument, err);
}

static enum driver_release
choose_release(const struct workspace *workspace)
{
	const char *text;
	bool attached;

	attached = strchr(workspace->setup.name, '=') != NULL;
	text = settings_text(workspace->setup.settings, "on_dispose");
	if (text == NULL)
		text = attached ? "keep" : workspace->setup.driver->kind->standard_dispose;
	if (strcmp(text, "destroy") == 0 &&
	    settings_boolean(workspace->setup.settings, "never_delete"))
		text = (workspace->setup.driver->kind->supports & DRIVER_STOP) != 0 ? "stop" : "keep";
	if (strcmp(text, "destroy") == 0)
		return DRIVER_DESTROY;
	return strcmp(text, "stop") == 0 ? DRIVER_STOPPED : DRIVER_KEEP;
}

static void
release_sandbox(struct workspace *workspace)
{
	enum driver_release release;

	if (workspace->away_done != NULL)
		release = workspace->away;
	else
		release = workspace->dispose ? choose_release(workspace) : DRIVER_KEEP;
	workspace->setup.driver->release(workspace->sandbox, release, released, workspace);
}

static void
kill_commands(struct workspace *workspace)
{
	struct command *command, *next;

	for (command = workspace->commands; command != NULL; command = next) {
		next = command_next(command);
		command_kill(command);
	}
}

int
workspace_put_away(struct workspace *workspace, bool destroy, workspace_done_fn *done,
    void *argument, struct error *err)
{
	const struct driver_kind *kind = workspace->setup.driver->kind;

	if (workspace->stage != STAGE_READY)
		return error_set(err, ERROR_BUSY, "the sandbox is being started or stopped");
	if (destroy && settings_boolean(workspace->setup.settings, "never_delete"))
		return error_set(err, ERROR_DENIED, "never_delete is on for this login");
	if (!destroy && (kind->supports & DRIVER_STOP) == 0)
		return error_set(err, ERROR_UNSUPPORTED, "%s cannot stop a sandbox", kind->name);
	workspace->away = destroy ? DRIVER_DESTROY : DRIVER_STOPPED;
	workspace->away_done = done;
	workspace->away_argument = argument;
	workspace->stage = STAGE_RELEASING;
	if (workspace->commands == NULL)
		loop_timer_start(workspace->soon, 0);
	else
		kill_commands(workspace);
	return 0;
}

void
workspace_release(struct workspace *workspace, bool dispose, workspace_done_fn *done, void *argument)
{
	struct error err;
	bool was_used;

	was_used = workspace->stage == STAGE_READY;
	error_set(&err, ERROR_UNAVAILABLE, "the workspace is being released");
	if (workspace->away_done != NULL) {
		/* Its way is the same, but for who is told at the end. */
		workspace->away_done(workspace->away_argument, &err);
		workspace->away_done = NULL;
		workspace->done = done;
		workspace->done_argument = argument;
		workspace->dispose = dispose;
		return;
	}
	workspace->done = done;
	workspace->done_argument = argument;
	workspace->dispose = dispose;
	stop_connecting(workspace);
	workspace->stage = STAGE_RELEASING;
	tell_waiters(workspace, &err);
	if (!was_used || workspace->sandbox == NULL) {
		done(argument, NULL);
		return;
	}
	if (workspace->commands == NULL) {
		release_sandbox(workspace);
		return;
	}
	kill_commands(workspace);
}
