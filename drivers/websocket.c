/* SPDX-License-Identifier: ISC */
/*
 * libcurl makes the connection (CURLOPT_CONNECT_ONLY) in a multi handle of its own and then only
 *sends and receives for us: the libcurl of Debian 12 knows no WebSockets, and those that do gather
 * messages without limit.
 *
 *	CONNECTING  libcurl has the loop
 *	UPGRADING   our request is on its way, or its answer
 *	OPEN        frames
 *	ENDED       ended was called or is about to be
 */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <curl/curl.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "drivers/http.h"
#include "drivers/http_answer.h"
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
/* Unless so much was sent meanwhile that it may be waiting for its own reader rather than reading.
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

struct websocket_descriptor {
	struct websocket_descriptor *next;
	struct websocket *websocket;
	int fd;
	struct loop_watch *watch;
};

struct websocket {
	struct loop *loop;
	const struct websocket_events *events;
	void *argument;
	enum stage stage;
	CURLM *multi;
	CURL *easy;
	char complaint[CURL_ERROR_SIZE];
	struct websocket_descriptor *descriptors; /* that libcurl wants watched while it connects */
	struct loop_timer *multi_timer, *deadline, *ping, *soon;
	int fd;
	struct loop_watch *watch;
	char key[WEBSOCKET_KEY_SIZE];
	struct buffer answer;
	struct buffer sending;
	struct websocket_decoder decoder;
	bool held, has_sent;
	int64_t heard;       /* loop_now of the last byte received */
	uint64_t sent_since; /* bytes sent since then */
	bool *freed;         /* set by websocket_free when it is called in a callback */

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
end_by_curl(struct websocket *websocket, CURLcode code, const char *what)
{
	struct error err;

	error_set(&err, ERROR_UNAVAILABLE, "%s: %s", what,
	    websocket->complaint[0] != '\0' ? websocket->complaint : curl_easy_strerror(code));
	end(websocket, &err);
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
		    websocket->loop, websocket->fd, events, ready, websocket);
}

/* A pong or a ping that finds no room is left out: there is enough else on its way. */
static int
queue_frame(
    struct websocket *websocket, enum websocket_opcode opcode, const void *data, size_t size)
{
	unsigned char mask[4];

	if (getrandom(mask, sizeof(mask), 0) != (ssize_t)sizeof(mask))
		log_fatal("no random numbers");
	return websocket_encode(&websocket->sending, opcode, data, size, mask);
}

