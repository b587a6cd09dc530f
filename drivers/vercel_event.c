/* SPDX-License-Identifier: ISC */
#include <ctype.h>
#include <string.h>

#include "core/base/error.h"
#include "core/json.h"
#include "drivers/vercel_event.h"

#define ID_MAX 128

/* An id goes into paths of URLs. */
static bool
is_id(const char *text)
{
	size_t length;

	for (length = 0; text[length] != '\0'; length++)
		if (length == ID_MAX ||
		    (!isalnum((unsigned char)text[length]) && strchr("_-", text[length]) == NULL))
			return false;
	return length > 0;
}

void
vercel_event_take_command(struct vercel_event *event, const struct json_object *command)
{
	const char *id;

	event->kind = VERCEL_COMMAND;
	id = json_text(command, "id");
	if (id != NULL && is_id(id))
		event->id = id;
	event->has_exit = json_member(command, "exitCode", json_type_int) != NULL;
}

static void
take_output(struct vercel_event *event, enum vercel_event_kind kind)
{
	struct json_object *data;

	data = json_member(event->object, "data", json_type_string);
	if (data == NULL)
		return;
	event->kind = kind;
	event->data = json_object_get_string(data);
	event->size = (size_t)json_object_get_string_len(data);
}

static void
take_fault(struct vercel_event *event)
{
	struct json_object *data;

	event->kind = VERCEL_FAULT;
	data = json_member(event->object, "data", json_type_object);
	event->message = json_text(data, "message");
	if (event->message == NULL)
		event->message = json_text(data, "code");
	if (event->message == NULL)
		event->message = "no reason is given";
}

int
vercel_event_decode(const void *line, size_t size, struct vercel_event *event, struct error *err)
{
	struct json_object *command;
	const char *stream;

	memset(event, 0, sizeof(*event));
	event->kind = VERCEL_OTHER;
	if (size == 0 || (size == 1 && *(const char *)line == '\r'))
		return 0;
	event->object = json_parse_object(line, size, err);
	if (event->object == NULL)
		return error_wrap(err, "a line of the command's");
	command = json_member(event->object, "command", json_type_object);
	stream = json_text(event->object, "stream");
	if (command != NULL)
		vercel_event_take_command(event, command);
	else if (stream != NULL && strcmp(stream, "stdout") == 0)
		take_output(event, VERCEL_STDOUT);
	else if (stream != NULL && strcmp(stream, "stderr") == 0)
		take_output(event, VERCEL_STDERR);
	else if (stream != NULL && strcmp(stream, "error") == 0)
		take_fault(event);
	return 0;
}

void
vercel_event_free(struct vercel_event *event)
{
	json_object_put(event->object);
	memset(event, 0, sizeof(*event));
}

const char *
vercel_event_find_command(const struct json_object *object, const char *argument)
{
	struct json_object *commands, *arguments;
	struct vercel_event event;
	const char *text;
	size_t i, k;

	commands = json_member(object, "commands", json_type_array);
	for (i = 0; commands != NULL && i < json_object_array_length(commands); i++) {
		memset(&event, 0, sizeof(event));
		vercel_event_take_command(&event, json_object_array_get_idx(commands, i));
		arguments = json_member(
		    json_object_array_get_idx(commands, i), "args", json_type_array);
		for (k = 0; arguments != NULL && k < json_object_array_length(arguments); k++) {
			text = json_object_get_string(json_object_array_get_idx(arguments, k));
			if (text != NULL && strcmp(text, argument) == 0)
				return event.id;
		}
	}
	return NULL;
}
