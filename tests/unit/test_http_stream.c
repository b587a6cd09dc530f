/* SPDX-License-Identifier: ISC */
#include <signal.h>
#include <stdio.h>
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

#define BULK ((size_t)8 * 1024 * 1024)

static void
an_answer_that_breaks_off_is_no_answer(void **state)
{
	static const struct script script[] = {
		{ .answer = ANSWER("200 OK", "", "10", "hello"), .close = true },
	};
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "GET");

	FOLLOW(fixture, script);
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_BROKEN);
	call.received = http_fixture_received;
	http_fixture_perform(fixture, &call);
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
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "GET");
	struct script script[1] = { { 0 } };
	char *answer = make_bulk_answer(script);

	FOLLOW(fixture, script);
	call.received = http_fixture_received;
	call.idle_timeout = 100;
	fixture->holds = true;
	fixture->request = http_start(fixture->http, &call);
	http_fixture_settle(fixture);
	assert_false(fixture->done);
	assert_int_equal(fixture->notices, 1);
	assert_true(http_received(fixture->request)->length <= 2 * HTTP_STREAM_ROOM);
	assert_true(http_server_backlog(fixture->server) > 0);
	fixture->holds = false;
	http_hold(fixture->request, false);
	http_fixture_wait(fixture, &fixture->done);
	assert_int_equal(fixture->outcome, HTTP_DONE);
	assert_int_equal(fixture->received, BULK);
	memory_free(answer);
}

static void
a_held_stream_does_not_hold_up_others(void **state)
{
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "GET");
	struct script script[2] = { { 0 }, { .answer = HELLO } };
	char *answer = make_bulk_answer(script);
	struct http_request *held;

	FOLLOW(fixture, script);
	call.received = http_fixture_received;
	fixture->holds = true;
	held = fixture->request = http_start(fixture->http, &call);
	http_fixture_settle(fixture);
	call.received = NULL;
	http_fixture_perform(fixture, &call);
	assert_string_equal(fixture->text, "hello");
	http_cancel(held);
	memory_free(answer);
}

static void
room_for_a_long_message_can_be_asked_for(void **state)
{
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "GET");
	struct script script[1] = { { 0 } };
	char *answer = make_bulk_answer(script);

	FOLLOW(fixture, script);
	call.received = http_fixture_received;
	fixture->holds = true;
	fixture->request = http_start(fixture->http, &call);
	http_fixture_settle(fixture);
	http_expect(fixture->request, 1 << 20);
	http_fixture_settle(fixture);
	assert_true(http_received(fixture->request)->length >= 1 << 20);
	assert_true(http_received(fixture->request)->length < (1 << 20) + HTTP_STREAM_ROOM);
	http_cancel(fixture->request);
	memory_free(answer);
}

static void
feed(void *argument)
{
	static const char piece[1000] = { 'x' };
	struct http_fixture *fixture = argument;

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
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "POST");

	FOLLOW(fixture, script);
	call.body = NULL;
	call.wants_more = feed;
	call.body_length = 1000000;
	fixture->request = http_start(fixture->http, &call);
	feed(fixture);
	http_fixture_wait(fixture, &fixture->done);
	assert_int_equal(fixture->body_size, 1000000);
	assert_non_null(strstr(fixture->head, "Content-Length: 1000000"));
	fixture->done = false;
	fixture->sent = 0;
	call.body_length = -1;
	fixture->request = http_start(fixture->http, &call);
	feed(fixture);
	http_fixture_wait(fixture, &fixture->done);
	assert_true(fixture->body_size > 1000000);
	assert_non_null(strstr(fixture->head, "chunked"));
}

static void
a_stream_may_be_cancelled_by_its_consumer(void **state)
{
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "GET");
	struct script script[2] = { { 0 }, { .answer = HELLO } };
	char *answer = make_bulk_answer(script);

	FOLLOW(fixture, script);
	call.received = http_fixture_received;
	fixture->cancels = true;
	fixture->request = http_start(fixture->http, &call);
	http_fixture_settle(fixture);
	assert_null(fixture->request);
	assert_false(fixture->done);
	call.received = NULL;
	http_fixture_perform(fixture, &call);
	assert_int_equal(fixture->outcome, HTTP_DONE);
	memory_free(answer);
}

static void
everything_may_be_freed_by_a_callback(void **state)
{
	static const struct script script[] = { { .answer = HELLO } };
	struct http_fixture *fixture = *state;
	struct http_call call = http_fixture_call(fixture, "GET");

	FOLLOW(fixture, script);
	fixture->frees = true;
	(void)http_start(fixture->http, &call);
	(void)http_start(fixture->http, &call);
	http_fixture_wait(fixture, &fixture->done);
	http_fixture_settle(fixture);
	assert_null(fixture->http);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, http_fixture_setup, http_fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_answer_that_breaks_off_is_no_answer),
		TEST(a_stream_is_held_up_while_its_consumer_waits),
		TEST(a_held_stream_does_not_hold_up_others),
		TEST(room_for_a_long_message_can_be_asked_for),
		TEST(a_body_is_streamed_with_and_without_its_length),
		TEST(a_stream_may_be_cancelled_by_its_consumer),
		TEST(everything_may_be_freed_by_a_callback),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
