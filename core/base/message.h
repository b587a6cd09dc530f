/* SPDX-License-Identifier: ISC */
/*
 * One message between two of our processes: typed values put and got in order, at most one
 * descriptor beside them. On the wire a frame is
 *
 *	uint32  length of the payload, at most MESSAGE_PAYLOAD_MAX
 *	uint8   type
 *	uint8   version, MESSAGE_VERSION
 *	uint8   1 when a descriptor comes with the frame, else 0
 *	payload
 *
 * with all numbers big-endian, as in RFC 4251 section 5. Both ends are of one build; the version
 * is there so that a process of another build is refused rather than misread.
 */
#ifndef CORE_BASE_MESSAGE_H
#define CORE_BASE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buffer.h"

struct error;

#define MESSAGE_VERSION 1
#define MESSAGE_HEADER_SIZE 7
#define MESSAGE_PAYLOAD_MAX (1024U * 1024U)

struct message {
	uint8_t type;
	int fd; /* -1 for none; owned by the message until taken */
	struct buffer payload;
	bool failed; /* a get went wrong: all later gets fail too */
	/*
	 * A descriptor came with it, but we had none free to take it. A decoder that can do without
	 * clears this; else message_end fails.
	 */
	bool lost;
};

/* An empty message to put values into. */
void message_start(struct message *message, uint8_t type);

/* Frees the payload, wiping it, and closes a descriptor that nobody took. */
void message_free(struct message *message);

/*
 * A payload that grows over its limit ends the process:
 * limits on the content are the caller's to check.
 */
void message_put_u8(struct message *message, uint8_t value);
void message_put_u32(struct message *message, uint32_t value);
void message_put_u64(struct message *message, uint64_t value);
void message_put_i64(struct message *message, int64_t value);
void message_put_bool(struct message *message, bool value);
void message_put_bytes(struct message *message, const void *data, size_t size);
void message_put_text(struct message *message, const char *text);  /* NULL is sent as no text */
void message_put_list(struct message *message, char *const *list); /* NULL-ended; NULL is empty */
void message_put_error(struct message *message, const struct error *err);

/*
 * The next value. Past the end, or when the bytes are not such a value, the result is zero or
 * empty and message_end will fail; so a decoder checks once, at its end.
 */
uint8_t message_get_u8(struct message *message);
uint32_t message_get_u32(struct message *message);
uint64_t message_get_u64(struct message *message);
int64_t message_get_i64(struct message *message);
bool message_get_bool(struct message *message);

/* The bytes stay in the message and are valid while it is. */
const unsigned char *message_get_bytes(struct message *message, size_t *size);

/* A new text without NUL bytes inside, or NULL when no text was sent; the caller frees it. */
char *message_get_text(struct message *message);

/* Refuses a message whose text must be there and is not. */
void message_require(struct message *message, const char *text);

/* A new NULL-ended list (never NULL) of at most MESSAGE_LIST_MAX texts. */
#define MESSAGE_LIST_MAX 4096
char **message_get_list(struct message *message);

/* What message_put_error put; an unknown code fails. */
void message_get_error(struct message *message, struct error *err);

/* The descriptor, now the caller's, or -1. */
int message_take_fd(struct message *message);

/* 0 when every get succeeded and nothing is left over. */
int message_end(struct message *message, struct error *err);

#endif
