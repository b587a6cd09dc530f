/* SPDX-License-Identifier: ISC */
/* The subcommands of rws admin, the columns of their tables, and each row as a JSON object. */
#include <string.h>

#include <json-c/json.h>

#include "core/base/memory.h"
#include "core/base/message.h"
#include "gateway/cli_admin.h"
#include "gateway/operation_table.h"
#include "gateway/rpc_json.h"

#define COLUMN(column, kind)                     \
	{                                        \
		.name = (column), .type = (kind) \
	}

static const struct operation_field status_fields[] = {
	COLUMN("version", OPERATION_TEXT),
	COLUMN("configuration", OPERATION_BYTES),
	COLUMN("pid", OPERATION_NUMBER),
	COLUMN("since", OPERATION_NUMBER),
	COLUMN("draining", OPERATION_BOOLEAN),
	COLUMN("sessions", OPERATION_NUMBER),
	COLUMN("logging_in", OPERATION_NUMBER),
	COLUMN("spares", OPERATION_NUMBER),
	COLUMN("workers", OPERATION_NUMBER),
	COLUMN("crashes", OPERATION_NUMBER),
	COLUMN("gateway", OPERATION_TEXT),
	{ .name = NULL },
};

static const struct operation_field login_fields[] = {
	COLUMN("login", OPERATION_TEXT),
	COLUMN("driver", OPERATION_TEXT),
	COLUMN("instances", OPERATION_TEXT),
	COLUMN("workspaces", OPERATION_NUMBER),
	COLUMN("sessions", OPERATION_NUMBER),
	{ .name = NULL },
};

static const struct operation_field workspace_fields[] = {
	COLUMN("workspace", OPERATION_TEXT),
	COLUMN("driver", OPERATION_TEXT),
	COLUMN("state", OPERATION_TEXT),
	COLUMN("sandbox_id", OPERATION_BYTES),
	COLUMN("origin", OPERATION_TEXT),
	COLUMN("worker", OPERATION_NUMBER),
	COLUMN("sessions", OPERATION_NUMBER),
	COLUMN("commands", OPERATION_NUMBER),
	COLUMN("since", OPERATION_NUMBER),
	COLUMN("last_used", OPERATION_NUMBER),
	COLUMN("gateway", OPERATION_TEXT),
	{ .name = NULL },
};

static const struct operation_field session_fields[] = {
	COLUMN("session", OPERATION_NUMBER),
	COLUMN("pid", OPERATION_NUMBER),
	COLUMN("workspace", OPERATION_TEXT),
	COLUMN("state", OPERATION_TEXT),
	COLUMN("address", OPERATION_TEXT),
	COLUMN("since", OPERATION_NUMBER),
	COLUMN("bytes_in", OPERATION_SIZE),
	COLUMN("bytes_out", OPERATION_SIZE),
	COLUMN("channels", OPERATION_NUMBER),
	COLUMN("key", OPERATION_TEXT),
	{ .name = NULL },
};

static const struct operation_field channel_fields[] = {
	COLUMN("session", OPERATION_NUMBER),
	COLUMN("channel", OPERATION_NUMBER),
	COLUMN("workspace", OPERATION_TEXT),
	COLUMN("kind", OPERATION_TEXT),
	COLUMN("pty", OPERATION_BOOLEAN),
	COLUMN("since", OPERATION_NUMBER),
	COLUMN("bytes_in", OPERATION_SIZE),
	COLUMN("bytes_out", OPERATION_SIZE),
	{ .name = NULL },
};

