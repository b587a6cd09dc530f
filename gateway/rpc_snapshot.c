/* SPDX-License-Identifier: ISC */
/* snapshot.*: core/snapshot.h in JSON. */
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/snapshot.h"
#include "gateway/operation_table.h"
#include "gateway/rpc_call.h"
#include "gateway/rpc_handlers.h"
#include "gateway/rpc_json.h"
#include "gateway/worker.h"

/* Bytes of an archive in one notification; their base64 is still far below a line. */
#define PIECE_MAX 49152U

struct operation_state {
	struct rpc_call *call;
	struct snapshot *snapshot;
	bool dry_run;
	struct feed *input; /* of import */
};

/* An entry of a list that may be no UTF-8, as any command can have changed the record. */
static struct json_object *
make_list(char *const *list)
{
	struct json_object *array;

	array = json_object_new_array();
	for (; *list != NULL; list++)
		(void)json_object_array_add(array, rpc_json_path(*list));
	return array;
}

static struct json_object *
make_pairs(char *const *list)
{
	struct json_object *object;
	const char *equals;
	char *name;

	object = json_object_new_object();
	for (; *list != NULL; list++) {
		equals = strchr(*list, '=');
		if (equals == NULL)
			continue;
		name = memory_text_bounded(*list, (size_t)(equals - *list));
		(void)json_object_object_add(object, name, rpc_json_path(equals + 1));
		memory_free(name);
	}
	return object;
}

static int
compare_texts(const void *one, const void *other)
{
	const char *const *a = one, *const *b = other;

	return strcmp(*a, *b);
}

/* Sorted, so that a person finds something in it. */
static struct json_object *
make_paths(const struct snapshot_paths *paths)
{
	struct json_object *array;
	const char **list, *at;
	size_t i, count;

	count = 0;
	for (at = paths->data; at < paths->data + paths->size; at += strlen(at) + 1)
		count++;
	list = memory_zeroed(count + 1, sizeof(*list));
	for (i = 0, at = paths->data; i < count; at += strlen(at) + 1)
		list[i++] = at;
	qsort(list, count, sizeof(*list), compare_texts);
	array = json_object_new_array();
	for (i = 0; i < count; i++)
		(void)json_object_array_add(
		    array, rpc_json_path(strncmp(list[i], "./", 2) == 0 ? list[i] + 2 : list[i]));
	memory_free(list);
	return array;
}

static struct json_object *
make_record(const struct snapshot_record *record)
{
	struct json_object *object;

	object = json_object_new_object();
	rpc_json_put_text(object, "id", record->id);
	rpc_json_put_number(object, "created", record->created);
	if (record->label != NULL)
		rpc_json_put_bytes(object, "label", record->label, strlen(record->label));
	(void)json_object_object_add(object, "metadata", make_pairs(record->metadata));
	(void)json_object_object_add(object, "exclude", make_list(record->exclude));
	rpc_json_put_number(object, "max_file_bytes", (int64_t)record->max_file_bytes);
	rpc_json_put_number(object, "files", (int64_t)record->files);
	rpc_json_put_number(object, "bytes", (int64_t)record->bytes);
	if (record->archive_bytes > 0)
		rpc_json_put_number(object, "archive_bytes", (int64_t)record->archive_bytes);
	return object;
}

/* A record with what was skipped. */
static struct json_object *
make_shown(const struct operation_state *state, const struct snapshot_outcome *outcome)
{
	struct json_object *object;

	(void)state;
	object = make_record(&outcome->records[0]);
	(void)json_object_object_add(object, "skipped", make_paths(&outcome->skipped));
	return object;
}

static struct json_object *
make_all(const struct operation_state *state, const struct snapshot_outcome *outcome)
{
	struct json_object *object, *array;
	size_t i;

	(void)state;
	array = json_object_new_array();
	for (i = 0; i < outcome->count; i++)
		(void)json_object_array_add(array, make_record(&outcome->records[i]));
	object = json_object_new_object();
	(void)json_object_object_add(object, "snapshots", array);
	return object;
}

