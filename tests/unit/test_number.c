/* SPDX-License-Identifier: ISC */
/* Numbers, durations and sizes: what they are worth, what is refused, and that they print back. */
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/number.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

struct worth {
	const char *text;
	int64_t value;
};

static struct error err;

static void
numbers_are_decimal_and_whole(void **state)
{
	static const char *const refused[] = { "", "-", "+1", " 1", "1 ", "0x10", "1.0", "1e3",
		"--1", "9223372036854775808", "99999999999999999999", "one", "1\n" };
	static const struct worth taken[] = { { "0", 0 }, { "-0", 0 }, { "-5", -5 }, { "007", 7 },
		{ "9223372036854775807", INT64_MAX }, { "-9223372036854775807", -INT64_MAX } };
	int64_t value;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(taken); i++) {
		assert_int_equal(
		    number_parse(taken[i].text, INT64_MIN, INT64_MAX, &value, &err), 0);
		assert_true(value == taken[i].value);
	}
	for (i = 0; i < COUNT(refused); i++)
		if (number_parse(refused[i], INT64_MIN, INT64_MAX, &value, &err) == 0)
			fail_msg("\"%s\" is taken", refused[i]);
}

static void
bounds_are_inclusive(void **state)
{
	int64_t value;

	(void)state;
	assert_int_equal(number_parse("1", 1, 3, &value, &err), 0);
	assert_int_equal(number_parse("3", 1, 3, &value, &err), 0);
	assert_int_equal(number_parse("0", 1, 3, &value, &err), -1);
	assert_int_equal(number_parse("4", 1, 3, &value, &err), -1);
	assert_string_equal(err.message, "4 is not between 1 and 3");
}

static void
durations_are_milliseconds(void **state)
{
	static const struct worth taken[] = { { "0", 0 }, { "5", 5000 }, { "5s", 5000 },
		{ "250ms", 250 }, { "2m", 120000 }, { "1h30m", 5400000 }, { "1d", 86400000 },
		{ "1m1ms", 60001 }, { "0s", 0 }, { "1d2h3m4s5ms", 93784005 } };
	static const char *const refused[] = { "", "s", "-1s", "1.5s", "5 s", "5x", "1h30", "0s5",
		"0h30", "1w", "ms", "1s ", "9223372036854775807", "106751991168d",
		"106751991167d99999999999h" };
	int64_t value;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(taken); i++) {
		assert_int_equal(number_parse_duration(taken[i].text, &value, &err), 0);
		assert_true(value == taken[i].value);
	}
	for (i = 0; i < COUNT(refused); i++)
		if (number_parse_duration(refused[i], &value, &err) == 0)
			fail_msg("\"%s\" is taken", refused[i]);
}

static void
sizes_are_bytes(void **state)
{
	static const struct worth taken[] = { { "0", 0 }, { "17", 17 }, { "17B", 17 },
		{ "2K", 2048 }, { "2KiB", 2048 }, { "10MiB", 10485760 }, { "10M", 10485760 },
		{ "1G", 1073741824 }, { "3TiB", INT64_C(3298534883328) } };
	static const char *const refused[] = { "", "K", "-1K", "1KB", "1k", "1Ki", "1 K", "1.5M",
		"8388608TiB", "1KK", "1BB" };
	int64_t value;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(taken); i++) {
		assert_int_equal(number_parse_size(taken[i].text, &value, &err), 0);
		assert_true(value == taken[i].value);
	}
	for (i = 0; i < COUNT(refused); i++)
		if (number_parse_size(refused[i], &value, &err) == 0)
			fail_msg("\"%s\" is taken", refused[i]);
}

static void
what_is_printed_is_short_and_parses_back(void **state)
{
	static const struct worth durations[] = { { "0s", 0 }, { "1ms", 1 }, { "90s", 90000 },
		{ "2m", 120000 }, { "90m", 5400000 }, { "7d", 604800000 }, { "1500ms", 1500 },
		{ "9223372036854775807ms", INT64_MAX } };
	static const struct worth sizes[] = { { "0", 0 }, { "1023", 1023 }, { "1KiB", 1024 },
		{ "1536MiB", INT64_C(1610612736) }, { "1TiB", INT64_C(1) << 40 },
		{ "9223372036854775807", INT64_MAX } };
	char text[NUMBER_TEXT_MAX];
	int64_t value;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(durations); i++) {
		assert_string_equal(
		    number_format_duration(text, durations[i].value), durations[i].text);
		assert_int_equal(number_parse_duration(text, &value, &err), 0);
		assert_true(value == durations[i].value);
	}
	for (i = 0; i < COUNT(sizes); i++) {
		assert_string_equal(number_format_size(text, sizes[i].value), sizes[i].text);
		assert_int_equal(number_parse_size(text, &value, &err), 0);
		assert_true(value == sizes[i].value);
	}
}

static void
sizes_for_people_have_one_decimal(void **state)
{
	char text[NUMBER_TEXT_MAX];

	(void)state;
	assert_string_equal(number_describe_size(text, 0), "0 bytes");
	assert_string_equal(number_describe_size(text, 1023), "1023 bytes");
	assert_string_equal(number_describe_size(text, 64 << 20), "64 MiB");
	assert_string_equal(number_describe_size(text, 25 << 19), "12.5 MiB");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_decimal_and_whole),
		cmocka_unit_test(bounds_are_inclusive),
		cmocka_unit_test(durations_are_milliseconds),
		cmocka_unit_test(sizes_are_bytes),
		cmocka_unit_test(what_is_printed_is_short_and_parses_back),
		cmocka_unit_test(sizes_for_people_have_one_decimal),
	};

	return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}
