/* SPDX-License-Identifier: ISC */
/* Paths and patterns as texts. */
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/file.h"
#include "core/file_glob.h"
#include "core/file_path.h"

static void
normalize_takes_away_what_means_nothing(void **state)
{
	static const char *const cases[][2] = { { ".", "/r/oot" }, { "a", "/r/oot/a" },
		{ "/", "/" }, { "//a//b/", "/a/b" }, { "./a/./b/.", "/r/oot/a/b" },
		{ "a/../b", "/r/oot/b" }, { "../x", "/r/x" }, { "../../../..", "/" },
		{ "/../a", "/a" }, { "a/..", "/r/oot" }, { "...", "/r/oot/..." },
		{ "/a/..b", "/a/..b" } };
	size_t i;
	char *text;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		text = path_normalize("/r/oot", cases[i][0], NULL);
		assert_string_equal(text, cases[i][1]);
		memory_free(text);
	}
}

static void
normalize_refuses_the_empty_and_the_endless(void **state)
{
	char path[FILE_PATH_MAX + 2];
	struct error err;
	char *text;

	(void)state;
	assert_null(path_normalize("/", "", &err));
	assert_int_equal(err.code, ERROR_INVALID);
	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_null(path_normalize("/", path, &err));
	path[sizeof(path) - 2] = '\0';
	text = path_normalize("/", path, &err);
	assert_non_null(text);
	memory_free(text);
}

static void
within_compares_whole_parts(void **state)
{
	(void)state;
	assert_true(path_is_within("/a/b", "/a/b"));
	assert_true(path_is_within("/a/b", "/a/b/c"));
	assert_false(path_is_within("/a/b", "/a/bc"));
	assert_false(path_is_within("/a/b", "/a"));
	assert_true(path_is_within("/", "/a"));
	assert_true(path_is_within("/", "/"));
}

static void
parts_are_taken_and_joined(void **state)
{
	static const char *const cases[][3] = { { "/a/b", "/a", "b" }, { "/a", "/", "a" } };
	char *text;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		text = path_parent(cases[i][0]);
		assert_string_equal(text, cases[i][1]);
		memory_free(text);
		assert_string_equal(path_last(cases[i][0]), cases[i][2]);
		text = path_join(cases[i][1], cases[i][2]);
		assert_string_equal(text, cases[i][0]);
		memory_free(text);
	}
}

static void
glob_matches_as_its_words_say(void **state)
{
	static const struct {
		const char *glob, *path;
		bool matches;
	} cases[] = {
		{ "*", "a", true },
		{ "*", "a/b", false },
		{ "*.c", ".c", true },
		{ "a/*", "a/b", true },
		{ "a/*", "a", false },
		{ "a/*", "a/b/c", false },
		{ "**", "a/b/c", true },
		{ "**/c", "c", true },
		{ "**/c", "a/b/c", true },
		{ "a/**", "a", true },
		{ "a/**", "a/b/c", true },
		{ "a/**/d", "a/d", true },
		{ "a/**/d", "a/b/c/d", true },
		{ "a/**/d", "a/b/c", false },
		{ "**/b/**/d", "a/b/x/b/y/d", true },
		{ "?", "a", true },
		{ "?", "/", false },
		{ "[a-c]x", "bx", true },
		{ "[!a-c]x", "bx", false },
		{ "{a,b}.c", "b.c", true },
		{ "{a,b/{c,d}}", "b/d", true },
		{ "{a,b}", "c", false },
		{ "\\*", "*", true },
		{ "\\*", "a", false },
		{ "\\{a,b}", "{a,b}", true },
		{ "a{", "a{", true },
		{ "", "a", false },
		{ "a", "b", false },
		{ "a*b*c", "aXbXc", true },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (glob_match(cases[i].glob, cases[i].path) != cases[i].matches)
			fail_msg("%s and %s", cases[i].glob, cases[i].path);
}

static void
glob_gives_up_on_endless_braces(void **state)
{
	char glob[256] = "";
	size_t i;

	(void)state;
	for (i = 0; i < 40; i++)
		memcpy(glob + 5 * i, "{a,b}", 6);
	assert_false(glob_match(glob, "c"));
}

static void
the_last_part_of_a_glob_matches_the_last_of_every_match(void **state)
{
	static const char *const cases[][2] = { { "*.c", "*.c" }, { "a/b", "b" }, { "a/**", "*" },
		{ "**/*.h", "*.h" }, { "{a/b,c}", "*" } };
	char *text;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		text = glob_last(cases[i][0]);
		assert_string_equal(text, cases[i][1]);
		memory_free(text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(normalize_takes_away_what_means_nothing),
		cmocka_unit_test(normalize_refuses_the_empty_and_the_endless),
		cmocka_unit_test(within_compares_whole_parts),
		cmocka_unit_test(parts_are_taken_and_joined),
		cmocka_unit_test(glob_matches_as_its_words_say),
		cmocka_unit_test(glob_gives_up_on_endless_braces),
		cmocka_unit_test(the_last_part_of_a_glob_matches_the_last_of_every_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
