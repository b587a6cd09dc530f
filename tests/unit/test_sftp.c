/* SPDX-License-Identifier: ISC */
/* The SFTP server against a worker played here: order, limits, and what is told of open files. */
#include <string.h>
#include <sys/stat.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/buffer.h"
#include "core/base/log.h"
#include "core/file.h"
#include "gateway/sftp.h"
#include "gateway/sftp_packet.h"
#include "tests/unit/sftp_talk.h"

#define FIRST_HANDLE 256U

static struct buffer request;
static size_t request_start;

static void
begin_request(enum sftp_type type, uint32_t id)
{
	request_start = sftp_put_start(&request, type, id);
}

static void
send_request(struct talk *talk)
{
	sftp_put_finish(&request, request_start);
	talk_say(talk, buffer_data(&request), request.length);
	buffer_consume(&request, request.length);
}

static void
put_handle(uint32_t serial)
{
	sftp_put_u32(&request, 4);
	sftp_put_u32(&request, serial);
}

static void
ask_path(struct talk *talk, enum sftp_type type, uint32_t id, const char *path)
{
	begin_request(type, id);
	sftp_put_text(&request, path);
	send_request(talk);
}

static void
open_file(struct talk *talk, uint32_t id, const char *path, uint32_t flags)
{
	begin_request(SFTP_OPEN, id);
	sftp_put_text(&request, path);
	sftp_put_u32(&request, flags);
	sftp_put_u32(&request, 0);
	send_request(talk);
}

static void
ask_handle(struct talk *talk, enum sftp_type type, uint32_t id, uint32_t serial)
{
	begin_request(type, id);
	put_handle(serial);
	send_request(talk);
}

/* The next reply: its type and number; the rest stays in input. */
static uint8_t
next_reply(struct talk *talk, uint32_t *id, struct sftp_input *input)
{
	static unsigned char packet[SFTP_PACKET_MAX + 4];
	struct buffer *heard = talk_heard(talk);
	size_t length;
	uint8_t type;

	assert_true(heard->length >= 5);
	memcpy(packet, buffer_data(heard),
	    heard->length < sizeof(packet) ? heard->length : sizeof(packet));
	length = (size_t)packet[0] << 24 | (size_t)packet[1] << 16 | (size_t)packet[2] << 8 |
		 packet[3];
	assert_true(length + 4 <= heard->length);
	buffer_consume(heard, 4 + length);
	*input = (struct sftp_input){ packet + 4, length, false };
	type = sftp_get_u8(input);
	*id = sftp_get_u32(input);
	return type;
}

static void
expect_status(struct talk *talk, uint32_t id, enum sftp_status status)
{
	struct sftp_input input;
	uint32_t got;

	assert_int_equal(next_reply(talk, &got, &input), SFTP_STATUS);
	assert_int_equal(got, id);
	assert_int_equal(sftp_get_u32(&input), status);
}

static uint32_t
expect_handle(struct talk *talk, uint32_t id)
{
	struct sftp_input input;
	uint32_t got;

	assert_int_equal(next_reply(talk, &got, &input), SFTP_HANDLE);
	assert_int_equal(got, id);
	assert_int_equal(sftp_get_u32(&input), 4);
	return sftp_get_u32(&input);
}

static uint64_t
expect_size(struct talk *talk, uint32_t id)
{
	struct sftp_input input;
	uint32_t got;

	assert_int_equal(next_reply(talk, &got, &input), SFTP_ATTRS);
	assert_int_equal(got, id);
	(void)sftp_get_u32(&input);
	return sftp_get_u64(&input);
}

