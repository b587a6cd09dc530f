/* SPDX-License-Identifier: ISC */
/*
 * Commands of providers whose only stream that goes both ways is a terminal behind a WebSocket. Its
 * program is a shell of ours that made it raw, said so with a mark, and waits to be told a command
 * (core/scripts/launch.sh), so that its words and environment are in no record of command
 * lines. Getting there takes several trips, so after the first use some are kept ready.
 *
 * A terminal's program is never slowed down by us, as providers cut off who lags behind: that is
 * for our user to know (core/transport).
 */
#ifndef DRIVERS_TERMINAL_H
#define DRIVERS_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buffer.h"
#include "core/driver.h"
#include "core/marker.h"

struct http_request;
struct http_setup;
struct loop_timer;
struct terminal;
struct terminal_pool;
struct websocket;
struct websocket_end;

enum terminal_stage {
	TERMINAL_OPENING, /* the provider is asked for it, or its WebSocket is on its way */
	TERMINAL_WAITING, /* for the mark */
	TERMINAL_READY,
	TERMINAL_ENDED,
};

/* What a provider does differently. None may be NULL but reopen. */
struct terminal_kind {
	const char *provider; /* for messages */
	size_t size;          /* of the kind's own, which begins with a struct terminal */

	/* Begins to get one: ends in terminal_connect or terminal_fail. */
	void (*open)(struct terminal *terminal);

	/* The WebSocket is open: has a shell say the mark. */
	void (*begin)(struct terminal *terminal);

	/* The mark was said, after noise: sends what must be there before a command is told. */
	void (*marked)(struct terminal *terminal, const struct buffer *noise);

	/* A text message, or the reason of the last frame: may tell the exit, or fail. */
	void (*told)(struct terminal *terminal, const void *data, size_t size);

	/* The WebSocket could not be had: true when another way is tried. */
	bool (*reopen)(struct terminal *terminal, const struct websocket_end *end);

	/* It ended, and not as it should have: is the sandbox still there? */
	void (*broke)(struct terminal *terminal);

	/* Frees what is the kind's own, and kills what still runs there. */
	void (*release)(struct terminal *terminal);
};

/* For those who use one. */
struct terminal_events {
	void (*ready)(void *argument);
	void (*received)(void *argument, const void *data, size_t size);
	void (*sent)(void *argument);
	/* Once and last; ended NULL: the connection broke, or it never came to be. terminal_free is
	 * the owner's. */
	void (*ended)(void *argument, const struct driver_exit *ended, const struct error *err);
};

/* Its members are for the kind. */
struct terminal {
	struct terminal *next; /* of the spares */
	struct terminal_pool *pool;
	const struct terminal_events *events; /* NULL: a spare */
	void *argument;
	char name[MARKER_TOKEN_SIZE];     /* like no other; hexadecimal, and so is the mark's */
	char mark[MARKER_TOKEN_SIZE + 8]; /* what the shell says when it is ready */
	enum terminal_stage stage;
	struct http_request *request; /* of the kind; cancelled when it is freed */
	struct websocket *websocket;
	struct loop_timer *deadline, *soon;
	struct buffer noise;
	struct driver_exit exit;
	bool has_exit;
	struct error failure;
};

/* All terminals of a sandbox, and the commands on them. */
struct terminal_pool {
	const struct terminal_kind *kind;
	struct loop *loop;
	const struct http_setup *setup;
	struct driver_sandbox *sandbox;
	struct terminal *spares; /* ready, or about to be */
	struct loop_timer *spare_timer;
	struct driver_stream *streams;
};

void terminal_pool_init(struct terminal_pool *pool, const struct terminal_kind *kind,
    const struct http_setup *setup, struct driver_sandbox *sandbox);

/* Ends all commands without a word, and frees the terminals. */
void terminal_pool_close(struct terminal_pool *pool);
void terminal_pool_drop_spares(struct terminal_pool *pool);

/* Ends all commands: their sandbox is lost, or about to be released. */
void terminal_pool_fail(struct terminal_pool *pool, const struct error *err);

/* A spare one, or a new one. */
struct terminal *terminal_take(
    struct terminal_pool *pool, const struct terminal_events *events, void *argument);
size_t terminal_room(const struct terminal *terminal);
void terminal_send(struct terminal *terminal, const void *data, size_t size);
void terminal_hold(struct terminal *terminal, bool hold);

/* Accepts NULL. */
void terminal_free(struct terminal *terminal);

/* For the kind: opens the WebSocket at url, and closes one whose opening failed. */
void terminal_connect(
    struct terminal *terminal, const char *url, char *const *headers, const char *protocols);
void terminal_disconnect(struct terminal *terminal);

/* For the kind: it will not work. */
void terminal_fail(struct terminal *terminal, const struct error *err);

/* For the kind: the shell's status, known before its end; below 0 for one that was killed, by
 * nobody says which signal. */
void terminal_set_exit(struct terminal *terminal, int64_t status);

/*
 * terminal_stream.c: the operations of core/driver.h. refusal is why none can be started now, or
 * NULL. Sizes and signals go the way of core/transport, so resize and signal do nothing.
 */
struct driver_stream *terminal_stream_start(struct terminal_pool *pool, const struct error *refusal,
    const struct driver_command *command, const struct driver_stream_events *events,
    void *argument);
void terminal_stream_resize(struct driver_stream *stream, uint32_t columns, uint32_t rows,
    uint32_t x_pixels, uint32_t y_pixels);
void terminal_stream_signal(struct driver_stream *stream, int number);
void terminal_stream_close(struct driver_stream *stream);

#endif