static struct json_object *
make_id(const struct operation_state *state, const struct snapshot_outcome *outcome)
{
	struct json_object *object;

	(void)state;
	object = json_object_new_object();
	rpc_json_put_text(object, "id", outcome->records[0].id);
	return object;
}

static struct json_object *
make_restored(const struct operation_state *state, const struct snapshot_outcome *outcome)
{
	struct json_object *object;

	object = make_id(state, outcome);
	rpc_json_put_boolean(object, "dry_run", state->dry_run);
	(void)json_object_object_add(object, "restored", make_paths(&outcome->restored));
	(void)json_object_object_add(object, "deleted", make_paths(&outcome->deleted));
	(void)json_object_object_add(object, "kept", make_paths(&outcome->kept));
	return object;
}

static struct json_object *
make_exported(const struct operation_state *state, const struct snapshot_outcome *outcome)
{
	struct json_object *object;

	object = make_id(state, outcome);
	rpc_json_put_number(object, "bytes", (int64_t)outcome->sent);
	return object;
}

static const struct {
	const char *name;
	struct json_object *(*make)(
	    const struct operation_state *state, const struct snapshot_outcome *outcome);
} results[] = {
	{ "snapshot.create", make_shown },
	{ "snapshot.list", make_all },
	{ "snapshot.show", make_shown },
	{ "snapshot.restore", make_restored },
	{ "snapshot.delete", make_id },
	{ "snapshot.export", make_exported },
	{ "snapshot.import", make_shown },
};

static void
done(void *argument, const struct snapshot_outcome *outcome, const struct error *err)
{
	struct operation_state *state = argument;
	struct rpc_call *call = state->call;
	size_t i;

	state->snapshot = NULL;
	if (state->input != NULL)
		feed_close(state->input);
	if (err != NULL) {
		rpc_call_error(call, err);
		return;
	}
	for (i = 0; strcmp(results[i].name, call->operation->name) != 0; i++)
		continue;
	rpc_call_result(call, results[i].make(state, outcome));
}

static void
progress(void *argument, const char *text)
{
	struct operation_state *state = argument;

	rpc_call_progress(state->call, 0, 0, text);
}

static size_t
send_output(void *argument, const unsigned char *data, size_t size)
{
	struct operation_state *state = argument;
	size_t sent, piece;

	for (sent = 0; sent < size && rpc_call_ready(state->call); sent += piece) {
		piece = size - sent < PIECE_MAX ? size - sent : PIECE_MAX;
		rpc_call_output(state->call, "archive", data + sent, piece);
	}
	return sent;
}

static void
hungry(void *argument)
{
	struct operation_state *state = argument;

	feed_resume(state->input);
}

static size_t
pass_input(void *argument, const void *data, size_t size, bool end)
{
	struct operation_state *state = argument;

	return state->snapshot == NULL ? size : snapshot_input(state->snapshot, data, size, end);
}

static const struct snapshot_events events = { progress, send_output, hungry, done };

static struct operation_state *
new_state(struct rpc_call *call)
{
	struct operation_state *state;

	state = memory_zeroed(1, sizeof(*state));
	state->call = call;
	call->state = state;
	return state;
}

static void
cancel(struct rpc_call *call)
{
	struct operation_state *state = call->state;

	if (state != NULL && state->snapshot != NULL)
		snapshot_abort(state->snapshot);
}

static void
drop(struct rpc_call *call)
{
	struct operation_state *state = call->state;

	call->state = NULL;
	if (state == NULL)
		return;
	snapshot_close(state->snapshot);
	feed_free(state->input);
	memory_free(state);
}

static void
resume(struct rpc_call *call)
{
	struct operation_state *state = call->state;

	if (state != NULL && state->snapshot != NULL)
		snapshot_resume(state->snapshot);
}

/* The request's texts, which are to be freed. */
struct texts {
	char **metadata, **exclude;
};