static int
set_up(void **state)
{
	static const unsigned char init[] = { 0, 0, 0, 5, SFTP_INIT, 0, 0, 0, 3 };
	struct sftp_input input;
	struct talk *talk;
	uint32_t version;

	log_open("test", LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	buffer_init(&request, 1U << 20);
	talk = talk_open();
	assert_int_equal(sftp_start(talk_channel(talk)), 0);
	assert_int_equal(sftp_start(talk_channel(talk)), -1);
	talk_say(talk, init, sizeof(init));
	assert_int_equal(next_reply(talk, &version, &input), SFTP_VERSION);
	assert_int_equal(version, 3);
	*state = talk;
	return 0;
}

static int
tear_down(void **state)
{
	talk_close(*state);
	buffer_free(&request);
	return 0;
}

static void
a_file_is_read_and_its_end_told(void **state)
{
	struct talk *talk = *state;
	struct sftp_input input;
	uint32_t serial, id;
	size_t size;

	open_file(talk, 1, "f", SFTP_OPEN_READ);
	serial = expect_handle(talk, 1);
	begin_request(SFTP_READ, 2);
	put_handle(serial);
	sftp_put_u64(&request, 3);
	sftp_put_u32(&request, 4);
	send_request(talk);
	assert_int_equal(next_reply(talk, &id, &input), SFTP_DATA);
	assert_memory_equal(sftp_get_string(&input, &size), "3456", 4);
	assert_int_equal(size, 4);
	begin_request(SFTP_READ, 3);
	put_handle(serial);
	sftp_put_u64(&request, 10);
	sftp_put_u32(&request, 4);
	send_request(talk);
	expect_status(talk, 3, SFTP_EOF);
	ask_handle(talk, SFTP_CLOSE, 4, serial);
	expect_status(talk, 4, SFTP_OK);
	ask_handle(talk, SFTP_CLOSE, 5, serial);
	expect_status(talk, 5, SFTP_FAILURE);
	assert_int_equal(talk_requests(talk, FILE_COMMIT), 0);
}

static void
write_to(struct talk *talk, uint32_t id, uint32_t serial, uint64_t offset, const char *text)
{
	begin_request(SFTP_WRITE, id);
	put_handle(serial);
	sftp_put_u64(&request, offset);
	sftp_put_text(&request, text);
	send_request(talk);
}

static void
what_is_open_for_writing_is_committed_at_the_last_close(void **state)
{
	struct talk *talk = *state;
	uint32_t first, second;

	open_file(talk, 1, "none", SFTP_OPEN_WRITE | SFTP_OPEN_CREATE | SFTP_OPEN_TRUNCATE);
	first = expect_handle(talk, 1);
	open_file(talk, 2, "none", SFTP_OPEN_READ | SFTP_OPEN_WRITE);
	second = expect_handle(talk, 2);
	assert_int_equal(talk_requests(talk, FILE_EDIT), 1);
	write_to(talk, 3, first, 20, "tail");
	expect_status(talk, 3, SFTP_OK);
	ask_path(talk, SFTP_LSTAT, 4, "./x/../none");
	assert_int_equal(expect_size(talk, 4), 24);
	assert_int_equal(talk_requests(talk, FILE_STAT), 0);
	ask_handle(talk, SFTP_CLOSE, 5, first);
	expect_status(talk, 5, SFTP_OK);
	assert_int_equal(talk_requests(talk, FILE_COMMIT), 0);
	ask_handle(talk, SFTP_CLOSE, 6, second);
	expect_status(talk, 6, SFTP_OK);
	assert_int_equal(talk_requests(talk, FILE_COMMIT), 1);
}

static void
a_failed_write_spoils_the_file(void **state)
{
	struct talk *talk = *state;
	uint32_t serial;

	open_file(talk, 1, "f", SFTP_OPEN_WRITE);
	serial = expect_handle(talk, 1);
	write_to(talk, 2, serial, 1 << 20, "over the limit");
	expect_status(talk, 2, SFTP_FAILURE);
	ask_handle(talk, SFTP_CLOSE, 3, serial);
	expect_status(talk, 3, SFTP_FAILURE);
	assert_int_equal(talk_requests(talk, FILE_COMMIT), 0);
}

static void
a_handle_counts_only_once_it_was_told(void **state)
{
	struct talk *talk = *state;

	talk_hold_replies(talk, true);
	open_file(talk, 1, "f", SFTP_OPEN_WRITE);
	ask_handle(talk, SFTP_CLOSE, 2, FIRST_HANDLE);
	expect_status(talk, 2, SFTP_FAILURE);
	talk_hold_replies(talk, false);
	assert_int_equal(expect_handle(talk, 1), FIRST_HANDLE);
}

static void
a_request_waits_for_the_open_of_its_path(void **state)
{
	struct talk *talk = *state;
	uint32_t serial;

	talk_hold_replies(talk, true);
	open_file(talk, 1, "none", SFTP_OPEN_WRITE | SFTP_OPEN_CREATE);
	ask_path(talk, SFTP_LSTAT, 2, "none");
	assert_int_equal(talk_heard(talk)->length, 0);
	talk_hold_replies(talk, false);
	serial = expect_handle(talk, 1);
	assert_int_equal(expect_size(talk, 2), 10);
	assert_int_equal(talk_requests(talk, FILE_STAT), 0);
	ask_handle(talk, SFTP_CLOSE, 3, serial);
	expect_status(talk, 3, SFTP_OK);
}

static void
no_more_than_64_requests_are_with_the_worker(void **state)
{
	struct talk *talk = *state;
	uint32_t i;

	talk_hold_replies(talk, true);
	for (i = 0; i < 100; i++)
		ask_path(talk, SFTP_STAT, i, "f");
	assert_int_equal(talk_requests(talk, FILE_STAT), 64);
	talk_hold_replies(talk, false);
	assert_int_equal(talk_requests(talk, FILE_STAT), 100);
	for (i = 0; i < 100; i++)
		assert_int_equal(expect_size(talk, i), 10);
}

static void
handles_are_bounded(void **state)
{
	struct talk *talk = *state;
	uint32_t i;

	for (i = 0; i < FIRST_HANDLE; i++) {
		open_file(talk, i, "f", SFTP_OPEN_READ);
		(void)expect_handle(talk, i);
	}
	open_file(talk, i, "f", SFTP_OPEN_READ);
	expect_status(talk, i, SFTP_FAILURE);
	ask_handle(talk, SFTP_CLOSE, 1, FIRST_HANDLE);
	expect_status(talk, 1, SFTP_OK);
	open_file(talk, i, "f", SFTP_OPEN_READ);
	(void)expect_handle(talk, i);
}

static void
renaming_what_is_open_commits_it_first(void **state)
{
	struct talk *talk = *state;
	uint32_t serial;

	open_file(talk, 1, "none", SFTP_OPEN_WRITE | SFTP_OPEN_CREATE | SFTP_OPEN_TRUNCATE);
	serial = expect_handle(talk, 1);
	begin_request(SFTP_EXTENDED, 2);
	sftp_put_text(&request, "posix-rename@openssh.com");
	sftp_put_text(&request, "none");
	sftp_put_text(&request, "other");
	send_request(talk);
	expect_status(talk, 2, SFTP_NO_SUCH_FILE); /* the played worker knows no better */
	assert_int_equal(talk_requests(talk, FILE_COMMIT), 1);
	assert_int_equal(talk_requests(talk, FILE_RENAME), 1);
	ask_handle(talk, SFTP_CLOSE, 3, serial);
	expect_status(talk, 3, SFTP_OK);
	assert_int_equal(talk_requests(talk, FILE_COMMIT), 1);
}

static void
a_clean_end_has_status_0(void **state)
{
	struct talk *talk = *state;
	uint32_t status;

	talk_hold_replies(talk, true);
	ask_path(talk, SFTP_STAT, 1, "f");
	talk_end(talk);
	assert_false(talk_ended(talk, &status));
	talk_hold_replies(talk, false);
	assert_true(talk_ended(talk, &status));
	assert_int_equal(status, 0);
	assert_int_equal(expect_size(talk, 1), 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_read_and_its_end_told),
		TEST(what_is_open_for_writing_is_committed_at_the_last_close),
		TEST(a_failed_write_spoils_the_file),
		TEST(a_handle_counts_only_once_it_was_told),
		TEST(a_request_waits_for_the_open_of_its_path),
		TEST(no_more_than_64_requests_are_with_the_worker),
		TEST(handles_are_bounded),
		TEST(renaming_what_is_open_commits_it_first),
		TEST(a_clean_end_has_status_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
