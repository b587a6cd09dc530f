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
#include "drivers/connect.h"
#include "drivers/e2b_event.h"

#define ENVELOPE(flags, size, payload) flags "\0\0\0" size payload

static void
encoded_envelopes_are_decoded(void **state)
{
	struct connect_frame frame;
	struct buffer buffer;
	struct error err;
	size_t needed;

	(void)state;
	buffer_init(&buffer, 64);
	assert_int_equal(connect_encode(&buffer, "{\"a\":1}", 7), 0);
	assert_int_equal(connect_encode(&buffer, "", 0), 0);
	assert_int_equal(
	    connect_decode(buffer_data(&buffer), buffer.length, &frame, &needed, &err), 1);
	assert_int_equal(frame.size, 7);
	assert_memory_equal(frame.payload, "{\"a\":1}", 7);
	assert_false(frame.is_end);
	assert_int_equal(needed, CONNECT_HEADER_SIZE + 7);
	buffer_consume(&buffer, needed);
	assert_int_equal(
	    connect_decode(buffer_data(&buffer), buffer.length, &frame, &needed, &err), 1);
	assert_int_equal(frame.size, 0);
	buffer_free(&buffer);
}

static void
encode_refuses_what_does_not_fit(void **state)
{
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer, 8);
	assert_int_equal(connect_encode(&buffer, "1234", 4), -1);
	assert_int_equal(buffer.length, 0);
	assert_int_equal(connect_encode(&buffer, "123", 3), 0);
	buffer_free(&buffer);
}

static void
an_envelope_split_anywhere_is_waited_for(void **state)
{
	static const char whole[] = ENVELOPE("\0", "\x09", "{\"a\": 12}");
	struct connect_frame frame;
	struct error err;
	size_t size, needed;

	(void)state;
	for (size = 0; size < sizeof(whole) - 1; size++) {
		assert_int_equal(connect_decode(whole, size, &frame, &needed, &err), 0);
		assert_int_equal(needed, size < CONNECT_HEADER_SIZE ? CONNECT_HEADER_SIZE : 14);
	}
	assert_int_equal(connect_decode(whole, size, &frame, &needed, &err), 1);
}

static void
a_compressed_message_is_refused(void **state)
{
	struct connect_frame frame;
	struct error err;
	size_t needed;

	(void)state;
	assert_int_equal(connect_decode(ENVELOPE("\1", "\2", "{}"), 7, &frame, &needed, &err), -1);
	assert_int_equal(connect_decode(ENVELOPE("\3", "\2", "{}"), 7, &frame, &needed, &err), -1);
}

static void
a_message_over_the_limit_is_refused_before_it_is_there(void **state)
{
	struct connect_frame frame;
	struct error err;
	size_t needed;

	(void)state;
	assert_int_equal(connect_decode("\0\0\x10\0\0", 5, &frame, &needed, &err), 0);
	assert_int_equal(needed, CONNECT_HEADER_SIZE + CONNECT_PAYLOAD_MAX);
	assert_int_equal(connect_decode("\0\0\x10\0\1", 5, &frame, &needed, &err), -1);
	assert_int_equal(err.code, ERROR_TOO_LARGE);
	assert_int_equal(connect_decode("\0\xff\xff\xff\xff", 5, &frame, &needed, &err), -1);
}

static int
decode_end(const char *payload, struct error *err)
{
	struct connect_frame frame = { 0 };

	frame.payload = (const unsigned char *)payload;
	frame.size = strlen(payload);
	frame.is_end = true;
	return connect_decode_end(&frame, err);
}

static void
an_end_of_stream_tells_success_or_the_error(void **state)
{
	struct error err;

	(void)state;
	assert_int_equal(decode_end("{}", &err), 0);
	assert_int_equal(decode_end("{\"metadata\":{\"k\":[\"v\"]}}\n", &err), 0);
	assert_int_equal(
	    decode_end(
		"{\"error\":{\"code\":\"not_found\",\"message\":\"no\\nsuch\\u001bthing\"}}", &err),
	    -1);
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	assert_string_equal(err.message, "no such thing");
	assert_int_equal(decode_end("{\"error\":{}}", &err), -1);
	assert_string_equal(err.message, "unknown");
	assert_int_equal(decode_end("{\"error\":{\"code\":7}}", &err), -1);
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
}

static void
a_malformed_end_of_stream_is_no_success(void **state)
{
	static const char *const malformed[] = { "", "{", "[]", "null", "{}{}", "{} x", "//{}" };
	struct error err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
		if (decode_end(malformed[i], &err) == 0)
			fail_msg("taken for a success: %s", malformed[i]);
}

static int
decode_event(const char *json, struct e2b_event *event)
{
	struct error err;

	return e2b_event_decode(json, strlen(json), event, &err);
}

static void
a_start_tells_the_pid(void **state)
{
	struct e2b_event event;

	(void)state;
	assert_int_equal(decode_event("{\"event\": {\"start\":{\"pid\":4294967295}}}", &event), 0);
	assert_int_equal(event.kind, E2B_EVENT_START);
	assert_int_equal(event.pid, UINT32_MAX);
	assert_int_equal(decode_event("{\"event\":{\"start\":{\"pid\":0}}}", &event), -1);
	assert_int_equal(decode_event("{\"event\":{\"start\":{\"pid\":4294967296}}}", &event), -1);
	assert_int_equal(decode_event("{\"event\":{\"start\":{\"pid\":\"1\"}}}", &event), -1);
	assert_int_equal(decode_event("{\"event\":{\"start\":{}}}", &event), -1);
}

