/* SPDX-License-Identifier: ISC */
/* Putting values into a message and getting them out again. Each get stands below its put. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/message.h"

/* Stands for "no text" where a text's length would be. */
#define NO_TEXT UINT32_MAX

/* The kernel's MAX_ERRNO. */
#define ERRNO_MAX 4095

void
message_start(struct message *message, uint8_t type)
{
	memset(message, 0, sizeof(*message));
	message->type = type;
	message->fd = -1;
	buffer_init(&message->payload, MESSAGE_PAYLOAD_MAX);
}

void
message_free(struct message *message)
{
	buffer_wipe(&message->payload);
	if (message->fd >= 0)
		(void)close(message->fd);
	message->fd = -1;
}

static void
put(struct message *message, const void *data, size_t size)
{
	if (buffer_append(&message->payload, data, size) != 0)
		log_fatal("message %u is over %u bytes", message->type, MESSAGE_PAYLOAD_MAX);
}

/* The next size bytes, or NULL with the message marked as failed. */
static const unsigned char *
get(struct message *message, size_t size)
{
	const unsigned char *data;

	if (message->failed || size > message->payload.length) {
		message->failed = true;
		return NULL;
	}
	data = buffer_data(&message->payload);
	message->payload.start += size;
	message->payload.length -= size;
	return data;
}

static void
put_number(struct message *message, uint64_t value, size_t size)
{
	unsigned char bytes[8];
	size_t i;

	for (i = 0; i < size; i++)
		bytes[i] = (unsigned char)(value >> (8 * (size - 1 - i)));
	put(message, bytes, size);
}

static uint64_t
get_number(struct message *message, size_t size)
{
	const unsigned char *bytes;
	uint64_t value;
	size_t i;

	bytes = get(message, size);
	if (bytes == NULL)
		return 0;
	value = 0;
	for (i = 0; i < size; i++)
		value = value << 8 | bytes[i];
	return value;
}

void
message_put_u8(struct message *message, uint8_t value)
{
	put_number(message, value, 1);
}

uint8_t
message_get_u8(struct message *message)
{
	return (uint8_t)get_number(message, 1);
}

void
message_put_u32(struct message *message, uint32_t value)
{
	put_number(message, value, 4);
}

uint32_t
message_get_u32(struct message *message)
{
	return (uint32_t)get_number(message, 4);
}

void
message_put_u64(struct message *message, uint64_t value)
{
	put_number(message, value, 8);
}

uint64_t
message_get_u64(struct message *message)
{
	return get_number(message, 8);
}

void
message_put_i64(struct message *message, int64_t value)
{
	put_number(message, (uint64_t)value, 8);
}

int64_t
message_get_i64(struct message *message)
{
	return (int64_t)get_number(message, 8);
}

void
message_put_bool(struct message *message, bool value)
{
	put_number(message, value ? 1 : 0, 1);
}

bool
message_get_bool(struct message *message)
{
	uint8_t value;

	value = message_get_u8(message);
	if (value > 1)
		message->failed = true;
	return value == 1;
}

void
message_put_bytes(struct message *message, const void *data, size_t size)
{
	if (size >= MESSAGE_PAYLOAD_MAX)
		log_fatal("message %u: %zu bytes are over the limit", message->type, size);
	message_put_u32(message, (uint32_t)size);
	put(message, data, size);
}

const unsigned char *
message_get_bytes(struct message *message, size_t *size)
{
	const unsigned char *data;

	*size = message_get_u32(message);
	data = get(message, *size);
	if (data == NULL)
		*size = 0;
	return data;
}

void
message_put_text(struct message *message, const char *text)
{
	if (text == NULL)
		message_put_u32(message, NO_TEXT);
	else
		message_put_bytes(message, text, strlen(text));
}

char *
message_get_text(struct message *message)
{
	const unsigned char *data;
	uint32_t size;

	size = message_get_u32(message);
	if (message->failed || size == NO_TEXT)
		return NULL;
	data = get(message, size);
	if (data == NULL)
		return NULL;
	if (memchr(data, '\0', size) != NULL) {
		message->failed = true;
		return NULL;
	}
	return memory_text_bounded(data, size);
}

void
message_require(struct message *message, const char *text)
{
	if (text == NULL)
		message->failed = true;
}

void
message_put_list(struct message *message, char *const *list)
{
	uint32_t i, count;

	for (count = 0; list != NULL && list[count] != NULL; count++)
		continue;
	message_put_u32(message, count);
	for (i = 0; i < count; i++)
		message_put_text(message, list[i]);
}

char **
message_get_list(struct message *message)
{
	uint32_t i, count;
	char **list;

	count = message_get_u32(message);
	if (count > MESSAGE_LIST_MAX) {
		message->failed = true;
		count = 0;
	}
	list = memory_zeroed((size_t)count + 1, sizeof(*list));
	for (i = 0; i < count; i++) {
		list[i] = message_get_text(message);
		if (list[i] == NULL) {
			message->failed = true;
			break;
		}
	}
	return list;
}

void
message_put_error(struct message *message, const struct error *err)
{
	message_put_u8(message, (uint8_t)err->code);
	message_put_u32(message, (uint32_t)err->saved_errno);
	message_put_text(message, err->message);
}

void
message_get_error(struct message *message, struct error *err)
{
	uint32_t saved_errno;
	uint8_t code;
	char *text;

	code = message_get_u8(message);
	saved_errno = message_get_u32(message);
	text = message_get_text(message);
	if (code >= ERROR_CODES || saved_errno > ERRNO_MAX || text == NULL)
		message->failed = true;
	error_set(err, code < ERROR_CODES ? (enum error_code)code : ERROR_INVALID, "%s",
	    text == NULL ? "" : text);
	err->saved_errno = message->failed ? 0 : (int)saved_errno;
	memory_free(text);
}

int
message_take_fd(struct message *message)
{
	int fd;

	fd = message->fd;
	message->fd = -1;
	return fd;
}

int
message_end(struct message *message, struct error *err)
{
	if (message->failed)
		return error_set(
		    err, ERROR_INVALID, "message %u is cut short or malformed", message->type);
	if (message->lost)
		return error_set(err, ERROR_UNAVAILABLE,
		    "no descriptor is free for that of message %u", message->type);
	if (message->payload.length != 0)
		return error_set(err, ERROR_INVALID, "message %u has %zu bytes too many",
		    message->type, message->payload.length);
	return 0;
}
