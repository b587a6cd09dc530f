/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "drivers/http.h"
#include "drivers/terminal.h"
#include "drivers/websocket.h"
#include "drivers/websocket_frame.h"

/* ms; a login shell may read much before it asks for its first line. */
#define OPEN_TIMEOUT 30000
#define READY_TIMEOUT 60000
/* What is sent in one message: Daytona's daemon keeps up to 1024 of them for a program that does
 * not read. */
#define MESSAGE_MAX 4096
#define RECEIVED_MAX ((size_t)256 * 1024)
#define NOISE_MAX 65536
/* Terminals kept ready, two for a command, and for how long (ms). */
#define SPARES 2
#define SPARE_TIME 300000

static void
unlink_spare(struct terminal *terminal)
{
	struct terminal **place;

	for (place = &terminal->pool->spares; *place != NULL; place = &(*place)->next) {
		if (*place == terminal) {
			*place = terminal->next;
			return;
		}
	}
}

void
terminal_free(struct terminal *terminal)
{
	if (terminal == NULL)
		return;
	unlink_spare(terminal);
	http_cancel(terminal->request);
	websocket_free(terminal->websocket);
	terminal->pool->kind->release(terminal);
	loop_timer_free(terminal->deadline);
	loop_timer_free(terminal->soon);
	buffer_free(&terminal->noise);
	memory_free(terminal);
}

/* Tells the owner from the loop; a spare goes without a word. */
static void
soon_expired(void *argument)
{
	struct terminal *terminal = argument;

	if (terminal->events == NULL) {
		if (terminal->stage == TERMINAL_ENDED)
			terminal_free(terminal);
	} else if (terminal->stage == TERMINAL_READY) {
		terminal->events->ready(terminal->argument);
	} else if (terminal->stage == TERMINAL_ENDED) {
		terminal->events->ended(terminal->argument,
		    terminal->has_exit ? &terminal->exit : NULL, &terminal->failure);
	}
}

void
terminal_fail(struct terminal *terminal, const struct error *err)
{
	if (terminal->stage == TERMINAL_ENDED)
		return;
	terminal->stage = TERMINAL_ENDED;
	terminal->failure = *err;
	loop_timer_stop(terminal->deadline);
	loop_timer_start(terminal->soon, 0);
}

void
terminal_set_exit(struct terminal *terminal, int64_t status)
{
	terminal->has_exit = true;
	terminal->exit.status = status < 0 ? 255 : (int)(status & 255);
}

static void
deadline_expired(void *argument)
{
	struct terminal *terminal = argument;
	struct error err;

	error_set(&err, ERROR_TIMEOUT, "the terminal's shell does not take a command%s",
	    terminal->noise.length == 0 ? ": it says nothing" : "");
	terminal_fail(terminal, &err);
}

/* What the shell says before it obeys is noise. */
static void
take_noise(struct terminal *terminal, const unsigned char *data, size_t size)
{
	struct error err;

	if (size > buffer_room(&terminal->noise)) {
		error_set(&err, ERROR_UNAVAILABLE,
		    "the terminal's shell says too much before it takes a command");
		terminal_fail(terminal, &err);
		return;
	}
	(void)buffer_append(&terminal->noise, data, size);
	if (memmem(buffer_data(&terminal->noise), terminal->noise.length, terminal->mark,
		strlen(terminal->mark)) == NULL)
		return;
	terminal->stage = TERMINAL_READY;
	terminal->pool->kind->marked(terminal, &terminal->noise);
	buffer_free(&terminal->noise);
	loop_timer_stop(terminal->deadline);
	loop_timer_start(terminal->soon, 0);
}

static void
socket_opened(void *argument)
{
	struct terminal *terminal = argument;

	terminal->stage = TERMINAL_WAITING;
	loop_timer_start(terminal->deadline, READY_TIMEOUT);
	terminal->pool->kind->begin(terminal);
}

static void
socket_received(void *argument, const struct websocket_message *message)
{
	struct terminal *terminal = argument;

	if (message->opcode == WEBSOCKET_TEXT)
		terminal->pool->kind->told(terminal, message->data, message->size);
	else if (terminal->stage == TERMINAL_WAITING)
		take_noise(terminal, message->data, message->size);
	else if (terminal->stage == TERMINAL_READY && terminal->events != NULL)
		terminal->events->received(terminal->argument, message->data, message->size);
}

static void
socket_sent(void *argument)
{
	struct terminal *terminal = argument;

	if (terminal->stage == TERMINAL_READY && terminal->events != NULL)
		terminal->events->sent(terminal->argument);
}

static void
socket_ended(void *argument, const struct websocket_end *ending, const struct error *reason)
{
	struct terminal *terminal = argument;
	const struct terminal_kind *kind = terminal->pool->kind;
	struct error err;

	if (terminal->stage == TERMINAL_OPENING && kind->reopen != NULL &&
	    kind->reopen(terminal, ending))
		return;
	if (reason != NULL) {
		err = *reason;
		/* What was said last may be missing. */
		terminal->has_exit = false;
		if (terminal->stage != TERMINAL_READY)
			error_wrap(&err, "open a terminal");
	} else {
		kind->told(terminal, ending->reason, strlen(ending->reason));
		error_set(&err, ERROR_UNAVAILABLE, "the terminal was closed (%u%s%.100s)",
		    ending->status, ending->reason[0] == '\0' ? "" : ": ", ending->reason);
	}
	if (!terminal->has_exit)
		kind->broke(terminal);
	terminal_fail(terminal, &err);
}

