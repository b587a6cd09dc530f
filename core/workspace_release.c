/* SPDX-License-Identifier: ISC */
/*
 * The end of a workspace's sandbox: for now, when somebody asks for it, or for good. Either way
 * everything that runs is ended first.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
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

/* What the records are told became of it. */
static enum record_outcome
describe_outcome(enum driver_release release, const struct error *err)
{
	static const enum record_outcome outcomes[] = {
		[DRIVER_DESTROY] = RECORD_DESTROYED,
		[DRIVER_STOPPED] = RECORD_STOPPED,
		[DRIVER_KEEP] = RECORD_KEPT,
	};

	return err == NULL ? outcomes[release] : RECORD_UNKNOWN;
}

static void
finish(struct workspace *workspace, const struct error *err)
{
	workspace->under_way = false;
	if (workspace->away_done != NULL)
		released_for_now(workspace, err);
	else
		workspace->done(workspace->done_argument, err);
}

static void
released(void *argument, const struct error *err)
{
	struct workspace *workspace = argument;
	const struct workspace_records *records = workspace->setup.records;

	if (err == NULL && workspace->release != DRIVER_KEEP)
		log_info("workspace %s: sandbox %s is %s", workspace->setup.name,
		    workspace->id == NULL ? "(none)" : workspace->id,
		    workspace->release == DRIVER_DESTROY ? "deleted" : "stopped");
	if (records != NULL && workspace->was_granted)
		records->released(
		    workspace->setup.records_argument, describe_outcome(workspace->release, err));
	workspace->has_claim = false;
	workspace->is_direct = false;
	finish(workspace, err);
}

/* on_dispose when the block says nothing. */
static const char *
standard_dispose(const struct workspace *workspace)
{
	const struct driver_kind *kind = workspace->setup.driver->kind;

	if (strchr(workspace->setup.name, '=') != NULL)
		return "keep";
	if (kind->name_option != NULL &&
	    settings_text(workspace->setup.settings, kind->name_option) != NULL)
		return kind->named_dispose;
	return kind->standard_dispose;
}

static enum driver_release
choose_release(const struct workspace *workspace)
{
	const char *text;

	text = settings_text(workspace->setup.settings, "on_dispose");
	if (text == NULL)
		text = standard_dispose(workspace);
	if (strcmp(text, "destroy") == 0 &&
	    settings_boolean(workspace->setup.settings, "never_delete"))
		text = (workspace->setup.driver->kind->supports & DRIVER_STOP) != 0 ? "stop"
										    : "keep";
	if (strcmp(text, "destroy") == 0)
		return DRIVER_DESTROY;
	return strcmp(text, "stop") == 0 ? DRIVER_STOPPED : DRIVER_KEEP;
}

static void
release_sandbox(struct workspace *workspace, enum driver_release release)
{
	const struct driver *driver = workspace->setup.driver;

	workspace->release = release;
	if (workspace->is_direct)
		driver->put_away(workspace->sandbox, workspace->id, release, released, workspace);
	else
		driver->release(workspace->sandbox, release, released, workspace);
}

/* Others may have it: the records know. Who merely leaves it asks nobody. */
static void
ask_release(struct workspace *workspace)
{
	const struct workspace_records *records = workspace->setup.records;
	bool is_asked = workspace->away_done != NULL;

	workspace->was_granted = false;
	workspace->release = is_asked ? workspace->away : choose_release(workspace);
	if (!is_asked && !workspace->dispose) {
		release_sandbox(workspace, DRIVER_KEEP);
	} else if (records == NULL) {
		workspace_may_release(workspace, true);
	} else {
		workspace->asking = true;
		records->release(workspace->setup.records_argument, is_asked);
	}
}

void
workspace_may_release(struct workspace *workspace, bool granted)
{
	struct error err;

	workspace->asking = false;
	workspace->was_granted = granted;
	if (granted) {
		release_sandbox(workspace, workspace->release);
	} else if (workspace->away_done != NULL) {
		error_set(&err, ERROR_BUSY,
		    "the gateway's records do not allow it: another gateway is starting or stopping "
		    "the sandbox, or they cannot be reached");
		workspace->is_direct = false;
		finish(workspace, &err);
	} else {
		log_info("workspace %s: the sandbox stays: others use it", workspace->setup.name);
		release_sandbox(workspace, DRIVER_KEEP);
	}
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
	ask_release(workspace);
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

void
workspace_go_away(struct workspace *workspace)
{
	workspace_stop_connecting(workspace);
	workspace->stage = WORKSPACE_RELEASING;
	loop_timer_start(workspace->soon, 0);
}

void
workspace_fail_away(struct workspace *workspace, const struct error *err)
{
	workspace->is_direct = false;
	finish(workspace, err);
}

int
workspace_put_away(struct workspace *workspace, bool destroy, workspace_done_fn *done,
    void *argument, struct error *err)
{
	const struct driver_kind *kind = workspace->setup.driver->kind;

	if (workspace->away_done != NULL ||
	    (workspace->stage != WORKSPACE_READY && workspace->stage != WORKSPACE_CLOSED))
		return error_set(err, ERROR_BUSY, "the sandbox is being started or stopped");
	if (destroy && settings_boolean(workspace->setup.settings, "never_delete"))
		return error_set(err, ERROR_DENIED, "never_delete is on for this login");
	if (!destroy && (kind->supports & DRIVER_STOP) == 0)
		return error_set(err, ERROR_UNSUPPORTED, "%s cannot stop a sandbox", kind->name);
	workspace->away = destroy ? DRIVER_DESTROY : DRIVER_STOPPED;
	workspace->away_done = done;
	workspace->away_argument = argument;
	/* Whoever was about to reclaim it has nothing left to do. */
	if (workspace->reclaiming) {
		workspace->reclaiming = false;
		workspace->reclaimed(workspace->reclaimed_argument);
	}
	/* One that is not connected is looked for first: workspace_claimed. */
	if (workspace->stage == WORKSPACE_READY) {
		workspace->stage = WORKSPACE_RELEASING;
		kill_commands(workspace);
	}
	loop_timer_start(workspace->soon, 0);
	return 0;
}

void
workspace_release(
    struct workspace *workspace, bool dispose, workspace_done_fn *done, void *argument)
{
	struct error err;
	bool was_used;

	was_used = workspace->stage == WORKSPACE_READY || (workspace->is_direct && dispose);
	error_set(&err, ERROR_UNAVAILABLE, "the workspace is being released");
	workspace->done = done;
	workspace->done_argument = argument;
	workspace->dispose = dispose;
	if (workspace->away_done != NULL) {
		workspace->away_done(workspace->away_argument, &err);
		workspace->away_done = NULL;
		/* It is on its way already; only who is told at the end is another. */
		if (workspace->stage == WORKSPACE_RELEASING)
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
