/* SPDX-License-Identifier: ISC */
/*
 * The Model Context Protocol on the stream of the rws subsystem (its stdio transport). Two eras of
 * it are served at once: revisions up to 2025-11-25, which begin with initialize, and 2026-07-28,
 * whose requests each carry their version in _meta. A request without MCP's marks is plain
 * JSON-RPC.
 */
#include <string.h>

#include <json-c/json.h>

#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "gateway/operation_table.h"
#include "gateway/rpc_call.h"
#include "gateway/rpc_json.h"
#include "gateway/version.h"

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define META_SERVER "io.modelcontextprotocol/serverInfo"
#define META_LOG_LEVEL "io.modelcontextprotocol/logLevel"
#define STATELESS_VERSION "2026-07-28"
/* ms between two progress notifications of one call: they are for people. */
#define PROGRESS_INTERVAL 100
/* ms for which a client may keep the list of tools: it changes with the program only. */
#define TOOLS_LIFETIME 3600000

/* Newest first: what a client that asks for anything else is offered. */
static const char *const session_versions[] = { "2025-11-25", "2025-06-18", "2025-03-26",
	"2024-11-05" };

/* RFC 5424 severities as MCP names them, least first. */
static const char *const log_levels[] = { "debug", "info", "notice", "warning", "error", "critical",
	"alert", "emergency" };
#define LEVEL_INFO 1

static const char instructions[] =
    "A workspace in a sandbox: a Linux machine of its own, with files below one root directory. "
    "Paths are relative to the root. Nothing here touches the machine of the user.";

/* The index of a word in a list, or -1. */
static int
index_of(const char *const *list, size_t count, const char *word)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (word != NULL && strcmp(list[i], word) == 0)
			return (int)i;
	return -1;
}

#define INDEX_OF(list, word) index_of(list, sizeof(list) / sizeof((list)[0]), word)

static struct json_object *
server_info(void)
{
	struct json_object *info;

	info = json_object_new_object();
	rpc_json_put_text(info, "name", "rws");
	rpc_json_put_text(info, "title", "Remote workspace");
	rpc_json_put_text(info, "version", RWSD_VERSION);
	return info;
}

static struct json_object *
capabilities(void)
{
	struct json_object *object;

	object = json_object_new_object();
	(void)json_object_object_add(object, "tools", json_object_new_object());
	(void)json_object_object_add(object, "logging", json_object_new_object());
	return object;
}

/* What every result of 2026-07-28 says besides. */
static struct json_object *
finish_result(const struct rpc_call *call, struct json_object *result, bool cacheable)
{
	struct json_object *meta;

	if (!call->mcp.stateless)
		return result;
	rpc_json_put_text(result, "resultType", "complete");
	if (!json_object_object_get_ex(result, "_meta", &meta)) {
		meta = json_object_new_object();
		(void)json_object_object_add(result, "_meta", meta);
	}
	(void)json_object_object_add(meta, META_SERVER, server_info());
	if (cacheable) {
		rpc_json_put_number(result, "ttlMs", TOOLS_LIFETIME);
		rpc_json_put_text(result, "cacheScope", "private");
	}
	return result;
}

static void
initialize(struct rpc_call *call, struct json_object *parameters)
{
	struct json_object *result;
	int version;

	version = INDEX_OF(
	    session_versions, rpc_json_get_text(parameters, "protocolVersion", NULL));
	call->rpc->mcp_version = session_versions[version < 0 ? 0 : version];
	result = json_object_new_object();
	rpc_json_put_text(result, "protocolVersion", call->rpc->mcp_version);
	(void)json_object_object_add(result, "capabilities", capabilities());
	(void)json_object_object_add(result, "serverInfo", server_info());
	rpc_json_put_text(result, "instructions", instructions);
	rpc_call_answer(call, result);
}

static struct json_object *
all_versions(void)
{
	struct json_object *list;
	size_t i;

	list = json_object_new_array();
	(void)json_object_array_add(list, json_object_new_string(STATELESS_VERSION));
	for (i = 0; i < sizeof(session_versions) / sizeof(session_versions[0]); i++)
		(void)json_object_array_add(list, json_object_new_string(session_versions[i]));
	return list;
}

static void
discover(struct rpc_call *call, struct json_object *parameters)
{
	struct json_object *result;

	(void)parameters;
	call->mcp.stateless = true;
	result = json_object_new_object();
	(void)json_object_object_add(result, "supportedVersions", all_versions());
	(void)json_object_object_add(result, "capabilities", capabilities());
	rpc_json_put_text(result, "instructions", instructions);
	rpc_call_answer(call, finish_result(call, result, true));
}

