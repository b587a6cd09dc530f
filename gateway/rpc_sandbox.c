/* SPDX-License-Identifier: ISC */
/* info, and the sandbox's life on request. All begin with a sandbox that is there. */
#include <json-c/json.h>

#include "core/admin_protocol.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/driver.h"
#include "core/workspace.h"
#include "gateway/operation_table.h"
#include "gateway/rpc_call.h"
#include "gateway/rpc_handlers.h"
#include "gateway/rpc_json.h"
#include "gateway/version.h"
#include "gateway/worker.h"

/* One request under way. It outlives its call, as what was begun at the provider goes on. */
struct request {
	struct rpc_call *call; /* NULL once the client is gone */
	struct workspace *workspace;
	struct workspace_waiter *waiter;
	void (*next)(struct request *request); /* once the sandbox is there */
};

static void
fail(struct request *request, const struct error *err)
{
	struct rpc_call *call = request->call;

	memory_free(request);
	if (call == NULL)
		return;
	call->state = NULL;
	rpc_call_error(call, err);
}

static void
succeed(struct request *request, struct json_object *result)
{
	struct rpc_call *call = request->call;

	memory_free(request);
	if (call == NULL) {
		json_object_put(result);
		return;
	}
	call->state = NULL;
	rpc_call_result(call, result);
}

static void
ready(void *argument, const struct error *err)
{
	struct request *request = argument;

	request->waiter = NULL;
	if (err != NULL)
		fail(request, err);
	else
		request->next(request);
}

static void
progress(void *argument, const char *text)
{
	struct request *request = argument;

	rpc_call_progress(request->call, 0, 0, text);
}

static void
begin(struct rpc_call *call, void (*next)(struct request *request))
{
	struct request *request;

	request = memory_zeroed(1, sizeof(*request));
	request->call = call;
	request->workspace = call->rpc->worker->workspace;
	request->next = next;
	call->state = request;
	request->waiter = workspace_use(request->workspace, ready, progress, request);
}

/* Nothing at the provider has begun while the request waits for the sandbox. */
static void
cancel(struct rpc_call *call)
{
	struct request *request = call->state;
	struct error err;

	if (request == NULL || request->waiter == NULL)
		return;
	workspace_waiter_cancel(request->waiter);
	error_set(&err, ERROR_ABORTED, "stopped on request");
	fail(request, &err);
}

static void
drop(struct rpc_call *call)
{
	struct request *request = call->state;

	call->state = NULL;
	if (request == NULL)
		return;
	request->call = NULL;
	if (request->waiter == NULL)
		return;
	workspace_waiter_cancel(request->waiter);
	memory_free(request);
}

static void
tell_info(struct request *request)
{
	struct workspace *workspace = request->workspace;
	const char *root = workspace_root(workspace);
	struct worker_report report;
	struct json_object *result;
	size_t length;

	result = json_object_new_object();
	rpc_json_put_text(result, "login", workspace_login(workspace));
	rpc_json_put_text(result, "sandbox_id", workspace_id(workspace));
	rpc_json_put_text(result, "driver", workspace_driver(workspace)->kind->name);
	for (length = 0; root[length] != '\0'; length++)
		continue;
	rpc_json_put_bytes(result, "root", root, length);
	rpc_json_put_text(result, "shell", workspace_shell(workspace));
	rpc_json_put_boolean(result, "busy", workspace_busy(workspace));
	workspace_describe(workspace, &report);
	rpc_json_put_number(result, "sessions", request->call->rpc->worker->link_count);
	rpc_json_put_number(result, "commands", report.commands);
	worker_report_free(&report);
	rpc_json_put_text(result, "version", RWSD_VERSION);
	succeed(request, result);
}

static void
info_start(struct rpc_call *call, struct json_object *parameters)
{
	(void)parameters;
	begin(call, tell_info);
}

static void
tell_state(struct request *request, const char *state)
{
	struct json_object *result;

	result = json_object_new_object();
	rpc_json_put_text(result, "sandbox_id", workspace_id(request->workspace));
	rpc_json_put_text(result, "state", state);
	succeed(request, result);
}

static void
tell_running(struct request *request)
{
	tell_state(request, "running");
}

static void
start_start(struct rpc_call *call, struct json_object *parameters)
{
	(void)parameters;
	begin(call, tell_running);
}

static void
stopped(void *argument, const struct error *err)
{
	if (err != NULL)
		fail(argument, err);
	else
		tell_state(argument, "stopped");
}

static void
destroyed(void *argument, const struct error *err)
{
	if (err != NULL)
		fail(argument, err);
	else
		tell_state(argument, "destroyed");
}

static void
extended(void *argument, const struct error *err)
{
	if (err != NULL)
		fail(argument, err);
	else
		tell_state(argument, "running");
}

static void
stop_sandbox(struct request *request)
{
	struct error err;

	if (workspace_put_away(request->workspace, false, stopped, request, &err) != 0)
		fail(request, &err);
}

static void
destroy_sandbox(struct request *request)
{
	struct error err;

	if (workspace_put_away(request->workspace, true, destroyed, request, &err) != 0)
		fail(request, &err);
}

static void
extend_sandbox(struct request *request)
{
	const struct driver *driver = workspace_driver(request->workspace);

	driver->extend(workspace_sandbox(request->workspace), extended, request);
}

static void
stop_start(struct rpc_call *call, struct json_object *parameters)
{
	(void)parameters;
	begin(call, stop_sandbox);
}

static void
destroy_start(struct rpc_call *call, struct json_object *parameters)
{
	(void)parameters;
	begin(call, destroy_sandbox);
}

static void
extend_start(struct rpc_call *call, struct json_object *parameters)
{
	(void)parameters;
	begin(call, extend_sandbox);
}

const struct rpc_handler rpc_sandbox_handlers[] = {
	{ "info", info_start, cancel, drop, NULL, NULL },
	{ "sandbox.start", start_start, cancel, drop, NULL, NULL },
	{ "sandbox.stop", stop_start, cancel, drop, NULL, NULL },
	{ "sandbox.destroy", destroy_start, cancel, drop, NULL, NULL },
	{ "sandbox.extend", extend_start, cancel, drop, NULL, NULL },
	{ .name = NULL },
};
