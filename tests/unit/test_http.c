/* SPDX-License-Identifier: ISC */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "drivers/http.h"
#include "drivers/http_answer.h"
#include "tests/unit/http_server.h"

#define BULK ((size_t)8 * 1024 * 1024)
#define ANSWER(status, headers, length, body)                                                      \
	"HTTP/1.1 " status "\r\n" headers "Content-Length: " length "\r\n\r\n" body
#define HELLO ANSWER("200 OK", "", "5", "hello")

/* What the server does: answers[N] to the Nth request, the last one to all that follow. */
struct script {
	const char *answer;
	size_t size;
	bool close;
};

struct fixture {
	struct loop *loop;
	struct http *http;
	struct http_server *server;
	const struct script *script;
	size_t script_length;
	char *head, *body; /* of the last request */
	size_t body_size;

	struct http_request *request;
	bool done, holds, cancels, frees;
	enum http_outcome outcome;
	int status;
	struct error err;
	char text[256]; /* of a gathered answer */
	size_t received, sent;
	unsigned notices;
};

static const char *
follow_script(
    void *argument, const struct http_exchange *exchange, size_t *size, bool *close)
{
	struct fixture *fixture = argument;
	const struct script *step;
	size_t index = exchange->number - 1;

	memory_free(fixture->head);
	memory_free(fixture->body);
	fixture->head = memory_text(exchange->head);
	fixture->body = memory_text_bounded(exchange->body, exchange->body_size);
	fixture->body_size = exchange->body_size;
	if (index >= fixture->script_length)
		index = fixture->script_length - 1;
	step = &fixture->script[index];
	*size = step->size;
	*close = step->close;
	return step->answer;
}

static int
setup(void **state)
{
	struct http_setup setup = { 0 };
	struct fixture *fixture;
	struct error err;

	fixture = memory_zeroed(1, sizeof(*fixture));
	fixture->loop = setup.loop = loop_new(&err);
	fixture->http = http_new(&setup, &err);
	assert_non_null(fixture->http);
	fixture->server = http_server_new(fixture->loop, follow_script, fixture);
	*state = fixture;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *fixture = *state;

	http_free(fixture->http);
	http_server_free(fixture->server);
	loop_free(fixture->loop);
	memory_free(fixture->head);
	memory_free(fixture->body);
	memory_free(fixture);
	return 0;
}

static void
request_done(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct fixture *fixture = argument;

	assert_false(fixture->done);
	fixture->done = true;
	fixture->request = NULL;
	fixture->outcome = answer->outcome;
	fixture->status = answer->status;
	error_clear(&fixture->err);
	if (err != NULL)
		fixture->err = *err;
	assert_true((err == NULL) == (answer->outcome == HTTP_DONE));
	snprintf(fixture->text, sizeof(fixture->text), "%.*s", (int)answer->size,
	    answer->body == NULL ? "" : (const char *)answer->body);
	if (fixture->frees) {
		http_free(fixture->http);
		fixture->http = NULL;
	}
}

static void
request_received(void *argument)
{
	struct fixture *fixture = argument;
	size_t size = http_received(fixture->request)->length;

	fixture->notices++;
	if (fixture->holds) {
		http_hold(fixture->request, true);
		return;
	}
	fixture->received += size;
	http_consume(fixture->request, size);
	if (fixture->cancels) {
		http_cancel(fixture->request);
		fixture->request = NULL;
	}
}

static void
follow(struct fixture *fixture, const struct script *script, size_t length)
{
	fixture->script = script;
	fixture->script_length = length;
}
#define FOLLOW(fixture, script) follow(fixture, script, sizeof(script) / sizeof((script)[0]))

static struct http_call
make_call(struct fixture *fixture, const char *method)
{
	struct http_call call = { 0 };

	call.method = method;
	call.url = http_server_url(fixture->server);
	call.max_answer = 1000;
	call.connect_timeout = 20000;
	call.done = request_done;
	call.argument = fixture;
	if (strcmp(method, "POST") == 0) {
		call.body = "{\"a\":1}";
		call.body_size = 7;
	}
	return call;
}

