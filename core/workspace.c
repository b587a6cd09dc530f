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
#include "core/login.h"
#include "core/scripts.h"
#include "core/workspace.h"
#include "core/workspace_state.h"

/* ms: nobody is told of a start that is quicker. */
#define PROGRESS_AFTER 500
/* ms for the provider to give us a sandbox, and for the start check in it. */
#define CONNECT_WAIT 180000
#define CHECK_OUTPUT_MAX 65536

static void
slow_expired(void *argument)
{
	struct workspace *workspace = argument;

	workspace->told = true;
	waiters_tell_progress(&workspace->waiters, "starting sandbox...");
}

/*
 * Tells everybody who waits. What one of them does may end the workspace's being ready: those after
 * it wait on, and have it connect once more when nothing else will.
 */
void
workspace_tell_waiters(struct workspace *workspace, const struct error *err)
{
	waiters_begin(&workspace->waiters);
	while ((err != NULL || workspace->stage == WORKSPACE_READY) &&
	       waiters_tell(&workspace->waiters, err))
		continue;
	waiters_end(&workspace->waiters);
	if (workspace->stage == WORKSPACE_CLOSED && workspace->waiters.waiting != NULL)
		loop_timer_start(workspace->soon, 0);
}

void
workspace_stop_connecting(struct workspace *workspace)
{
	loop_timer_stop(workspace->slow);
	loop_timer_stop(workspace->deadline);
	if (workspace->check != NULL)
		workspace->setup.driver->cancel(workspace->check);
	workspace->check = NULL;
}

/* Ends an attempt to reclaim; returns false when there is none. */
static bool
end_reclaim(struct workspace *workspace)
{
	if (!workspace->reclaiming)
		return false;
	workspace->reclaiming = false;
	workspace->reclaimed(workspace->reclaimed_argument);
	return true;
}

void
workspace_end_search(struct workspace *workspace)
{
	workspace_stop_connecting(workspace);
	workspace->stage = WORKSPACE_CLOSED;
	(void)end_reclaim(workspace);
	/* Who came meanwhile wants more than an end of it. */
	if (workspace->waiters.waiting != NULL)
		loop_timer_start(workspace->soon, 0);
}

void
workspace_fail(struct workspace *workspace, const struct error *reason)
{
	struct error err = *reason;

	workspace_stop_connecting(workspace);
	workspace_record_failure(workspace, &err);
	/* To find nothing left to release is no failure. */
	if (err.code == ERROR_NOT_FOUND && (workspace->reclaiming || workspace->away_done != NULL))
		log_info("workspace %s: %s", workspace->setup.name, err.message);
	else
		log_error("workspace %s: %s", workspace->setup.name, err.message);
	if (workspace->stage != WORKSPACE_RELEASING)
		workspace->stage = WORKSPACE_CLOSED;
	if (workspace->away_done != NULL && workspace->stage == WORKSPACE_CLOSED) {
		workspace_fail_away(workspace, &err);
		return;
	}
	/* Who came meanwhile wants more than an end of it. */
	if (end_reclaim(workspace) && workspace->stage == WORKSPACE_CLOSED)
		loop_timer_start(workspace->soon, 0);
	else
		workspace_tell_waiters(workspace, &err);
}

static void
deadline_expired(void *argument)
{
	struct workspace *workspace = argument;
	struct error err;

	error_set(&err, ERROR_TIMEOUT, "%s: the sandbox did not start within %d s",
	    workspace->setup.driver->kind->name, CONNECT_WAIT / 1000);
	/*
	 * What the provider does with the request is unknown, so a fresh driver object starts over.
	 */
	workspace->setup.driver->close(workspace->sandbox);
	workspace->sandbox = NULL;
	workspace_fail(workspace, &err);
}

static void
become_ready(struct workspace *workspace)
{
	char *line;

	workspace_stop_connecting(workspace);
	workspace->stage = WORKSPACE_READY;
	log_info("workspace %s: sandbox %s is ready, root %s", workspace->setup.name, workspace->id,
	    workspace->root);
	workspace_end_remnants(workspace);
	if (workspace->told) {
		line = memory_text_format(
		    "ready in %.1f s", (double)(loop_now() - workspace->started) / 1000.0);
		waiters_tell_progress(&workspace->waiters, line);
		memory_free(line);
		line = memory_text_format("sandbox-id: %s", workspace->id);
		waiters_tell_progress(&workspace->waiters, line);
		memory_free(line);
	}
	workspace_begin_settling(workspace);
	(void)end_reclaim(workspace);
	if (workspace->away_done != NULL)
		workspace_go_away(workspace);
	else
		workspace_tell_waiters(workspace, NULL);
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
		workspace_fail(workspace, &err);
		return;
	}
	output = memory_text_bounded(result->output, result->output_size);
	if (take_check(workspace, output, &err) == 0)
		become_ready(workspace);
	else
		workspace_fail(workspace, &err);
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
	workspace->stage = WORKSPACE_CHECKING;
	workspace->check = workspace->setup.driver->run(
	    workspace->sandbox, argv, NULL, 0, CHECK_OUTPUT_MAX, checked, workspace);
	memory_list_free(argv);
	memory_free(path);
}

