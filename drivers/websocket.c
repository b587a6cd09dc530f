/* SPDX-License-Identifier: ISC */
/*
 * Our own rather than libcurl's, which that of Debian 12 does not have, and which gathers messages
 * without limit.
 *
 *	CONNECTING  to the server
 *	UPGRADING   our request is on its way, or its answer
 *	OPEN        frames
 *	ENDED       ended was called or is about to be
 */
#include <stdio.h>
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/random.h"
#include "drivers/http.h"
#include "drivers/http_answer.h"
#include "drivers/socket.h"
#include "drivers/websocket.h"
#include "drivers/websocket_frame.h"
#include "drivers/websocket_handshake.h"

#define READ_SIZE 65536
/* Bytes of the answer to the upgrade, and of a refusal's body. */
#define ANSWER_MAX 65536
/* ms between two pings, which keep what is between us and the server from forgetting us. */
#define PING_PERIOD 20000
/* ms without a byte from the server after which it is taken for dead. */
#define SILENCE_MAX 70000
/*
 * Unless so much was sent meanwhile that it may be waiting for its own reader rather than reading.
 */
#define SILENCE_SENT_MAX ((uint64_t)256 * 1024)
/* Messages that one event of the loop takes in, so that others have their turn. */
#define READS_MAX 8

enum stage {
	STAGE_CONNECTING,
	STAGE_UPGRADING,
	STAGE_OPEN,
	STAGE_ENDED,
};

struct websocket {
	struct loop *loop;
	const struct websocket_events *events;
	void *argument;
	enum stage stage;
	struct socket *connection;
	struct loop_timer *deadline, *ping, *soon;
	struct loop_watch *watch;
	char key[WEBSOCKET_KEY_SIZE];
	struct buffer answer;
	struct buffer sending;
	struct websocket_decoder decoder;
	bool held, has_sent;
	/* websocket_free in a callback leaves the rest to whoever is entered. */
	bool is_entered, is_dead;
	int64_t heard;       /* loop_now of the last byte received */
	uint64_t sent_since; /* bytes sent since then */

	struct websocket_end end;
	char reason[256];
	struct error failure;
};

static void ready(void *argument, unsigned events);

static void
stop_watching(struct websocket *websocket)
{
	loop_unwatch(websocket->watch);
	websocket->watch = NULL;
}

/* The end is told from the loop, as everything is. */
static void
end(struct websocket *websocket, const struct error *err)
{
	if (websocket->stage == STAGE_ENDED)
		return;
	websocket->stage = STAGE_ENDED;
	if (err != NULL)
		websocket->failure = *err;
	stop_watching(websocket);
	loop_timer_stop(websocket->ping);
	loop_timer_stop(websocket->deadline);
	loop_timer_start(websocket->soon, 0);
}

static void
watch(struct websocket *websocket)
{
	unsigned events;

	if (websocket->stage != STAGE_UPGRADING && websocket->stage != STAGE_OPEN)
		return;
	events = (websocket->held ? 0 : (unsigned)LOOP_READ) |
		 (websocket->sending.length > 0 ? (unsigned)LOOP_WRITE : 0);
	if (websocket->watch != NULL)
		loop_watch_change(websocket->watch, events);
	else if (events != 0)
		websocket->watch = loop_watch(
		    websocket->loop, socket_fd(websocket->connection), events, ready, websocket);
}

/* A pong or a ping that finds no room is left out: there is enough else on its way. */
static int
queue_frame(
    struct websocket *websocket, enum websocket_opcode opcode, const void *data, size_t size)
{
	unsigned char mask[4];

	random_bytes(mask, sizeof(mask));
	return websocket_encode(&websocket->sending, opcode, data, size, mask);
}

/* Writes what waits, as far as it goes. */
static void
flush(struct websocket *websocket)
{
	enum socket_result result;
	struct error err;
	size_t sent;

	while (websocket->sending.length > 0) {
		result = socket_send(websocket->connection, buffer_data(&websocket->sending),
		    websocket->sending.length, &sent, &err);
		if (result == SOCKET_AGAIN)
			break;
		if (result != SOCKET_DONE) {
			end(websocket, &err);
			return;
		}
		buffer_consume(&websocket->sending, sent);
		websocket->sent_since += sent;
		websocket->has_sent = true;
	}
	watch(websocket);
}