const struct cli_admin_command cli_admin_commands[] = {
	{ "status", ADMIN_STATUS, NULL, NULL, status_fields, NULL, "How the gateway is" },
	{ "logins", ADMIN_LOGINS, NULL, "logins", login_fields, NULL, "The logins it serves" },
	{ "workspaces", ADMIN_WORKSPACES, NULL, "workspaces", workspace_fields, NULL,
	    "The workspaces that are on record or have a worker" },
	{ "sessions", ADMIN_SESSIONS, NULL, "sessions", session_fields, NULL,
	    "The connections, and with which key each logged in" },
	{ "channels", ADMIN_CHANNELS, NULL, "channels", channel_fields, NULL,
	    "What runs on the connections" },
	{ "disconnect", ADMIN_DISCONNECT, "SESSION", NULL, NULL, NULL, "End a session" },
	{ "start", ADMIN_START, "WORKSPACE", NULL, NULL, "running", "Start a sandbox" },
	{ "stop", ADMIN_STOP, "WORKSPACE", NULL, NULL, "stopped", "Stop a sandbox" },
	{ "destroy", ADMIN_DESTROY, "WORKSPACE", NULL, NULL, "destroyed", "Delete a sandbox" },
	{ "forget", ADMIN_FORGET, "WORKSPACE", NULL, NULL, "forgotten",
	    "Remove the record of a sandbox, which stays as it is" },
	{ "reload", ADMIN_RELOAD, NULL, NULL, NULL, NULL, "Read the configuration again" },
	{ "drain", ADMIN_DRAIN, NULL, NULL, NULL, NULL, "Go down once the sessions have ended" },
	{ .name = NULL },
};

static const char *const channel_kinds[] = {
	[CHANNEL_KIND_NONE] = "none",
	[CHANNEL_KIND_EXEC] = "exec",
	[CHANNEL_KIND_SHELL] = "shell",
	[CHANNEL_KIND_SFTP] = "sftp",
	[CHANNEL_KIND_SCP] = "scp",
	[CHANNEL_KIND_RWS] = "rws",
};

static int
take_status(void *argument, struct message *message, struct error *err)
{
	struct cli_admin_answer *answer = argument;
	struct admin_status status;
	struct json_object *row;

	if (admin_status_decode(message, &status, err) != 0)
		return -1;
	row = json_object_new_object();
	rpc_json_put_text(row, "version", status.version);
	cli_admin_put_optional(row, "configuration", status.configuration);
	rpc_json_put_number(row, "pid", status.pid);
	rpc_json_put_number(row, "since", status.since);
	rpc_json_put_boolean(row, "draining", status.draining);
	rpc_json_put_number(row, "sessions", status.sessions);
	rpc_json_put_number(row, "logging_in", status.starting);
	rpc_json_put_number(row, "spares", status.spares);
	rpc_json_put_number(row, "workers", status.workers);
	rpc_json_put_number(row, "crashes", status.crashes);
	cli_admin_put_optional(row, "gateway", status.place);
	(void)json_object_array_add(answer->rows, row);
	admin_status_free(&status);
	return 0;
}

static int
take_login(void *argument, struct message *message, struct error *err)
{
	struct cli_admin_answer *answer = argument;
	struct admin_login login;
	struct json_object *row;

	if (admin_login_decode(message, &login, err) != 0)
		return -1;
	row = json_object_new_object();
	rpc_json_put_text(row, "login", login.name);
	rpc_json_put_text(row, "driver", login.driver);
	rpc_json_put_text(row, "instances", login.instances);
	rpc_json_put_number(row, "workspaces", login.workspaces);
	rpc_json_put_number(row, "sessions", login.sessions);
	(void)json_object_array_add(answer->rows, row);
	admin_login_free(&login);
	return 0;
}

static int
take_session(void *argument, struct message *message, struct error *err)
{
	struct cli_admin_answer *answer = argument;
	struct admin_session session;
	struct json_object *row;

	if (admin_session_decode(message, &session, err) != 0)
		return -1;
	row = json_object_new_object();
	rpc_json_put_number(row, "session", (int64_t)session.connection);
	rpc_json_put_number(row, "pid", session.pid);
	cli_admin_put_optional(row, "workspace", session.workspace);
	rpc_json_put_text(row, "state",
	    session.answered            ? "open"
	    : session.workspace == NULL ? "logging in"
					: CLI_ADMIN_NO_ANSWER);
	rpc_json_put_text(row, "address", session.address);
	rpc_json_put_number(row, "port", session.port);
	rpc_json_put_number(row, "since", session.since);
	if (session.answered) {
		rpc_json_put_number(row, "bytes_in", (int64_t)session.bytes_in);
		rpc_json_put_number(row, "bytes_out", (int64_t)session.bytes_out);
		rpc_json_put_number(row, "channels", session.channels);
	}
	cli_admin_put_optional(row, "key", session.key);
	(void)json_object_array_add(answer->rows, row);
	admin_session_free(&session);
	return 0;
}

