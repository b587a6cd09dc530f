/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "drivers/websocket_frame.h"

#define FINAL 0x80
#define RESERVED 0x70
#define OPCODE 0x0f
#define MASKED 0x80
#define LENGTH 0x7f
#define LENGTH_16 126
#define LENGTH_64 127

void
websocket_decoder_init(struct websocket_decoder *decoder, size_t max)
{
	memset(decoder, 0, sizeof(*decoder));
	buffer_init(&decoder->message, max);
}

void
websocket_decoder_free(struct websocket_decoder *decoder)
{
	buffer_wipe(&decoder->message);
}

static int
refuse(struct websocket_decoder *decoder, enum websocket_status status, const char *what,
    struct error *err)
{
	decoder->status = status;
	return error_set(err, ERROR_UNAVAILABLE, "WebSocket: %s", what);
}

static bool
is_control(enum websocket_opcode opcode)
{
	return (opcode & 8) != 0;
}

/* Bytes of the head, as far as it can be told from its first two. */
static size_t
head_size(const struct websocket_decoder *decoder)
{
	unsigned char length;

	if (decoder->head_size < 2)
		return 2;
	length = decoder->head[1] & LENGTH;
	return length == LENGTH_16 ? 4 : length == LENGTH_64 ? 10 : 2;
}

static uint64_t
payload_size(const struct websocket_decoder *decoder)
{
	uint64_t size;
	size_t i;

	size = decoder->head[1] & LENGTH;
	if (size < LENGTH_16)
		return size;
	for (size = 0, i = 2; i < decoder->head_size; i++)
		size = size << 8 | decoder->head[i];
	return size;
}

/* Was the length written in more bytes than it needs (section 5.2)? */
static bool
is_overlong(const struct websocket_decoder *decoder)
{
	return (decoder->head_size == 4 && decoder->left < LENGTH_16) ||
	       (decoder->head_size == 10 && decoder->left <= UINT16_MAX);
}

static int
check_control(struct websocket_decoder *decoder, struct error *err)
{
	if (decoder->frame_opcode > WEBSOCKET_PONG)
		return refuse(decoder, WEBSOCKET_PROTOCOL_ERROR, "an unknown kind of frame", err);
	if (!decoder->is_final || decoder->left > WEBSOCKET_CONTROL_MAX)
		return refuse(
		    decoder, WEBSOCKET_PROTOCOL_ERROR, "a control frame that is too long", err);
	decoder->control_size = 0;
	return 0;
}

static int
check_data(struct websocket_decoder *decoder, struct error *err)
{
	if (decoder->frame_opcode > WEBSOCKET_BINARY)
		return refuse(decoder, WEBSOCKET_PROTOCOL_ERROR, "an unknown kind of frame", err);
	if (decoder->is_fragmented != (decoder->frame_opcode == WEBSOCKET_CONTINUATION))
		return refuse(decoder, WEBSOCKET_PROTOCOL_ERROR, "fragments out of order", err);
	if (decoder->left > buffer_room(&decoder->message))
		return refuse(decoder, WEBSOCKET_TOO_BIG, "a message over the limit", err);
	if (!decoder->is_fragmented)
		decoder->opcode = decoder->frame_opcode;
	decoder->is_fragmented = true;
	return 0;
}

static int
take_head(struct websocket_decoder *decoder, struct error *err)
{
	decoder->has_head = true;
	decoder->is_final = (decoder->head[0] & FINAL) != 0;
	decoder->frame_opcode = decoder->head[0] & OPCODE;
	decoder->left = payload_size(decoder);
	if ((decoder->head[0] & RESERVED) != 0)
		return refuse(
		    decoder, WEBSOCKET_PROTOCOL_ERROR, "an extension nobody asked for", err);
	if ((decoder->head[1] & MASKED) != 0)
		return refuse(decoder, WEBSOCKET_PROTOCOL_ERROR, "a masked frame of a server", err);
	if (is_overlong(decoder))
		return refuse(decoder, WEBSOCKET_PROTOCOL_ERROR, "a length that is too long", err);
	return is_control(decoder->frame_opcode) ? check_control(decoder, err)
						 : check_data(decoder, err);
}