/* An answer other than 101, with as much of its body as there is. */
static void
take_refusal(struct websocket *websocket, const struct websocket_answer *answer)
{
	struct error err;

	websocket->end.http_status = answer->status;
	(void)http_answer_explain(answer->status,
	    buffer_data(&websocket->answer) + answer->head_size,
	    websocket->answer.length - answer->head_size, &err);
	end(websocket, &err);
}

static void
take_close(struct websocket *websocket, const struct websocket_message *message)
{
	unsigned char status[2];

	websocket->end.status = message->status;
	(void)snprintf(websocket->reason, sizeof(websocket->reason), "%.*s", (int)message->size,
	    (const char *)message->data);
	status[0] = (unsigned char)(message->status >> 8);
	status[1] = (unsigned char)message->status;
	(void)queue_frame(websocket, WEBSOCKET_CLOSE, status,
	    message->status == WEBSOCKET_NO_STATUS ? 0 : sizeof(status));
	flush(websocket);
	end(websocket, NULL);
}

/* Fails the connection as section 7.1.7 says. */
static void
refuse(struct websocket *websocket, const struct error *err)
{
	unsigned char status[2];

	status[0] = (unsigned char)(websocket->decoder.status >> 8);
	status[1] = (unsigned char)websocket->decoder.status;
	(void)queue_frame(websocket, WEBSOCKET_CLOSE, status, sizeof(status));
	flush(websocket);
	end(websocket, err);
}

static void
take_message(struct websocket *websocket, const struct websocket_message *message)
{
	if (message->opcode == WEBSOCKET_CLOSE) {
		take_close(websocket, message);
	} else if (message->opcode == WEBSOCKET_PING) {
		(void)queue_frame(websocket, WEBSOCKET_PONG, message->data, message->size);
		flush(websocket);
	} else if (message->opcode != WEBSOCKET_PONG) {
		websocket->events->received(websocket->argument, message);
	}
}

/* What comes while held is decoded all the same. */
static void
take_frames(struct websocket *websocket, const unsigned char *data, size_t size)
{
	struct websocket_message message;
	struct error err;
	size_t taken;
	int result;

	while (websocket->stage == STAGE_OPEN) {
		result = websocket_decode(&websocket->decoder, data, size, &taken, &message, &err);
		data += taken;
		size -= taken;
		if (result < 0)
			refuse(websocket, &err);
		if (result <= 0)
			break;
		take_message(websocket, &message);
	}
}

/* The rest of what came with the answer is frames already. */
static void
take_answer(struct websocket *websocket)
{
	struct websocket_answer answer;
	const unsigned char *rest;
	struct error err;
	size_t body;
	int result;

	result = websocket_read_answer(buffer_data(&websocket->answer), websocket->answer.length,
	    websocket->key, &answer, &err);
	if (result < 0)
		end(websocket, &err);
	if (result <= 0)
		return;
	body = websocket->answer.length - answer.head_size;
	if (answer.status != 101) {
		if (body >= answer.body_size || buffer_room(&websocket->answer) == 0)
			take_refusal(websocket, &answer);
		return;
	}
	websocket->stage = STAGE_OPEN;
	loop_timer_stop(websocket->deadline);
	loop_timer_start(websocket->ping, PING_PERIOD);
	websocket->events->opened(websocket->argument);
	rest = buffer_data(&websocket->answer) + answer.head_size;
	take_frames(websocket, rest, body);
}

/* The connection is at its end; a refusal without a length is complete with it. */
static void
take_end(struct websocket *websocket)
{
	struct websocket_answer answer;
	struct error err;

	if (websocket->stage == STAGE_UPGRADING &&
	    websocket_read_answer(buffer_data(&websocket->answer), websocket->answer.length,
		websocket->key, &answer, &err) == 1) {
		take_refusal(websocket, &answer);
		return;
	}
	error_set(&err, ERROR_UNAVAILABLE, "the connection broke off");
	end(websocket, &err);
}

