/* SPDX-License-Identifier: ISC */
/*
 * What a worker that died has left running in the sandbox: ended by the next one, once it is
 * connected. Nobody waits for that, and the workspace is not busy for it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/base/option.h"
#include "core/driver.h"
#include "core/ledger.h"
#include "core/scripts.h"
#include "core/workspace.h"
#include "core/workspace_state.h"

/* Seconds between TERM and KILL, at most: five after the death nothing is to be left. */
#define GRACE_MAX 2
#define OUTPUT_MAX 256

static void
forget(struct workspace *workspace)
{
	char **list = workspace->remnants;
	int64_t pid, start_time;
	size_t i;

	workspace->remnants = NULL;
	for (i = 0; list != NULL && list[i] != NULL; i += 2)
		if (number_parse(list[i], 1, UINT32_MAX, &pid, NULL) == 0 &&
		    number_parse(list[i + 1], 0, INT64_MAX, &start_time, NULL) == 0)
			ledger_remove(
			    workspace->setup.directory, (uint32_t)pid, (uint64_t)start_time);
	memory_list_free(list);
}

static void
reaped(void *argument, const struct driver_result *result, const struct error *err)
{
	struct workspace *workspace = argument;

	(void)result;
	workspace->reaping = NULL;
	if (err == NULL) {
		forget(workspace);
		return;
	}
	/* They stay in the ledger, for the next worker. */
	log_error("workspace %s: what was left running is not ended: %s", workspace->setup.name,
	    err->message);
	memory_list_free(workspace->remnants);
	workspace->remnants = NULL;
}

void
workspace_end_remnants(struct workspace *workspace)
{
	int64_t grace = settings_number(workspace->setup.settings, "kill_grace") / 1000;
	char **list, **argv, **arguments, seconds[24];
	size_t count;

	if (workspace->looked_back)
		return;
	workspace->looked_back = true;
	list = ledger_list(workspace->setup.directory, workspace->id);
	if (list[0] == NULL) {
		memory_list_free(list);
		return;
	}
	(void)snprintf(
	    seconds, sizeof(seconds), "%" PRId64, grace < GRACE_MAX ? grace : (int64_t)GRACE_MAX);
	arguments = memory_list_add(NULL, 0, seconds);
	for (count = 0; list[count] != NULL; count++)
		arguments = memory_list_add(arguments, count + 1, list[count]);
	log_info("workspace %s: %zu commands of a worker that died are ended",
	    workspace->setup.name, count / 2);
	workspace->remnants = list;
	argv = script_argv("reap", arguments);
	workspace->reaping = workspace->setup.driver->run(
	    workspace->sandbox, argv, NULL, 0, OUTPUT_MAX, reaped, workspace);
	memory_list_free(argv);
	memory_list_free(arguments);
}

void
workspace_forget_remnants(struct workspace *workspace)
{
	if (workspace->reaping != NULL)
		workspace->setup.driver->cancel(workspace->reaping);
	workspace->reaping = NULL;
	memory_list_free(workspace->remnants);
	workspace->remnants = NULL;
}

bool
workspace_has_remnants(const struct workspace *workspace)
{
	return !ledger_is_empty(workspace->setup.directory);
}
