/* SPDX-License-Identifier: ISC */
/* What drivers/gather makes for its script, and reads of what that says. */
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "drivers/gather.h"

static void
arguments_hold_nothing_that_a_shell_looks_at(void **state)
{
	char word[] = "$(reboot) `x` '\" *\n", empty[] = "", *argv[] = { word, empty, NULL };
	struct gather gather = { 0 };
	char **list;
	size_t i;

	(void)state;
	gather_init(&gather, 1000);
	list = gather_arguments(&gather, argv, "in\0put", 6);
	assert_string_equal(list[0], gather.work);
	assert_string_equal(list[1], "1000");
	assert_string_equal(list[2], "1");
	assert_string_equal(list[3], "aW4AcHV0");
	assert_string_equal(list[5], "=");
	assert_null(list[6]);
	for (i = 0; list[i] != NULL; i++)
		assert_int_equal(strspn(list[i], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuv"
						 "wxyz0123456789+/=.-"),
		    strlen(list[i]));
	memory_list_free(list);
}

static void
stdin_goes_in_pieces_that_linux_takes_as_arguments(void **state)
{
	char word[] = "cat", *argv[] = { word, NULL }, *input, **list;
	struct gather gather = { 0 };
	size_t i, count;

	(void)state;
	input = memory_zeroed(1, GATHER_INPUT_MAX);
	assert_int_equal(gather_check(argv, GATHER_INPUT_MAX - 7, NULL), 0);
	assert_int_equal(gather_check(argv, GATHER_INPUT_MAX, NULL), -1);
	gather_init(&gather, 0);
	list = gather_arguments(&gather, argv, input, GATHER_INPUT_MAX - 7);
	for (count = 0; list[count] != NULL; count++)
		assert_true(strlen(list[count]) < 128 * 1024);
	assert_string_equal(list[2], "15");
	assert_int_equal(count, 3 + 15 + 1);
	for (i = 3; i < 18 && list[i] != NULL; i++)
		assert_int_not_equal(list[i][0], '=');
	memory_list_free(list);
	memory_free(input);
}

static void
two_scripts_have_two_directories(void **state)
{
	struct gather one = { 0 }, other = { 0 };

	(void)state;
	gather_init(&one, 0);
	gather_init(&other, 0);
	assert_string_not_equal(one.work, other.work);
}

static void
an_answer_is_read_behind_noise(void **state)
{
	static const char text[] = "motd rws-result exited 9 0 . .\nrws-result exited 1 0 . .\n"
				   "rws-result signaled 15 1 .b3V0AA== .\n";
	struct gather_answer answer;
	struct error err;

	(void)state;
	assert_true(gather_is_complete(text));
	assert_int_equal(gather_read(text, &answer, &err), 0);
	assert_true(answer.result.ended.signaled);
	assert_int_equal(answer.result.ended.status, 15);
	assert_true(answer.result.truncated);
	assert_int_equal(answer.result.output_size, 4);
	assert_memory_equal(answer.result.output, "out\0", 4);
	assert_int_equal(answer.result.errors_size, 0);
	gather_answer_free(&answer);
}

static void
an_answer_that_is_cut_is_not_complete(void **state)
{
	(void)state;
	assert_false(gather_is_complete(""));
	assert_false(gather_is_complete("noise\n"));
	assert_false(gather_is_complete("rws-result exited 0 0 .b3V0 ."));
	assert_false(gather_is_complete("x rws-result exited 0 0 . .\n"));
	assert_true(gather_is_complete("rws-result exited 0 0 .b3V0 .\n"));
}

static void
what_is_malformed_is_no_answer(void **state)
{
	static const char *const bad[] = { "", "sh: not found\n", "rws-result \n",
		"rws-result exited 256 0 . .\n", "rws-result exited -1 0 . .\n",
		"rws-result exited 0 0 b3V0 .\n", "rws-result exited 0 0 .b3V .\n",
		"rws-result exited 0 0 .b3V0\n", "rws-result exited 0 0 .\xef\xbf\xbd .\n" };
	struct gather_answer answer;
	struct error err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(gather_read(bad[i], &answer, &err), -1);
		assert_int_equal(err.code, ERROR_UNAVAILABLE);
		gather_answer_free(&answer);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_hold_nothing_that_a_shell_looks_at),
		cmocka_unit_test(stdin_goes_in_pieces_that_linux_takes_as_arguments),
		cmocka_unit_test(two_scripts_have_two_directories),
		cmocka_unit_test(an_answer_is_read_behind_noise),
		cmocka_unit_test(an_answer_that_is_cut_is_not_complete),
		cmocka_unit_test(what_is_malformed_is_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