static void
wait_for(struct fixture *fixture, const bool *flag)
{
	int64_t end = loop_now() + 20000;

	while (!*flag) {
		assert_int_equal(loop_dispatch(fixture->loop, 1000, NULL), 0);
		if (loop_now() > end)
			fail_msg("waited in vain");
	}
}

/* Dispatches until nothing happens any more. */
static void
settle(struct fixture *fixture)
{
	int i;

	for (i = 0; i < 300; i++)
		assert_int_equal(loop_dispatch(fixture->loop, 1, NULL), 0);
}

static void
perform(struct fixture *fixture, const struct http_call *call)
{
	fixture->done = false;
	fixture->request = http_start(fixture->http, call);
	assert_false(fixture->done);
	wait_for(fixture, &fixture->done);
}

static void
an_answer_is_gathered(void **state)
{
	static const struct script script[] = { { .answer = HELLO } };
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "GET");

	FOLLOW(fixture, script);
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_DONE);
	assert_int_equal(fixture->status, 200);
	assert_string_equal(fixture->text, "hello");
}

static void
a_request_carries_its_headers_and_body_and_nothing_surprising(void **state)
{
	static const struct script script[] = { { .answer = HELLO } };
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "POST");
	char first[] = "X-First: 1", second[] = "Content-Type: a/b", *headers[] = { first, second, NULL };
	char *big = memory_zeroed(2, 1 << 20);

	FOLLOW(fixture, script);
	call.headers = headers;
	perform(fixture, &call);
	assert_non_null(strstr(fixture->head, "POST / HTTP/1.1\r\n"));
	assert_non_null(strstr(fixture->head, "X-First: 1\r\n"));
	assert_non_null(strstr(fixture->head, "Content-Type: a/b\r\n"));
	assert_string_equal(fixture->body, "{\"a\":1}");
	call.body = big;
	call.body_size = 2 << 20;
	perform(fixture, &call);
	assert_int_equal(fixture->body_size, 2 << 20);
	assert_null(strstr(fixture->head, "Expect"));
	assert_null(strstr(fixture->head, "Accept-Encoding"));
	memory_free(big);
}

static void
connections_are_used_again(void **state)
{
	static const struct script script[] = { { .answer = HELLO } };
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "POST");
	int i;

	FOLLOW(fixture, script);
	for (i = 0; i < 5; i++)
		perform(fixture, &call);
	assert_int_equal(http_server_requests(fixture->server), 5);
	assert_int_equal(http_server_connections(fixture->server), 1);
}

static void
an_answer_over_the_limit_is_refused(void **state)
{
	static const struct script script[] = { { .answer = HELLO } };
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "GET");

	FOLLOW(fixture, script);
	call.max_answer = 5;
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_DONE);
	call.max_answer = 4;
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_BROKEN);
	assert_int_equal(fixture->err.code, ERROR_TOO_LARGE);
}

static void
a_refusal_is_told_in_the_servers_words(void **state)
{
	static const struct script script[] = {
		{ .answer = ANSWER("404 X", "", "23", "{\"message\":\"no such x\"}") },
	};
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "POST");

	FOLLOW(fixture, script);
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_REFUSED);
	assert_int_equal(fixture->status, 404);
	assert_int_equal(fixture->err.code, ERROR_NOT_FOUND);
	assert_string_equal(fixture->err.message, "404: no such x");
	assert_string_equal(fixture->text, "{\"message\":\"no such x\"}");
}

static void
what_must_happen_once_is_sent_once(void **state)
{
	/* The second request meets a kept connection that breaks: libcurl would send it again by itself. */
	static const struct script script[] = {
		{ .answer = HELLO },
		{ .close = true },
		{ .answer = HELLO },
	};
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "POST");

	FOLLOW(fixture, script);
	perform(fixture, &call);
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_UNKNOWN);
	assert_int_equal(http_server_requests(fixture->server), 2);
}

static void
what_must_happen_once_is_sent_once_without_a_body_too(void **state)
{
	static const struct script script[] = {
		{ .answer = HELLO },
		{ .close = true },
		{ .answer = HELLO },
	};
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "GET");

	FOLLOW(fixture, script);
	perform(fixture, &call);
	call.method = "POST";
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_UNKNOWN);
	assert_int_equal(http_server_requests(fixture->server), 2);
}

