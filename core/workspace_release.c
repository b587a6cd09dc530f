/* SPDX-License-Identifier: ISC */
/*
 * The end of a workspace's sandbox: for now, when somebody asks for it, or for good. Either way
 * everything that runs is ended first.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/option.h"
#include "core/command.h"
#include "core/driver.h"
#include "core/workspace.h"
#include "core/workspace_state.h"

/* Put away for now: whoever asked for it meanwhile connects anew. */
static void
released_for_now(struct workspace *workspace, const struct error *err)
{
	workspace_done_fn *done = workspace->away_done;

	workspace->away_done = NULL;
	workspace->stage = WORKSPACE_CLOSED;
	done(workspace->away_argument, err);
	if (workspace->waiters.waiting != NULL)
		loop_timer_start(workspace->soon, 0);
}

static void
released(void *argument, const struct error *err)
{
	struct workspace *workspace = argument;

	workspace->under_way = false;
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
		text = (workspace->setup.driver->kind->supports & DRIVER_STOP) != 0 ? "stop"
										    : "keep";
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

/*
 * A command that waits for the workspace holds nothing up:
 * it will be in the next sandbox, if there is one.
 */
static bool
is_idle(const struct workspace *workspace)
{
	const struct command *command;

	for (command = workspace->commands; command != NULL; command = command_next(command))
		if (command_lives(command))
			return false;
	return true;
}

void
workspace_release_if_idle(struct workspace *workspace)
{
	if (workspace->stage != WORKSPACE_RELEASING || workspace->under_way || !is_idle(workspace))
		return;
	workspace->under_way = true;
	release_sandbox(workspace);
}

static void
kill_commands(struct workspace *workspace)
{
	struct command *command, *next;

	for (command = workspace->commands; command != NULL; command = next) {
		next = command_next(command);
		if (command_lives(command))
			command_kill(command);
	}
}

int
workspace_put_away(struct workspace *workspace, bool destroy, workspace_done_fn *done,
    void *argument, struct error *err)
{
	const struct driver_kind *kind = workspace->setup.driver->kind;

	if (workspace->stage != WORKSPACE_READY)
		return error_set(err, ERROR_BUSY, "the sandbox is being started or stopped");
	if (destroy && settings_boolean(workspace->setup.settings, "never_delete"))
		return error_set(err, ERROR_DENIED, "never_delete is on for this login");
	if (!destroy && (kind->supports & DRIVER_STOP) == 0)
		return error_set(err, ERROR_UNSUPPORTED, "%s cannot stop a sandbox", kind->name);
	workspace->away = destroy ? DRIVER_DESTROY : DRIVER_STOPPED;
	workspace->away_done = done;
	workspace->away_argument = argument;
	workspace->stage = WORKSPACE_RELEASING;
	kill_commands(workspace);
	loop_timer_start(workspace->soon, 0);
	return 0;
}

void
workspace_release(
    struct workspace *workspace, bool dispose, workspace_done_fn *done, void *argument)
{
	struct error err;
	bool was_used;

	was_used = workspace->stage == WORKSPACE_READY;
	error_set(&err, ERROR_UNAVAILABLE, "the workspace is being released");
	workspace->done = done;
	workspace->done_argument = argument;
	workspace->dispose = dispose;
	if (workspace->away_done != NULL) {
		/* It is on its way already; only who is told at the end is another. */
		workspace->away_done(workspace->away_argument, &err);
		workspace->away_done = NULL;
		return;
	}
	workspace_stop_connecting(workspace);
	workspace->stage = WORKSPACE_RELEASING;
	workspace_tell_waiters(workspace, &err);
	if (!was_used || workspace->sandbox == NULL) {
		done(argument, NULL);
		return;
	}
	kill_commands(workspace);
	workspace_release_if_idle(workspace);
}
