/* SPDX-License-Identifier: ISC */
/*
 * The frames of a WebSocket (RFC 6455 section 5) as a client reads and writes them. A decoder puts
 * fragments together and refuses whatever the RFC says must fail the connection.
 */
#ifndef DRIVERS_WEBSOCKET_FRAME_H
#define DRIVERS_WEBSOCKET_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buffer.h"

struct error;

enum websocket_opcode {
	WEBSOCKET_CONTINUATION = 0,
	WEBSOCKET_TEXT = 1,
	WEBSOCKET_BINARY = 2,
	WEBSOCKET_CLOSE = 8,
	WEBSOCKET_PING = 9,
	WEBSOCKET_PONG = 10,
};

/* Status codes of section 7.4.1. */
enum websocket_status {
	WEBSOCKET_NORMAL = 1000,
	WEBSOCKET_PROTOCOL_ERROR = 1002,
	WEBSOCKET_NO_STATUS = 1005, /* never sent: a close frame had none */
	WEBSOCKET_BAD_TEXT = 1007,
	WEBSOCKET_TOO_BIG = 1009,
};

/* The longest payload of a control frame. */
#define WEBSOCKET_CONTROL_MAX 125
/* Flags, length and mask. */
#define WEBSOCKET_HEAD_MAX 14

struct websocket_decoder {
	struct buffer message; /* of the fragments so far */
	enum websocket_opcode opcode;
	bool is_fragmented;
	/* the frame that is read */
	unsigned char head[WEBSOCKET_HEAD_MAX];
	size_t head_size;
	bool has_head, is_final;
	enum websocket_opcode frame_opcode;
	uint64_t left; /* of its payload */
	unsigned char control[WEBSOCKET_CONTROL_MAX];
	size_t control_size;
	enum websocket_status status; /* what the connection is failed with, after an error */
};

/* A whole message, or a control frame. */
struct websocket_message {
	enum websocket_opcode opcode;
	const unsigned char *data; /* valid until the next call; of a close frame the reason */
	size_t size;
	unsigned status; /* of a close frame */
};

/* max is what a message may hold. */
void websocket_decoder_init(struct websocket_decoder *decoder, size_t max);
void websocket_decoder_free(struct websocket_decoder *decoder);

/*
 * Takes from data until a message is complete, and says in *taken how much that was. Returns 1 with
 * a message, 0 when all was taken without one, -1 when the connection is to be failed with
 * decoder->status.
 */
int websocket_decode(struct websocket_decoder *decoder, const void *data, size_t size,
    size_t *taken, struct websocket_message *message, struct error *err);

/* Appends a final frame, masked with these 4 random bytes. -1 when out has no room for it. */
int websocket_encode(struct buffer *out, enum websocket_opcode opcode, const void *data,
    size_t size, const unsigned char mask[4]);

#endif
