/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/message.h"

static void
values_come_out_in_the_order_they_were_put(void **state)
{
	char first[] = "one", second[] = "";
	char *list[] = { first, second, NULL };
	struct message message;
	struct error err, sent;
	const unsigned char *bytes;
	char *text, **texts;
	size_t size;

	(void)state;
	error_system(&sent, EACCES, "open");
	message_start(&message, 3);
	message_put_u8(&message, 255);
	message_put_u32(&message, UINT32_MAX);
	message_put_u64(&message, UINT64_MAX);
	message_put_i64(&message, INT64_MIN);
	message_put_bool(&message, true);
	message_put_bytes(&message, "\0\377", 2);
	message_put_text(&message, "text");
	message_put_text(&message, NULL);
	message_put_text(&message, "");
	message_put_list(&message, list);
	message_put_list(&message, NULL);
	message_put_error(&message, &sent);

	assert_int_equal(message_get_u8(&message), 255);
	assert_true(message_get_u32(&message) == UINT32_MAX);
	assert_true(message_get_u64(&message) == UINT64_MAX);
	assert_true(message_get_i64(&message) == INT64_MIN);
	assert_true(message_get_bool(&message));
	bytes = message_get_bytes(&message, &size);
	assert_int_equal(size, 2);
	assert_memory_equal(bytes, "\0\377", 2);
	text = message_get_text(&message);
	assert_string_equal(text, "text");
	memory_free(text);
	assert_null(message_get_text(&message));
	text = message_get_text(&message);
	assert_string_equal(text, "");
	memory_free(text);
	texts = message_get_list(&message);
	assert_string_equal(texts[0], "one");
	assert_string_equal(texts[1], "");
	assert_null(texts[2]);
	memory_list_free(texts);
	texts = message_get_list(&message);
	assert_null(texts[0]);
	memory_list_free(texts);
	message_get_error(&message, &err);
	assert_int_equal(err.code, ERROR_DENIED);
	assert_int_equal(err.saved_errno, EACCES);
	assert_string_equal(err.message, sent.message);
	assert_int_equal(message_end(&message, &err), 0);
	message_free(&message);
}

/* RFC 4251 section 5; a trace of another build must read the same. */
static void
numbers_are_big_endian(void **state)
{
	struct message message;

	(void)state;
	message_start(&message, 1);
	message_put_u32(&message, 0x01020304);
	message_put_u64(&message, 0x05060708090a0b0cU);
	message_put_text(&message, "a");
	assert_int_equal(message.payload.length, 17);
	assert_memory_equal(
	    buffer_data(&message.payload), "\1\2\3\4\5\6\7\x8\x9\xa\xb\xc\0\0\0\1a", 17);
	message_free(&message);
}

static void
end_refuses_what_is_left_over(void **state)
{
	struct message message;
	struct error err;

	(void)state;
	message_start(&message, 1);
	message_put_u8(&message, 1);
	assert_int_equal(message_end(&message, &err), -1);
	assert_int_equal(err.code, ERROR_INVALID);
	(void)message_get_u8(&message);
	assert_int_equal(message_end(&message, &err), 0);
	message_free(&message);
}

static void
after_one_failed_get_all_fail(void **state)
{
	struct message message;
	struct error err;
	char **list;
	size_t size;

	(void)state;
	message_start(&message, 1);
	message_put_u8(&message, 9);
	assert_int_equal(message_get_u32(&message), 0);
	assert_int_equal(message_get_u8(&message), 0);
	assert_null(message_get_bytes(&message, &size));
	assert_int_equal(size, 0);
	assert_null(message_get_text(&message));
	list = message_get_list(&message);
	assert_non_null(list);
	assert_null(list[0]);
	memory_list_free(list);
	assert_int_equal(message_end(&message, &err), -1);
	message_free(&message);
}

