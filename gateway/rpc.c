/* SPDX-License-Identifier: ISC */
/*
 * Lines in, lines out. Many requests run at once; each is a call that answers when it is done. What
 * the client does not read holds back streams first and then the reading of requests, so that
 * nothing grows without a limit: answers under way are at most RPC_CALLS_MAX, each at most a line
 * long.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/driver.h"
#include "core/json.h"
#include "gateway/operation_table.h"
#include "gateway/rpc_call.h"
#include "gateway/rpc_json.h"
#include "gateway/worker.h"

/* Every call may still answer with a line of the greatest length. */
#define PENDING_MAX ((size_t)(RPC_CALLS_MAX + 1) * RPC_LINE_MAX)
#define READ_SIZE 65536
#define PIPE_SIZE 1048576
/* Reads in one go, so that a client that sends without pause does not keep the loop. */
#define READ_ROUNDS 16

static loop_ready_fn input_ready;

/* Says what the loop should wait for. */
static void
watch(struct rpc *rpc)
{
	if (rpc->input >= 0 && rpc->pending.length <= RPC_PENDING_HIGH && rpc->input_watch == NULL)
		rpc->input_watch = loop_watch(
		    rpc->worker->loop, rpc->input, LOOP_READ, input_ready, rpc);
	if (rpc->pending.length > RPC_PENDING_HIGH) {
		/* Not only unread: a hang-up would be reported again and again. */
		loop_unwatch(rpc->input_watch);
		rpc->input_watch = NULL;
	}
	if (rpc->output_watch != NULL)
		loop_watch_change(rpc->output_watch, rpc->pending.length > 0 ? LOOP_WRITE : 0);
}

static void
close_input(struct rpc *rpc)
{
	loop_unwatch(rpc->input_watch);
	rpc->input_watch = NULL;
	descriptor_close(&rpc->input);
	rpc->input_ended = true;
}

static void
close_output(struct rpc *rpc)
{
	loop_unwatch(rpc->output_watch);
	rpc->output_watch = NULL;
	descriptor_close(&rpc->output);
	buffer_free(&rpc->pending);
}

void
rpc_finish_if_done(struct rpc *rpc)
{
	if (rpc->input_ended && rpc->calls == NULL && rpc->pending.length == 0)
		loop_timer_start(rpc->finish, 0);
}

static void
finish_expired(void *argument)
{
	struct rpc *rpc = argument;

	close_output(rpc);
	rpc->ended(rpc->argument);
}

static void
resume_streams(struct rpc *rpc)
{
	struct rpc_call *call, *next;

	rpc->output_full = false;
	for (call = rpc->calls; call != NULL; call = next) {
		next = call->next;
		if (call->handler != NULL && call->handler->resume != NULL)
			call->handler->resume(call);
	}
}

