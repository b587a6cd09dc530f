/* SPDX-License-Identifier: ISC */
/* The messages between the local driver and its init: round trips, truncation and bad values. */
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/memory.h"
#include "core/base/message.h"
#include "drivers/local_protocol.h"

/* A message with the first size bytes of another, as it would arrive. */
static void
copy_message(struct message *copy, const struct message *message, size_t size)
{
	message_start(copy, message->type);
	assert_int_equal(buffer_append(&copy->payload, buffer_data(&message->payload), size), 0);
}

/* decode must take the whole message, and refuse every shorter one and one with a byte more. */
static void
expect_exact(struct message *message, int (*decode)(struct message *message))
{
	const size_t size = message->payload.length;
	struct message copy;
	size_t length;

	for (length = 0; length <= size; length++) {
		copy_message(&copy, message, length);
		assert_int_equal(decode(&copy), length == size ? 0 : -1);
		message_free(&copy);
	}
	message_put_u8(message, 0);
	copy_message(&copy, message, size + 1);
	assert_int_equal(decode(&copy), -1);
	message_free(&copy);
	message_free(message);
}

static char *
text(const char *constant)
{
	return memory_text(constant);
}

static void
fill_start(struct local_start *start)
{
	memset(start, 0, sizeof(*start));
	start->id = 7;
	start->argv = memory_list_add(memory_list_add(NULL, 0, "sh"), 1, "");
	start->environment = memory_list_add(NULL, 0, "A=b=c");
	start->directory = text("/home");
	start->want_stdin = true;
	start->pty = true;
	start->term = text("xterm");
	start->columns = 80;
	start->rows = 24;
	start->x_pixels = 640;
	start->y_pixels = 480;
	start->keep = true;
	start->grace = 2000;
}

static int
decode_start(struct message *message)
{
	struct local_start start;
	int result;

	result = local_start_decode(message, &start, NULL);
	local_start_free(&start);
	return result;
}

static void
a_start_arrives_as_it_was_sent(void **state)
{
	struct local_start start, got;
	struct message message;
	struct error err;

	(void)state;
	fill_start(&start);
	local_start_encode(&message, &start);
	assert_int_equal(message.type, LOCAL_START);
	assert_int_equal(local_start_decode(&message, &got, &err), 0);
	assert_int_equal(got.id, 7);
	assert_string_equal(got.argv[0], "sh");
	assert_string_equal(got.argv[1], "");
	assert_null(got.argv[2]);
	assert_string_equal(got.environment[0], "A=b=c");
	assert_null(got.environment[1]);
	assert_string_equal(got.directory, "/home");
	assert_string_equal(got.term, "xterm");
	assert_true(got.want_stdin && got.pty && got.keep);
	assert_int_equal(got.columns, 80);
	assert_int_equal(got.rows, 24);
	assert_int_equal(got.x_pixels, 640);
	assert_int_equal(got.y_pixels, 480);
	assert_int_equal(got.grace, 2000);
	message_free(&message);
	local_start_free(&got);
	local_start_free(&start);
}

static void
a_start_is_refused_when_cut_or_too_long(void **state)
{
	struct local_start start;
	struct message message;

	(void)state;
	fill_start(&start);
	local_start_encode(&message, &start);
	local_start_free(&start);
	expect_exact(&message, decode_start);
}

static void
expect_refused(struct local_start *start)
{
	struct message message;

	local_start_encode(&message, start);
	assert_int_equal(decode_start(&message), -1);
	message_free(&message);
	local_start_free(start);
}

static void
a_start_is_refused_with_values_that_make_no_sense(void **state)
{
	struct local_start start;

	(void)state;
	fill_start(&start);
	memory_list_free(start.argv);
	start.argv = NULL;
	expect_refused(&start);
	fill_start(&start);
	start.directory[0] = 'h';
	expect_refused(&start);
	fill_start(&start);
	start.environment[0][1] = ' ';
	start.environment[0][3] = ' ';
	expect_refused(&start);
	fill_start(&start);
	start.columns = 32768;
	expect_refused(&start);
}

static int
decode_stream(struct message *message)
{
	struct local_stream stream;

	return local_stream_decode(message, &stream, NULL);
}

static void
a_stream_makes_the_round_trip(void **state)
{
	struct local_stream stream = { .id = 9, .kind = LOCAL_TERMINAL }, got;
	struct message message;

	(void)state;
	local_stream_encode(&message, &stream);
	assert_int_equal(local_stream_decode(&message, &got, NULL), 0);
	assert_int_equal(got.id, 9);
	assert_int_equal(got.kind, LOCAL_TERMINAL);
	message_free(&message);
	local_stream_encode(&message, &stream);
	expect_exact(&message, decode_stream);
	stream.kind = LOCAL_STREAM_KINDS;
	local_stream_encode(&message, &stream);
	assert_int_equal(decode_stream(&message), -1);
	message_free(&message);
}

static int
decode_started(struct message *message)
{
	struct local_started started;

	return local_started_decode(message, &started, NULL);
}

static void
a_started_makes_the_round_trip(void **state)
{
	struct local_started started = { .id = 1, .pid = 4194304 }, got;
	struct message message;

	(void)state;
	local_started_encode(&message, &started);
	assert_int_equal(local_started_decode(&message, &got, NULL), 0);
	assert_int_equal(got.id, 1);
	assert_int_equal(got.pid, 4194304);
	message_free(&message);
	local_started_encode(&message, &started);
	expect_exact(&message, decode_started);
}

static int
decode_ended(struct message *message)
{
	struct local_ended ended;

	return local_ended_decode(message, &ended, NULL);
}