static void
what_is_idempotent_is_sent_again(void **state)
{
	static const struct script script[] = {
		{ .answer = HELLO },
		{ .close = true },
		{ .answer = ANSWER("502 X", "", "0", "") },
		{ .answer = HELLO },
	};
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "POST");

	FOLLOW(fixture, script);
	call.repeat = HTTP_IDEMPOTENT;
	perform(fixture, &call);
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_DONE);
	assert_string_equal(fixture->body, "{\"a\":1}");
	assert_int_equal(http_server_requests(fixture->server), 4);
}

static void
repeating_has_an_end(void **state)
{
	static const struct script script[] = { { .answer = ANSWER("503 X", "", "0", "") } };
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "GET");

	FOLLOW(fixture, script);
	call.repeat = HTTP_IDEMPOTENT;
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_REFUSED);
	assert_string_equal(fixture->err.message, "503: service unavailable");
	assert_int_equal(http_server_requests(fixture->server), 4);
}

static void
a_server_that_says_when_is_asked_again_then(void **state)
{
	static const struct script script[] = {
		{ .answer = ANSWER("429 X", "Retry-After: 1\r\n", "0", "") },
		{ .answer = HELLO },
	};
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "POST");
	int64_t start = loop_now();

	FOLLOW(fixture, script);
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_DONE);
	assert_true(loop_now() - start >= 1000);
}

static void
a_server_that_says_when_is_not_waited_for_beyond_the_deadline(void **state)
{
	static const struct script script[] = {
		{ .answer = ANSWER("429 X", "Retry-After: 10\r\n", "0", "") },
	};
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "POST");

	FOLLOW(fixture, script);
	call.total_timeout = 5000;
	perform(fixture, &call);
	assert_int_equal(fixture->status, 429);
	assert_int_equal(http_server_requests(fixture->server), 1);
}

static void
a_server_that_only_says_no_is_not_asked_again(void **state)
{
	static const struct script script[] = { { .answer = ANSWER("429 X", "", "0", "") } };
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "POST");

	FOLLOW(fixture, script);
	perform(fixture, &call);
	assert_int_equal(fixture->status, 429);
	assert_int_equal(http_server_requests(fixture->server), 1);
}

static void
without_a_connection_nothing_was_sent(void **state)
{
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "POST");

	/* Port 1 of the loopback: nobody listens there. */
	call.url = "http://127.0.0.1:1/";
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_UNSENT);
	assert_int_equal(fixture->err.code, ERROR_UNAVAILABLE);
	assert_memory_equal(fixture->err.message, "no connection: ", 15);
}

static void
other_protocols_are_refused(void **state)
{
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "GET");

	call.url = "file:///etc/passwd";
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_UNSENT);
}

static void
redirections_are_not_followed(void **state)
{
	static const struct script script[] = {
		{ .answer = ANSWER("302 X", "Location: /elsewhere\r\n", "0", "") },
	};
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "GET");

	FOLLOW(fixture, script);
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_REFUSED);
	assert_int_equal(http_server_requests(fixture->server), 1);
}

static void
each_phase_has_its_deadline(void **state)
{
	static const struct script silent[] = { { .answer = NULL } };
	static const struct script stalling[] = { { .answer = ANSWER("200 OK", "", "10", "hello") } };
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "POST");

	FOLLOW(fixture, silent);
	call.first_byte_timeout = 50;
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_UNKNOWN);
	assert_int_equal(fixture->err.code, ERROR_TIMEOUT);
	call.first_byte_timeout = 0;
	call.total_timeout = 50;
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_UNKNOWN);
	assert_int_equal(fixture->err.code, ERROR_TIMEOUT);
	FOLLOW(fixture, stalling);
	call.total_timeout = 0;
	call.idle_timeout = 50;
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_BROKEN);
	assert_int_equal(fixture->err.code, ERROR_TIMEOUT);
}