/* A length that points behind the end must not be believed, whatever its size. */
static void
lengths_over_the_payload_are_refused(void **state)
{
	static const uint32_t lengths[] = { 2, 1024, INT32_MAX, UINT32_MAX - 1 };
	struct message message;
	size_t i, size;

	(void)state;
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		message_start(&message, 1);
		message_put_u32(&message, lengths[i]);
		message_put_u8(&message, 'x');
		assert_null(message_get_bytes(&message, &size));
		assert_true(message.failed);
		message_free(&message);
		message_start(&message, 1);
		message_put_u32(&message, lengths[i]);
		message_put_u8(&message, 'x');
		assert_null(message_get_text(&message));
		assert_true(message.failed);
		message_free(&message);
	}
}

static void
a_text_with_nul_inside_is_refused(void **state)
{
	struct message message;

	(void)state;
	message_start(&message, 1);
	message_put_bytes(&message, "a\0b", 3);
	assert_null(message_get_text(&message));
	assert_true(message.failed);
	message_free(&message);
}

static void
a_boolean_is_zero_or_one(void **state)
{
	struct message message;

	(void)state;
	message_start(&message, 1);
	message_put_u8(&message, 2);
	assert_false(message_get_bool(&message));
	assert_true(message.failed);
	message_free(&message);
}

static void
put_list_of(struct message *message, uint32_t count)
{
	uint32_t i;

	message_start(message, 1);
	message_put_u32(message, count);
	for (i = 0; i < count && i <= MESSAGE_LIST_MAX; i++)
		message_put_text(message, "x");
}

static void
a_list_has_a_limit_and_no_holes(void **state)
{
	struct message message;
	struct error err;
	char **list;

	(void)state;
	put_list_of(&message, MESSAGE_LIST_MAX);
	list = message_get_list(&message);
	assert_string_equal(list[MESSAGE_LIST_MAX - 1], "x");
	assert_int_equal(message_end(&message, &err), 0);
	memory_list_free(list);
	message_free(&message);

	put_list_of(&message, MESSAGE_LIST_MAX + 1);
	list = message_get_list(&message);
	assert_true(message.failed);
	memory_list_free(list);
	message_free(&message);

	message_start(&message, 1);
	message_put_u32(&message, 1);
	message_put_text(&message, NULL);
	list = message_get_list(&message);
	assert_null(list[0]);
	assert_true(message.failed);
	memory_list_free(list);
	message_free(&message);
}

static void
an_error_of_no_known_code_is_refused(void **state)
{
	struct message message;
	struct error err;

	(void)state;
	message_start(&message, 1);
	message_put_u8(&message, ERROR_CODES);
	message_put_u32(&message, 0);
	message_put_text(&message, "x");
	message_get_error(&message, &err);
	assert_true(message.failed);
	assert_int_equal(err.code, ERROR_INVALID);
	message_free(&message);
}

static void
a_descriptor_that_nobody_took_is_closed(void **state)
{
	struct message message;
	int fd, taken;

	(void)state;
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	message_start(&message, 1);
	message.fd = fd;
	message_free(&message);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(errno, EBADF);

	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	message_start(&message, 1);
	message.fd = fd;
	taken = message_take_fd(&message);
	assert_int_equal(taken, fd);
	assert_int_equal(message_take_fd(&message), -1);
	message_free(&message);
	assert_int_not_equal(fcntl(taken, F_GETFD), -1);
	(void)close(taken);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_out_in_the_order_they_were_put),
		cmocka_unit_test(numbers_are_big_endian),
		cmocka_unit_test(end_refuses_what_is_left_over),
		cmocka_unit_test(after_one_failed_get_all_fail),
		cmocka_unit_test(lengths_over_the_payload_are_refused),
		cmocka_unit_test(a_text_with_nul_inside_is_refused),
		cmocka_unit_test(a_boolean_is_zero_or_one),
		cmocka_unit_test(a_list_has_a_limit_and_no_holes),
		cmocka_unit_test(an_error_of_no_known_code_is_refused),
		cmocka_unit_test(a_descriptor_that_nobody_took_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