void
workspace_connected(
    void *argument, const struct driver_connected *found, const struct error *reason)
{
	struct workspace *workspace = argument;
	struct error err;

	if (workspace->stage != WORKSPACE_CONNECTING)
		return;
	workspace->made_nothing = reason != NULL &&
				  workspace_made_nothing(workspace, found, reason);
	if (reason != NULL && workspace_recover(workspace, reason))
		return;
	if (reason != NULL) {
		err = *reason;
		error_wrap(&err, "%s", workspace->setup.driver->kind->name);
		workspace_fail(workspace, &err);
		return;
	}
	/* It goes to terminals, into environments and into the records. */
	if (!login_id_valid(found->id)) {
		error_set(&err, ERROR_UNAVAILABLE, "%s: the sandbox has an id that is none",
		    workspace->setup.driver->kind->name);
		workspace_fail(workspace, &err);
		return;
	}
	memory_free(workspace->id);
	memory_free(workspace->directory);
	workspace->id = memory_text(found->id);
	workspace->directory = memory_text(found->directory);
	workspace_record_found(workspace, found->attached);
	check(workspace);
}

/* The sandbox went away by itself. Streams end by themselves; the next use connects again. */
static void
lost(void *argument, const struct error *err)
{
	struct workspace *workspace = argument;

	const char *id = workspace->id == NULL ? "(none)" : workspace->id;

	/* That a provider ends what is idle, at the end of its life, is how it is meant. */
	if (workspace->stage == WORKSPACE_READY && !workspace_busy(workspace))
		log_info("workspace %s: sandbox %s is lost: %s", workspace->setup.name, id,
		    err->message);
	else
		log_error("workspace %s: sandbox %s is lost: %s", workspace->setup.name, id,
		    err->message);
	if (workspace->stage == WORKSPACE_READY)
		workspace->stage = WORKSPACE_CLOSED;
	else if (workspace->stage == WORKSPACE_CLAIMING ||
		 workspace->stage == WORKSPACE_CONNECTING || workspace->stage == WORKSPACE_CHECKING)
		workspace_fail(workspace, err);
	workspace->losses++;
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
	struct error err;

	workspace->started = loop_now();
	workspace->told = false;
	if (workspace->sandbox == NULL && open_driver(workspace, &err) != 0) {
		workspace_fail(workspace, &err);
		return;
	}
	loop_timer_start(workspace->slow, PROGRESS_AFTER);
	loop_timer_start(workspace->deadline, CONNECT_WAIT);
	workspace_claim(workspace);
}

/* Even with nothing to wait for the answer comes from the loop, never from within workspace_use. */
static void
soon_expired(void *argument)
{
	struct workspace *workspace = argument;

	if (workspace->stage == WORKSPACE_CLOSED &&
	    (workspace->waiters.waiting != NULL || workspace->reclaiming ||
		workspace->away_done != NULL))
		connect_sandbox(workspace);
	else if (workspace->stage == WORKSPACE_READY)
		workspace_tell_waiters(workspace, NULL);
	else
		workspace_release_if_idle(workspace);
}

struct workspace *
workspace_new(const struct workspace_setup *setup)
{
	struct workspace *workspace;
	struct error err;

	workspace = memory_zeroed(1, sizeof(*workspace));
	workspace->setup = *setup;
	workspace->soon = loop_timer_new(setup->loop, soon_expired, workspace);
	workspace->slow = loop_timer_new(setup->loop, slow_expired, workspace);
	workspace->deadline = loop_timer_new(setup->loop, deadline_expired, workspace);
	workspace->settle = loop_timer_new(setup->loop, workspace_settle_expired, workspace);
	workspace->files = files_new(workspace);
	/* One that refuses its options is opened again for who comes, and that one is told the reason. */
	if (open_driver(workspace, &err) != 0)
		log_debug("workspace %s: %s", setup->name, err.message);
	return workspace;
}

bool
workspace_was_reached(const struct workspace *workspace)
{
	return workspace->stage != WORKSPACE_CLOSED || workspace->root != NULL ||
	       workspace->lost != NULL;
}

void
workspace_free(struct workspace *workspace)
{
	if (workspace == NULL)
		return;
	files_free(workspace->files);
	workspace->stage = WORKSPACE_CLOSED;
	while (workspace->commands != NULL)
		command_drop(workspace->commands);
	workspace_forget_remnants(workspace);
	loop_timer_free(workspace->soon);
	loop_timer_free(workspace->slow);
	loop_timer_free(workspace->deadline);
	loop_timer_free(workspace->settle);
	if (workspace->sandbox != NULL)
		workspace->setup.driver->close(workspace->sandbox);
	memory_free(workspace->known);
	memory_free(workspace->lost);
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
	if (workspace->stage == WORKSPACE_CLOSED || workspace->stage == WORKSPACE_READY)
		loop_timer_start(workspace->soon, 0);
	return waiter;
}

void
workspace_reclaim(struct workspace *workspace, workspace_reclaimed_fn *done, void *argument)
{
	workspace->reclaiming = true;
	workspace->reclaimed = done;
	workspace->reclaimed_argument = argument;
	if (workspace->stage == WORKSPACE_CLOSED)
		loop_timer_start(workspace->soon, 0);
}

unsigned
workspace_losses(const struct workspace *workspace)
{
	return workspace->losses;
}

bool
workspace_is_shared(const struct workspace *workspace)
{
	return workspace->is_shared;
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

int
workspace_directory(const struct workspace *workspace)
{
	return workspace->setup.directory;
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

bool
workspace_settles(const struct workspace *workspace)
{
	const struct command *command;

	for (command = workspace->commands; command != NULL; command = command_next(command))
		if (command_busy(command) && !command_has_ended(command))
			return false;
	return workspace_busy(workspace);
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
	workspace_release_if_idle(workspace);
}

void
workspace_command_gone(struct workspace *workspace)
{
	files_settled(workspace->files);
	/* Not from here: a driver may be below us. */
	if (workspace->stage == WORKSPACE_RELEASING)
		loop_timer_start(workspace->soon, 0);
}