static void
an_answer_that_breaks_off_is_no_answer(void **state)
{
	static const struct script script[] = {
		{ .answer = ANSWER("200 OK", "", "10", "hello"), .close = true },
	};
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "GET");

	FOLLOW(fixture, script);
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_BROKEN);
	call.received = request_received;
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_BROKEN);
	assert_int_equal(fixture->received, 5);
}

static char *
make_bulk_answer(struct script *step)
{
	char *answer = memory_zeroed(1, BULK + 100);
	int length;

	length = snprintf(answer, 100, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", BULK);
	step->answer = answer;
	step->size = (size_t)length + BULK;
	return answer;
}

static void
a_stream_is_held_up_while_its_consumer_waits(void **state)
{
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "GET");
	struct script script[1] = { { 0 } };
	char *answer = make_bulk_answer(script);

	FOLLOW(fixture, script);
	call.received = request_received;
	call.idle_timeout = 100;
	fixture->holds = true;
	fixture->request = http_start(fixture->http, &call);
	settle(fixture);
	assert_false(fixture->done);
	assert_int_equal(fixture->notices, 1);
	assert_true(http_received(fixture->request)->length <= 2 * HTTP_STREAM_ROOM);
	assert_true(http_server_backlog(fixture->server) > 0);
	fixture->holds = false;
	http_hold(fixture->request, false);
	wait_for(fixture, &fixture->done);
	assert_int_equal(fixture->outcome, HTTP_DONE);
	assert_int_equal(fixture->received, BULK);
	memory_free(answer);
}

static void
a_held_stream_does_not_hold_up_others(void **state)
{
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "GET");
	struct script script[2] = { { 0 }, { .answer = HELLO } };
	char *answer = make_bulk_answer(script);
	struct http_request *held;

	FOLLOW(fixture, script);
	call.received = request_received;
	fixture->holds = true;
	held = fixture->request = http_start(fixture->http, &call);
	settle(fixture);
	call.received = NULL;
	perform(fixture, &call);
	assert_string_equal(fixture->text, "hello");
	http_cancel(held);
	memory_free(answer);
}

static void
room_for_a_long_message_can_be_asked_for(void **state)
{
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "GET");
	struct script script[1] = { { 0 } };
	char *answer = make_bulk_answer(script);

	FOLLOW(fixture, script);
	call.received = request_received;
	fixture->holds = true;
	fixture->request = http_start(fixture->http, &call);
	settle(fixture);
	http_expect(fixture->request, 1 << 20);
	settle(fixture);
	assert_true(http_received(fixture->request)->length >= 1 << 20);
	assert_true(http_received(fixture->request)->length < (1 << 20) + HTTP_STREAM_ROOM);
	http_cancel(fixture->request);
	memory_free(answer);
}

static void
feed(void *argument)
{
	static const char piece[1000] = { 'x' };
	struct fixture *fixture = argument;

	while (fixture->sent < 1000000 && http_send_room(fixture->request) >= sizeof(piece)) {
		http_send(fixture->request, piece, sizeof(piece));
		fixture->sent += sizeof(piece);
	}
	if (fixture->sent == 1000000)
		http_send_end(fixture->request);
}

static void
a_body_is_streamed_with_and_without_its_length(void **state)
{
	static const struct script script[] = { { .answer = HELLO } };
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "POST");

	FOLLOW(fixture, script);
	call.body = NULL;
	call.wants_more = feed;
	call.body_length = 1000000;
	fixture->request = http_start(fixture->http, &call);
	feed(fixture);
	wait_for(fixture, &fixture->done);
	assert_int_equal(fixture->body_size, 1000000);
	assert_non_null(strstr(fixture->head, "Content-Length: 1000000"));
	fixture->done = false;
	fixture->sent = 0;
	call.body_length = -1;
	fixture->request = http_start(fixture->http, &call);
	feed(fixture);
	wait_for(fixture, &fixture->done);
	assert_true(fixture->body_size > 1000000);
	assert_non_null(strstr(fixture->head, "chunked"));
}

