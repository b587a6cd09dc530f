/* SPDX-License-Identifier: ISC */
/* json-c with limits: depth, size, UTF-8. */
#include <limits.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/utf8.h"
#include "core/json.h"

/* No provider nests deeper; json-c recurses. */
#define DEPTH_MAX 32

/* The length without white space at the end. */
static size_t
trim(const char *data, size_t size)
{
	while (size > 0 && data[size - 1] != '\0' && strchr(" \t\r\n", data[size - 1]) != NULL)
		size--;
	return size;
}

struct json_object *
json_parse(const void *data, size_t size, struct error *err)
{
	struct json_tokener *tokener;
	enum json_tokener_error problem;
	struct json_object *value;

	if (size > INT_MAX) {
		error_set(err, ERROR_TOO_LARGE, "JSON of %zu bytes", size);
		return NULL;
	}
	/* RFC 8259 section 8.1 */
	if (!utf8_valid(data, size)) {
		error_set(err, ERROR_INVALID, "JSON that is not UTF-8");
		return NULL;
	}
	tokener = json_tokener_new_ex(DEPTH_MAX);
	if (tokener == NULL)
		log_fatal("out of memory");
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	size = trim(data, size);
	value = json_tokener_parse_ex(tokener, data, (int)size);
	problem = json_tokener_get_error(tokener);
	if (value == NULL || json_tokener_get_parse_end(tokener) != size) {
		json_object_put(value);
		value = NULL;
		error_set(err, ERROR_INVALID, "malformed JSON: %s",
		    problem == json_tokener_success    ? "more than one value"
		    : problem == json_tokener_continue ? "it ends too early"
						       : json_tokener_error_desc(problem));
	}
	json_tokener_free(tokener);
	return value;
}

struct json_object *
json_parse_object(const void *data, size_t size, struct error *err)
{
	struct json_object *value;

	value = json_parse(data, size, err);
	if (value == NULL || json_object_is_type(value, json_type_object))
		return value;
	json_object_put(value);
	error_set(err, ERROR_INVALID, "JSON that is no object");
	return NULL;
}

struct json_object *
json_member(const struct json_object *object, const char *name, enum json_type type)
{
	struct json_object *member;

	if (!json_object_is_type(object, json_type_object) ||
	    !json_object_object_get_ex(object, name, &member) || !json_object_is_type(member, type))
		return NULL;
	return member;
}

bool
json_boolean(const struct json_object *object, const char *name)
{
	return json_object_get_boolean(json_member(object, name, json_type_boolean)) != 0;
}

const char *
json_text(const struct json_object *object, const char *name)
{
	struct json_object *member;
	const char *text;

	member = json_member(object, name, json_type_string);
	if (member == NULL)
		return NULL;
	text = json_object_get_string(member);
	return strlen(text) == (size_t)json_object_get_string_len(member) ? text : NULL;
}

int64_t
json_number(
    const struct json_object *object, const char *name, int64_t min, int64_t max, int64_t fallback)
{
	struct json_object *member;
	int64_t value;

	member = json_member(object, name, json_type_int);
	if (member == NULL)
		return fallback;
	value = json_object_get_int64(member);
	return value < min || value > max ? fallback : value;
}

static struct json_object *
new_text(const char *text)
{
	struct json_object *value;

	value = json_object_new_string(text);
	if (value == NULL)
		log_fatal("out of memory");
	return value;
}

void
json_add_text(struct json_object *object, const char *name, const char *text)
{
	if (text != NULL && json_object_object_add(object, name, new_text(text)) != 0)
		log_fatal("out of memory");
}

const char *
json_print(struct json_object *object)
{
	const char *text;

	text = json_object_to_json_string_ext(
	    object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text == NULL)
		log_fatal("out of memory");
	return text;
}