/* Receives once; false when there is nothing, or no socket, any more. */
static bool
receive(struct websocket *websocket)
{
	unsigned char chunk[READ_SIZE];
	enum socket_result result;
	struct error err;
	size_t got;

	got = sizeof(chunk);
	if (websocket->stage == STAGE_UPGRADING && got > buffer_room(&websocket->answer))
		got = buffer_room(&websocket->answer);
	result = socket_receive(websocket->connection, chunk, got, &got, &err);
	if (result == SOCKET_ENDED)
		take_end(websocket);
	else if (result == SOCKET_FAILED)
		end(websocket, &err);
	if (result != SOCKET_DONE)
		return false;
	websocket->heard = loop_now();
	websocket->sent_since = 0;
	if (websocket->stage == STAGE_OPEN) {
		take_frames(websocket, chunk, got);
	} else {
		(void)buffer_append(&websocket->answer, chunk, got);
		take_answer(websocket);
	}
	return websocket->stage != STAGE_ENDED;
}

/*
 * TLS may hold bytes that no event of the descriptor tells of,
 * so this goes on until there are none.
 */
static void
receive_all(struct websocket *websocket)
{
	int i;

	for (i = 0; i < READS_MAX && !websocket->held; i++)
		if (!receive(websocket))
			return;
	if (!websocket->held)
		loop_timer_start(websocket->soon, 0);
}

static void
destroy(struct websocket *websocket)
{
	stop_watching(websocket);
	socket_free(websocket->connection);
	loop_timer_free(websocket->deadline);
	loop_timer_free(websocket->ping);
	loop_timer_free(websocket->soon);
	buffer_wipe(&websocket->answer);
	buffer_wipe(&websocket->sending);
	websocket_decoder_free(&websocket->decoder);
	memory_free(websocket);
}

static void
leave(struct websocket *websocket)
{
	websocket->is_entered = false;
	if (websocket->is_dead)
		destroy(websocket);
}

static void
tell_sent(struct websocket *websocket)
{
	if (!websocket->has_sent || websocket->stage != STAGE_OPEN)
		return;
	websocket->has_sent = false;
	websocket->events->sent(websocket->argument);
}

static void
ready(void *argument, unsigned events)
{
	struct websocket *websocket = argument;

	websocket->is_entered = true;
	if ((events & LOOP_WRITE) != 0) {
		flush(websocket);
		tell_sent(websocket);
	}
	/* A hang-up is reported whatever is asked for; while held it has to wait. */
	if ((events & LOOP_HANGUP) != 0 && websocket->held)
		stop_watching(websocket);
	else if ((events & (LOOP_READ | LOOP_HANGUP)) != 0 && websocket->stage != STAGE_ENDED)
		receive_all(websocket);
	leave(websocket);
}

static void
soon_expired(void *argument)
{
	struct websocket *websocket = argument;

	if (websocket->stage != STAGE_ENDED) {
		websocket->is_entered = true;
		receive_all(websocket);
		leave(websocket);
		return;
	}
	websocket->end.reason = websocket->reason;
	/* The owner frees the socket in here. */
	websocket->events->ended(websocket->argument, &websocket->end,
	    websocket->failure.code == ERROR_NONE ? NULL : &websocket->failure);
}

static void
deadline_expired(void *argument)
{
	struct websocket *websocket = argument;
	struct error err;

	error_set(&err, ERROR_TIMEOUT, "the server does not answer");
	websocket->end.unsent = websocket->stage == STAGE_CONNECTING;
	end(websocket, &err);
}

static void
ping_expired(void *argument)
{
	struct websocket *websocket = argument;
	struct error err;

	if (!websocket->held && loop_now() - websocket->heard > SILENCE_MAX &&
	    websocket->sent_since < SILENCE_SENT_MAX) {
		error_set(&err, ERROR_TIMEOUT, "the server has fallen silent");
		end(websocket, &err);
		return;
	}
	loop_timer_start(websocket->ping, PING_PERIOD);
	(void)queue_frame(websocket, WEBSOCKET_PING, NULL, 0);
	flush(websocket);
}

