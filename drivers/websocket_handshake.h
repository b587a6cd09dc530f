/* SPDX-License-Identifier: ISC */
/* The opening handshake of a WebSocket (RFC 6455 section 4), as text. */
#ifndef DRIVERS_WEBSOCKET_HANDSHAKE_H
#define DRIVERS_WEBSOCKET_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>

struct buffer;
struct error;

/* The key of a request, in base64, and a terminator. */
#define WEBSOCKET_KEY_SIZE 25

/* A key that is random, as section 4.1 asks for. */
void websocket_make_key(char key[WEBSOCKET_KEY_SIZE]);

/* The request; host as in a URL, with the port when it is not the standard one. */
void websocket_write_request(struct buffer *out, const char *path, const char *host,
    const char *key, char *const *headers, const char *protocols);

/* What an answer's head says. */
struct websocket_answer {
	size_t head_size; /* up to the empty line */
	int status;
	size_t body_size; /* of a refusal, as announced; SIZE_MAX: until the end */
};

/*
 * Reads the head once it is complete: 1 when it is, 0 when not yet, -1 when it is malformed, or a
 * 101 that does not accept our key.
 */
int websocket_read_answer(const void *data, size_t size, const char *key,
    struct websocket_answer *answer, struct error *err);

#endif