static int
take_channel(void *argument, struct message *message, struct error *err)
{
	struct cli_admin_answer *answer = argument;
	struct admin_channel channel;
	struct json_object *row;

	if (admin_channel_decode(message, &channel, err) != 0)
		return -1;
	row = json_object_new_object();
	rpc_json_put_number(row, "session", (int64_t)channel.connection);
	rpc_json_put_text(row, "workspace", channel.workspace);
	rpc_json_put_text(row, "kind",
	    channel.answered ? channel_kinds[channel.channel.kind] : CLI_ADMIN_NO_ANSWER);
	if (channel.answered) {
		rpc_json_put_number(row, "channel", channel.channel.number);
		rpc_json_put_boolean(row, "pty", channel.channel.pty);
		rpc_json_put_number(row, "since", channel.channel.since);
		rpc_json_put_number(row, "bytes_in", (int64_t)channel.channel.bytes_in);
		rpc_json_put_number(row, "bytes_out", (int64_t)channel.channel.bytes_out);
	}
	(void)json_object_array_add(answer->rows, row);
	admin_channel_free(&channel);
	return 0;
}

static int
take_end(void *argument, struct message *message, struct error *err)
{
	struct cli_admin_answer *answer = argument;

	if (answer->ended || admin_end_decode(message, &answer->end, err) != 0)
		return -1;
	answer->ended = true;
	return 0;
}

static const struct peer_rule rules[] = {
	{ MESSAGE_ADMIN_STATUS, "ADMIN_STATUS", 1, take_status },
	{ MESSAGE_ADMIN_LOGIN, "ADMIN_LOGIN", 1, take_login },
	{ MESSAGE_ADMIN_WORKSPACE, "ADMIN_WORKSPACE", 1, cli_admin_take_workspace },
	{ MESSAGE_ADMIN_RECORD, "ADMIN_RECORD", 1, cli_admin_take_record },
	{ MESSAGE_ADMIN_SESSION, "ADMIN_SESSION", 1, take_session },
	{ MESSAGE_ADMIN_CHANNEL, "ADMIN_CHANNEL", 1, take_channel },
	{ MESSAGE_ADMIN_END, "ADMIN_END", 1, take_end },
	{ 0, NULL, 0, NULL },
};

/* peer_wait, which is all that rws uses, says it in its own result. */
static void
closed(void *argument, const struct error *err)
{
	(void)argument;
	(void)err;
}

const struct peer_events cli_admin_events = { rules, closed, NULL };

void
cli_admin_put_optional(struct json_object *row, const char *name, const char *text)
{
	if (text != NULL)
		rpc_json_put_bytes(row, name, text, strlen(text));
}

static int
compare_numbers(struct json_object *first, struct json_object *second, const char *name)
{
	int64_t one, two;

	one = rpc_json_get_number(first, name, 0);
	two = rpc_json_get_number(second, name, 0);
	return (one > two) - (one < two);
}

static int
compare_rows(const void *first, const void *second)
{
	struct json_object *one = *(struct json_object *const *)first;
	struct json_object *two = *(struct json_object *const *)second;
	int result;

	result = compare_numbers(one, two, "session");
	if (result == 0)
		result = compare_numbers(one, two, "channel");
	if (result == 0)
		result = strcmp(rpc_json_get_text(one, "workspace", ""),
		    rpc_json_get_text(two, "workspace", ""));
	return result;
}

void
cli_admin_sort(struct json_object *rows)
{
	json_object_array_sort(rows, compare_rows);
}