static void
fill_request(const struct rpc_call *call, struct json_object *parameters,
    struct snapshot_request *request, struct texts *texts)
{
	texts->metadata = rpc_json_get_pairs(parameters, "metadata");
	texts->exclude = rpc_json_get_list(parameters, "exclude");
	request->label = rpc_json_get_text(parameters, "label", NULL);
	request->metadata = texts->metadata;
	request->exclude = texts->exclude;
	request->max_file_bytes = (uint64_t)rpc_json_get_number(parameters, "max_file_bytes",
	    settings_number(call->rpc->worker->settings, "max_file_bytes"));
}

static void
create_start(struct rpc_call *call, struct json_object *parameters)
{
	struct operation_state *state = new_state(call);
	struct snapshot_request request;
	struct texts texts;

	fill_request(call, parameters, &request, &texts);
	state->snapshot = snapshot_create(call->rpc->worker->workspace, &request, &events, state);
	memory_list_free(texts.metadata);
	memory_list_free(texts.exclude);
}

static void
import_start(struct rpc_call *call, struct json_object *parameters)
{
	struct operation_state *state = new_state(call);
	struct snapshot_request request;
	struct texts texts;

	fill_request(call, parameters, &request, &texts);
	state->snapshot = snapshot_import(call->rpc->worker->workspace, &request, &events, state);
	state->input = feed_new(call->rpc->worker->loop, true);
	feed_start_sink(state->input, pass_input, state);
	memory_list_free(texts.metadata);
	memory_list_free(texts.exclude);
}

static void
list_start(struct rpc_call *call, struct json_object *parameters)
{
	struct operation_state *state = new_state(call);

	(void)parameters;
	state->snapshot = snapshot_list(call->rpc->worker->workspace, &events, state);
}

static void
show_start(struct rpc_call *call, struct json_object *parameters)
{
	struct operation_state *state = new_state(call);

	state->snapshot = snapshot_show(
	    call->rpc->worker->workspace, rpc_json_get_text(parameters, "id", ""), &events, state);
}

static void
delete_start(struct rpc_call *call, struct json_object *parameters)
{
	struct operation_state *state = new_state(call);

	state->snapshot = snapshot_delete(
	    call->rpc->worker->workspace, rpc_json_get_text(parameters, "id", ""), &events, state);
}

static void
restore_start(struct rpc_call *call, struct json_object *parameters)
{
	struct operation_state *state = new_state(call);

	state->dry_run = rpc_json_get_boolean(parameters, "dry_run", false);
	state->snapshot = snapshot_restore(call->rpc->worker->workspace,
	    rpc_json_get_text(parameters, "id", ""), state->dry_run, &events, state);
}

static void
export_start(struct rpc_call *call, struct json_object *parameters)
{
	struct operation_state *state = new_state(call);

	state->snapshot = snapshot_export(
	    call->rpc->worker->workspace, rpc_json_get_text(parameters, "id", ""), &events, state);
}

static int
import_input(
    struct rpc_call *call, const struct feed_input *input, struct feed_lot **lot, struct error *err)
{
	struct operation_state *state = call->state;

	if (state == NULL || state->snapshot == NULL)
		return error_set(err, ERROR_NOT_FOUND, "the import has ended");
	return feed_put(state->input, input, lot, err);
}

const struct rpc_handler rpc_snapshot_handlers[] = {
	{ "snapshot.create", create_start, cancel, drop, NULL, NULL },
	{ "snapshot.list", list_start, cancel, drop, NULL, NULL },
	{ "snapshot.show", show_start, cancel, drop, NULL, NULL },
	{ "snapshot.restore", restore_start, cancel, drop, NULL, NULL },
	{ "snapshot.delete", delete_start, cancel, drop, NULL, NULL },
	{ "snapshot.export", export_start, cancel, drop, resume, NULL },
	{ "snapshot.import", import_start, cancel, drop, NULL, import_input },
	{ .name = NULL },
};
