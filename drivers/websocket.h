/* SPDX-License-Identifier: ISC */
/*
 * WebSockets for drivers (RFC 6455), over a connection that libcurl makes: TLS, proxies and trust
 * are as in drivers/http. Callbacks come from the loop only, and the socket may be freed in any of
 * them.
 */
#ifndef DRIVERS_WEBSOCKET_H
#define DRIVERS_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct http_setup;
struct websocket;
struct websocket_message;

/* How it ended. */
struct websocket_end {
	int http_status;    /* of an answer other than 101, else 0 */
	unsigned status;    /* of the server's close frame, 0 when there was none */
	const char *reason; /* of the same, or what a refusal said; never NULL */
	bool unsent;        /* no byte of the request left: nothing happened */
};

struct websocket_events {
	void (*opened)(void *argument);
	/* A text or binary message (drivers/websocket_frame.h). */
	void (*received)(void *argument, const struct websocket_message *message);
	/* What waited to be sent has become less. */
	void (*sent)(void *argument);
	/* Last and once; err NULL when the server sent a close frame. */
	void (*ended)(void *argument, const struct websocket_end *end, const struct error *err);
};

struct websocket_call {
	const char *url;      /* http or https; all texts are copied */
	char *const *headers; /* "Name: value", NULL-ended */
	/* Value of Sec-WebSocket-Protocol, or NULL; an answer without one is taken too. */
	const char *protocols;
	size_t max_message;   /* bytes of a received message */
	int64_t open_timeout; /* ms until the upgrade is answered */
	const struct websocket_events *events;
	void *argument;
};

/* Bytes that may wait to be sent. */
#define WEBSOCKET_SEND_MAX ((size_t)256 * 1024)

/* Never NULL: what is wrong with the call is told to ended. */
struct websocket *websocket_open(const struct http_setup *setup, const struct websocket_call *call);

/* Says goodbye if it can be said at once, and closes; no callback comes any more. Accepts NULL. */
void websocket_free(struct websocket *websocket);

/* Bytes of one message that websocket_send takes now. */
size_t websocket_room(const struct websocket *websocket);

/* Sends a binary message, once opened was called. */
void websocket_send(struct websocket *websocket, const void *data, size_t size);

/* As websocket_send, a text message. */
void websocket_send_text(struct websocket *websocket, const char *text);

/* While held nothing is received: what the server sends waits in the network. */
void websocket_hold(struct websocket *websocket, bool hold);

#endif