static void
an_ended_makes_the_round_trip(void **state)
{
	struct local_ended ended = { .id = 3, .signaled = true, .status = 11, .core = true }, got;
	struct message message;

	(void)state;
	local_ended_encode(&message, &ended);
	assert_int_equal(local_ended_decode(&message, &got, NULL), 0);
	assert_int_equal(got.id, 3);
	assert_true(got.signaled && got.core && !got.failed);
	assert_int_equal(got.status, 11);
	message_free(&message);
	local_ended_encode(&message, &ended);
	expect_exact(&message, decode_ended);
	ended.failed = true;
	error_set(&ended.failure, ERROR_DENIED, "no");
	local_ended_encode(&message, &ended);
	assert_int_equal(local_ended_decode(&message, &got, NULL), 0);
	assert_true(got.failed);
	assert_int_equal(got.failure.code, ERROR_DENIED);
	assert_string_equal(got.failure.message, "no");
	message_free(&message);
	local_ended_encode(&message, &ended);
	expect_exact(&message, decode_ended);
}

static void
an_ended_is_refused_with_an_impossible_status(void **state)
{
	struct local_ended ended = { .status = 256 };
	struct message message;

	(void)state;
	local_ended_encode(&message, &ended);
	assert_int_equal(decode_ended(&message), -1);
	message_free(&message);
	ended.signaled = true;
	ended.status = 65;
	local_ended_encode(&message, &ended);
	assert_int_equal(decode_ended(&message), -1);
	message_free(&message);
}

static int
decode_signal(struct message *message)
{
	struct local_signal signal;

	return local_signal_decode(message, &signal, NULL);
}

static void
a_signal_makes_the_round_trip(void **state)
{
	struct local_signal signal = { .id = 5, .number = 64 }, got;
	struct message message;

	(void)state;
	local_signal_encode(&message, &signal);
	assert_int_equal(local_signal_decode(&message, &got, NULL), 0);
	assert_int_equal(got.id, 5);
	assert_int_equal(got.number, 64);
	message_free(&message);
	local_signal_encode(&message, &signal);
	expect_exact(&message, decode_signal);
	for (signal.number = 0; signal.number <= 65; signal.number += 65) {
		local_signal_encode(&message, &signal);
		assert_int_equal(decode_signal(&message), -1);
		message_free(&message);
	}
}

static int
decode_copy(struct message *message)
{
	struct local_copy copy;
	int result;

	result = local_copy_decode(message, &copy, NULL);
	local_copy_free(&copy);
	return result;
}

static void
a_copy_makes_the_round_trip(void **state)
{
	struct local_copy copy = { .id = 6, .write = true, .size = UINT64_MAX }, got;
	struct message message;

	(void)state;
	copy.path = text("/tmp/\xff");
	local_copy_encode(&message, &copy);
	assert_int_equal(local_copy_decode(&message, &got, NULL), 0);
	assert_int_equal(got.id, 6);
	assert_true(got.write);
	assert_true(got.size == UINT64_MAX);
	assert_string_equal(got.path, "/tmp/\xff");
	local_copy_free(&got);
	message_free(&message);
	local_copy_encode(&message, &copy);
	expect_exact(&message, decode_copy);
	copy.path[0] = 't';
	local_copy_encode(&message, &copy);
	assert_int_equal(decode_copy(&message), -1);
	message_free(&message);
	local_copy_free(&copy);
	local_copy_encode(&message, &copy);
	assert_int_equal(decode_copy(&message), -1);
	message_free(&message);
}

static int
decode_done(struct message *message)
{
	struct local_done done;

	return local_done_decode(message, &done, NULL);
}

static void
a_done_makes_the_round_trip(void **state)
{
	struct local_done done = { .id = 8 }, got;
	struct message message;

	(void)state;
	error_set(&done.failure, ERROR_NOT_FOUND, "where");
	local_done_encode(&message, &done);
	assert_int_equal(local_done_decode(&message, &got, NULL), 0);
	assert_int_equal(got.id, 8);
	assert_int_equal(got.failure.code, ERROR_NOT_FOUND);
	message_free(&message);
	local_done_encode(&message, &done);
	expect_exact(&message, decode_done);
	error_clear(&done.failure);
	local_done_encode(&message, &done);
	assert_int_equal(local_done_decode(&message, &got, NULL), 0);
	assert_int_equal(got.failure.code, ERROR_NONE);
	message_free(&message);
}

static int
decode_id(struct message *message)
{
	uint32_t id;

	return local_id_decode(message, &id, NULL);
}

static void
an_id_makes_the_round_trip(void **state)
{
	struct message message;
	uint32_t id;

	(void)state;
	local_id_encode(&message, LOCAL_CANCEL, UINT32_MAX);
	assert_int_equal(message.type, LOCAL_CANCEL);
	assert_int_equal(local_id_decode(&message, &id, NULL), 0);
	assert_int_equal(id, UINT32_MAX);
	message_free(&message);
	local_id_encode(&message, LOCAL_GONE, 1);
	expect_exact(&message, decode_id);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_arrives_as_it_was_sent),
		cmocka_unit_test(a_start_is_refused_when_cut_or_too_long),
		cmocka_unit_test(a_start_is_refused_with_values_that_make_no_sense),
		cmocka_unit_test(a_stream_makes_the_round_trip),
		cmocka_unit_test(a_started_makes_the_round_trip),
		cmocka_unit_test(an_ended_makes_the_round_trip),
		cmocka_unit_test(an_ended_is_refused_with_an_impossible_status),
		cmocka_unit_test(a_signal_makes_the_round_trip),
		cmocka_unit_test(a_copy_makes_the_round_trip),
		cmocka_unit_test(a_done_makes_the_round_trip),
		cmocka_unit_test(an_id_makes_the_round_trip),
	};

	return cmocka_run_group_tests_name("local_protocol", tests, NULL, NULL);
}