static void
ping(struct rpc_call *call, struct json_object *parameters)
{
	(void)parameters;
	rpc_call_answer(call, finish_result(call, json_object_new_object(), false));
}

static struct json_object *
annotations(const struct operation *operation)
{
	struct json_object *object;
	bool reads;

	reads = (operation->flags & OPERATION_READ_ONLY) != 0;
	object = json_object_new_object();
	rpc_json_put_text(object, "title", operation->title);
	rpc_json_put_boolean(object, "readOnlyHint", reads);
	if (!reads)
		rpc_json_put_boolean(
		    object, "destructiveHint", (operation->flags & OPERATION_DESTRUCTIVE) != 0);
	rpc_json_put_boolean(
	    object, "idempotentHint", (operation->flags & OPERATION_IDEMPOTENT) != 0);
	/* A command may reach the network, everything else stays within the sandbox. */
	rpc_json_put_boolean(object, "openWorldHint", strcmp(operation->name, "exec") == 0);
	return object;
}

static void
list_tools(struct rpc_call *call, struct json_object *parameters)
{
	const struct operation *operation;
	struct json_object *result, *tools, *tool;
	char name[OPERATION_NAME_MAX];

	(void)parameters;
	tools = json_object_new_array();
	for (operation = operation_table; operation->name != NULL; operation++) {
		if ((operation->flags & OPERATION_NO_TOOL) != 0)
			continue;
		tool = json_object_new_object();
		rpc_json_put_text(tool, "name", operation_name(name, operation, '_'));
		rpc_json_put_text(tool, "title", operation->title);
		rpc_json_put_text(tool, "description", operation->help);
		(void)json_object_object_add(tool, "inputSchema", rpc_schema_input(operation));
		(void)json_object_object_add(tool, "outputSchema", rpc_schema_output(operation));
		(void)json_object_object_add(tool, "annotations", annotations(operation));
		(void)json_object_array_add(tools, tool);
	}
	result = json_object_new_object();
	(void)json_object_object_add(result, "tools", tools);
	rpc_call_answer(call, finish_result(call, result, true));
}

static void
call_tool(struct rpc_call *call, struct json_object *parameters)
{
	const struct operation *operation;
	struct json_object *name, *arguments, *meta;

	name = arguments = NULL;
	(void)json_object_object_get_ex(parameters, "name", &name);
	(void)json_object_object_get_ex(parameters, "arguments", &arguments);
	operation = json_object_is_type(name, json_type_string)
			? operation_find_tool(json_object_get_string(name))
			: NULL;
	if (operation == NULL) {
		rpc_call_refuse(call, RPC_INVALID_PARAMS, "there is no such tool", NULL);
		return;
	}
	if (arguments != NULL && !json_object_is_type(arguments, json_type_object)) {
		rpc_call_refuse(call, RPC_INVALID_PARAMS, "arguments must be an object", NULL);
		return;
	}
	call->mcp.tool = true;
	if (json_object_object_get_ex(parameters, "_meta", &meta) &&
	    json_object_object_get_ex(meta, "progressToken", &meta))
		call->mcp.progress = json_object_get(meta);
	rpc_call_start(call, operation, arguments);
}

static void
set_level(struct rpc_call *call, struct json_object *parameters)
{
	int level;

	level = INDEX_OF(log_levels, rpc_json_get_text(parameters, "level", NULL));
	if (level < 0) {
		rpc_call_refuse(call, RPC_INVALID_PARAMS, "there is no such level", NULL);
		return;
	}
	call->rpc->log_level = level;
	rpc_call_answer(call, json_object_new_object());
}

/* A notification: the call that carries it is never answered. */
static void
cancelled(struct rpc_call *call, struct json_object *parameters)
{
	struct json_object *id;
	struct rpc_call *other;

	if (json_object_object_get_ex(parameters, "requestId", &id)) {
		other = rpc_call_find(call->rpc, id);
		if (other != NULL)
			rpc_call_cancel(other, true);
	}
	rpc_call_answer(call, json_object_new_object());
}

static void
ignore(struct rpc_call *call, struct json_object *parameters)
{
	(void)parameters;
	rpc_call_answer(call, json_object_new_object());
}

static const struct {
	const char *method;
	void (*take)(struct rpc_call *call, struct json_object *parameters);
} methods[] = {
	{ "initialize", initialize },
	{ "server/discover", discover },
	{ "ping", ping },
	{ "tools/list", list_tools },
	{ "tools/call", call_tool },
	{ "logging/setLevel", set_level },
	{ "notifications/initialized", ignore },
	{ "notifications/cancelled", cancelled },
	{ "notifications/progress", ignore },
	{ "notifications/roots/list_changed", ignore },
};

