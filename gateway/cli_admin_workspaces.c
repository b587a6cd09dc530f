/* SPDX-License-Identifier: ISC */
/*
 * The rows of workspaces. What a worker says and what is on record come in messages of their own, in any
 * order, and make one row where they are about the same workspace: a worker knows better how its sandbox
 * is, the records where it came from and who else has it.
 */
#include <string.h>

#include <json-c/json.h>

#include "core/base/memory.h"
#include "core/base/message.h"
#include "gateway/cli_admin.h"
#include "gateway/rpc_json.h"

static const char *const sandbox_states[] = {
	[SANDBOX_NONE] = "none",
	[SANDBOX_STARTING] = "starting",
	[SANDBOX_RUNNING] = "running",
	[SANDBOX_RELEASING] = "releasing",
};

static const char *const record_states[] = {
	[ADMIN_RECORD_CREATING] = "creating",
	[ADMIN_RECORD_RUNNING] = "running",
	[ADMIN_RECORD_RELEASING] = "releasing",
	[ADMIN_RECORD_STOPPED] = "stopped",
	[ADMIN_RECORD_KEPT] = "kept",
	[ADMIN_RECORD_NO_LOGIN] = "no login",
};

static struct json_object *
add_row(
    struct cli_admin_answer *answer, const char *login, const char *workspace, const char *driver)
{
	struct json_object *row;
	const char *instance;

	row = json_object_new_object();
	instance = strchr(workspace, '+');
	rpc_json_put_text(row, "workspace", workspace);
	rpc_json_put_text(row, "login", login);
	cli_admin_put_optional(row, "instance", instance == NULL ? NULL : instance + 1);
	rpc_json_put_text(row, "driver", driver);
	(void)json_object_array_add(answer->rows, row);
	return row;
}

/* The one row of a workspace that this gateway can reach; *is_new: nothing is known of it yet. */
static struct json_object *
find_row(struct cli_admin_answer *answer, const char *login, const char *workspace,
    const char *driver, bool *is_new)
{
	struct json_object *row;
	char *key;

	key = memory_text_format("%s %s", driver, workspace);
	*is_new = !json_object_object_get_ex(answer->index, key, &row);
	if (*is_new) {
		row = add_row(answer, login, workspace, driver);
		(void)json_object_object_add(answer->index, key, json_object_get(row));
	}
	memory_free(key);
	return row;
}

/*
 * Than the record? A worker that has nothing to do with the sandbox now does not know what became of it: it
 * may have been another gateway's doing.
 */
static bool
knows_better(const struct admin_workspace *workspace)
{
	return !workspace->answered || workspace->report.state != SANDBOX_NONE;
}

static bool
is_none(struct json_object *row)
{
	return strcmp(rpc_json_get_text(row, "state", ""), sandbox_states[SANDBOX_NONE]) == 0;
}

int
cli_admin_take_workspace(void *argument, struct message *message, struct error *err)
{
	struct cli_admin_answer *answer = argument;
	struct admin_workspace workspace;
	struct json_object *row;
	bool is_new;

	if (admin_workspace_decode(message, &workspace, err) != 0)
		return -1;
	row = find_row(answer, workspace.login, workspace.workspace, workspace.driver, &is_new);
	if (is_new || knows_better(&workspace)) {
		rpc_json_put_text(row, "state",
		    workspace.answered ? sandbox_states[workspace.report.state]
				       : CLI_ADMIN_NO_ANSWER);
		cli_admin_put_optional(row, "sandbox_id", workspace.report.sandbox_id);
	}
	rpc_json_put_number(row, "worker", workspace.pid);
	rpc_json_put_number(row, "sessions", workspace.sessions);
	rpc_json_put_number(row, "since", workspace.since);
	if (workspace.answered) {
		rpc_json_put_number(row, "commands", workspace.report.commands);
		/* One that is on its way out has no more to say than that. */
		if (workspace.report.last_used != 0)
			rpc_json_put_number(row, "last_used", workspace.report.last_used);
	}
	rpc_json_put_boolean(row, "recorded", !is_new);
	admin_workspace_free(&workspace);
	return 0;
}

static void
put_sandbox(struct json_object *row, const struct admin_record *record)
{
	rpc_json_put_text(row, "state", record_states[record->state]);
	json_object_object_del(row, "sandbox_id");
	cli_admin_put_optional(row, "sandbox_id", record->sandbox_id);
}

static void
put_record(struct json_object *row, const struct admin_record *record)
{
	put_sandbox(row, record);
	rpc_json_put_number(row, "worker", 0);
	rpc_json_put_number(row, "sessions", 0);
	rpc_json_put_number(row, "since", record->since);
	rpc_json_put_number(row, "last_used", record->last_used);
}

int
cli_admin_take_record(void *argument, struct message *message, struct error *err)
{
	struct cli_admin_answer *answer = argument;
	struct admin_record record;
	struct json_object *row;
	bool is_new;

	if (admin_record_decode(message, &record, err) != 0)
		return -1;
	is_new = true;
	if (record.is_elsewhere)
		row = add_row(answer, record.login, record.workspace, record.driver);
	else
		row = find_row(answer, record.login, record.workspace, record.driver, &is_new);
	if (is_new)
		put_record(row, &record);
	else if (is_none(row))
		put_sandbox(row, &record);
	else if (!rpc_json_has(row, "sandbox_id"))
		cli_admin_put_optional(row, "sandbox_id", record.sandbox_id);
	/* Before that nobody can say. */
	if (record.sandbox_id != NULL)
		rpc_json_put_text(row, "origin", record.created ? "created" : "attached");
	cli_admin_put_optional(row, "gateway", record.gateway);
	rpc_json_put_boolean(row, "recorded", true);
	admin_record_free(&record);
	return 0;
}

void
cli_admin_show_dashes(struct json_object *rows)
{
	struct json_object *row;
	size_t i;

	for (i = 0; i < (size_t)json_object_array_length(rows); i++) {
		row = json_object_array_get_idx(rows, i);
		if (rpc_json_get_number(row, "worker", 0) == 0)
			rpc_json_put_text(row, "worker", "-");
	}
}