static const struct websocket_events socket_events = {
	.opened = socket_opened,
	.received = socket_received,
	.sent = socket_sent,
	.ended = socket_ended,
};

void
terminal_connect(
    struct terminal *terminal, const char *url, char *const *headers, const char *protocols)
{
	struct websocket_call call = { 0 };

	terminal->stage = TERMINAL_OPENING;
	call.url = url;
	call.headers = headers;
	call.protocols = protocols;
	call.max_message = RECEIVED_MAX;
	call.open_timeout = OPEN_TIMEOUT;
	call.events = &socket_events;
	call.argument = terminal;
	terminal->websocket = websocket_open(terminal->pool->setup, &call);
}

void
terminal_disconnect(struct terminal *terminal)
{
	websocket_free(terminal->websocket);
	terminal->websocket = NULL;
}

static struct terminal *
open_terminal(struct terminal_pool *pool)
{
	char token[MARKER_TOKEN_SIZE];
	struct terminal *terminal;

	terminal = memory_zeroed(1, pool->kind->size);
	terminal->pool = pool;
	marker_make_token(terminal->name);
	marker_make_token(token);
	(void)snprintf(terminal->mark, sizeof(terminal->mark), "\036rws:%s", token);
	buffer_init(&terminal->noise, NOISE_MAX);
	terminal->deadline = loop_timer_new(pool->loop, deadline_expired, terminal);
	terminal->soon = loop_timer_new(pool->loop, soon_expired, terminal);
	pool->kind->open(terminal);
	return terminal;
}

static void
spares_expired(void *argument)
{
	terminal_pool_drop_spares(argument);
}

/* As many as the next command needs. */
static void
make_spares(struct terminal_pool *pool)
{
	struct terminal *terminal;
	size_t count;

	if (pool->spare_timer == NULL)
		pool->spare_timer = loop_timer_new(pool->loop, spares_expired, pool);
	loop_timer_start(pool->spare_timer, SPARE_TIME);
	count = 0;
	for (terminal = pool->spares; terminal != NULL; terminal = terminal->next)
		count++;
	for (; count < SPARES; count++) {
		terminal = open_terminal(pool);
		terminal->next = pool->spares;
		pool->spares = terminal;
	}
}

void
terminal_pool_init(struct terminal_pool *pool, const struct terminal_kind *kind,
    const struct http_setup *setup, struct driver_sandbox *sandbox)
{
	pool->kind = kind;
	pool->loop = setup->loop;
	pool->setup = setup;
	pool->sandbox = sandbox;
}

void
terminal_pool_drop_spares(struct terminal_pool *pool)
{
	if (pool->spare_timer != NULL)
		loop_timer_stop(pool->spare_timer);
	while (pool->spares != NULL)
		terminal_free(pool->spares);
}

void
terminal_pool_close(struct terminal_pool *pool)
{
	while (pool->streams != NULL)
		terminal_stream_close(pool->streams);
	terminal_pool_drop_spares(pool);
	loop_timer_free(pool->spare_timer);
	pool->spare_timer = NULL;
}

/* A ready one, else one that is about to be, else none. */
static struct terminal *
find_spare(const struct terminal_pool *pool)
{
	struct terminal *terminal, *found;

	found = NULL;
	for (terminal = pool->spares; terminal != NULL; terminal = terminal->next)
		if (terminal->stage != TERMINAL_ENDED &&
		    (found == NULL || terminal->stage == TERMINAL_READY))
			found = terminal;
	return found;
}

struct terminal *
terminal_take(struct terminal_pool *pool, const struct terminal_events *events, void *argument)
{
	struct terminal *terminal;

	terminal = find_spare(pool);
	if (terminal == NULL)
		terminal = open_terminal(pool);
	else
		unlink_spare(terminal);
	terminal->events = events;
	terminal->argument = argument;
	loop_timer_start(terminal->soon, 0);
	make_spares(pool);
	return terminal;
}

size_t
terminal_room(const struct terminal *terminal)
{
	return terminal->stage == TERMINAL_READY ? websocket_room(terminal->websocket) / 2 : 0;
}

void
terminal_send(struct terminal *terminal, const void *data, size_t size)
{
	const char *at = data;
	size_t piece;

	for (; size > 0 && terminal->stage == TERMINAL_READY; size -= piece, at += piece) {
		piece = size < MESSAGE_MAX ? size : MESSAGE_MAX;
		websocket_send(terminal->websocket, at, piece);
	}
}

void
terminal_hold(struct terminal *terminal, bool hold)
{
	if (terminal->stage == TERMINAL_READY)
		websocket_hold(terminal->websocket, hold);
}
