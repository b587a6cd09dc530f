/* SPDX-License-Identifier: ISC */
/* RFC 6455 section 5, with its own examples where it has them. */
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "drivers/websocket_frame.h"

#define MAX 70000
#define BYTES(text) (text), sizeof(text) - 1

static struct websocket_decoder decoder;
static struct websocket_message message;

static int
open_decoder(void **state)
{
	(void)state;
	websocket_decoder_init(&decoder, MAX);
	return 0;
}

static int
close_decoder(void **state)
{
	(void)state;
	websocket_decoder_free(&decoder);
	return 0;
}

/* Decodes one message out of all of data. */
static int
decode(const void *data, size_t size)
{
	struct error err;
	size_t taken;
	int result;

	result = websocket_decode(&decoder, data, size, &taken, &message, &err);
	if (result >= 0)
		assert_int_equal(taken, size);
	return result;
}

static void
expect_message(const void *data, size_t size, enum websocket_opcode opcode, const char *text)
{
	assert_int_equal(decode(data, size), 1);
	assert_int_equal(message.opcode, opcode);
	assert_int_equal(message.size, strlen(text));
	assert_memory_equal(message.data, text, strlen(text));
}

static void
expect_refusal(const void *data, size_t size, enum websocket_status status)
{
	websocket_decoder_free(&decoder);
	websocket_decoder_init(&decoder, MAX);
	assert_int_equal(decode(data, size), -1);
	assert_int_equal(decoder.status, status);
}

static void
a_whole_message_is_decoded(void **state)
{
	(void)state;
	expect_message(BYTES("\x81\x05Hello"), WEBSOCKET_TEXT, "Hello");
	expect_message(BYTES("\x82\x00"), WEBSOCKET_BINARY, "");
}

static void
fragments_are_put_together_around_control_frames(void **state)
{
	(void)state;
	assert_int_equal(decode(BYTES("\x01\x03Hel")), 0);
	expect_message(BYTES("\x89\x02hi"), WEBSOCKET_PING, "hi");
	assert_int_equal(decode(BYTES("\x00\x00")), 0);
	expect_message(BYTES("\x80\x02lo"), WEBSOCKET_TEXT, "Hello");
}

static void
it_does_not_matter_how_the_bytes_arrive(void **state)
{
	static const char bytes[] =
	    "\x02\x7e\x00\x80"
	    "0123456789012345678901234567890123456789012345678901234567890123"
	    "0123456789012345678901234567890123456789012345678901234567890123"
	    "\x80\x01!";
	struct error err;
	size_t i, taken;

	(void)state;
	for (i = 0; i < sizeof(bytes) - 2; i++) {
		assert_int_equal(
		    websocket_decode(&decoder, bytes + i, 1, &taken, &message, &err), 0);
		assert_int_equal(taken, 1);
	}
	assert_int_equal(websocket_decode(&decoder, bytes + i, 1, &taken, &message, &err), 1);
	assert_int_equal(message.size, 129);
	assert_int_equal(message.data[128], '!');
}

static void
what_follows_a_message_is_left(void **state)
{
	struct error err;
	size_t taken;

	(void)state;
	assert_int_equal(websocket_decode(&decoder,
			     BYTES("\x81\x01"
				   "a\x81\x01"
				   "b"),
			     &taken, &message, &err),
	    1);
	assert_int_equal(taken, 3);
	assert_int_equal(message.data[0], 'a');
}

static void
a_close_frame_has_a_status_and_a_reason(void **state)
{
	(void)state;
	expect_message(BYTES("\x88\x05\x03\xe8"
			     "bye"),
	    WEBSOCKET_CLOSE, "bye");
	assert_int_equal(message.status, WEBSOCKET_NORMAL);
	expect_message(BYTES("\x88\x00"), WEBSOCKET_CLOSE, "");
	assert_int_equal(message.status, WEBSOCKET_NO_STATUS);
}

