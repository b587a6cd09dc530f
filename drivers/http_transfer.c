/* SPDX-License-Identifier: ISC */
/*
 * One request as libcurl sees it. Its callbacks do nothing but move bytes between libcurl and the
 * request's buffers; users are called afterwards, from the sweep of http.c.
 *
 * Streams run over HTTP/1.1, each on a connection of its own: in one HTTP/2 connection,
 * libcurl 7.88 lets a paused stream block all others, and later releases take megabytes in for it.
 * Everything else uses HTTP/2 where the server offers it.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/buffer.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "drivers/http.h"
#include "drivers/http_multi.h"
#include "drivers/http_private.h"

/* What is kept of the body of a refusal. */
#define REFUSAL_MAX 65536

static size_t
receive_limit(const struct http_request *request)
{
	if (http_transfer_is_streamed(request))
		return request->expected > HTTP_STREAM_ROOM ? request->expected : HTTP_STREAM_ROOM;
	return http_transfer_is_success(request->answer.status) ? request->call.max_answer
								: REFUSAL_MAX;
}

static size_t
take_body(char *data, size_t one, size_t size, void *argument)
{
	struct http_request *request = argument;
	size_t limit, room;

	(void)one;
	request->active = loop_now();
	limit = receive_limit(request);
	room = request->received.length < limit ? limit - request->received.length : 0;
	if (http_transfer_is_streamed(request)) {
		if (room == 0) {
			request->receive_paused = true;
			return CURL_WRITEFUNC_PAUSE;
		}
		request->has_news = true;
		room = size;
	} else if (room < size && http_transfer_is_success(request->answer.status)) {
		request->is_too_large = true;
		return 0;
	}
	(void)buffer_append(&request->received, data, size < room ? size : room);
	return size;
}

/* The value when line is "NAME: value", as a new text. */
static char *
header_value(const char *line, size_t size, const char *name)
{
	size_t length;

	length = strlen(name);
	if (size <= length || strncasecmp(line, name, length) != 0 || line[length] != ':')
		return NULL;
	for (length++; length < size && line[length] == ' '; length++)
		continue;
	while (size > length && strchr(" \r\n", line[size - 1]) != NULL)
		size--;
	return memory_text_bounded(line + length, size - length);
}

/*
 * Daytona says how long to wait in a header with the name of what is exhausted:
 * the shortest counts.
 */
static void
take_named_wait(struct http_request *request, const char *line, size_t size)
{
	static const char start[] = "Retry-After-";
	const char *colon;
	int64_t seconds;
	char *name, *value;

	colon = memchr(line, ':', size);
	if (colon == NULL || size < strlen(start) || strncasecmp(line, start, strlen(start)) != 0)
		return;
	name = memory_text_bounded(line, (size_t)(colon - line));
	value = header_value(line, size, name);
	if (value != NULL && number_parse(value, 0, 86400, &seconds, NULL) == 0 &&
	    (request->named_wait < 0 || seconds * 1000 < request->named_wait))
		request->named_wait = seconds * 1000;
	memory_free(value);
	memory_free(name);
}

static size_t
take_header(char *line, size_t one, size_t size, void *argument)
{
	struct http_request *request = argument;
	long status;
	char *value;

	(void)one;
	request->active = loop_now();
	if (curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK)
		request->answer.status = (int)status;
	value = header_value(line, size, "X-Next-Token");
	if (value != NULL) {
		memory_free(request->next_page);
		request->next_page = value;
	}
	take_named_wait(request, line, size);
	return size;
}

static size_t
give_streamed(struct http_request *request, char *out, size_t room)
{
	size_t size;

	size = request->sending.length < room ? request->sending.length : room;
	if (size == 0 && !request->send_ended) {
		request->send_paused = true;
		return CURL_READFUNC_PAUSE;
	}
	if (size > 0)
		memcpy(out, buffer_data(&request->sending), size);
	buffer_consume(&request->sending, size);
	request->wants_told = !request->send_ended;
	return size;
}

static size_t
give_body(char *out, size_t one, size_t room, void *argument)
{
	struct http_request *request = argument;
	size_t size;

	(void)one;
	request->active = loop_now();
	if (request->call.wants_more != NULL)
		return give_streamed(request, out, room);
	size = request->call.body_size - request->body_sent;
	if (size > room)
		size = room;
	if (size > 0)
		memcpy(out, request->body + request->body_sent, size);
	request->body_sent += size;
	return size;
}

/*
 * libcurl asks for this when it wants to send a request again by itself because a kept connection
 * turned out to be broken, even if the server may have got it. Only what may be done twice is let.
 */
