/* SPDX-License-Identifier: ISC */
/*
 * A byte queue that grows up to a limit given at its creation: append at the end, consume at the
 * front. No queue in this program is without a limit.
 */
#ifndef CORE_BASE_BUFFER_H
#define CORE_BASE_BUFFER_H

#include <stddef.h>

struct buffer {
	unsigned char *data; /* the allocation; the content starts at data + start */
	size_t start;
	size_t length;
	size_t capacity;
	size_t limit;
};

/* An empty buffer that will hold at most limit bytes; allocates nothing yet. */
void buffer_init(struct buffer *buffer, size_t limit);

/* Frees the memory; the buffer is empty and usable afterwards. */
void buffer_free(struct buffer *buffer);

/* As buffer_free, wiping the memory first. */
void buffer_wipe(struct buffer *buffer);

/* The content; valid until the next call that changes the buffer. */
unsigned char *buffer_data(const struct buffer *buffer);

/* How many more bytes it takes. */
size_t buffer_room(const struct buffer *buffer);

/*
 * A place for at least size more bytes at the end, or NULL when that is over the limit. What was
 * written there counts only after buffer_extend. No memory ends the process.
 */
unsigned char *buffer_reserve(struct buffer *buffer, size_t size);

/* Counts size bytes that were written where buffer_reserve said. */
void buffer_extend(struct buffer *buffer, size_t size);

/* 0, or -1 with nothing appended when that is over the limit. */
int buffer_append(struct buffer *buffer, const void *data, size_t size);

/* As buffer_append: text without its terminator. */
int buffer_append_text(struct buffer *buffer, const char *text);
int buffer_append_format(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Drops size bytes from the front; size must not be over the length. */
void buffer_consume(struct buffer *buffer, size_t size);

#endif
