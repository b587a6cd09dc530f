/* SPDX-License-Identifier: ISC */
/*
 * What a model is shown of a result. Commands and files are shown as the text they are, pictures
 * and sounds as what they are, everything else as JSON.
 */
#include <inttypes.h>
#include <string.h>

#include <json-c/json.h>

#include "core/base/buffer.h"
#include "core/base/memory.h"
#include "gateway/operation_table.h"
#include "gateway/rpc_call.h"
#include "gateway/rpc_json.h"

#define TEXT_MAX ((size_t)RPC_LINE_MAX * 2)

static void
add_text(struct json_object *content, const char *text, size_t size)
{
	struct json_object *block;

	block = json_object_new_object();
	rpc_json_put_text(block, "type", "text");
	(void)json_object_object_add(block, "text", json_object_new_string_len(text, (int)size));
	(void)json_object_array_add(content, block);
}

/* One stream of a command, under a heading when it is not stdout. */
static void
append_stream(
    struct buffer *text, struct json_object *result, const char *name, const char *heading)
{
	struct json_object *value;
	char *other;

	other = memory_text_format("%s_base64", name);
	if (json_object_object_get_ex(result, name, &value) &&
	    json_object_get_string_len(value) > 0) {
		(void)buffer_append_text(text, heading);
		(void)buffer_append(
		    text, json_object_get_string(value), (size_t)json_object_get_string_len(value));
	} else if (json_object_object_get_ex(result, other, &value)) {
		(void)buffer_append_format(text, "%s(not text; base64:)\n", heading);
		(void)buffer_append_text(text, json_object_get_string(value));
	}
	if (text->length > 0 && buffer_data(text)[text->length - 1] != '\n')
		(void)buffer_append_text(text, "\n");
	memory_free(other);
}

static void
show_command(struct json_object *content, struct json_object *result)
{
	struct buffer text;

	buffer_init(&text, TEXT_MAX);
	append_stream(&text, result, "stdout", "");
	append_stream(&text, result, "stderr", "stderr:\n");
	if (rpc_json_get_boolean(result, "truncated", false))
		(void)buffer_append_text(&text, "(there was more output; it was cut)\n");
	if (rpc_json_has(result, "note"))
		(void)buffer_append_format(&text, "(%s)\n", rpc_json_get_text(result, "note", ""));
	if (rpc_json_has(result, "signal"))
		(void)buffer_append_format(
		    &text, "signal: %s\n", rpc_json_get_text(result, "signal", ""));
	if (rpc_json_has(result, "exit_code"))
		(void)buffer_append_format(
		    &text, "exit code: %" PRId64 "\n", rpc_json_get_number(result, "exit_code", 0));
	if (rpc_json_has(result, "job"))
		(void)buffer_append_format(
		    &text, "job: %" PRId64 "\n", rpc_json_get_number(result, "job", 0));
	add_text(content, (char *)buffer_data(&text), text.length);
	buffer_free(&text);
}

/* The prefix "image/" or "audio/" of a kind of file that MCP has a block for; else NULL. */
static const char *
media_block(const char *kind)
{
	if (strncmp(kind, "image/", 6) == 0)
		return "image";
	return strncmp(kind, "audio/", 6) == 0 ? "audio" : NULL;
}

/*
 * Bytes of a file: a block of their own kind, or an embedded resource.
 * They are not repeated in the result.
 */
static void
show_media(struct json_object *content, struct json_object *result, const char *kind)
{
	struct json_object *block, *resource, *data;
	char *uri;

	(void)json_object_object_get_ex(result, "content_base64", &data);
	block = json_object_new_object();
	if (media_block(kind) != NULL) {
		rpc_json_put_text(block, "type", media_block(kind));
		rpc_json_put_text(block, "mimeType", kind);
		(void)json_object_object_add(block, "data", json_object_get(data));
	} else {
		uri = memory_text_format("rws:///%s", rpc_json_get_text(result, "path", "file"));
		resource = json_object_new_object();
		rpc_json_put_text(resource, "uri", uri);
		rpc_json_put_text(resource, "mimeType", kind);
		(void)json_object_object_add(resource, "blob", json_object_get(data));
		rpc_json_put_text(block, "type", "resource");
		(void)json_object_object_add(block, "resource", resource);
		memory_free(uri);
	}
	(void)json_object_array_add(content, block);
	json_object_object_del(result, "content_base64");
}

static void
show_json(struct json_object *content, struct json_object *result)
{
	const char *text;
	size_t length;

	text = json_object_to_json_string_length(
	    result, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length);
	add_text(content, text, length);
}

struct json_object *
rpc_content(const struct operation *operation, struct json_object *result)
{
	struct json_object *content, *value;

	content = json_object_new_array();
	if (strcmp(operation->name, "exec") == 0 || strcmp(operation->name, "logs") == 0)
		show_command(content, result);
	else if (json_object_object_get_ex(result, "content", &value) && value != NULL)
		add_text(content, json_object_get_string(value),
		    (size_t)json_object_get_string_len(value));
	else if (rpc_json_has(result, "content_base64"))
		show_media(content, result,
		    rpc_json_get_text(result, "mime_type", "application/octet-stream"));
	else
		show_json(content, result);
	return content;
}
