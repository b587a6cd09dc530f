/* SPDX-License-Identifier: ISC */
/* Envelopes of the Connect protocol. */
#include <stdint.h>
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/json.h"
#include "drivers/connect.h"
#include "drivers/http_answer.h"

enum {
	FLAG_COMPRESSED = 1,
	FLAG_END = 2,
};

/* The protocol's codes that are something to us; all others are UNAVAILABLE. */
static const struct {
	const char *name;
	enum error_code code;
} codes[] = {
	{ "not_found", ERROR_NOT_FOUND },
	{ "already_exists", ERROR_EXISTS },
	{ "invalid_argument", ERROR_INVALID },
	{ "permission_denied", ERROR_DENIED },
	{ "unauthenticated", ERROR_DENIED },
	{ "unimplemented", ERROR_UNSUPPORTED },
	{ "deadline_exceeded", ERROR_TIMEOUT },
	{ "canceled", ERROR_ABORTED },
};

int
connect_encode(struct buffer *out, const void *payload, size_t size)
{
	unsigned char header[CONNECT_HEADER_SIZE];

	if (size > CONNECT_PAYLOAD_MAX || buffer_room(out) < sizeof(header) + size)
		return -1;
	header[0] = 0;
	header[1] = (unsigned char)(size >> 24);
	header[2] = (unsigned char)(size >> 16);
	header[3] = (unsigned char)(size >> 8);
	header[4] = (unsigned char)size;
	(void)buffer_append(out, header, sizeof(header));
	return buffer_append(out, payload, size);
}

int
connect_decode(
    const void *data, size_t size, struct connect_frame *frame, size_t *needed, struct error *err)
{
	const unsigned char *bytes = data;
	size_t length;

	*needed = CONNECT_HEADER_SIZE;
	if (size < CONNECT_HEADER_SIZE)
		return 0;
	/*
	 * We never say that we take compressed ones.
	 * Bits the protocol gives no meaning are passed over.
	 */
	if ((bytes[0] & FLAG_COMPRESSED) != 0)
		return error_set(err, ERROR_INVALID, "a compressed message that was not asked for");
	length = (size_t)bytes[1] << 24 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 8 | bytes[4];
	if (length > CONNECT_PAYLOAD_MAX)
		return error_set(err, ERROR_TOO_LARGE, "a message of %zu bytes", length);
	*needed = CONNECT_HEADER_SIZE + length;
	if (size < *needed)
		return 0;
	frame->is_end = (bytes[0] & FLAG_END) != 0;
	frame->payload = bytes + CONNECT_HEADER_SIZE;
	frame->size = length;
	return 1;
}

/* Fills err from an error of the protocol: {"code":"not_found","message":"..."}; returns -1. */
static int
read_error(const struct json_object *object, struct error *err)
{
	const char *name, *text;
	enum error_code code;
	size_t i;

	name = json_text(object, "code");
	text = json_text(object, "message");
	if (name == NULL)
		name = "unknown";
	code = ERROR_UNAVAILABLE;
	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (strcmp(codes[i].name, name) == 0)
			code = codes[i].code;
	return http_answer_quote(err, code, text != NULL && text[0] != '\0' ? text : name);
}

int
connect_decode_end(const struct connect_frame *frame, struct error *err)
{
	struct json_object *object, *error;
	int result;

	object = json_parse_object(frame->payload, frame->size, err);
	if (object == NULL)
		return error_wrap(err, "end of stream");
	error = json_member(object, "error", json_type_object);
	result = error == NULL ? 0 : read_error(error, err);
	json_object_put(object);
	return result;
}