/*
 * The version that a request of 2026-07-28 carries; true when there is one and we do not speak it.
 */
static bool
is_foreign(struct rpc_call *call, struct json_object *parameters, const char **version)
{
	struct json_object *meta;

	if (!json_object_object_get_ex(parameters, "_meta", &meta) ||
	    !json_object_is_type(meta, json_type_object) || !rpc_json_has(meta, META_VERSION))
		return false;
	*version = rpc_json_get_text(meta, META_VERSION, "");
	call->mcp.stateless = strcmp(*version, STATELESS_VERSION) == 0;
	call->mcp.log_level = INDEX_OF(log_levels, rpc_json_get_text(meta, META_LOG_LEVEL, NULL));
	return !call->mcp.stateless && INDEX_OF(session_versions, *version) < 0;
}

static void
refuse_version(struct rpc_call *call, const char *version)
{
	struct json_object *data;

	data = json_object_new_object();
	(void)json_object_object_add(data, "supported", all_versions());
	rpc_json_put_text(data, "requested", version);
	rpc_call_refuse(call, RPC_UNSUPPORTED_VERSION, "Unsupported protocol version", data);
}

bool
rpc_mcp_take(struct rpc_call *call, const char *method, struct json_object *parameters)
{
	const char *version;
	size_t i;

	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strcmp(methods[i].method, method) != 0)
			continue;
		if (is_foreign(call, parameters, &version))
			refuse_version(call, version);
		else
			methods[i].take(call, parameters);
		return true;
	}
	return false;
}

struct json_object *
rpc_mcp_result(const struct rpc_call *call, struct json_object *result)
{
	struct json_object *answer;

	answer = json_object_new_object();
	(void)json_object_object_add(answer, "content", rpc_content(call->operation, result));
	(void)json_object_object_add(answer, "structuredContent", result);
	rpc_json_put_boolean(answer, "isError", false);
	return finish_result(call, answer, false);
}

/* A tool's failure is a result, so that the model sees it and can do better. */
struct json_object *
rpc_mcp_error(const struct rpc_call *call, const struct error *err)
{
	struct json_object *answer, *content, *block, *meta;
	char *text;

	text = memory_text_format("%s: %s", error_kind(err->code)->name, err->message);
	block = json_object_new_object();
	rpc_json_put_text(block, "type", "text");
	rpc_json_put_text(block, "text", text);
	memory_free(text);
	content = json_object_new_array();
	(void)json_object_array_add(content, block);
	meta = json_object_new_object();
	rpc_json_put_text(meta, "rws/code", error_kind(err->code)->name);
	answer = json_object_new_object();
	(void)json_object_object_add(answer, "content", content);
	rpc_json_put_boolean(answer, "isError", true);
	(void)json_object_object_add(answer, "_meta", meta);
	return finish_result(call, answer, false);
}

static void
send_log(struct rpc_call *call, const char *text)
{
	struct json_object *parameters;
	int level;

	level = call->mcp.stateless ? call->mcp.log_level : call->rpc->log_level;
	if (level < 0 || level > LEVEL_INFO || text == NULL)
		return;
	parameters = json_object_new_object();
	rpc_json_put_text(parameters, "level", log_levels[LEVEL_INFO]);
	rpc_json_put_text(parameters, "logger", "rws");
	rpc_json_put_bytes(parameters, "data", text, strlen(text));
	rpc_notify(call->rpc, "notifications/message", parameters);
}

void
rpc_mcp_progress(struct rpc_call *call, uint64_t done, uint64_t total, const char *text)
{
	struct json_object *parameters;
	int64_t now;

	now = loop_now();
	if (call->mcp.progress == NULL) {
		if (done == 0)
			send_log(call, text);
		return;
	}
	if (text == NULL && now - call->mcp.progress_time < PROGRESS_INTERVAL)
		return;
	call->mcp.progress_time = now;
	call->mcp.progress_value = (int64_t)done > call->mcp.progress_value
				       ? (int64_t)done
				       : call->mcp.progress_value + 1;
	parameters = json_object_new_object();
	(void)json_object_object_add(
	    parameters, "progressToken", json_object_get(call->mcp.progress));
	rpc_json_put_number(parameters, "progress", call->mcp.progress_value);
	if (total > 0)
		rpc_json_put_number(parameters, "total", (int64_t)total);
	if (text != NULL)
		rpc_json_put_bytes(parameters, "message", text, strlen(text));
	rpc_notify(call->rpc, "notifications/progress", parameters);
}
