/* SPDX-License-Identifier: ISC */
/*
 * Envelopes of the Connect protocol's streams (connectrpc.com/docs/protocol): one byte of flags,
 * four of length, and a payload, which is JSON here.
 */
#ifndef DRIVERS_CONNECT_H
#define DRIVERS_CONNECT_H

#include <stdbool.h>
#include <stddef.h>

struct buffer;
struct error;
struct json_object;

#define CONNECT_HEADER_SIZE 5

/* Longer payloads are refused; E2B's are below 48 KiB. */
#define CONNECT_PAYLOAD_MAX ((size_t)1024 * 1024)

/* Appends an envelope. Returns -1 when it does not fit. */
int connect_encode(struct buffer *out, const void *payload, size_t size);

struct connect_frame {
	bool is_end; /* the end of the stream: what it says is read with connect_decode_end */
	const unsigned char *payload;
	size_t size;
};

/*
 * Looks at the start of what was received. Returns 1 with a whole frame, whose payload lies in data
 * and which takes CONNECT_HEADER_SIZE + size bytes; 0 when there is none yet, with *needed saying
 * how long it will be in all; -1 for what is no envelope we asked for.
 */
int connect_decode(
    const void *data, size_t size, struct connect_frame *frame, size_t *needed, struct error *err);

/*
 * An end of stream:
 * 0 for success, else -1 with the error that the server reported, or that of a malformed end.
 */
int connect_decode_end(const struct connect_frame *frame, struct error *err);

#endif