static void
output_is_told_by_its_stream_and_byte_for_byte(void **state)
{
	struct e2b_event event;

	(void)state;
	assert_int_equal(decode_event("{\"event\":{\"data\":{\"stdout\":\"AP8K\"}}}", &event), 0);
	assert_int_equal(event.kind, E2B_EVENT_OUTPUT);
	assert_int_equal(event.size, 3);
	assert_memory_equal(event.data, "\0\xff\n", 3);
	e2b_event_free(&event);
	assert_int_equal(decode_event("{\"event\":{\"data\":{\"stderr\":\"YQ==\"}}}", &event), 0);
	assert_int_equal(event.kind, E2B_EVENT_ERRORS);
	e2b_event_free(&event);
	assert_int_equal(decode_event("{\"event\":{\"data\":{\"pty\":\"\"}}}", &event), 0);
	assert_int_equal(event.kind, E2B_EVENT_TERMINAL);
	assert_int_equal(event.size, 0);
	e2b_event_free(&event);
}

static void
output_that_is_not_base64_is_refused(void **state)
{
	static const char *const malformed[] = { "A", "AP8", "AP8K=", "A P8", "AP8K\\u0000AAA",
		"_-8=" };
	struct e2b_event event;
	char json[128];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		snprintf(
		    json, sizeof(json), "{\"event\":{\"data\":{\"stdout\":\"%s\"}}}", malformed[i]);
		if (decode_event(json, &event) == 0)
			fail_msg("taken: %s", json);
	}
}

static void
an_exit_without_a_code_is_a_success(void **state)
{
	struct e2b_event event;

	(void)state;
	assert_int_equal(
	    decode_event(
		"{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}", &event),
	    0);
	assert_int_equal(event.kind, E2B_EVENT_END);
	assert_false(event.ended.signaled);
	assert_int_equal(event.ended.status, 0);
	assert_int_equal(
	    decode_event("{\"event\":{\"end\":{\"exitCode\":255,\"exited\":true}}}", &event), 0);
	assert_int_equal(event.ended.status, 255);
}

static void
a_death_by_signal_is_told_by_its_words(void **state)
{
	static const struct {
		const char *words;
		int number;
		bool core;
	} cases[] = {
		{ "killed", SIGKILL, false },
		{ "terminated", SIGTERM, false },
		{ "segmentation fault (core dumped)", SIGSEGV, true },
		{ "user defined signal 2", SIGUSR2, false },
		{ "signal 35", 35, false },
	};
	struct e2b_event event;
	char json[128];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(json, sizeof(json),
		    "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: %s\"}}}",
		    cases[i].words);
		assert_int_equal(decode_event(json, &event), 0);
		assert_true(event.ended.signaled);
		assert_int_equal(event.ended.status, cases[i].number);
		assert_int_equal(event.ended.core, cases[i].core);
	}
}

static void
an_end_that_makes_no_sense_is_refused(void **state)
{
	static const char *const malformed[] = {
		"{}",
		"{\"exitCode\":0}",
		"{\"exitCode\":256,\"exited\":true}",
		"{\"exitCode\":-1,\"exited\":true}",
		"{\"exitCode\":-1,\"status\":\"signal: \"}",
		"{\"exitCode\":-1,\"status\":\"signal: kill\"}",
		"{\"exitCode\":-1,\"status\":\"signal: signal 99\"}",
		"{\"exitCode\":-1,\"status\":\"killed\"}",
	};
	struct e2b_event event;
	char json[128];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		snprintf(json, sizeof(json), "{\"event\":{\"end\":%s}}", malformed[i]);
		if (decode_event(json, &event) == 0)
			fail_msg("taken: %s", json);
	}
}

static void
what_newer_servers_say_is_passed_over(void **state)
{
	struct e2b_event event;

	(void)state;
	assert_int_equal(decode_event("{\"event\":{\"keepalive\":{}}}", &event), 0);
	assert_int_equal(event.kind, E2B_EVENT_KEEPALIVE);
	assert_int_equal(decode_event("{\"event\":{\"news\":{}}}", &event), 0);
	assert_int_equal(event.kind, E2B_EVENT_OTHER);
	assert_int_equal(decode_event("{\"event\":{\"data\":{\"other\":\"!\"}}}", &event), 0);
	assert_int_equal(event.kind, E2B_EVENT_OTHER);
	assert_int_equal(decode_event("{}", &event), 0);
}

static void
deep_nesting_is_refused(void **state)
{
	struct e2b_event event;
	char json[512];
	size_t i, length = 0;

	(void)state;
	for (i = 0; i < 100; i++)
		length += (size_t)snprintf(json + length, sizeof(json) - length, "{\"a\":");
	assert_int_equal(decode_event(json, &event), -1);
	memset(json, '[', sizeof(json) - 1);
	json[sizeof(json) - 1] = '\0';
	assert_int_equal(decode_event(json, &event), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(encoded_envelopes_are_decoded),
		cmocka_unit_test(encode_refuses_what_does_not_fit),
		cmocka_unit_test(an_envelope_split_anywhere_is_waited_for),
		cmocka_unit_test(a_compressed_message_is_refused),
		cmocka_unit_test(a_message_over_the_limit_is_refused_before_it_is_there),
		cmocka_unit_test(an_end_of_stream_tells_success_or_the_error),
		cmocka_unit_test(a_malformed_end_of_stream_is_no_success),
		cmocka_unit_test(a_start_tells_the_pid),
		cmocka_unit_test(output_is_told_by_its_stream_and_byte_for_byte),
		cmocka_unit_test(output_that_is_not_base64_is_refused),
		cmocka_unit_test(an_exit_without_a_code_is_a_success),
		cmocka_unit_test(a_death_by_signal_is_told_by_its_words),
		cmocka_unit_test(an_end_that_makes_no_sense_is_refused),
		cmocka_unit_test(what_newer_servers_say_is_passed_over),
		cmocka_unit_test(deep_nesting_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