static int
rewind_body(void *argument, curl_off_t offset, int origin)
{
	struct http_request *request = argument;

	if (request->call.repeat != HTTP_IDEMPOTENT || request->call.wants_more != NULL ||
	    offset != 0 || origin != SEEK_SET)
		return CURL_SEEKFUNC_FAIL;
	request->body_sent = 0;
	return CURL_SEEKFUNC_OK;
}

static void
add_header(struct http_request *request, const char *line)
{
	struct curl_slist *list;

	list = curl_slist_append(request->headers, line);
	if (list == NULL)
		log_fatal("out of memory");
	request->headers = list;
}

static void
set_headers(struct http_request *request)
{
	size_t i;

	for (i = 0; request->call.headers != NULL && request->call.headers[i] != NULL; i++)
		add_header(request, request->call.headers[i]);
	/* It would cost a round trip before each big body. */
	add_header(request, "Expect:");
	if (request->call.wants_more != NULL && request->call.body_length < 0)
		add_header(request, "Transfer-Encoding: chunked");
	(void)curl_easy_setopt(request->easy, CURLOPT_HTTPHEADER, request->headers);
}

static void
set_body(struct http_request *request)
{
	const struct http_call *call = &request->call;
	curl_off_t size;

	size = call->wants_more != NULL ? (curl_off_t)call->body_length
					: (curl_off_t)call->body_size;
	if (call->body != NULL || call->wants_more != NULL) {
		(void)curl_easy_setopt(request->easy, CURLOPT_POST, 1L);
		(void)curl_easy_setopt(request->easy, CURLOPT_POSTFIELDSIZE_LARGE, size);
		(void)curl_easy_setopt(request->easy, CURLOPT_READFUNCTION, give_body);
		(void)curl_easy_setopt(request->easy, CURLOPT_READDATA, request);
		(void)curl_easy_setopt(request->easy, CURLOPT_SEEKFUNCTION, rewind_body);
		(void)curl_easy_setopt(request->easy, CURLOPT_SEEKDATA, request);
	} else if (call->repeat == HTTP_ONCE) {
		/*
		 * Without a body rewind_body is not asked; libcurl repeats on old connections only.
		 */
		(void)curl_easy_setopt(request->easy, CURLOPT_FRESH_CONNECT, 1L);
	}
	(void)curl_easy_setopt(request->easy, CURLOPT_CUSTOMREQUEST, call->method);
}

static void
set_transfer(struct http_request *request)
{
	const struct http_call *call = &request->call;
	bool is_stream;

	is_stream = call->received != NULL || call->wants_more != NULL;
	(void)curl_easy_setopt(request->easy, CURLOPT_URL, request->url);
	(void)curl_easy_setopt(request->easy, CURLOPT_PRIVATE, request);
	(void)curl_easy_setopt(request->easy, CURLOPT_ERRORBUFFER, request->complaint);
	(void)curl_easy_setopt(request->easy, CURLOPT_HTTP_VERSION,
	    (long)(is_stream ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
	(void)curl_easy_setopt(request->easy, CURLOPT_PIPEWAIT, is_stream ? 0L : 1L);
	(void)curl_easy_setopt(
	    request->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)call->connect_timeout);
	(void)curl_easy_setopt(request->easy, CURLOPT_WRITEFUNCTION, take_body);
	(void)curl_easy_setopt(request->easy, CURLOPT_WRITEDATA, request);
	(void)curl_easy_setopt(request->easy, CURLOPT_HEADERFUNCTION, take_header);
	(void)curl_easy_setopt(request->easy, CURLOPT_HEADERDATA, request);
}

void
http_transfer_prepare(struct http_request *request)
{
	const struct http *http = request->http;
	struct http_setup setup = { http->loop, http->ca_file, http->proxy, http->no_proxy };

	request->named_wait = -1;
	request->easy = curl_easy_init();
	if (request->easy == NULL)
		log_fatal("out of memory");
	http_multi_prepare(http->multi, request->easy, &setup);
	set_transfer(request);
	set_headers(request);
	set_body(request);
}

void
http_transfer_unpause(struct http_request *request)
{
	bool changed = false;

	if (request->easy == NULL)
		return;
	if (request->receive_paused && request->received.length < receive_limit(request)) {
		request->receive_paused = false;
		changed = true;
	}
	if (request->send_paused && (request->sending.length > 0 || request->send_ended)) {
		request->send_paused = false;
		changed = true;
	}
	if (!changed)
		return;
	request->active = loop_now();
	(void)curl_easy_pause(request->easy, (request->receive_paused ? CURLPAUSE_RECV : 0) |
						 (request->send_paused ? CURLPAUSE_SEND : 0));
}

bool
http_transfer_is_success(int status)
{
	return status >= 200 && status <= 299;
}

bool
http_transfer_is_streamed(const struct http_request *request)
{
	return request->call.received != NULL && http_transfer_is_success(request->answer.status);
}