static void
a_stream_may_be_cancelled_by_its_consumer(void **state)
{
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "GET");
	struct script script[2] = { { 0 }, { .answer = HELLO } };
	char *answer = make_bulk_answer(script);

	FOLLOW(fixture, script);
	call.received = request_received;
	fixture->cancels = true;
	fixture->request = http_start(fixture->http, &call);
	settle(fixture);
	assert_null(fixture->request);
	assert_false(fixture->done);
	call.received = NULL;
	perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_DONE);
	memory_free(answer);
}

static void
everything_may_be_freed_by_a_callback(void **state)
{
	static const struct script script[] = { { .answer = HELLO } };
	struct fixture *fixture = *state;
	struct http_call call = make_call(fixture, "GET");

	FOLLOW(fixture, script);
	fixture->frees = true;
	(void)http_start(fixture->http, &call);
	(void)http_start(fixture->http, &call);
	wait_for(fixture, &fixture->done);
	settle(fixture);
	assert_null(fixture->http);
}

static void
explain(int status, const char *body, const char *expected)
{
	struct error err;

	http_answer_explain(status, (const unsigned char *)body, strlen(body), &err);
	assert_string_equal(err.message, expected);
}

static void
any_refusal_becomes_one_line(void **state)
{
	char longest[2000], *end;
	struct error err;

	(void)state;
	explain(401, "{\"code\":401,\"message\":\"Invalid API key,\\n  please\"}", "401: Invalid API key, please");
	explain(502, "<!DOCTYPE html>\n<html><TITLE>502 Server\nError</title>", "502: 502 Server Error");
	explain(502, "<html><h1>Bad <b>", "502: Bad");
	explain(502, "<html>", "502: bad gateway");
	explain(503, "", "503: service unavailable");
	explain(599, "", "599: no explanation was given");
	explain(400, "plain text\r\n", "400: plain text");
	explain(400, "{\"error\":{\"message\":\"inner\"}}", "400: inner");
	explain(400, "{\"error\":\"flat\"}", "400: flat");
	explain(400, "{\"other\":1}", "400: bad request");
	explain(400, "{\"message\":\"\\u001b[31mred\\u0000hidden\"}", "400: bad request");
	explain(400, "\x1b[2J\xc2\x9b" "31mred \xff" "blood", "400: [2J31mred blood");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	http_answer_explain(400, (const unsigned char *)longest, sizeof(longest) - 1, &err);
	assert_true(strlen(err.message) < 260);
	end = err.message + strlen(err.message) - 3;
	assert_string_equal(end, "...");
}

static void
escaping_leaves_only_unreserved_characters(void **state)
{
	char *text;

	(void)state;
	text = http_escape("/a b/~\xff%&.-_");
	assert_string_equal(text, "%2Fa%20b%2F~%FF%25%26.-_");
	memory_free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_answer_is_gathered),
		TEST(a_request_carries_its_headers_and_body_and_nothing_surprising),
		TEST(connections_are_used_again),
		TEST(an_answer_over_the_limit_is_refused),
		TEST(a_refusal_is_told_in_the_servers_words),
		TEST(what_must_happen_once_is_sent_once),
		TEST(what_must_happen_once_is_sent_once_without_a_body_too),
		TEST(what_is_idempotent_is_sent_again),
		TEST(repeating_has_an_end),
		TEST(a_server_that_says_when_is_asked_again_then),
		TEST(a_server_that_says_when_is_not_waited_for_beyond_the_deadline),
		TEST(a_server_that_only_says_no_is_not_asked_again),
		TEST(without_a_connection_nothing_was_sent),
		TEST(other_protocols_are_refused),
		TEST(redirections_are_not_followed),
		TEST(each_phase_has_its_deadline),
		TEST(an_answer_that_breaks_off_is_no_answer),
		TEST(a_stream_is_held_up_while_its_consumer_waits),
		TEST(a_held_stream_does_not_hold_up_others),
		TEST(room_for_a_long_message_can_be_asked_for),
		TEST(a_body_is_streamed_with_and_without_its_length),
		TEST(a_stream_may_be_cancelled_by_its_consumer),
		TEST(everything_may_be_freed_by_a_callback),
		cmocka_unit_test(any_refusal_becomes_one_line),
		cmocka_unit_test(escaping_leaves_only_unreserved_characters),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
