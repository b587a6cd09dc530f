/* SPDX-License-Identifier: ISC */
/* Settings: defaults, checks, lists, the way to another process, and what is printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/option.h"

#define ROW(name, type, standard)                                                 \
	{                                                                         \
		name, type, OPTION_BOTH, 0, 100000, standard, NULL, NULL, "Help." \
	}

static const struct option table[] = {
	ROW("text", OPTION_TEXT, "hello"),
	ROW("plain", OPTION_TEXT, NULL),
	ROW("secret", OPTION_SECRET, NULL),
	ROW("flag", OPTION_BOOLEAN, "on"),
	ROW("number", OPTION_NUMBER, "7"),
	ROW("bare", OPTION_NUMBER, NULL),
	ROW("time", OPTION_DURATION, "90s"),
	ROW("size", OPTION_SIZE, "64KiB"),
	{ "choice", OPTION_CHOICE, OPTION_BOTH, 0, 0, "off", "off on attach", NULL, "Help." },
	ROW("list", OPTION_LIST, "a b"),
	ROW("pairs", OPTION_PAIRS, NULL),
	ROW("lines", OPTION_LINES, NULL),
	ROW("paths", OPTION_PATHS, NULL),
	{ .name = NULL },
};
static const struct option other[] = {
	ROW("text", OPTION_NUMBER, "1"), /* the first table's row counts */
	ROW("extra", OPTION_TEXT, NULL),
	{ .name = NULL },
};
static const struct option *const tables[] = { table, other, NULL };

static struct settings *settings;
static struct error err;

static int
make_settings(void **state)
{
	(void)state;
	settings = settings_new(tables);
	return 0;
}

static int
free_settings(void **state)
{
	(void)state;
	settings_free(settings);
	return 0;
}

static void
set(const char *name, const char *text)
{
	if (settings_set(settings, name, text, &err) != 0)
		fail_msg("%s = %s: %s", name, text, err.message);
}

/* The entries of a list joined by "|". */
static const char *
joined(const struct settings *from, const char *name)
{
	static char text[256];
	char *const *entry;
	size_t used;

	text[0] = '\0';
	used = 0;
	for (entry = settings_list(from, name); *entry != NULL && used < sizeof(text); entry++)
		used += (size_t)snprintf(
		    text + used, sizeof(text) - used, "%s%s", used == 0 ? "" : "|", *entry);
	return text;
}

static void
defaults_hold_until_something_is_set(void **state)
{
	(void)state;
	assert_string_equal(settings_text(settings, "text"), "hello");
	assert_null(settings_text(settings, "plain"));
	assert_true(settings_boolean(settings, "flag"));
	assert_int_equal(settings_number(settings, "time"), 90000);
	assert_int_equal(settings_number(settings, "size"), 65536);
	assert_int_equal(settings_number(settings, "bare"), 0);
	assert_string_equal(joined(settings, "list"), "a|b");
	assert_string_equal(joined(settings, "pairs"), "");
	assert_false(settings_has(settings, "list"));
	set("text", "x");
	set("flag", "no");
	assert_string_equal(settings_text(settings, "text"), "x");
	assert_false(settings_boolean(settings, "flag"));
	assert_true(settings_has(settings, "flag"));
}

static void
lists_gather_entries_in_place_of_the_default(void **state)
{
	(void)state;
	set("list", "  x \t y ");
	set("list", "z");
	assert_string_equal(joined(settings, "list"), "x|y|z");
	set("pairs", "A=1 2");
	set("pairs", "B=");
	assert_string_equal(joined(settings, "pairs"), "A=1 2|B=");
	set("lines", "one line");
	set("paths", "/a file");
	assert_string_equal(joined(settings, "lines"), "one line");
	assert_string_equal(joined(settings, "paths"), "/a file");
}

static void
an_empty_text_leaves_a_list_without_entries(void **state)
{
	(void)state;
	set("list", "");
	assert_string_equal(joined(settings, "list"), "");
	assert_true(settings_has(settings, "list"));
	set("list", "x");
	assert_string_equal(joined(settings, "list"), "x");
}

static void
bad_values_are_refused_and_change_nothing(void **state)
{
	static const char *const cases[][3] = {
		{ "flag", "maybe", "\"maybe\" is neither on nor off" },
		{ "number", "100001", "100001 is not between 0 and 100000" },
		{ "time", "2m", "2m is not between 0s and 100s" },
		{ "size", "1M", "1M is not between 0 and 100000" },
		{ "choice", "of", "\"of\" is none of: off on attach" },
		{ "choice", "off on", "\"off on\" is none of: off on attach" },
		{ "choice", "", "\"\" is none of: off on attach" },
		{ "text", "", "there is no value" },
		{ "pairs", "A", "\"A\" is not of the form NAME=VALUE" },
		{ "pairs", "=A", "\"=A\" is not of the form NAME=VALUE" },
		{ "nothing", "x", "unknown option \"nothing\"" },
	};
	size_t i;

	(void)state;
	set("number", "5");
	set("choice", "on");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(settings_set(settings, cases[i][0], cases[i][1], &err), -1);
		assert_string_equal(err.message, cases[i][2]);
	}
	assert_int_equal(settings_number(settings, "number"), 5);
	assert_string_equal(settings_text(settings, "choice"), "on");
	assert_string_equal(settings_text(settings, "text"), "hello");
	set("choice", "attach");
}

static void
a_list_has_a_limit(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 1024; i++)
		set("lines", "x");
	assert_int_equal(settings_set(settings, "lines", "x", &err), -1);
	assert_int_equal(err.code, ERROR_TOO_LARGE);
}