static size_t
take_payload(struct websocket_decoder *decoder, const unsigned char *data, size_t size)
{
	if (size > decoder->left)
		size = (size_t)decoder->left;
	if (is_control(decoder->frame_opcode)) {
		memcpy(decoder->control + decoder->control_size, data, size);
		decoder->control_size += size;
	} else {
		/* check_data saw that there is room. */
		(void)buffer_append(&decoder->message, data, size);
	}
	decoder->left -= size;
	return size;
}

static bool
is_status(unsigned status)
{
	return (status >= 1000 && status <= 1014 && status != 1004 && status != 1005 &&
		   status != 1006) ||
	       (status >= 3000 && status <= 4999);
}

static int
finish_control(
    struct websocket_decoder *decoder, struct websocket_message *message, struct error *err)
{
	message->opcode = decoder->frame_opcode;
	message->data = decoder->control;
	message->size = decoder->control_size;
	message->status = WEBSOCKET_NO_STATUS;
	if (message->opcode != WEBSOCKET_CLOSE || message->size == 0)
		return 1;
	if (message->size == 1)
		return refuse(decoder, WEBSOCKET_PROTOCOL_ERROR, "half a status", err);
	message->status = (unsigned)message->data[0] << 8 | message->data[1];
	message->data += 2;
	message->size -= 2;
	if (!is_status(message->status))
		return refuse(
		    decoder, WEBSOCKET_PROTOCOL_ERROR, "a status that may not be sent", err);
	if (!utf8_valid((const char *)message->data, message->size))
		return refuse(decoder, WEBSOCKET_BAD_TEXT, "a reason that is not UTF-8", err);
	return 1;
}

/* The frame is complete: is a message? */
static int
finish_frame(
    struct websocket_decoder *decoder, struct websocket_message *message, struct error *err)
{
	decoder->has_head = false;
	decoder->head_size = 0;
	if (is_control(decoder->frame_opcode))
		return finish_control(decoder, message, err);
	if (!decoder->is_final)
		return 0;
	decoder->is_fragmented = false;
	message->opcode = decoder->opcode;
	message->status = 0;
	message->data = buffer_data(&decoder->message);
	message->size = decoder->message.length;
	/* The bytes stay where they are until something is appended. */
	buffer_consume(&decoder->message, decoder->message.length);
	if (message->opcode == WEBSOCKET_TEXT &&
	    !utf8_valid((const char *)message->data, message->size))
		return refuse(decoder, WEBSOCKET_BAD_TEXT, "a text that is not UTF-8", err);
	return 1;
}

int
websocket_decode(struct websocket_decoder *decoder, const void *data, size_t size, size_t *taken,
    struct websocket_message *message, struct error *err)
{
	const unsigned char *at = data, *end = at + size;
	int result;

	result = 0;
	while (result == 0) {
		if (decoder->has_head) {
			at += take_payload(decoder, at, (size_t)(end - at));
			if (decoder->left > 0)
				break;
			result = finish_frame(decoder, message, err);
			continue;
		}
		if (at == end)
			break;
		decoder->head[decoder->head_size++] = *at++;
		if (decoder->head_size == head_size(decoder))
			result = take_head(decoder, err);
	}
	*taken = (size_t)(at - (const unsigned char *)data);
	return result;
}

static size_t
encode_head(unsigned char head[WEBSOCKET_HEAD_MAX], enum websocket_opcode opcode, size_t size)
{
	size_t count, i;

	head[0] = (unsigned char)(FINAL | opcode);
	if (size < LENGTH_16) {
		head[1] = (unsigned char)(MASKED | size);
		return 2;
	}
	count = size <= UINT16_MAX ? 2 : 8;
	head[1] = MASKED | (count == 2 ? LENGTH_16 : LENGTH_64);
	for (i = 0; i < count; i++)
		head[2 + i] = (unsigned char)((uint64_t)size >> (8 * (count - 1 - i)));
	return 2 + count;
}

int
websocket_encode(struct buffer *out, enum websocket_opcode opcode, const void *data, size_t size,
    const unsigned char mask[4])
{
	unsigned char head[WEBSOCKET_HEAD_MAX], *place;
	const unsigned char *from = data;
	size_t length, i;

	length = encode_head(head, opcode, size);
	memcpy(head + length, mask, 4);
	length += 4;
	place = buffer_reserve(out, length + size);
	if (place == NULL)
		return -1;
	memcpy(place, head, length);
	place += length;
	for (i = 0; i < size; i++)
		place[i] = from[i] ^ mask[i & 3];
	buffer_extend(out, length + size);
	return 0;
}
