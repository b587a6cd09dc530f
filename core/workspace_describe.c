/* SPDX-License-Identifier: ISC */
/* What a workspace is doing, for an operator. */
#include <string.h>

#include "core/admin_protocol.h"
#include "core/base/memory.h"
#include "core/command.h"
#include "core/workspace.h"
#include "core/workspace_state.h"

static const enum sandbox_state states[] = {
	[WORKSPACE_CLOSED] = SANDBOX_NONE,
	[WORKSPACE_CLAIMING] = SANDBOX_STARTING,
	[WORKSPACE_CONNECTING] = SANDBOX_STARTING,
	[WORKSPACE_CHECKING] = SANDBOX_STARTING,
	[WORKSPACE_READY] = SANDBOX_RUNNING,
	[WORKSPACE_RELEASING] = SANDBOX_RELEASING,
};

char *
workspace_copy_id(const struct workspace *workspace)
{
	if (workspace->id == NULL || strlen(workspace->id) > ADMIN_TEXT_MAX)
		return NULL;
	return memory_text(workspace->id);
}

void
workspace_describe(const struct workspace *workspace, struct worker_report *report)
{
	const struct command *command;

	memset(report, 0, sizeof(*report));
	report->state = states[workspace->stage];
	report->sandbox_id = workspace_copy_id(workspace);
	for (command = workspace->commands; command != NULL; command = command_next(command))
		if (command_busy(command))
			report->commands++;
}
