/* SPDX-License-Identifier: ISC */
/*
 * From a method and its parameters to a handler. Parameters are checked here, once, against the
 * table: unknown names, types, bounds, what is missing. So bad input gets a clear error and
 * changes nothing.
 */
#include <inttypes.h>
#include <string.h>

#include <json-c/json.h>

#include "core/base/base64.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "gateway/operation_table.h"
#include "gateway/rpc_call.h"
#include "gateway/rpc_handlers.h"
#include "gateway/rpc_json.h"

static const struct rpc_handler *const lists[] = {
	rpc_exec_handlers,
	rpc_job_handlers,
	rpc_file_handlers,
	rpc_tree_handlers,
	rpc_search_handlers,
	rpc_sandbox_handlers,
	rpc_snapshot_handlers,
};

/* A text that a C string can hold. */
static bool
is_text(struct json_object *value)
{
	return json_object_is_type(value, json_type_string) &&
	       strlen(json_object_get_string(value)) == (size_t)json_object_get_string_len(value);
}

static bool
is_list(struct json_object *value)
{
	size_t i;

	if (!json_object_is_type(value, json_type_array))
		return false;
	for (i = 0; i < (size_t)json_object_array_length(value); i++)
		if (!is_text(json_object_array_get_idx(value, i)))
			return false;
	return true;
}

/* NAME=VALUE must be able to be taken apart again, so a name has no "=". */
static bool
is_pairs(struct json_object *value)
{
	if (!json_object_is_type(value, json_type_object))
		return false;
	json_object_object_foreach(value, key, text)
	{
		if (*key == '\0' || strchr(key, '=') != NULL || !is_text(text))
			return false;
	}
	return true;
}

static bool
is_choice(const char *choices, const char *word)
{
	size_t length;

	for (; *choices != '\0'; choices += length + (choices[length] == ' ')) {
		length = strcspn(choices, " ");
		if (strlen(word) == length && strncmp(choices, word, length) == 0)
			return true;
	}
	return false;
}

static int
check_number(const struct operation_field *field, struct json_object *value, struct error *err)
{
	int64_t number;

	if (!json_object_is_type(value, json_type_int))
		return error_set(err, ERROR_INVALID, "%s must be a whole number", field->name);
	number = json_object_get_int64(value);
	if (number < field->min || number > field->max)
		return error_set(err, ERROR_INVALID, "%s must be %" PRId64 " to %" PRId64,
		    field->name, field->min, field->max);
	return 0;
}

static int
check_value(const struct operation_field *field, struct json_object *value, struct error *err)
{
	switch (field->type) {
	case OPERATION_TEXT:
	case OPERATION_PATH:
		if (!is_text(value))
			return error_set(
			    err, ERROR_INVALID, "%s must be a text without NUL", field->name);
		return 0;
	case OPERATION_BYTES:
		if (!json_object_is_type(value, json_type_string))
			return error_set(err, ERROR_INVALID, "%s must be a text", field->name);
		return 0;
	case OPERATION_BOOLEAN:
		if (!json_object_is_type(value, json_type_boolean))
			return error_set(
			    err, ERROR_INVALID, "%s must be true or false", field->name);
		return 0;
	case OPERATION_NUMBER:
	case OPERATION_DURATION:
	case OPERATION_SIZE:
		return check_number(field, value, err);
	case OPERATION_CHOICE:
		if (!is_text(value) || !is_choice(field->choices, json_object_get_string(value)))
			return error_set(err, ERROR_INVALID, "%s must be one of: %s", field->name,
			    field->choices);
		return 0;
	case OPERATION_LIST:
		if (!is_list(value))
			return error_set(
			    err, ERROR_INVALID, "%s must be a list of texts", field->name);
		return 0;
	case OPERATION_PAIRS:
		if (!is_pairs(value))
			return error_set(
			    err, ERROR_INVALID, "%s must be an object of texts", field->name);
		return 0;
	case OPERATION_ID:
	case OPERATION_OBJECT:
	case OPERATION_OBJECTS:
	case OPERATION_PATHS:
		break;
	}
	return 0;
}