static void
what_the_rfc_forbids_is_refused(void **state)
{
	(void)state;
	expect_refusal(BYTES("\xc1\x00"), WEBSOCKET_PROTOCOL_ERROR); /* an extension's bit */
	expect_refusal(BYTES("\x83\x00"), WEBSOCKET_PROTOCOL_ERROR); /* unknown */
	expect_refusal(BYTES("\x8b\x00"), WEBSOCKET_PROTOCOL_ERROR);
	expect_refusal(BYTES("\x80\x00"), WEBSOCKET_PROTOCOL_ERROR); /* nothing to continue */
	expect_refusal(BYTES("\x81\x80\x00\x00\x00\x00"), WEBSOCKET_PROTOCOL_ERROR); /* masked */
	expect_refusal(BYTES("\x09\x00"), WEBSOCKET_PROTOCOL_ERROR);         /* half a ping */
	expect_refusal(BYTES("\x89\x7e\x00\x7e"), WEBSOCKET_PROTOCOL_ERROR); /* a long one */
	expect_refusal(BYTES("\x81\x7e\x00\x7d"), WEBSOCKET_PROTOCOL_ERROR); /* a length too long */
	expect_refusal(BYTES("\x81\x7f\x00\x00\x00\x00\x00\x00\xff\xff"), WEBSOCKET_PROTOCOL_ERROR);
	expect_refusal(BYTES("\x88\x01\x03"), WEBSOCKET_PROTOCOL_ERROR);     /* half a status */
	expect_refusal(BYTES("\x88\x02\x03\xed"), WEBSOCKET_PROTOCOL_ERROR); /* 1005 */
	expect_refusal(BYTES("\x88\x02\x03\xe7"), WEBSOCKET_PROTOCOL_ERROR); /* 999 */
	expect_refusal(BYTES("\x81\x01\xff"), WEBSOCKET_BAD_TEXT);
	expect_refusal(BYTES("\x88\x03\x03\xe8\xff"), WEBSOCKET_BAD_TEXT);
}

static void
a_new_message_within_another_is_refused(void **state)
{
	(void)state;
	assert_int_equal(decode(BYTES("\x01\x01"
				      "a")),
	    0);
	assert_int_equal(decode(BYTES("\x81\x01"
				      "b")),
	    -1);
	assert_int_equal(decoder.status, WEBSOCKET_PROTOCOL_ERROR);
}

static void
a_message_over_the_limit_is_refused_by_its_head(void **state)
{
	(void)state;
	expect_refusal(BYTES("\x82\x7f\x00\x00\x00\x00\x00\x01\x11\x71"), WEBSOCKET_TOO_BIG);
	expect_refusal(BYTES("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"), WEBSOCKET_TOO_BIG);
}

static void
fragments_together_are_held_to_the_limit(void **state)
{
	static unsigned char fragment[4 + 40000] = { 0x02, 0x7e, 0x9c, 0x40 };

	(void)state;
	assert_int_equal(decode(fragment, sizeof(fragment)), 0);
	fragment[0] = 0x80;
	assert_int_equal(decode(fragment, sizeof(fragment)), -1);
	assert_int_equal(decoder.status, WEBSOCKET_TOO_BIG);
}

static void
frames_are_masked_as_in_the_example(void **state)
{
	static const unsigned char mask[] = { 0x37, 0xfa, 0x21, 0x3d };
	struct buffer out;

	(void)state;
	buffer_init(&out, 100);
	assert_int_equal(websocket_encode(&out, WEBSOCKET_TEXT, "Hello", 5, mask), 0);
	assert_int_equal(out.length, 11);
	assert_memory_equal(buffer_data(&out), "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 11);
	assert_int_equal(websocket_encode(&out, WEBSOCKET_BINARY, mask, 4, mask), 0);
	assert_int_equal(out.length, 21);
	buffer_free(&out);
}

static void
lengths_are_written_in_as_few_bytes_as_they_need(void **state)
{
	static const unsigned char mask[4];
	static const struct {
		size_t size, head;
		const char *start;
	} cases[] = { { 125, 6, "\x82\xfd" }, { 126, 8, "\x82\xfe\x00\x7e" },
		{ 65535, 8, "\x82\xfe\xff\xff" },
		{ 65536, 14, "\x82\xff\x00\x00\x00\x00\x00\x01\x00\x00" } };
	static unsigned char data[65536];
	struct buffer out;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buffer_init(&out, MAX);
		assert_int_equal(
		    websocket_encode(&out, WEBSOCKET_BINARY, data, cases[i].size, mask), 0);
		assert_int_equal(out.length, cases[i].size + cases[i].head);
		assert_memory_equal(buffer_data(&out), cases[i].start, cases[i].head - 4);
		buffer_free(&out);
	}
}

static void
a_frame_without_room_is_not_begun(void **state)
{
	static const unsigned char mask[4];
	struct buffer out;

	(void)state;
	buffer_init(&out, 10);
	assert_int_equal(websocket_encode(&out, WEBSOCKET_BINARY, "12345", 5, mask), -1);
	assert_int_equal(out.length, 0);
	buffer_free(&out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_decoder, close_decoder)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_whole_message_is_decoded),
		TEST(fragments_are_put_together_around_control_frames),
		TEST(it_does_not_matter_how_the_bytes_arrive),
		TEST(what_follows_a_message_is_left),
		TEST(a_close_frame_has_a_status_and_a_reason),
		TEST(what_the_rfc_forbids_is_refused),
		TEST(a_new_message_within_another_is_refused),
		TEST(a_message_over_the_limit_is_refused_by_its_head),
		TEST(fragments_together_are_held_to_the_limit),
		TEST(frames_are_masked_as_in_the_example),
		TEST(lengths_are_written_in_as_few_bytes_as_they_need),
		TEST(a_frame_without_room_is_not_begun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
