/* SPDX-License-Identifier: ISC */
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/buffer.h"

static void
append_keeps_the_order_of_what_was_put(void **state)
{
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer, 64);
	assert_int_equal(buffer_append(&buffer, "a\0b", 3), 0);
	assert_int_equal(buffer_append_text(&buffer, "cd"), 0);
	assert_int_equal(buffer_append_format(&buffer, "%s=%d", "e", 5), 0);
	assert_int_equal(buffer.length, 8);
	assert_memory_equal(buffer_data(&buffer), "a\0bcde=5", 8);
	buffer_free(&buffer);
}

static void
append_takes_exactly_the_limit(void **state)
{
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer, 5);
	assert_int_equal(buffer_append_text(&buffer, "12345"), 0);
	assert_int_equal(buffer_room(&buffer), 0);
	assert_true(buffer.capacity <= 5);
	buffer_free(&buffer);
}

static void
append_over_the_limit_changes_nothing(void **state)
{
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer, 5);
	assert_int_equal(buffer_append_text(&buffer, "123"), 0);
	assert_int_equal(buffer_append_text(&buffer, "456"), -1);
	assert_int_equal(buffer_append_format(&buffer, "%03d", 7), -1);
	assert_null(buffer_reserve(&buffer, 3));
	assert_null(buffer_reserve(&buffer, SIZE_MAX));
	assert_int_equal(buffer.length, 3);
	assert_memory_equal(buffer_data(&buffer), "123", 3);
	buffer_free(&buffer);
}

static void
reserved_space_counts_only_when_extended(void **state)
{
	struct buffer buffer;
	unsigned char *place;

	(void)state;
	buffer_init(&buffer, 16);
	place = buffer_reserve(&buffer, 4);
	assert_non_null(place);
	memcpy(place, "wxyz", 4);
	assert_int_equal(buffer.length, 0);
	buffer_extend(&buffer, 2);
	assert_int_equal(buffer.length, 2);
	assert_memory_equal(buffer_data(&buffer), "wx", 2);
	buffer_free(&buffer);
}

/* A queue that is never empty lives for long; it must neither grow nor mix up its bytes. */
static void
a_queue_that_is_never_empty_stays_in_its_bounds(void **state)
{
	struct buffer buffer;
	unsigned char piece[7];
	unsigned put, got, i, round;

	(void)state;
	buffer_init(&buffer, 300);
	put = got = 0;
	for (round = 0; round < 5000; round++) {
		while (buffer_room(&buffer) >= sizeof(piece)) {
			for (i = 0; i < sizeof(piece); i++)
				piece[i] = (unsigned char)(put++ % 251);
			assert_int_equal(buffer_append(&buffer, piece, sizeof(piece)), 0);
		}
		for (i = 0; i < 1 + round % 293; i++)
			assert_int_equal(buffer_data(&buffer)[i], (got + i) % 251);
		buffer_consume(&buffer, i);
		got += i;
		assert_true(buffer.capacity <= 300);
		assert_int_equal(buffer.length, put - got);
	}
	buffer_free(&buffer);
}

static void
consuming_all_starts_at_the_front_again(void **state)
{
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer, 32);
	assert_int_equal(buffer_append_text(&buffer, "abc"), 0);
	buffer_consume(&buffer, 2);
	assert_memory_equal(buffer_data(&buffer), "c", 1);
	buffer_consume(&buffer, 1);
	assert_int_equal(buffer.start, 0);
	assert_int_equal(buffer_room(&buffer), 32);
	buffer_free(&buffer);
}

static void
a_freed_buffer_is_empty_and_usable(void **state)
{
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer, 8);
	assert_null(buffer_data(&buffer));
	assert_int_equal(buffer_append_text(&buffer, "abc"), 0);
	buffer_wipe(&buffer);
	assert_int_equal(buffer.length, 0);
	assert_int_equal(buffer_append_text(&buffer, "12345678"), 0);
	assert_memory_equal(buffer_data(&buffer), "12345678", 8);
	buffer_free(&buffer);
	buffer_free(&buffer);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(append_keeps_the_order_of_what_was_put),
		cmocka_unit_test(append_takes_exactly_the_limit),
		cmocka_unit_test(append_over_the_limit_changes_nothing),
		cmocka_unit_test(reserved_space_counts_only_when_extended),
		cmocka_unit_test(a_queue_that_is_never_empty_stays_in_its_bounds),
		cmocka_unit_test(consuming_all_starts_at_the_front_again),
		cmocka_unit_test(a_freed_buffer_is_empty_and_usable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