/* Writes what waits, as far as it goes. */
static void
flush(struct websocket *websocket)
{
	CURLcode code;
	size_t sent;

	while (websocket->sending.length > 0) {
		code = curl_easy_send(websocket->easy, buffer_data(&websocket->sending),
		    websocket->sending.length, &sent);
		if (code == CURLE_AGAIN)
			break;
		if (code != CURLE_OK) {
			end_by_curl(websocket, code, "send");
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

/* Decodes; false when a callback freed the socket. What comes while held is decoded all the same.
 */
static bool
take_frames(struct websocket *websocket, const unsigned char *data, size_t size)
{
	struct websocket_message message;
	bool freed = false;
	struct error err;
	size_t taken;
	int result;

	websocket->freed = &freed;
	while (websocket->stage == STAGE_OPEN) {
		result = websocket_decode(&websocket->decoder, data, size, &taken, &message, &err);
		data += taken;
		size -= taken;
		if (result < 0)
			refuse(websocket, &err);
		if (result <= 0)
			break;
		take_message(websocket, &message);
		if (freed)
			return false;
	}
	websocket->freed = NULL;
	return true;
}

/* The rest of what came with the answer is frames already. */
static bool
take_answer(struct websocket *websocket)
{
	struct websocket_answer answer;
	const unsigned char *rest;
	bool freed = false;
	struct error err;
	size_t body;
	int result;

	result = websocket_read_answer(buffer_data(&websocket->answer), websocket->answer.length,
	    websocket->key, &answer, &err);
	if (result < 0)
		end(websocket, &err);
	if (result <= 0)
		return true;
	body = websocket->answer.length - answer.head_size;
	if (answer.status != 101) {
		if (body >= answer.body_size || buffer_room(&websocket->answer) == 0)
			take_refusal(websocket, &answer);
		return true;
	}
	websocket->stage = STAGE_OPEN;
	loop_timer_stop(websocket->deadline);
	loop_timer_start(websocket->ping, PING_PERIOD);
	websocket->freed = &freed;
	websocket->events->opened(websocket->argument);
	if (freed)
		return false;
	websocket->freed = NULL;
	rest = buffer_data(&websocket->answer) + answer.head_size;
	return take_frames(websocket, rest, body);
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
	CURLcode code;
	size_t got;

	got = sizeof(chunk);
	if (websocket->stage == STAGE_UPGRADING && got > buffer_room(&websocket->answer))
		got = buffer_room(&websocket->answer);
	code = curl_easy_recv(websocket->easy, chunk, got, &got);
	if (code == CURLE_AGAIN)
		return false;
	if (code != CURLE_OK) {
		end_by_curl(websocket, code, "receive");
		return false;
	}
	if (got == 0) {
		take_end(websocket);
		return false;
	}
	websocket->heard = loop_now();
	websocket->sent_since = 0;
	if (websocket->stage == STAGE_OPEN)
		return take_frames(websocket, chunk, got) && websocket->stage == STAGE_OPEN;
	(void)buffer_append(&websocket->answer, chunk, got);
	return take_answer(websocket) && websocket->stage != STAGE_ENDED;
}

/* TLS may hold bytes that no event of the descriptor tells of, so this goes on until there are
 * none. */
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
ready(void *argument, unsigned events)
{
	struct websocket *websocket = argument;
	bool freed = false;

	if ((events & LOOP_WRITE) != 0) {
		flush(websocket);
		if (websocket->has_sent && websocket->stage == STAGE_OPEN) {
			websocket->has_sent = false;
			websocket->freed = &freed;
			websocket->events->sent(websocket->argument);
			if (freed)
				return;
			websocket->freed = NULL;
		}
	}
	/* A hang-up is reported whatever is asked for; while held it has to wait. */
	if ((events & LOOP_HANGUP) != 0 && websocket->held)
		stop_watching(websocket);
	else if ((events & (LOOP_READ | LOOP_HANGUP)) != 0 && websocket->stage != STAGE_ENDED)
		receive_all(websocket);
}

static void
soon_expired(void *argument)
{
	struct websocket *websocket = argument;

	if (websocket->stage != STAGE_ENDED) {
		receive_all(websocket);
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
free_descriptor(struct websocket_descriptor *descriptor)
{
	struct websocket_descriptor **place;

	for (place = &descriptor->websocket->descriptors; *place != descriptor;
	     place = &(*place)->next)
		continue;
	*place = descriptor->next;
	loop_unwatch(descriptor->watch);
	memory_free(descriptor);
}

/* libcurl is through with connecting: from here on the socket is ours to watch. */
static void
connected(struct websocket *websocket, CURLcode code)
{
	curl_socket_t fd = CURL_SOCKET_BAD;

	if (code == CURLE_OK)
		code = curl_easy_getinfo(websocket->easy, CURLINFO_ACTIVESOCKET, &fd);
	if (code != CURLE_OK || fd == CURL_SOCKET_BAD) {
		websocket->end.unsent = true;
		end_by_curl(websocket, code, "connect");
		return;
	}
	loop_timer_stop(websocket->multi_timer);
	while (websocket->descriptors != NULL)
		free_descriptor(websocket->descriptors);
	(void)curl_multi_setopt(websocket->multi, CURLMOPT_SOCKETFUNCTION, NULL);
	(void)curl_multi_setopt(websocket->multi, CURLMOPT_TIMERFUNCTION, NULL);
	websocket->stage = STAGE_UPGRADING;
	websocket->fd = (int)fd;
	websocket->heard = loop_now();
	websocket->watch = loop_watch(websocket->loop, websocket->fd, LOOP_READ, ready, websocket);
	flush(websocket);
}

static void
advance(struct websocket *websocket, curl_socket_t fd, int events)
{
	CURLMsg *message;
	int count;

	(void)curl_multi_socket_action(websocket->multi, fd, events, &count);
	while ((message = curl_multi_info_read(websocket->multi, &count)) != NULL)
		if (message->msg == CURLMSG_DONE && websocket->stage == STAGE_CONNECTING)
			connected(websocket, message->data.result);
}

static void
multi_timer_expired(void *argument)
{
	advance(argument, CURL_SOCKET_TIMEOUT, 0);
}

static void
descriptor_ready(void *argument, unsigned events)
{
	struct websocket_descriptor *descriptor = argument;
	int bits = 0;

	if ((events & LOOP_READ) != 0)
		bits |= CURL_CSELECT_IN;
	if ((events & LOOP_WRITE) != 0)
		bits |= CURL_CSELECT_OUT;
	if ((events & LOOP_HANGUP) != 0)
		bits |= CURL_CSELECT_ERR;
	advance(descriptor->websocket, descriptor->fd, bits);
}

static int
watch_descriptor(CURL *easy, curl_socket_t fd, int what, void *argument, void *assigned)
{
	struct websocket_descriptor *descriptor = assigned;
	struct websocket *websocket = argument;
	unsigned events;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (descriptor != NULL)
			free_descriptor(descriptor);
		return 0;
	}
	events = ((what & CURL_POLL_IN) != 0 ? (unsigned)LOOP_READ : 0) |
		 ((what & CURL_POLL_OUT) != 0 ? (unsigned)LOOP_WRITE : 0);
	if (descriptor != NULL) {
		loop_watch_change(descriptor->watch, events);
		return 0;
	}
	descriptor = memory_zeroed(1, sizeof(*descriptor));
	descriptor->websocket = websocket;
	descriptor->fd = (int)fd;
	descriptor->watch = loop_watch(
	    websocket->loop, descriptor->fd, events, descriptor_ready, descriptor);
	descriptor->next = websocket->descriptors;
	websocket->descriptors = descriptor;
	(void)curl_multi_assign(websocket->multi, fd, descriptor);
	return 0;
}

static int
set_timer(CURLM *multi, long milliseconds, void *argument)
{
	struct websocket *websocket = argument;

	(void)multi;
	if (milliseconds < 0)
		loop_timer_stop(websocket->multi_timer);
	else
		loop_timer_start(websocket->multi_timer, milliseconds);
	return 0;
}

/* Splits the URL into what the request needs; new texts. */
static int
split_url(const char *url, char **host, char **path, struct error *err)
{
	char *name = NULL, *port = NULL, *way = NULL, *query = NULL;
	CURLU *parsed;
	int result = -1;

	parsed = curl_url();
	if (parsed == NULL)
		log_fatal("out of memory");
	if (curl_url_set(parsed, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    curl_url_get(parsed, CURLUPART_HOST, &name, 0) != CURLUE_OK ||
	    curl_url_get(parsed, CURLUPART_PATH, &way, 0) != CURLUE_OK) {
		error_set(err, ERROR_INVALID, "this is no URL: %.100s", url);
	} else {
		(void)curl_url_get(parsed, CURLUPART_PORT, &port, 0);
		(void)curl_url_get(parsed, CURLUPART_QUERY, &query, 0);
		*host = memory_text_format(
		    "%s%s%s", name, port == NULL ? "" : ":", port == NULL ? "" : port);
		*path = memory_text_format(
		    "%s%s%s", way, query == NULL ? "" : "?", query == NULL ? "" : query);
		result = 0;
	}
	curl_free(name);
	curl_free(port);
	curl_free(way);
	curl_free(query);
	curl_url_cleanup(parsed);
	return result;
}

static void
set_options(struct websocket *websocket, const struct http_setup *setup, const char *url)
{
	CURL *easy = websocket->easy;

	(void)curl_easy_setopt(easy, CURLOPT_URL, url);
	(void)curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, websocket->complaint);
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	(void)curl_easy_setopt(easy, CURLOPT_PROXY, setup->proxy == NULL ? "" : setup->proxy);
	(void)curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	if (setup->no_proxy != NULL)
		(void)curl_easy_setopt(easy, CURLOPT_NOPROXY, setup->no_proxy);
	if (setup->ca_file != NULL)
		(void)curl_easy_setopt(easy, CURLOPT_CAINFO, setup->ca_file);
}

static void
begin(
    struct websocket *websocket, const struct http_setup *setup, const struct websocket_call *call)
{
	char *host, *path;
	struct error err;

	if (split_url(call->url, &host, &path, &err) != 0) {
		websocket->end.unsent = true;
		end(websocket, &err);
		return;
	}
	websocket_make_key(websocket->key);
	websocket_write_request(
	    &websocket->sending, path, host, websocket->key, call->headers, call->protocols);
	memory_free(host);
	memory_free(path);
	set_options(websocket, setup, call->url);
	(void)curl_multi_setopt(websocket->multi, CURLMOPT_SOCKETFUNCTION, watch_descriptor);
	(void)curl_multi_setopt(websocket->multi, CURLMOPT_SOCKETDATA, websocket);
	(void)curl_multi_setopt(websocket->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	(void)curl_multi_setopt(websocket->multi, CURLMOPT_TIMERDATA, websocket);
	loop_timer_start(websocket->deadline, call->open_timeout);
	(void)curl_multi_add_handle(websocket->multi, websocket->easy);
}

struct websocket *
websocket_open(const struct http_setup *setup, const struct websocket_call *call)
{
	struct websocket *websocket;

	websocket = memory_zeroed(1, sizeof(*websocket));
	websocket->loop = setup->loop;
	websocket->events = call->events;
	websocket->argument = call->argument;
	websocket->fd = -1;
	buffer_init(&websocket->answer, ANSWER_MAX);
	buffer_init(&websocket->sending, WEBSOCKET_SEND_MAX);
	websocket_decoder_init(&websocket->decoder, call->max_message);
	websocket->multi_timer = loop_timer_new(setup->loop, multi_timer_expired, websocket);
	websocket->deadline = loop_timer_new(setup->loop, deadline_expired, websocket);
	websocket->ping = loop_timer_new(setup->loop, ping_expired, websocket);
	websocket->soon = loop_timer_new(setup->loop, soon_expired, websocket);
	(void)curl_global_init(CURL_GLOBAL_DEFAULT);
	websocket->multi = curl_multi_init();
	websocket->easy = curl_easy_init();
	if (websocket->multi == NULL || websocket->easy == NULL)
		log_fatal("out of memory");
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
	if (websocket->freed != NULL)
		*websocket->freed = true;
	say_goodbye(websocket);
	stop_watching(websocket);
	(void)curl_multi_setopt(websocket->multi, CURLMOPT_SOCKETFUNCTION, NULL);
	(void)curl_multi_setopt(websocket->multi, CURLMOPT_TIMERFUNCTION, NULL);
	while (websocket->descriptors != NULL)
		free_descriptor(websocket->descriptors);
	(void)curl_multi_remove_handle(websocket->multi, websocket->easy);
	curl_easy_cleanup(websocket->easy);
	(void)curl_multi_cleanup(websocket->multi);
	curl_global_cleanup();
	loop_timer_free(websocket->multi_timer);
	loop_timer_free(websocket->deadline);
	loop_timer_free(websocket->ping);
	loop_timer_free(websocket->soon);
	buffer_wipe(&websocket->answer);
	buffer_wipe(&websocket->sending);
	websocket_decoder_free(&websocket->decoder);
	memory_free(websocket);
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

void
websocket_send(struct websocket *websocket, const void *data, size_t size)
{
	if (websocket->stage != STAGE_OPEN)
		return;
	if (queue_frame(websocket, WEBSOCKET_BINARY, data, size) != 0)
		log_fatal("more is sent to a WebSocket than it has room for");
	flush(websocket);
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
