/* SPDX-License-Identifier: ISC */
/* The life of a request: attempts, deadlines, and what is made of each end. */
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "drivers/http.h"
#include "drivers/http_answer.h"
#include "drivers/http_multi.h"
#include "drivers/http_private.h"

/* Bytes of a streamed body that wait to be sent. */
#define SEND_ROOM 131072
#define ATTEMPTS_MAX 4
/* ms; doubled with each attempt. */
#define REPEAT_DELAY 200
/* ms; a server that asks for more is not waited for. */
#define RETRY_AFTER_MAX 30000

static void
unlink_request(struct http_request *request)
{
	struct http_request **place;

	for (place = &request->http->requests; *place != request; place = &(*place)->next)
		continue;
	*place = request->next;
}

/* Of one that is in no list any more. */
static void
destroy_request(struct http_request *request)
{
	if (request->easy != NULL) {
		http_multi_remove(request->http->multi, request->easy);
		curl_easy_cleanup(request->easy);
	}
	curl_slist_free_all(request->headers);
	loop_timer_free(request->deadline);
	loop_timer_free(request->again);
	buffer_wipe(&request->sending);
	buffer_wipe(&request->received);
	if (request->body != NULL)
		explicit_bzero(request->body, request->call.body_size);
	memory_free(request->body);
	memory_free(request->next_page);
	memory_free(request->url);
	memory_free(request);
}

static int64_t
left_of(int64_t limit, int64_t since)
{
	return limit == 0 ? INT64_MAX : since + limit - loop_now();
}

/* ms that are left to the request in the phase it is in, and what is said when none are. */
static int64_t
time_left(const struct http_request *request, struct error *err)
{
	const struct http_call *call = &request->call;
	bool sending, waits_for_us, unanswered;
	int64_t total, phase;

	sending = call->wants_more != NULL &&
		  !(request->send_ended && request->sending.length == 0);
	waits_for_us = request->receive_paused || request->held ||
		       (sending && request->send_paused);
	unanswered = request->answer.status == 0 && !sending;
	total = left_of(call->total_timeout, request->started);
	phase = INT64_MAX;
	if (!waits_for_us)
		phase = left_of(
		    unanswered ? call->first_byte_timeout : call->idle_timeout, request->active);
	if (total <= phase)
		error_set(err, ERROR_TIMEOUT, "no answer within %" PRId64 " s",
		    call->total_timeout / 1000);
	else if (unanswered)
		error_set(err, ERROR_TIMEOUT, "no answer within %" PRId64 " s",
		    call->first_byte_timeout / 1000);
	else
		error_set(err, ERROR_TIMEOUT, "nothing was heard for %" PRId64 " s",
		    call->idle_timeout / 1000);
	return total < phase ? total : phase;
}

/* How long until time has to be looked at again. */
static void
start_deadline(struct http_request *request)
{
	const struct http_call *call = &request->call;
	struct error unused;
	int64_t left;

	left = time_left(request, &unused);
	if (left == INT64_MAX)
		left = call->idle_timeout != 0 ? call->idle_timeout : call->first_byte_timeout;
	if (left > 0)
		loop_timer_start(request->deadline, left);
}

/* Did any byte of the request reach the network? */
static bool
was_sent(const struct http_request *request)
{
	long size;

	return curl_easy_getinfo(request->easy, CURLINFO_REQUEST_SIZE, &size) != CURLE_OK ||
	       size > 0;
}

static void
describe_failure(struct http_request *request, CURLcode code, const struct error *timeout)
{
	const char *text;

	text = request->complaint[0] != '\0' ? request->complaint : curl_easy_strerror(code);
	if (timeout != NULL)
		request->err = *timeout;
	else if (request->is_too_large)
		error_set(&request->err, ERROR_TOO_LARGE, "the answer is over %zu bytes",
		    request->call.max_answer);
	else if (request->answer.outcome == HTTP_UNSENT)
		error_set(&request->err, ERROR_UNAVAILABLE, "no connection: %s", text);
	else if (request->answer.outcome == HTTP_BROKEN)
		error_set(&request->err, ERROR_UNAVAILABLE, "the answer broke off: %s", text);
	else
		error_set(&request->err, ERROR_UNAVAILABLE,
		    "the connection broke before an answer came: %s", text);
}