static void
connected(void *argument, const struct error *err)
{
	struct websocket *websocket = argument;

	/* The deadline may have come first, its end not yet told. */
	if (websocket->stage == STAGE_ENDED)
		return;
	if (err != NULL) {
		websocket->end.unsent = true;
		end(websocket, err);
		return;
	}
	websocket->stage = STAGE_UPGRADING;
	websocket->heard = loop_now();
	flush(websocket);
}

static void
begin(
    struct websocket *websocket, const struct http_setup *setup, const struct websocket_call *call)
{
	char *host, *path;
	struct error err;

	if (socket_split_url(call->url, &host, &path, &err) != 0) {
		websocket->end.unsent = true;
		end(websocket, &err);
		return;
	}
	websocket_make_key(websocket->key);
	websocket_write_request(
	    &websocket->sending, path, host, websocket->key, call->headers, call->protocols);
	memory_free(host);
	memory_free(path);
	websocket->connection = socket_open(setup, call->url, connected, websocket);
	loop_timer_start(websocket->deadline, call->open_timeout);
}

struct websocket *
websocket_open(const struct http_setup *setup, const struct websocket_call *call)
{
	struct websocket *websocket;

	websocket = memory_zeroed(1, sizeof(*websocket));
	websocket->loop = setup->loop;
	websocket->events = call->events;
	websocket->argument = call->argument;
	buffer_init(&websocket->answer, ANSWER_MAX);
	buffer_init(&websocket->sending, WEBSOCKET_SEND_MAX);
	websocket_decoder_init(&websocket->decoder, call->max_message);
	websocket->deadline = loop_timer_new(setup->loop, deadline_expired, websocket);
	websocket->ping = loop_timer_new(setup->loop, ping_expired, websocket);
	websocket->soon = loop_timer_new(setup->loop, soon_expired, websocket);
	begin(websocket, setup, call);
	return websocket;
}

/* A goodbye is tried once: who frees a socket does not wait for the network. */
static void
say_goodbye(struct websocket *websocket)
{
	static const unsigned char normal[] = { WEBSOCKET_NORMAL >> 8, WEBSOCKET_NORMAL & 255 };

	if (websocket->stage != STAGE_OPEN)
		return;
	(void)queue_frame(websocket, WEBSOCKET_CLOSE, normal, sizeof(normal));
	flush(websocket);
}

void
websocket_free(struct websocket *websocket)
{
	if (websocket == NULL)
		return;
	say_goodbye(websocket);
	websocket->stage = STAGE_ENDED;
	stop_watching(websocket);
	loop_timer_stop(websocket->deadline);
	loop_timer_stop(websocket->ping);
	loop_timer_stop(websocket->soon);
	websocket->is_dead = true;
	if (!websocket->is_entered)
		destroy(websocket);
}

size_t
websocket_room(const struct websocket *websocket)
{
	size_t room;

	if (websocket->stage != STAGE_OPEN)
		return 0;
	/* Control frames have to find room as well. */
	room = buffer_room(&websocket->sending);
	return room < 1024 ? 0 : room - 1024;
}

static void
send_message(
    struct websocket *websocket, enum websocket_opcode opcode, const void *data, size_t size)
{
	if (websocket->stage != STAGE_OPEN)
		return;
	if (queue_frame(websocket, opcode, data, size) != 0)
		log_fatal("more is sent to a WebSocket than it has room for");
	flush(websocket);
}

void
websocket_send(struct websocket *websocket, const void *data, size_t size)
{
	send_message(websocket, WEBSOCKET_BINARY, data, size);
}

void
websocket_send_text(struct websocket *websocket, const char *text)
{
	send_message(websocket, WEBSOCKET_TEXT, text, strlen(text));
}

void
websocket_hold(struct websocket *websocket, bool hold)
{
	if (websocket->held == hold)
		return;
	websocket->held = hold;
	if (!hold) {
		websocket->heard = loop_now();
		/* What TLS holds tells nobody. */
		if (websocket->stage == STAGE_OPEN)
			loop_timer_start(websocket->soon, 0);
	}
	watch(websocket);
}
