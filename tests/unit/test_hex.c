/* SPDX-License-Identifier: ISC */
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/hex.h"
#include "core/base/random.h"

static void
every_byte_has_two_small_digits_and_comes_back(void **state)
{
	unsigned char byte, back;
	char text[HEX_SIZE(1)];
	int value;

	(void)state;
	for (value = 0; value < 256; value++) {
		byte = (unsigned char)value;
		hex_encode(text, &byte, 1);
		assert_int_equal(strspn(text, "0123456789abcdef"), 2);
		assert_int_equal(text[2], '\0');
		assert_int_equal(hex_decode(&back, 1, text), 0);
		assert_int_equal(back, byte);
	}
}

static void
digits_stand_in_the_order_of_their_weight(void **state)
{
	char text[HEX_SIZE(4)];

	(void)state;
	hex_encode(text, "\x01\x23\xab\xff", 4);
	assert_string_equal(text, "0123abff");
	hex_encode(text, "", 0);
	assert_string_equal(text, "");
}

static void
what_is_no_digit_is_refused(void **state)
{
	static const char *const malformed[] = { "", "0", "0g", "g0", "0A", "A0", " 0", "0x",
		"-1" };
	unsigned char byte;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
		assert_int_equal(hex_decode(&byte, 1, malformed[i]), -1);
}

static void
digits_are_counted_by_whole_bytes(void **state)
{
	(void)state;
	assert_int_equal(hex_length(""), 0);
	assert_int_equal(hex_length("0"), 0);
	assert_int_equal(hex_length("0123  -"), 2);
	assert_int_equal(hex_length("abcdeX"), 2);
}

static void
random_numbers_fill_their_size_and_differ(void **state)
{
	char one[HEX_SIZE(16)], other[HEX_SIZE(16)];

	(void)state;
	random_hex(one, 16);
	random_hex(other, 16);
	assert_int_equal(strlen(one), 32);
	assert_int_equal(hex_length(one), 16);
	assert_string_not_equal(one, other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_has_two_small_digits_and_comes_back),
		cmocka_unit_test(digits_stand_in_the_order_of_their_weight),
		cmocka_unit_test(what_is_no_digit_is_refused),
		cmocka_unit_test(digits_are_counted_by_whole_bytes),
		cmocka_unit_test(random_numbers_fill_their_size_and_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
