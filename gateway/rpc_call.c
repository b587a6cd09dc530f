/* SPDX-License-Identifier: ISC */
/* Calls: from the request that made one to its answer, alone or in a batch. */
#include <json-c/json.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "gateway/operation_table.h"
#include "gateway/rpc_call.h"
#include "gateway/rpc_json.h"

/* The answers of one batch (JSON-RPC 2.0 section 6), sent together once the last is there. */
struct rpc_batch {
	unsigned open;
	struct json_object *answers;
};

static struct json_object *
new_message(void)
{
	struct json_object *object;

	object = json_object_new_object();
	rpc_json_put_text(object, "jsonrpc", "2.0");
	return object;
}

void
rpc_notify(struct rpc *rpc, const char *method, struct json_object *params)
{
	struct json_object *object;

	object = new_message();
	rpc_json_put_text(object, "method", method);
	(void)json_object_object_add(object, "params", params);
	rpc_send(rpc, object);
}

void
rpc_batch_close(struct rpc *rpc, struct rpc_batch *batch)
{
	if (--batch->open > 0)
		return;
	if (json_object_array_length(batch->answers) > 0)
		rpc_send(rpc, json_object_get(batch->answers));
	json_object_put(batch->answers);
	memory_free(batch);
}

static void
free_call(struct rpc_call *call)
{
	struct rpc_call **place;

	for (place = &call->rpc->calls; *place != call; place = &(*place)->next)
		continue;
	*place = call->next;
	call->rpc->call_count--;
	call->rpc->held -= call->size;
	if (call->handler != NULL && call->handler->drop != NULL)
		call->handler->drop(call);
	json_object_put(call->mcp.progress);
	json_object_put(call->id);
	memory_free(call);
}

/* Sends the answer (taken over) and ends the call. */
static void
end_call(struct rpc_call *call, struct json_object *answer)
{
	struct rpc *rpc = call->rpc;
	struct rpc_batch *batch = call->batch;

	if (call->id == NULL || call->silent)
		json_object_put(answer);
	else if (batch != NULL)
		(void)json_object_array_add(batch->answers, answer);
	else
		rpc_send(rpc, answer);
	free_call(call);
	if (batch != NULL)
		rpc_batch_close(rpc, batch);
	rpc_finish_if_done(rpc);
}

/* An answer to id (NULL: not known), with its member still to be added. */
static struct json_object *
new_answer(struct json_object *id)
{
	struct json_object *object;

	object = new_message();
	(void)json_object_object_add(object, "id", json_object_get(id));
	return object;
}

static struct json_object *
new_error(struct json_object *id, int number, const char *message, struct json_object *data)
{
	struct json_object *object, *inner;

	object = new_answer(id);
	inner = json_object_new_object();
	rpc_json_put_number(inner, "code", number);
	rpc_json_put_text(inner, "message", message);
	if (data != NULL)
		(void)json_object_object_add(inner, "data", data);
	(void)json_object_object_add(object, "error", inner);
	return object;
}

static struct json_object *
error_data(enum error_code code)
{
	struct json_object *data;

	data = json_object_new_object();
	rpc_json_put_text(data, "code", error_kind(code)->name);
	return data;
}

void
rpc_call_answer(struct rpc_call *call, struct json_object *result)
{
	struct json_object *object;
	struct error err;
	size_t length;

	object = new_answer(call->id);
	(void)json_object_object_add(object, "result", result);
	(void)json_object_to_json_string_length(
	    object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length);
	if (length < RPC_LINE_MAX) {
		end_call(call, object);
		return;
	}
	json_object_put(object);
	error_set(
	    &err, ERROR_TOO_LARGE, "the answer is over %u MiB: ask for less", RPC_LINE_MAX >> 20);
	rpc_call_error(call, &err);
}

void
rpc_call_result(struct rpc_call *call, struct json_object *result)
{
	rpc_call_answer(call, call->mcp.tool ? rpc_mcp_result(call, result) : result);
}

void
rpc_call_error(struct rpc_call *call, const struct error *err)
{
	const struct error_kind *kind = error_kind(err->code);

	log_debug("rws %s: %s: %s", call->operation == NULL ? "request" : call->operation->name,
	    kind->name, err->message);
	if (call->mcp.tool)
		rpc_call_answer(call, rpc_mcp_error(call, err));
	else
		end_call(call,
		    new_error(call->id, kind->rpc_number, err->message, error_data(err->code)));
}

