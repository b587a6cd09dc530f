/* SPDX-License-Identifier: ISC */
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/utf8.h"

/* The first and last sequence of each length, and the neighbours of what is forbidden. */
static void
the_edges_of_every_range_are_valid(void **state)
{
	static const char *const valid[] = { "\x01", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
		"\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
		"\xf4\x8f\xbf\xbf" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(valid) / sizeof(valid[0]); i++) {
		assert_int_equal(utf8_sequence(valid[i], strlen(valid[i])), strlen(valid[i]));
		assert_true(utf8_valid(valid[i], strlen(valid[i])));
	}
}

static void
overlong_surrogate_and_too_large_forms_are_refused(void **state)
{
	static const char *const invalid[] = { "\x80", "\xbf", "\xc0\x80", "\xc1\xbf",
		"\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xfe", "\xff" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
		assert_int_equal(utf8_sequence(invalid[i], strlen(invalid[i])), 0);
		assert_false(utf8_valid(invalid[i], strlen(invalid[i])));
	}
}

static void
a_sequence_cut_short_is_refused(void **state)
{
	static const char *const whole[] = { "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };
	size_t i, size;

	(void)state;
	for (i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		for (size = 0; size < strlen(whole[i]); size++)
			assert_int_equal(utf8_sequence(whole[i], size), 0);
	assert_int_equal(utf8_sequence("\xe2\x82X", 3), 0);
	assert_int_equal(utf8_sequence("\xf0\x9f\x98X", 4), 0);
}

static void
valid_text_may_hold_nul_and_be_empty(void **state)
{
	(void)state;
	assert_true(utf8_valid("", 0));
	assert_true(utf8_valid("a\0b", 3));
	assert_true(utf8_valid("sch\xc3\xb6n", 6));
	assert_false(utf8_valid("sch\xf6n", 5));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_edges_of_every_range_are_valid),
		cmocka_unit_test(overlong_surrogate_and_too_large_forms_are_refused),
		cmocka_unit_test(a_sequence_cut_short_is_refused),
		cmocka_unit_test(valid_text_may_hold_nul_and_be_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
