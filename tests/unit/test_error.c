/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"

static void
set_fills_code_and_message_and_returns_failure(void **state)
{
	struct error err = { .saved_errno = 7 };

	(void)state;
	assert_int_equal(error_set(&err, ERROR_DENIED, "%s is %d", "x", 5), -1);
	assert_int_equal(err.code, ERROR_DENIED);
	assert_int_equal(err.saved_errno, 0);
	assert_string_equal(err.message, "x is 5");
}

static void
every_call_accepts_that_nobody_wants_the_error(void **state)
{
	(void)state;
	assert_int_equal(error_set(NULL, ERROR_DENIED, "x"), -1);
	assert_int_equal(error_system(NULL, ENOENT, "x"), -1);
	assert_int_equal(error_wrap(NULL, "x"), -1);
}

static void
system_errors_carry_their_text_and_code(void **state)
{
	struct error err;

	(void)state;
	assert_int_equal(error_system(&err, ENOENT, "open %s", "/x"), -1);
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	assert_int_equal(err.saved_errno, ENOENT);
	assert_string_equal(err.message, "open /x: No such file or directory");
}

static void
wrap_reads_from_outside_in_and_keeps_the_code(void **state)
{
	struct error err;

	(void)state;
	error_system(&err, EACCES, "open /x");
	assert_int_equal(error_wrap(&err, "load %s", "keys"), -1);
	assert_int_equal(error_wrap(&err, "start"), -1);
	assert_string_equal(err.message, "start: load keys: open /x: Permission denied");
	assert_int_equal(err.code, ERROR_DENIED);
	assert_int_equal(err.saved_errno, EACCES);
}

static void
a_message_too_long_is_cut_and_says_so(void **state)
{
	char text[2 * ERROR_MESSAGE_MAX];
	struct error err;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	error_set(&err, ERROR_INVALID, "%s", text);
	assert_int_equal(strlen(err.message), ERROR_MESSAGE_MAX - 1);
	assert_string_equal(err.message + ERROR_MESSAGE_MAX - 5, "x...");
	error_wrap(&err, "context");
	assert_memory_equal(err.message, "context: xxx", 12);
	assert_string_equal(err.message + ERROR_MESSAGE_MAX - 5, "x...");
	error_wrap(&err, "%s", text);
	assert_string_equal(err.message + ERROR_MESSAGE_MAX - 5, "x...");
	text[ERROR_MESSAGE_MAX - 2] = '\0';
	error_system(&err, ENOENT, "%s", text);
	assert_string_equal(err.message + ERROR_MESSAGE_MAX - 5, "x...");
}

static void
every_code_has_a_name_that_leads_back_to_it(void **state)
{
	unsigned code;

	(void)state;
	for (code = ERROR_NONE + 1; code < ERROR_CODES; code++) {
		const struct error_kind *kind = error_kind((enum error_code)code);

		assert_int_equal(error_code_parse(kind->name), code);
		assert_true(kind->sftp_status > 0);
		assert_true(kind->rpc_number < 0);
		assert_true(kind->exit_status >= 1 && kind->exit_status <= 255);
		assert_true(strlen(kind->sentence) > 0);
	}
	assert_int_equal(error_code_parse("NONE"), ERROR_NONE);
	assert_int_equal(error_code_parse("not_found"), ERROR_NONE);
	assert_int_equal(error_code_parse(""), ERROR_NONE);
	assert_ptr_equal(error_kind(ERROR_CODES), error_kind(ERROR_INVALID));
}

static void
no_two_codes_share_an_rpc_number(void **state)
{
	unsigned first, second;

	(void)state;
	for (first = ERROR_NONE + 1; first < ERROR_CODES; first++)
		for (second = first + 1; second < ERROR_CODES; second++)
			assert_int_not_equal(error_kind((enum error_code)first)->rpc_number,
			    error_kind((enum error_code)second)->rpc_number);
}

static void
unknown_system_errors_are_unavailable(void **state)
{
	(void)state;
	assert_int_equal(error_code_system(EEXIST), ERROR_EXISTS);
	assert_int_equal(error_code_system(ENOTEMPTY), ERROR_NOT_EMPTY);
	assert_int_equal(error_code_system(EIO), ERROR_UNAVAILABLE);
	assert_int_equal(error_code_system(-1), ERROR_UNAVAILABLE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_fills_code_and_message_and_returns_failure),
		cmocka_unit_test(every_call_accepts_that_nobody_wants_the_error),
		cmocka_unit_test(system_errors_carry_their_text_and_code),
		cmocka_unit_test(wrap_reads_from_outside_in_and_keeps_the_code),
		cmocka_unit_test(a_message_too_long_is_cut_and_says_so),
		cmocka_unit_test(every_code_has_a_name_that_leads_back_to_it),
		cmocka_unit_test(no_two_codes_share_an_rpc_number),
		cmocka_unit_test(unknown_system_errors_are_unavailable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