/* NAME_base64 in place of NAME: for bytes and for paths, which have no NUL either way. */
static int
check_base64(const struct operation_field *field, struct json_object *value, struct error *err)
{
	unsigned char *bytes;
	size_t length, size;
	int result;

	if (!is_text(value))
		return error_set(err, ERROR_INVALID, "%s_base64 must be a text", field->name);
	length = (size_t)json_object_get_string_len(value);
	bytes = memory_allocate(length / 4 * 3 + 1);
	result = base64_decode(bytes, &size, json_object_get_string(value), length);
	if (result != 0)
		error_set(err, ERROR_INVALID, "%s_base64 is not base64", field->name);
	else if (field->type == OPERATION_PATH && memchr(bytes, '\0', size) != NULL)
		result = error_set(err, ERROR_INVALID, "%s_base64 has a NUL", field->name);
	memory_free(bytes);
	return result;
}

static int
check_entry(const struct operation *operation, const char *name, struct json_object *value,
    struct error *err)
{
	static const char suffix[] = "_base64";
	const struct operation_field *field;
	size_t length;
	char *base;
	int result;

	field = operation_field_find(operation->parameters, name);
	/* null is as good as nothing: some clients send every parameter they know. */
	if (field != NULL)
		return value == NULL ? 0 : check_value(field, value, err);
	length = strlen(name);
	if (length > strlen(suffix) && strcmp(name + length - strlen(suffix), suffix) == 0) {
		base = memory_text_bounded(name, length - strlen(suffix));
		field = operation_field_find(operation->parameters, base);
		result = -1;
		if (field == NULL ||
		    (field->type != OPERATION_BYTES && field->type != OPERATION_PATH))
			error_set(
			    err, ERROR_INVALID, "%s has no parameter %s", operation->name, name);
		else
			result = value == NULL ? 0 : check_base64(field, value, err);
		memory_free(base);
		return result;
	}
	if (strcmp(name, "_meta") == 0)
		return 0;
	return error_set(err, ERROR_INVALID, "%s has no parameter %s", operation->name, name);
}

static int
check_parameters(
    const struct operation *operation, struct json_object *parameters, struct error *err)
{
	const struct operation_field *field;
	char *other;
	bool found;

	json_object_object_foreach(parameters, name, value)
	{
		if (check_entry(operation, name, value, err) != 0)
			return -1;
	}
	for (field = operation->parameters; field->name != NULL; field++) {
		if (!field->required)
			continue;
		other = memory_text_format("%s_base64", field->name);
		found = rpc_json_has(parameters, field->name) || rpc_json_has(parameters, other);
		memory_free(other);
		if (!found)
			return error_set(
			    err, ERROR_INVALID, "%s needs %s", operation->name, field->name);
	}
	return 0;
}

const struct rpc_handler *
rpc_handler_find(const char *name)
{
	const struct rpc_handler *handler;
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (handler = lists[i]; handler->name != NULL; handler++)
			if (strcmp(handler->name, name) == 0)
				return handler;
	return NULL;
}

void
rpc_call_start(
    struct rpc_call *call, const struct operation *operation, struct json_object *parameters)
{
	struct json_object *given;
	struct error err;

	call->operation = operation;
	/* A request that wants an answer was refused before it became a call. */
	if (call->rpc->call_count > RPC_CALLS_MAX) {
		error_set(&err, ERROR_BUSY, "too many requests at once");
		rpc_call_error(call, &err);
		return;
	}
	given = parameters == NULL ? json_object_new_object() : json_object_get(parameters);
	if (check_parameters(operation, given, &err) != 0) {
		rpc_call_error(call, &err);
	} else {
		call->handler = rpc_handler_find(operation->name);
		if (call->handler == NULL)
			log_fatal("operation %s has no handler", operation->name);
		call->handler->start(call, given);
	}
	json_object_put(given);
}
