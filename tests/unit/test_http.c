/* SPDX-License-Identifier: ISC */
#include <signal.h>
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
#include "tests/unit/http_fixture.h"
#include "tests/unit/http_server.h"

static void
an_answer_is_gathered(void **state)
{
	static const struct script script[] = { { .answer = HELLO } };
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "GET");

	FOLLOW(fixture, script);
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_DONE);
	assert_int_equal(fixture->status, 200);
	assert_string_equal(fixture->text, "hello");
}

static void
a_request_carries_its_headers_and_body_and_nothing_surprising(void **state)
{
	static const struct script script[] = { { .answer = HELLO } };
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "POST");
	char first[] = "X-First: 1", second[] = "Content-Type: a/b",
	     *headers[] = { first, second, NULL };
	char *big = memory_zeroed(2, 1 << 20);

	FOLLOW(fixture, script);
	call.headers = headers;
	http_fixture_perform(fixture, &call);
	assert_non_null(strstr(fixture->head, "POST / HTTP/1.1\r\n"));
	assert_non_null(strstr(fixture->head, "X-First: 1\r\n"));
	assert_non_null(strstr(fixture->head, "Content-Type: a/b\r\n"));
	assert_string_equal(fixture->body, "{\"a\":1}");
	call.body = big;
	call.body_size = 2 << 20;
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->body_size, 2 << 20);
	assert_null(strstr(fixture->head, "Expect"));
	assert_null(strstr(fixture->head, "Accept-Encoding"));
	memory_free(big);
}

static void
connections_are_used_again(void **state)
{
	static const struct script script[] = { { .answer = HELLO } };
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "POST");
	int i;

	FOLLOW(fixture, script);
	for (i = 0; i < 5; i++)
		http_fixture_perform(fixture, &call);
	assert_int_equal(http_server_requests(fixture->server), 5);
	assert_int_equal(http_server_connections(fixture->server), 1);
}

static void
an_answer_over_the_limit_is_refused(void **state)
{
	static const struct script script[] = { { .answer = HELLO } };
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "GET");

	FOLLOW(fixture, script);
	call.max_answer = 5;
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_DONE);
	call.max_answer = 4;
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_BROKEN);
	assert_int_equal(fixture->err.code, ERROR_TOO_LARGE);
}

static void
a_refusal_is_told_in_the_servers_words(void **state)
{
	static const struct script script[] = {
		{ .answer = ANSWER("404 X", "", "23", "{\"message\":\"no such x\"}") },
	};
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "POST");

	FOLLOW(fixture, script);
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_REFUSED);
	assert_int_equal(fixture->status, 404);
	assert_int_equal(fixture->err.code, ERROR_NOT_FOUND);
	assert_string_equal(fixture->err.message, "404: no such x");
	assert_string_equal(fixture->text, "{\"message\":\"no such x\"}");
}

static void
what_must_happen_once_is_sent_once(void **state)
{
	/*
	 * The second request meets a kept connection that breaks:
	 * libcurl would send it again by itself.
	 */
	static const struct script script[] = {
		{ .answer = HELLO },
		{ .close = true },
		{ .answer = HELLO },
	};
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "POST");

	FOLLOW(fixture, script);
	http_fixture_perform(fixture, &call);
	http_fixture_perform(fixture, &call);
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
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "GET");

	FOLLOW(fixture, script);
	http_fixture_perform(fixture, &call);
	call.method = "POST";
	http_fixture_perform(fixture, &call);
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
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "POST");

	FOLLOW(fixture, script);
	call.repeat = HTTP_IDEMPOTENT;
	http_fixture_perform(fixture, &call);
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_DONE);
	assert_string_equal(fixture->body, "{\"a\":1}");
	assert_int_equal(http_server_requests(fixture->server), 4);
}

static void
repeating_has_an_end(void **state)
{
	static const struct script script[] = { { .answer = ANSWER("503 X", "", "0", "") } };
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "GET");

	FOLLOW(fixture, script);
	call.repeat = HTTP_IDEMPOTENT;
	http_fixture_perform(fixture, &call);
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
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "POST");
	int64_t start = loop_now();

	FOLLOW(fixture, script);
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_DONE);
	assert_true(loop_now() - start >= 1000);
}

static void
a_server_that_says_when_is_not_waited_for_beyond_the_deadline(void **state)
{
	static const struct script script[] = {
		{ .answer = ANSWER("429 X", "Retry-After: 10\r\n", "0", "") },
	};
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "POST");

	FOLLOW(fixture, script);
	call.total_timeout = 5000;
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->status, 429);
	assert_int_equal(http_server_requests(fixture->server), 1);
}

static void
a_server_that_only_says_no_is_not_asked_again(void **state)
{
	static const struct script script[] = { { .answer = ANSWER("429 X", "", "0", "") } };
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "POST");

	FOLLOW(fixture, script);
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->status, 429);
	assert_int_equal(http_server_requests(fixture->server), 1);
}

static void
without_a_connection_nothing_was_sent(void **state)
{
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "POST");

	/* Port 1 of the loopback: nobody listens there. */
	call.url = "http://127.0.0.1:1/";
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_UNSENT);
	assert_int_equal(fixture->err.code, ERROR_UNAVAILABLE);
	assert_memory_equal(fixture->err.message, "no connection: ", 15);
}

static void
other_protocols_are_refused(void **state)
{
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "GET");

	call.url = "file:///etc/passwd";
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_UNSENT);
}

static void
redirections_are_not_followed(void **state)
{
	static const struct script script[] = {
		{ .answer = ANSWER("302 X", "Location: /elsewhere\r\n", "0", "") },
	};
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "GET");

	FOLLOW(fixture, script);
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_REFUSED);
	assert_int_equal(http_server_requests(fixture->server), 1);
}

static void
each_phase_has_its_deadline(void **state)
{
	static const struct script silent[] = { { .answer = NULL } };
	static const struct script stalling[] = { { .answer = ANSWER(
							"200 OK", "", "10", "hello") } };
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "POST");

	FOLLOW(fixture, silent);
	call.first_byte_timeout = 50;
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_UNKNOWN);
	assert_int_equal(fixture->err.code, ERROR_TIMEOUT);
	call.first_byte_timeout = 0;
	call.total_timeout = 50;
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_UNKNOWN);
	assert_int_equal(fixture->err.code, ERROR_TIMEOUT);
	FOLLOW(fixture, stalling);
	call.total_timeout = 0;
	call.idle_timeout = 50;
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_BROKEN);
	assert_int_equal(fixture->err.code, ERROR_TIMEOUT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, http_fixture_setup, http_fixture_teardown)

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
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