/* Sorts out what became of an attempt. */
static void
judge(struct http_request *request, CURLcode code, const struct error *timeout)
{
	struct http_answer *answer = &request->answer;
	curl_off_t seconds;

	answer->retry_after = request->named_wait;
	if (curl_easy_getinfo(request->easy, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK &&
	    seconds > 0)
		answer->retry_after = (int64_t)seconds * 1000;
	if (answer->status != 0 && !http_transfer_is_success(answer->status)) {
		answer->outcome = HTTP_REFUSED;
		http_answer_explain(answer->status, buffer_data(&request->received),
		    request->received.length, &request->err);
		return;
	}
	if (code == CURLE_OK && timeout == NULL) {
		answer->outcome = HTTP_DONE;
		return;
	}
	if (answer->status != 0)
		answer->outcome = HTTP_BROKEN;
	else
		answer->outcome = was_sent(request) ? HTTP_UNKNOWN : HTTP_UNSENT;
	describe_failure(request, code, timeout);
}

/* ms until the next attempt, or -1 when there is none. */
static int64_t
next_attempt(const struct http_request *request)
{
	int64_t delay;

	/* What is handed out already cannot be taken back. */
	if (request->attempts >= ATTEMPTS_MAX ||
	    !http_answer_may_repeat(
		request->call.repeat, &request->answer, request->call.wants_more == NULL))
		return -1;
	delay = request->answer.retry_after;
	if (delay < 0)
		delay = (int64_t)REPEAT_DELAY << (request->attempts - 1);
	delay += (loop_now() + (int64_t)(uintptr_t)request / 64) % (delay / 4 + 1);
	if (delay > RETRY_AFTER_MAX ||
	    left_of(request->call.total_timeout, request->started) <= delay)
		return -1;
	return delay;
}

static void
log_attempt(const struct http_request *request)
{
	/* The query of a URL may hold what is nobody's business. */
	log_debug("http: %s %.*s: %s", request->call.method, (int)strcspn(request->url, "?"),
	    request->url, request->answer.outcome == HTTP_DONE ? "done" : request->err.message);
}

/* An attempt is over, by libcurl's word or because its time is up. */
static void
end_attempt(struct http_request *request, CURLcode code, const struct error *timeout)
{
	int64_t delay;

	judge(request, code, timeout);
	http_multi_remove(request->http->multi, request->easy);
	log_attempt(request);
	delay = next_attempt(request);
	if (delay >= 0) {
		loop_timer_stop(request->deadline);
		loop_timer_start(request->again, delay);
		return;
	}
	curl_easy_cleanup(request->easy);
	request->easy = NULL;
	loop_timer_stop(request->deadline);
	request->finished = true;
	loop_timer_start(request->http->soon, 0);
}

static void
begin_attempt(struct http_request *request)
{
	request->attempts++;
	request->active = loop_now();
	request->body_sent = 0;
	request->complaint[0] = '\0';
	memset(&request->answer, 0, sizeof(request->answer));
	buffer_consume(&request->received, request->received.length);
	http_multi_add(request->http->multi, request->easy);
	start_deadline(request);
}

static void
again_expired(void *argument)
{
	begin_attempt(argument);
}

static void
deadline_expired(void *argument)
{
	struct http_request *request = argument;
	struct error err;

	if (time_left(request, &err) <= 0)
		end_attempt(request, CURLE_OPERATION_TIMEDOUT, &err);
	else
		start_deadline(request);
}

/* The last thing; the callback may free everything else, http included. */
void
http_request_tell_done(struct http_request *request)
{
	unlink_request(request);
	request->answer.next_page = request->next_page;
	if (!http_transfer_is_streamed(request)) {
		request->answer.body = buffer_data(&request->received);
		request->answer.size = request->received.length;
	}
	request->call.done(request->call.argument, &request->answer,
	    request->answer.outcome == HTTP_DONE ? NULL : &request->err);
	destroy_request(request);
}

void
http_request_end(struct http_request *request, CURLcode code)
{
	end_attempt(request, code, NULL);
}

struct http_request *
http_start(struct http *http, const struct http_call *call)
{
	struct http_request *request;

	request = memory_zeroed(1, sizeof(*request));
	request->http = http;
	request->call = *call;
	request->url = memory_text(call->url);
	if (call->body != NULL) {
		request->body = memory_allocate(call->body_size);
		memcpy(request->body, call->body, call->body_size);
	}
	buffer_init(&request->sending, SEND_ROOM);
	buffer_init(&request->received, SIZE_MAX);
	request->deadline = loop_timer_new(http->loop, deadline_expired, request);
	request->again = loop_timer_new(http->loop, again_expired, request);
	request->started = loop_now();
	request->next = http->requests;
	http->requests = request;
	http_transfer_prepare(request);
	begin_attempt(request);
	return request;
}

void
http_cancel(struct http_request *request)
{
	if (request == NULL)
		return;
	unlink_request(request);
	destroy_request(request);
}

const struct buffer *
http_received(const struct http_request *request)
{
	return &request->received;
}

void
http_consume(struct http_request *request, size_t size)
{
	buffer_consume(&request->received, size);
	request->expected = 0;
	if (request->receive_paused)
		loop_timer_start(request->http->soon, 0);
}

void
http_expect(struct http_request *request, size_t size)
{
	request->expected = size;
	if (request->receive_paused)
		loop_timer_start(request->http->soon, 0);
}

void
http_hold(struct http_request *request, bool hold)
{
	if (request->held && !hold) {
		request->active = loop_now();
		request->has_news = request->received.length > 0;
		loop_timer_start(request->http->soon, 0);
	}
	request->held = hold;
}

size_t
http_send_room(const struct http_request *request)
{
	return buffer_room(&request->sending);
}

void
http_send(struct http_request *request, const void *data, size_t size)
{
	if (buffer_append(&request->sending, data, size) != 0)
		log_fatal("more was sent than there was room for");
	if (request->send_paused)
		loop_timer_start(request->http->soon, 0);
}

void
http_send_end(struct http_request *request)
{
	request->send_ended = true;
	if (request->send_paused)
		loop_timer_start(request->http->soon, 0);
}

char *
http_escape(const char *text)
{
	static const char unreserved[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
	static const char digits[] = "0123456789ABCDEF";
	char *escaped, *out;

	escaped = out = memory_allocate(strlen(text) * 3 + 1);
	for (; *text != '\0'; text++) {
		if (strchr(unreserved, *text) != NULL) {
			*out++ = *text;
			continue;
		}
		*out++ = '%';
		*out++ = digits[(unsigned char)*text >> 4];
		*out++ = digits[(unsigned char)*text & 15];
	}
	*out = '\0';
	return escaped;
}