static void
of_two_tables_the_first_has_a_name(void **state)
{
	(void)state;
	assert_int_equal(settings_option(settings, "text")->type, OPTION_TEXT);
	assert_ptr_equal(settings_option(settings, "extra"), &other[1]);
	assert_null(settings_option(settings, "nothing"));
}

static void
inherit_fills_what_is_not_set(void **state)
{
	struct settings *base;

	(void)state;
	base = settings_new(tables);
	assert_int_equal(settings_set(base, "text", "base", &err), 0);
	assert_int_equal(settings_set(base, "number", "8", &err), 0);
	assert_int_equal(settings_set(base, "list", "x y", &err), 0);
	assert_int_equal(settings_set(base, "pairs", "", &err), 0);
	set("text", "own");
	settings_inherit(settings, base);
	settings_free(base);
	assert_string_equal(settings_text(settings, "text"), "own");
	assert_int_equal(settings_number(settings, "number"), 8);
	assert_string_equal(joined(settings, "list"), "x|y");
	assert_true(settings_has(settings, "pairs"));
	assert_false(settings_has(settings, "flag"));
}

static void
inherit_passes_over_another_option_of_the_same_name(void **state)
{
	const struct option *foreign[] = { other, NULL };
	struct settings *base;

	(void)state;
	base = settings_new(foreign);
	assert_int_equal(settings_set(base, "text", "3", &err), 0);
	assert_int_equal(settings_set(base, "extra", "e", &err), 0);
	settings_inherit(settings, base);
	settings_free(base);
	assert_string_equal(settings_text(settings, "text"), "hello");
	assert_string_equal(settings_text(settings, "extra"), "e");
}

static void
what_is_set_reaches_another_process(void **state)
{
	struct settings *received;
	struct message message;

	(void)state;
	set("secret", "s3cret");
	set("time", "3s");
	set("list", "x y");
	set("lines", "  with  blanks ");
	set("pairs", "");
	message_start(&message, 1);
	settings_put(&message, settings);
	received = settings_new(tables);
	assert_int_equal(settings_get(&message, received, &err), 0);
	assert_int_equal(message_end(&message, &err), 0);
	message_free(&message);
	assert_string_equal(settings_text(received, "secret"), "s3cret");
	assert_int_equal(settings_number(received, "time"), 3000);
	assert_string_equal(joined(received, "list"), "x|y");
	assert_string_equal(joined(received, "lines"), "  with  blanks ");
	assert_true(settings_has(received, "pairs"));
	assert_false(settings_has(received, "flag"));
	settings_free(received);
}

static void
a_message_with_unknown_or_bad_settings_is_refused(void **state)
{
	static const char *const cases[][2] = { { "nothing", "x" }, { "number", "x" },
		{ NULL, "x" }, { "text", NULL } };
	struct message message;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		message_start(&message, 1);
		message_put_u32(&message, 1);
		message_put_text(&message, cases[i][0]);
		message_put_text(&message, cases[i][1]);
		assert_int_equal(settings_get(&message, settings, &err), -1);
		message_free(&message);
	}
	message_start(&message, 1);
	message_put_u32(&message, UINT32_MAX);
	assert_int_equal(settings_get(&message, settings, &err), -1);
	message_free(&message);
}

static void
assert_printed(const char *name, size_t index, const char *expected)
{
	char *text;

	text = settings_print(settings, settings_option(settings, name), index);
	if (expected == NULL)
		assert_null(text);
	else
		assert_string_equal(text, expected);
	memory_free(text);
}

static void
values_print_as_they_are_written(void **state)
{
	(void)state;
	assert_printed("time", 0, "90s");
	assert_printed("size", 0, "64KiB");
	assert_printed("flag", 0, "on");
	assert_printed("text", 0, "hello");
	assert_printed("text", 1, NULL);
	assert_printed("plain", 0, NULL);
	assert_printed("secret", 0, NULL);
	assert_printed("list", 1, "b");
	assert_printed("list", 2, NULL);
	assert_printed("pairs", 0, NULL);
	set("secret", "s3cret");
	set("pairs", "");
	set("number", "012");
	assert_printed("secret", 0, "********");
	assert_printed("pairs", 0, "");
	assert_printed("pairs", 1, NULL);
	assert_printed("number", 0, "12");
}

static int
count_until_flag(void *argument, const struct option *option)
{
	++*(int *)argument;
	return strcmp(option->name, "flag") == 0 ? 42 : 0;
}

static void
each_visits_rows_in_order_until_told_to_stop(void **state)
{
	int count;

	(void)state;
	count = 0;
	assert_int_equal(settings_each(settings, count_until_flag, &count), 42);
	assert_int_equal(count, 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_settings, free_settings)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(defaults_hold_until_something_is_set),
		TEST(lists_gather_entries_in_place_of_the_default),
		TEST(an_empty_text_leaves_a_list_without_entries),
		TEST(bad_values_are_refused_and_change_nothing),
		TEST(a_list_has_a_limit),
		TEST(of_two_tables_the_first_has_a_name),
		TEST(inherit_fills_what_is_not_set),
		TEST(inherit_passes_over_another_option_of_the_same_name),
		TEST(what_is_set_reaches_another_process),
		TEST(a_message_with_unknown_or_bad_settings_is_refused),
		TEST(values_print_as_they_are_written),
		TEST(each_visits_rows_in_order_until_told_to_stop),
	};

	return cmocka_run_group_tests_name("option", tests, NULL, NULL);
}