void
rpc_call_refuse(
    struct rpc_call *call, enum rpc_number number, const char *message, struct json_object *data)
{
	enum error_code code;

	code = number == RPC_METHOD_NOT_FOUND ? ERROR_UNSUPPORTED : ERROR_INVALID;
	end_call(call,
	    new_error(call->id, (int)number, message, data == NULL ? error_data(code) : data));
}

bool
rpc_call_ready(const struct rpc_call *call)
{
	if (call->rpc->pending.length < RPC_PENDING_HIGH)
		return true;
	call->rpc->output_full = true;
	return false;
}

void
rpc_call_output(struct rpc_call *call, const char *stream, const void *data, size_t size)
{
	struct json_object *params;
	char *text;

	if (call->id == NULL || call->silent)
		return;
	if (call->mcp.tool) {
		text = memory_text_bounded(data, size);
		rpc_mcp_progress(call, 0, 0, text);
		memory_free(text);
		return;
	}
	params = json_object_new_object();
	(void)json_object_object_add(params, "id", json_object_get(call->id));
	rpc_json_put_text(params, "stream", stream);
	rpc_json_put_bytes(params, "data", data, size);
	rpc_notify(call->rpc, "output", params);
}

void
rpc_call_progress(struct rpc_call *call, uint64_t done, uint64_t total, const char *text)
{
	struct json_object *params;

	if (call->id == NULL || call->silent)
		return;
	if (call->mcp.tool) {
		rpc_mcp_progress(call, done, total, text);
		return;
	}
	params = json_object_new_object();
	(void)json_object_object_add(params, "id", json_object_get(call->id));
	rpc_json_put_number(params, "done", (int64_t)done);
	if (total > 0)
		rpc_json_put_number(params, "total", (int64_t)total);
	if (text != NULL)
		rpc_json_put_text(params, "text", text);
	rpc_notify(call->rpc, "progress", params);
}

struct rpc_call *
rpc_call_find(struct rpc *rpc, struct json_object *id)
{
	struct rpc_call *call;

	if (id == NULL)
		return NULL;
	for (call = rpc->calls; call != NULL; call = call->next)
		if (call->id != NULL && json_object_equal(call->id, id) != 0)
			return call;
	return NULL;
}

void
rpc_call_cancel(struct rpc_call *call, bool silent)
{
	if (call->cancelled)
		return;
	call->cancelled = true;
	call->silent = silent;
	if (call->handler != NULL && call->handler->cancel != NULL)
		call->handler->cancel(call);
}

struct rpc_batch *
rpc_batch_open(void)
{
	struct rpc_batch *batch;

	batch = memory_zeroed(1, sizeof(*batch));
	batch->answers = json_object_new_array();
	batch->open = 1;
	return batch;
}

void
rpc_refuse(struct rpc *rpc, struct rpc_batch *batch, struct json_object *id, int number,
    enum error_code code, const char *message)
{
	struct json_object *object;

	object = new_error(id, number, message, error_data(code));
	if (batch == NULL)
		rpc_send(rpc, object);
	else
		(void)json_object_array_add(batch->answers, object);
}

bool
rpc_call_fits(const struct rpc *rpc)
{
	return rpc->call_count < RPC_CALLS_MAX && rpc->held <= RPC_HELD_MAX;
}

struct rpc_call *
rpc_call_new(struct rpc *rpc, struct rpc_batch *batch, struct json_object *id)
{
	struct rpc_call *call;

	call = memory_zeroed(1, sizeof(*call));
	call->rpc = rpc;
	call->id = json_object_get(id);
	call->batch = batch;
	if (batch != NULL)
		batch->open++;
	call->mcp.log_level = -1;
	call->next = rpc->calls;
	rpc->calls = call;
	rpc->call_count++;
	/* Of a batch, the first call answers for the whole line. */
	call->size = rpc->line_size;
	rpc->line_size = 0;
	rpc->held += call->size;
	return call;
}

void
rpc_call_drop(struct rpc_call *call)
{
	struct rpc_batch *batch = call->batch;

	free_call(call);
	if (batch != NULL && --batch->open == 0) {
		json_object_put(batch->answers);
		memory_free(batch);
	}
}
