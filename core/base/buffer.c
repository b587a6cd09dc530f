/* SPDX-License-Identifier: ISC */
/* A byte queue with a limit; memory is moved rather than grown while there is room in front. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/memory.h"

#define CAPACITY_MIN 256

void
buffer_init(struct buffer *buffer, size_t limit)
{
	memset(buffer, 0, sizeof(*buffer));
	buffer->limit = limit;
}

void
buffer_free(struct buffer *buffer)
{
	memory_free(buffer->data);
	buffer_init(buffer, buffer->limit);
}

void
buffer_wipe(struct buffer *buffer)
{
	if (buffer->data != NULL)
		explicit_bzero(buffer->data, buffer->capacity);
	buffer_free(buffer);
}

unsigned char *
buffer_data(const struct buffer *buffer)
{
	return buffer->data == NULL ? NULL : buffer->data + buffer->start;
}

size_t
buffer_room(const struct buffer *buffer)
{
	return buffer->limit - buffer->length;
}

/* Grows by doubling, never over the limit; wipes what it leaves behind, which may be a secret. */
static void
buffer_grow(struct buffer *buffer, size_t needed)
{
	unsigned char *data;
	size_t capacity;

	capacity = buffer->capacity < CAPACITY_MIN ? CAPACITY_MIN : buffer->capacity;
	while (capacity < needed)
		capacity *= 2;
	if (capacity > buffer->limit && needed <= buffer->limit)
		capacity = buffer->limit;
	data = memory_allocate(capacity);
	if (buffer->data != NULL) {
		memcpy(data, buffer->data + buffer->start, buffer->length);
		explicit_bzero(buffer->data, buffer->start + buffer->length);
		memory_free(buffer->data);
	}
	buffer->data = data;
	buffer->start = 0;
	buffer->capacity = capacity;
}

unsigned char *
buffer_reserve(struct buffer *buffer, size_t size)
{
	if (size > buffer_room(buffer))
		return NULL;
	if (buffer->data == NULL || buffer->start + buffer->length + size > buffer->capacity) {
		if (buffer->data != NULL && buffer->length + size <= buffer->capacity &&
		    buffer->start >= buffer->length) {
			memcpy(buffer->data, buffer->data + buffer->start, buffer->length);
			buffer->start = 0;
		} else {
			buffer_grow(buffer, buffer->length + size);
		}
	}
	return buffer->data + buffer->start + buffer->length;
}

void
buffer_extend(struct buffer *buffer, size_t size)
{
	buffer->length += size;
}

int
buffer_append(struct buffer *buffer, const void *data, size_t size)
{
	unsigned char *place;

	if (size == 0)
		return 0;
	place = buffer_reserve(buffer, size);
	if (place == NULL)
		return -1;
	memcpy(place, data, size);
	buffer_extend(buffer, size);
	return 0;
}

int
buffer_append_text(struct buffer *buffer, const char *text)
{
	return buffer_append(buffer, text, strlen(text));
}

int
buffer_append_format(struct buffer *buffer, const char *format, ...)
{
	va_list arguments;
	char *text;
	int length, result;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (length < 0)
		return -1;
	text = memory_allocate((size_t)length + 1);
	va_start(arguments, format);
	(void)vsnprintf(text, (size_t)length + 1, format, arguments);
	va_end(arguments);
	result = buffer_append(buffer, text, (size_t)length);
	memory_free(text);
	return result;
}

void
buffer_consume(struct buffer *buffer, size_t size)
{
	buffer->start += size;
	buffer->length -= size;
	if (buffer->length == 0)
		buffer->start = 0;
}
