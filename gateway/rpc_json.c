/* SPDX-License-Identifier: ISC */
/* json-c with the house's types: sizes beside bytes, no text cut at a NUL, bounded depth. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "core/base/base64.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/utf8.h"
#include "gateway/rpc_json.h"

#define NAME_SIZE 80

static const char *
base64_name(char out[NAME_SIZE], const char *name)
{
	if (snprintf(out, NAME_SIZE, "%s_base64", name) >= NAME_SIZE)
		out[0] = '\0';
	return out;
}

void
rpc_json_put_bytes(struct json_object *object, const char *name, const void *data, size_t size)
{
	if (utf8_valid(data, size))
		(void)json_object_object_add(
		    object, name, json_object_new_string_len(data, (int)size));
	else
		rpc_json_put_base64(object, name, data, size);
}

void
rpc_json_put_base64(struct json_object *object, const char *name, const void *data, size_t size)
{
	char other[NAME_SIZE], *text;

	text = base64_text(data, size);
	rpc_json_put_text(object, base64_name(other, name), text);
	memory_free(text);
}

void
rpc_json_put_text(struct json_object *object, const char *name, const char *text)
{
	(void)json_object_object_add(object, name, json_object_new_string(text));
}

void
rpc_json_put_number(struct json_object *object, const char *name, int64_t value)
{
	(void)json_object_object_add(object, name, json_object_new_int64(value));
}

void
rpc_json_put_boolean(struct json_object *object, const char *name, bool value)
{
	(void)json_object_object_add(object, name, json_object_new_boolean(value));
}

bool
rpc_json_is_modest(const char *text, size_t size, size_t max)
{
	bool quoted = false;
	size_t i, count = 0;

	for (i = 0; i < size && count <= max; i++) {
		if (quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		else if (!quoted && (text[i] == ',' || text[i] == '[' || text[i] == '{'))
			count++;
	}
	return count <= max;
}

struct json_object *
rpc_json_path(const char *path)
{
	struct json_object *object;
	char *text;

	if (utf8_valid(path, strlen(path)))
		return json_object_new_string(path);
	object = json_object_new_object();
	text = base64_text(path, strlen(path));
	rpc_json_put_text(object, "base64", text);
	memory_free(text);
	return object;
}

const char *
rpc_json_get_text(struct json_object *object, const char *name, const char *otherwise)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, name, &value) || value == NULL)
		return otherwise;
	return json_object_get_string(value);
}

int64_t
rpc_json_get_number(struct json_object *object, const char *name, int64_t otherwise)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, name, &value) || value == NULL)
		return otherwise;
	return json_object_get_int64(value);
}

bool
rpc_json_get_boolean(struct json_object *object, const char *name, bool otherwise)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, name, &value) || value == NULL)
		return otherwise;
	return json_object_get_boolean(value) != 0;
}

bool
rpc_json_has(struct json_object *object, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(object, name, &value) && value != NULL;
}

static char *
decode(struct json_object *value, size_t *size)
{
	const char *encoded;
	size_t length;
	char *text;

	encoded = json_object_get_string(value);
	length = (size_t)json_object_get_string_len(value);
	text = memory_allocate(length / 4 * 3 + 1);
	if (base64_decode((unsigned char *)text, size, encoded, length) != 0) {
		memory_free(text);
		return NULL;
	}
	text[*size] = '\0';
	return text;
}

char *
rpc_json_get_path(struct json_object *value, size_t *size)
{
	struct json_object *inner;

	if (json_object_object_get_ex(value, "base64", &inner) && inner != NULL)
		return decode(inner, size);
	if (!json_object_is_type(value, json_type_string))
		return NULL;
	*size = (size_t)json_object_get_string_len(value);
	return memory_text_bounded(json_object_get_string(value), *size);
}

char *
rpc_json_get_bytes(struct json_object *object, const char *name, size_t *size)
{
	struct json_object *value;
	char other[NAME_SIZE];

	if (json_object_object_get_ex(object, name, &value) && value != NULL) {
		*size = (size_t)json_object_get_string_len(value);
		return memory_text_bounded(json_object_get_string(value), *size);
	}
	if (!json_object_object_get_ex(object, base64_name(other, name), &value) || value == NULL)
		return NULL;
	return decode(value, size);
}

char **
rpc_json_get_list(struct json_object *object, const char *name)
{
	struct json_object *value;
	size_t i, count;
	char **list;

	count = 0;
	list = memory_zeroed(1, sizeof(*list));
	if (!json_object_object_get_ex(object, name, &value) || value == NULL)
		return list;
	for (i = 0; i < (size_t)json_object_array_length(value); i++)
		list = memory_list_add(
		    list, count++, json_object_get_string(json_object_array_get_idx(value, i)));
	return list;
}

char **
rpc_json_get_pairs(struct json_object *object, const char *name)
{
	struct json_object *value;
	char **list, *entry;
	size_t count;

	count = 0;
	list = memory_zeroed(1, sizeof(*list));
	if (!json_object_object_get_ex(object, name, &value) || value == NULL)
		return list;
	json_object_object_foreach(value, key, text)
	{
		entry = memory_text_format("%s=%s", key, json_object_get_string(text));
		list = memory_list_add(list, count++, entry);
		memory_free(entry);
	}
	return list;
}