static void
output_ready(void *argument, unsigned events)
{
	struct rpc *rpc = argument;
	ssize_t written;

	if ((events & LOOP_WRITE) == 0) {
		/* Nobody reads any more; the session will say so. */
		close_output(rpc);
		rpc_finish_if_done(rpc);
		return;
	}
	written = write(rpc->output, buffer_data(&rpc->pending), rpc->pending.length);
	if (written < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (written < 0)
		close_output(rpc);
	else
		buffer_consume(&rpc->pending, (size_t)written);
	if (rpc->output_full && rpc->pending.length < RPC_PENDING_HIGH / 2)
		resume_streams(rpc);
	rpc_finish_if_done(rpc);
	watch(rpc);
}

void
rpc_send(struct rpc *rpc, struct json_object *object)
{
	const char *text;
	size_t length;

	text = json_object_to_json_string_length(
	    object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length);
	if (rpc->output >= 0 && (buffer_append(&rpc->pending, text, length) != 0 ||
				    buffer_append(&rpc->pending, "\n", 1) != 0)) {
		log_error("rws: the client does not read its answers");
		close_output(rpc);
	}
	json_object_put(object);
	watch(rpc);
}

/*
 * Section 4 allows texts, numbers and null;
 * null is an id that nobody can tell apart, so it is none.
 */
static bool
id_valid(struct json_object *id)
{
	if (id == NULL || json_object_is_type(id, json_type_int))
		return true;
	if (json_object_is_type(id, json_type_string))
		return json_object_get_string_len(id) <= RPC_ID_MAX;
	/* A fraction is kept as it was written. */
	return json_object_is_type(id, json_type_double) &&
	       strlen(json_object_get_string(id)) <= RPC_ID_MAX;
}

/* $/cancelRequest {"id": ...}, as the Language Server Protocol has it. */
static void
cancel_request(struct rpc *rpc, struct json_object *params)
{
	struct json_object *id;
	struct rpc_call *call;

	if (!json_object_object_get_ex(params, "id", &id))
		return;
	call = rpc_call_find(rpc, id);
	if (call != NULL)
		rpc_call_cancel(call, false);
}

static void
dispatch(struct rpc_call *call, const char *method, struct json_object *params)
{
	const struct operation *operation;

	if (strcmp(method, "$/cancelRequest") == 0) {
		cancel_request(call->rpc, params);
		rpc_call_answer(call, json_object_new_object());
		return;
	}
	if (rpc_mcp_take(call, method, params))
		return;
	operation = operation_find(method);
	if (operation == NULL)
		rpc_call_refuse(call, RPC_METHOD_NOT_FOUND, "there is no such method", NULL);
	else
		rpc_call_start(call, operation, params);
}

/* Is there something wrong with the request object? NULL when not. */
static const char *
find_fault(struct rpc *rpc, struct json_object *request)
{
	struct json_object *version, *method, *params, *id;

	if (!json_object_is_type(request, json_type_object))
		return "a request is an object";
	if (!json_object_object_get_ex(request, "jsonrpc", &version) ||
	    !json_object_is_type(version, json_type_string) ||
	    strcmp(json_object_get_string(version), "2.0") != 0)
		return "jsonrpc must be \"2.0\"";
	if (!json_object_object_get_ex(request, "method", &method) ||
	    !json_object_is_type(method, json_type_string))
		return "method must be a text";
	if (json_object_object_get_ex(request, "params", &params) && params != NULL &&
	    !json_object_is_type(params, json_type_object))
		return "params must be an object";
	if (json_object_object_get_ex(request, "id", &id) && !id_valid(id))
		return "id must be a short text or a number";
	if (json_object_object_get_ex(request, "id", &id) && rpc_call_find(rpc, id) != NULL)
		return "a request with this id is under way";
	return NULL;
}

/* An answer to a request that we never sent (MCP clients may answer pings of servers). */
static bool
is_answer(struct json_object *request)
{
	return json_object_is_type(request, json_type_object) &&
	       !json_object_object_get_ex(request, "method", NULL) &&
	       (json_object_object_get_ex(request, "result", NULL) ||
		   json_object_object_get_ex(request, "error", NULL));
}

static void
take_request(struct rpc *rpc, struct rpc_batch *batch, struct json_object *request)
{
	struct json_object *method, *params, *id;
	const char *fault;

	if (is_answer(request))
		return;
	fault = find_fault(rpc, request);
	id = NULL;
	if (json_object_is_type(request, json_type_object))
		(void)json_object_object_get_ex(request, "id", &id);
	if (fault != NULL) {
		rpc_refuse(rpc, batch, id_valid(id) ? id : NULL, RPC_INVALID_REQUEST, ERROR_INVALID,
		    fault);
		return;
	}
	(void)json_object_object_get_ex(request, "method", &method);
	params = NULL;
	(void)json_object_object_get_ex(request, "params", &params);
	if (id != NULL && !rpc_call_fits(rpc)) {
		rpc_refuse(rpc, batch, id, error_kind(ERROR_BUSY)->rpc_number, ERROR_BUSY,
		    "too many requests at once");
		return;
	}
	dispatch(rpc_call_new(rpc, batch, id), json_object_get_string(method), params);
}

static void
take_batch(struct rpc *rpc, struct json_object *requests)
{
	struct rpc_batch *batch;
	size_t i, count;

	count = (size_t)json_object_array_length(requests);
	if (count == 0 || count > RPC_CALLS_MAX) {
		rpc_refuse(rpc, NULL, NULL, RPC_INVALID_REQUEST, ERROR_INVALID,
		    "a batch has 1 to 64 requests");
		return;
	}
	batch = rpc_batch_open();
	for (i = 0; i < count; i++)
		take_request(rpc, batch, json_object_array_get_idx(requests, i));
	rpc_batch_close(rpc, batch);
}

static void
take_line(struct rpc *rpc, const char *text, size_t size)
{
	struct json_object *object;
	struct error err;

	if (size > 0 && text[size - 1] == '\r')
		size--;
	if (strspn(text, " \t\r\n") >= size)
		return;
	if (!rpc_json_is_modest(text, size, RPC_VALUES_MAX)) {
		rpc_refuse(rpc, NULL, NULL, RPC_INVALID_REQUEST, ERROR_TOO_LARGE,
		    "the line has over 16384 values");
		return;
	}
	rpc->line_size = size;
	object = json_parse(text, size, &err);
	if (object == NULL)
		rpc_refuse(rpc, NULL, NULL, RPC_PARSE_ERROR, ERROR_INVALID, err.message);
	else if (json_object_is_type(object, json_type_array))
		take_batch(rpc, object);
	else
		take_request(rpc, NULL, object);
	json_object_put(object);
}

/* Takes the whole lines out of rpc->line. */
static void
take_lines(struct rpc *rpc)
{
	unsigned char *data, *end;

	while (rpc->line.length > rpc->searched) {
		data = buffer_data(&rpc->line);
		end = memchr(data + rpc->searched, '\n', rpc->line.length - rpc->searched);
		if (end == NULL) {
			rpc->searched = rpc->line.length;
			return;
		}
		*end = '\0';
		rpc->searched = 0;
		if (!rpc->skipping)
			take_line(rpc, (char *)data, (size_t)(end - data));
		rpc->skipping = false;
		buffer_consume(&rpc->line, (size_t)(end - data) + 1);
	}
}

void
rpc_take(struct rpc *rpc, const void *data, size_t size)
{
	const unsigned char *at = data;
	size_t part;

	while (size > 0) {
		part = buffer_room(&rpc->line);
		if (part == 0) {
			if (!rpc->skipping)
				rpc_refuse(rpc, NULL, NULL, RPC_INVALID_REQUEST, ERROR_INVALID,
				    "the line is over 16 MiB");
			rpc->skipping = true;
			rpc->searched = 0;
			buffer_free(&rpc->line);
			continue;
		}
		if (part > size)
			part = size;
		(void)buffer_append(&rpc->line, at, part);
		at += part;
		size -= part;
		take_lines(rpc);
	}
	/* A buffer that a long line made large is given back. */
	if (rpc->line.length == 0 && rpc->line.capacity > READ_SIZE)
		buffer_free(&rpc->line);
}

static void
input_ready(void *argument, unsigned events)
{
	struct rpc *rpc = argument;
	static unsigned char chunk[READ_SIZE];
	ssize_t got;
	int i;

	(void)events;
	for (i = 0; i < READ_ROUNDS && rpc->pending.length <= RPC_PENDING_HIGH; i++) {
		got = read(rpc->input, chunk, sizeof(chunk));
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (got <= 0) {
			/* A last line without its end still counts. */
			rpc_take(rpc, "\n", 1);
			close_input(rpc);
			rpc_finish_if_done(rpc);
			break;
		}
		rpc_take(rpc, chunk, (size_t)got);
	}
	watch(rpc);
}

struct rpc *
rpc_open(struct worker *worker, char *const *environment, rpc_ended_fn *ended, void *argument,
    struct driver_descriptors *descriptors, struct error *err)
{
	int in[2], out[2];
	struct rpc *rpc;

	if (descriptor_pipe(in, err) != 0)
		return NULL;
	if (descriptor_pipe(out, err) != 0) {
		descriptor_close(&in[0]);
		descriptor_close(&in[1]);
		return NULL;
	}
	(void)descriptor_nonblock(in[0], NULL);
	(void)descriptor_nonblock(out[1], NULL);
	/* Fewer turns between us and the session; without it all works as well. */
	(void)fcntl(in[0], F_SETPIPE_SZ, PIPE_SIZE);
	(void)fcntl(out[1], F_SETPIPE_SZ, PIPE_SIZE);
	rpc = memory_zeroed(1, sizeof(*rpc));
	rpc->worker = worker;
	rpc->environment = memory_list(environment);
	rpc->ended = ended;
	rpc->argument = argument;
	rpc->log_level = -1;
	rpc->input = in[0];
	rpc->output = out[1];
	buffer_init(&rpc->line, RPC_LINE_MAX);
	buffer_init(&rpc->pending, PENDING_MAX);
	rpc->finish = loop_timer_new(worker->loop, finish_expired, rpc);
	rpc->output_watch = loop_watch(worker->loop, rpc->output, 0, output_ready, rpc);
	watch(rpc);
	descriptors->input = in[1];
	descriptors->output = out[0];
	descriptors->errors = -1;
	return rpc;
}

void
rpc_close(struct rpc *rpc)
{
	if (rpc == NULL)
		return;
	close_input(rpc);
	close_output(rpc);
	while (rpc->calls != NULL)
		rpc_call_drop(rpc->calls);
	loop_timer_free(rpc->finish);
	buffer_free(&rpc->line);
	memory_list_free(rpc->environment);
	memory_free(rpc);
}
