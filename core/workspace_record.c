/* SPDX-License-Identifier: ISC */
/*
 * What a workspace asks of, and tells, whoever keeps records: which sandbox is mine, this is it, may
 * I release it. Without a keeper it is as if nothing were known and everything allowed.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/driver.h"
#include "core/workspace.h"
#include "core/workspace_state.h"

/*
 * ms after a start in doubt at which we look for a second sandbox of ours: a provider may take a while
 * to show what it was asked for by somebody who is dead by now.
 */
static const int64_t settle_delays[] = { 2000, 10000, 45000 };

#define SETTLE_LOOKS (sizeof(settle_delays) / sizeof(settle_delays[0]))

/* The id in a login of the form NAME=ID, or NULL. */
static const char *
attached_id(const struct workspace *workspace)
{
	const char *sign;

	sign = strchr(workspace->setup.name, '=');
	return sign == NULL ? NULL : sign + 1;
}

/* Is it looked for only to be released? Then none is made. */
static bool
is_for_its_end(const struct workspace *workspace)
{
	return workspace->reclaiming || workspace->away_done != NULL;
}

/*
 * What the records know by its id is released by its id. An option that names a sandbox may name another
 * one by now, and what was never recorded has to be found by its label: both are connected to.
 */
static bool
is_released_by_id(const struct workspace *workspace, const struct record_claimed *claimed)
{
	/* Who waits while it is reclaimed wants it connected. */
	if (!is_for_its_end(workspace) ||
	    (workspace->away_done == NULL && workspace->waiters.waiting != NULL))
		return false;
	return claimed->sandbox != NULL && workspace->setup.driver->put_away != NULL &&
	       (claimed->created || attached_id(workspace) != NULL);
}

static void
connect_target(struct workspace *workspace)
{
	struct driver_target target = { 0 };
	const char *attached;

	attached = attached_id(workspace);
	/* What an option of the login names is not looked for by what was recorded once. */
	target.id = attached != NULL ? attached : workspace->known;
	target.created = attached == NULL;
	target.may_create = attached == NULL && !is_for_its_end(workspace);
	workspace->stage = WORKSPACE_CONNECTING;
	workspace->setup.driver->connect(
	    workspace->sandbox, &target, workspace_connected, workspace);
}

void
workspace_claim(struct workspace *workspace)
{
	const struct workspace_records *records = workspace->setup.records;

	memory_free(workspace->known);
	workspace->known = NULL;
	workspace->made_nothing = workspace->is_direct = false;
	workspace->stage = WORKSPACE_CLAIMING;
	if (records == NULL)
		connect_target(workspace);
	else
		records->claim(
		    workspace->setup.records_argument, workspace->lost, is_for_its_end(workspace));
}

void
workspace_claimed(struct workspace *workspace, const struct record_claimed *claimed)
{
	if (workspace->stage != WORKSPACE_CLAIMING)
		return;
	if (claimed->failed) {
		workspace_fail(workspace, &claimed->failure);
		return;
	}
	memory_free(workspace->lost);
	workspace->lost = NULL;
	workspace->has_claim = true;
	workspace->in_doubt = claimed->doubtful;
	workspace->is_shared = claimed->is_shared;
	if (is_released_by_id(workspace, claimed)) {
		memory_free(workspace->id);
		workspace->id = memory_text(claimed->sandbox);
		workspace->is_direct = true;
		if (workspace->away_done != NULL)
			workspace_go_away(workspace);
		else
			workspace_end_search(workspace);
		return;
	}
	if (claimed->sandbox != NULL && claimed->created)
		workspace->known = memory_text(claimed->sandbox);
	connect_target(workspace);
}

void
workspace_claim_waits(struct workspace *workspace)
{
	if (workspace->stage != WORKSPACE_CLAIMING)
		return;
	workspace->told = true;
	waiters_tell_progress(&workspace->waiters,
	    "another gateway is starting or stopping the sandbox; waiting for it...");
}

bool
workspace_made_nothing(const struct workspace *workspace, const struct driver_connected *found,
    const struct error *reason)
{
	if (found != NULL && found->nothing)
		return true;
	return attached_id(workspace) != NULL &&
	       (reason->code == ERROR_NOT_FOUND || reason->code == ERROR_INVALID);
}

bool
workspace_recover(struct workspace *workspace, const struct error *reason)
{
	char *line;

	if (workspace->known == NULL || reason->code != ERROR_NOT_FOUND)
		return false;
	log_info("workspace %s: sandbox %s is gone", workspace->setup.name, workspace->known);
	memory_free(workspace->lost);
	workspace->lost = workspace->known;
	workspace->known = NULL;
	/* Told once: whoever tries again wants a new one. */
	if (!is_for_its_end(workspace) &&
	    strcmp(settings_text(workspace->setup.settings, "on_lost"), "report") == 0)
		return false;
	line = memory_text_format("sandbox %s is gone; making a new one...", workspace->lost);
	workspace->told = true;
	waiters_tell_progress(&workspace->waiters, line);
	memory_free(line);
	workspace_claim(workspace);
	return true;
}

void
workspace_record_found(struct workspace *workspace, bool is_attached)
{
	const struct workspace_records *records = workspace->setup.records;

	if (records == NULL)
		return;
	records->ready(workspace->setup.records_argument, workspace->id,
	    !is_attached && attached_id(workspace) == NULL);
	/* A sandbox that the login names has no others. */
	if (is_attached && workspace->in_doubt) {
		workspace->in_doubt = false;
		records->settled(workspace->setup.records_argument);
	}
}

void
workspace_record_failure(struct workspace *workspace, const struct error *reason)
{
	bool is_gone;

	if (!workspace->has_claim)
		return;
	workspace->has_claim = false;
	/* Not even its label is known any more; or it never was there, and takes up no place. */
	is_gone = (is_for_its_end(workspace) && reason->code == ERROR_NOT_FOUND) ||
		  (workspace->made_nothing && !workspace->in_doubt);
	workspace->setup.records->released(
	    workspace->setup.records_argument, is_gone ? RECORD_DESTROYED : RECORD_UNKNOWN);
}

static void
others_released(void *argument, const struct error *err)
{
	struct workspace *workspace = argument;

	if (err != NULL) {
		log_info("workspace %s: look for a second sandbox: %s", workspace->setup.name,
		    err->message);
		loop_timer_start(workspace->settle, settle_delays[SETTLE_LOOKS - 1]);
		return;
	}
	if (workspace->settle_looks < SETTLE_LOOKS) {
		loop_timer_start(workspace->settle, settle_delays[workspace->settle_looks]);
		return;
	}
	workspace->in_doubt = false;
	workspace->setup.records->settled(workspace->setup.records_argument);
}

void
workspace_settle_expired(void *argument)
{
	struct workspace *workspace = argument;
	const struct driver *driver = workspace->setup.driver;
	bool never_delete;

	if (workspace->stage != WORKSPACE_READY || driver->release_others == NULL)
		return;
	workspace->settle_looks++;
	never_delete = settings_boolean(workspace->setup.settings, "never_delete");
	driver->release_others(workspace->sandbox, never_delete ? DRIVER_STOPPED : DRIVER_DESTROY,
	    others_released, workspace);
}

void
workspace_begin_settling(struct workspace *workspace)
{
	if (!workspace->in_doubt)
		return;
	if (workspace->setup.driver->release_others == NULL || attached_id(workspace) != NULL) {
		workspace->in_doubt = false;
		workspace->setup.records->settled(workspace->setup.records_argument);
		return;
	}
	workspace->settle_looks = 0;
	loop_timer_start(workspace->settle, settle_delays[0]);
}
