/* SPDX-License-Identifier: ISC */
/* What a snapshot leaves out and what a restore does, without any sandbox. */
#include <regex.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/snapshot_exclude.h"
#include "core/snapshot_plan.h"
#include "core/snapshot_record.h"

#define MAX_FILE 100

/* As find -regex does: the whole path. */
static bool
matches(const char *expression, const char *path)
{
	regmatch_t match;
	regex_t regex;
	bool result;

	if (*expression == '\0')
		return false;
	assert_int_equal(regcomp(&regex, expression, REG_EXTENDED), 0);
	result = regexec(&regex, path, 1, &match, 0) == 0 && match.rm_so == 0 &&
		 path[match.rm_eo] == '\0';
	regfree(&regex);
	return result;
}

/* Is the path left out by this one pattern, and are its contents? */
static void
expect(const char *pattern, const char *path, bool excluded, bool held)
{
	char *patterns[2] = { NULL, NULL };
	struct snapshot_exclude exclude;
	struct error err;

	patterns[0] = memory_text(pattern);
	assert_int_equal(snapshot_exclude_make(&exclude, patterns, &err), 0);
	if (matches(exclude.exclude, path) != excluded || matches(exclude.hold, path) != held)
		fail_msg("%s: %s (%s, %s)", pattern, path, exclude.exclude, exclude.hold);
	snapshot_exclude_free(&exclude);
	memory_free(patterns[0]);
}

static void
own_directory_modules_and_git_are_always_left_out(void **state)
{
	(void)state;
	expect("x", "./.rws", true, false);
	expect("x", "./a/b/node_modules", true, false);
	expect("x", "./a/.git", true, false);
	expect("x", "./a/.gitignore", false, false);
	expect("x", "./node_modules2", false, false);
}

static void
the_seeds_three_forms_are_understood(void **state)
{
	(void)state;
	expect("dir", "./dir", true, false);
	expect("dir", "./a/dir", false, false);
	expect("dir/**", "./dir", false, true);
	expect("dir/**", "./dir2", false, false);
	expect("**/name/**", "./name", false, true);
	expect("**/name/**", "./a/b/name", false, true);
	expect("**/name/**", "./a/rename", false, false);
	expect("node_modules/**", "./node_modules", true, true);
}

static void
patterns_are_those_of_listings(void **state)
{
	(void)state;
	expect("*.o", "./a.o", true, false);
	expect("*.o", "./b/a.o", false, false);
	expect("**/*.o", "./b/c/a.o", true, false);
	expect("**/*.o", "./a.o", true, false);
	expect("a/**/b", "./a/b", true, false);
	expect("a/**/b", "./a/x/y/b", true, false);
	expect("?.c", "./x.c", true, false);
	expect("?.c", "./xx.c", false, false);
	expect("[a-c]x", "./bx", true, false);
	expect("[!a-c]x", "./bx", false, false);
	expect("*.{o,a}", "./x.a", true, false);
	expect("{a,b{c,d}}", "./bd", true, false);
	expect("./dir/", "./dir", true, false);
	expect("**", "./anything/at/all", true, false);
}

static void
what_is_special_to_expressions_is_not_to_patterns(void **state)
{
	(void)state;
	expect("a.b", "./axb", false, false);
	expect("a+(b)|c$^", "./a+(b)|c$^", true, false);
	expect("a[b", "./a[b", true, false);
	expect("a{b", "./a{b", true, false);
	expect("a}b,c", "./a}b,c", true, false);
	expect("a\\*b", "./a*b", true, false);
	expect("a\\*b", "./axb", false, false);
	expect("caf\xc3\xa9\xff", "./caf\xc3\xa9\xff", true, false);
}

static void
a_pattern_that_makes_no_sense_is_refused(void **state)
{
	static const char *const bad[] = { "", "/etc", "a\nb", "./" };
	char *patterns[2] = { NULL, NULL }, *word;
	struct snapshot_exclude exclude;
	struct error err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		patterns[0] = word = memory_text(bad[i]);
		assert_int_equal(snapshot_exclude_make(&exclude, patterns, &err), -1);
		assert_int_equal(err.code, ERROR_INVALID);
		memory_free(word);
	}
	patterns[0] = word = memory_allocate(200001);
	memset(word, 'x', 200000);
	word[200000] = '\0';
	assert_int_equal(snapshot_exclude_make(&exclude, patterns, &err), -1);
	memory_free(word);
}

/* Lists as texts with "|" for NUL, as they read better. */
static struct snapshot_list
make_list(const char *text)
{
	struct snapshot_list list;
	char *copy, *at;

	copy = memory_text(text);
	list.size = strlen(text);
	for (at = copy; (at = strchr(at, '|')) != NULL; at++)
		*at = '\0';
	list.data = copy;
	return list;
}

/* Each path of expected, ended by "|", is there, and nothing else. */
static void
expect_paths(const struct buffer *paths, const char *expected)
{
	const char *at = (const char *)buffer_data(paths), *end = at + paths->length;
	size_t length;
	char *wanted;
	bool found;

	for (; *expected != '\0'; expected += length + 1) {
		length = strcspn(expected, "|");
		wanted = memory_text_bounded(expected, length);
		found = false;
		for (at = (const char *)buffer_data(paths); at < end; at += strlen(at) + 1)
			found = found || strcmp(at, wanted) == 0;
		if (!found)
			fail_msg("%s is missing", wanted);
		memory_free(wanted);
	}
}

static size_t
count_paths(const struct buffer *paths)
{
	size_t i, count;

	for (i = count = 0; i < paths->length; i++)
		count += buffer_data(paths)[i] == '\0';
	return count;
}

static size_t
count_bars(const char *text)
{
	size_t count;

	for (count = 0; *text != '\0'; text++)
		count += *text == '|';
	return count;
}

static void
expect_plan(const char *entries, const char *skipped, const char *now, const char *restored,
    const char *deleted, const char *kept)
{
	struct snapshot_list lists[3];
	struct snapshot_plan plan;
	struct error err;
	size_t i;

	lists[0] = make_list(entries);
	lists[1] = make_list(skipped);
	lists[2] = make_list(now);
	assert_int_equal(
	    snapshot_plan_make(&plan, &lists[0], &lists[1], &lists[2], MAX_FILE, &err), 0);
	expect_paths(&plan.restored, restored);
	expect_paths(&plan.deleted, deleted);
	expect_paths(&plan.kept, kept);
	assert_int_equal(count_paths(&plan.restored), count_bars(restored));
	assert_int_equal(count_paths(&plan.deleted), count_bars(deleted));
	assert_int_equal(count_paths(&plan.kept), count_bars(kept));
	snapshot_plan_free(&plan);
	for (i = 0; i < 3; i++) {
		union {
			const char *in;
			char *out;
		} cast = { .in = lists[i].data };

		memory_free(cast.out);
	}
}

static void
every_file_of_the_archive_is_restored(void **state)
{
	(void)state;
	expect_plan("d ./a|f ./a/b|l ./c|", "", "d 0 ./a|f 5 ./a/b|", "a/b|c|", "", "");
	expect_plan("d ./a|f ./a/b|", "", "", "a/b|", "", "");
}

static void
what_was_made_since_is_deleted(void **state)
{
	(void)state;
	expect_plan(
	    "f ./a|", "", "f 1 ./a|f 1 ./b|d 0 ./c|l 1 ./c/d|p 0 ./e|", "a|", "b|c|c/d|e|", "");
}

static void
excluded_paths_are_left_alone_with_the_directories_that_hold_them(void **state)
{
	(void)state;
	expect_plan("f ./a|", "",
	    "f 1 ./a|d 0 ./new|X 0 ./new/node_modules|f 1 ./new/x|x 0 ./.git|", "a|", "new/x|",
	    "new|new/node_modules|.git|");
	expect_plan("d ./build|", "", "h 0 ./build|", "", "", "");
	expect_plan("f ./a|", "", "h 0 ./build|", "a|", "", "build|");
}

static void
skipped_paths_are_left_alone(void **state)
{
	(void)state;
	expect_plan("f ./a|", "./big|./closed|", "f 500 ./big|f 1 ./a|d 0 ./closed|f 1 ./closed/x|",
	    "a|", "", "big|closed|closed/x|");
	/* Smaller by now, and still not ours to delete. */
	expect_plan("f ./a|", "./big|", "f 1 ./big|", "a|", "", "big|");
}

static void
new_files_over_the_limit_are_left_alone(void **state)
{
	(void)state;
	expect_plan(
	    "f ./a|", "", "d 0 ./d|f 101 ./d/huge|f 100 ./fits|", "a|", "fits|", "d|d/huge|");
	/* One that the archive holds is brought back, however large it has become. */
	expect_plan("f ./a|", "", "f 500 ./a|", "a|", "", "");
}

static void
our_own_directory_is_no_part_of_it(void **state)
{
	(void)state;
	expect_plan("f ./a|", "", "X 0 ./.rws|f 1 ./a|", "a|", "", "");
}

static void
a_file_whose_place_is_taken_by_a_directory_comes_back(void **state)
{
	(void)state;
	expect_plan("f ./a|", "", "d 0 ./a|f 1 ./a/x|", "a|", "a/x|", "");
	expect_plan("d ./a|f ./a/x|", "", "l 1 ./a|", "a/x|", "", "");
}

static void
what_must_be_left_alone_wins_over_what_is_to_be_restored(void **state)
{
	(void)state;
	expect_plan(
	    "f ./a|f ./b|", "", "d 0 ./a|X 0 ./a/node_modules|", "b|", "", "a/node_modules|");
	expect_plan("d ./.git|f ./.git/x|f ./b|", "", "x 0 ./.git|", "b|", "", ".git|");
}

static void
names_may_hold_anything_but_nul(void **state)
{
	(void)state;
	expect_plan("f ./a\nb|f ./\xff|", "", "f 1 ./a\nb|f 1 ./\xfe|", "a\nb|\xff|", "\xfe|", "");
}

static void
damaged_lists_are_refused(void **state)
{
	static const char *const bad[] = { "f", "f a|", "f ./|", "f ./a", "|", "f/a|" };
	struct snapshot_list entries, none = { "", 0 };
	struct snapshot_plan plan;
	struct error err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		union {
			const char *in;
			char *out;
		} cast;

		entries = make_list(bad[i]);
		assert_int_equal(
		    snapshot_plan_make(&plan, &entries, &none, &none, MAX_FILE, &err), -1);
		snapshot_plan_free(&plan);
		assert_int_equal(
		    snapshot_plan_make(&plan, &none, &none, &entries, MAX_FILE, &err), -1);
		snapshot_plan_free(&plan);
		cast.in = entries.data;
		memory_free(cast.out);
	}
}

static void
directories_are_removed_after_what_is_in_them(void **state)
{
	struct snapshot_list now, none = { "", 0 };
	struct snapshot_plan plan;
	struct error err;
	union {
		const char *in;
		char *out;
	} cast;

	(void)state;
	now = make_list("d 0 ./a|d 0 ./a/b|d 0 ./a/b/c|");
	assert_int_equal(snapshot_plan_make(&plan, &none, &none, &now, MAX_FILE, &err), 0);
	assert_int_equal(plan.remove_directories.length, 4 + 6 + 8);
	assert_memory_equal(
	    buffer_data(&plan.remove_directories), "./a/b/c\0./a/b\0./a\0", 4 + 6 + 8);
	snapshot_plan_free(&plan);
	cast.in = now.data;
	memory_free(cast.out);
}

static void
a_record_survives_the_way_there_and_back(void **state)
{
	char label[] = "a \"b\"\n", pair[] = "k=v", pattern[] = "*.o";
	char *metadata[] = { pair, NULL }, *exclude[] = { pattern, NULL }, *text, *line;
	struct snapshot_request request = { label, metadata, exclude, 42 };
	struct snapshot_record record, again;
	struct error err;

	(void)state;
	snapshot_record_make(&record, &request);
	assert_true(snapshot_id_valid(record.id));
	text = snapshot_record_print(&record);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	line = memory_text_format("%s 10240 3 7 %s", record.id, text);
	assert_int_equal(snapshot_record_read(&again, line, &err), 0);
	assert_string_equal(again.id, record.id);
	assert_string_equal(again.label, label);
	assert_string_equal(again.metadata[0], pair);
	assert_string_equal(again.exclude[0], pattern);
	assert_int_equal(again.created, record.created);
	assert_int_equal(again.max_file_bytes, 42);
	assert_int_equal(again.archive_bytes, 10240);
	assert_int_equal(again.files, 3);
	assert_int_equal(again.bytes, 7);
	snapshot_record_free(&record);
	snapshot_record_free(&again);
	memory_free(text);
	memory_free(line);
}

static void
a_damaged_record_is_refused(void **state)
{
	static const char *const bad[] = { "", "x", "x 1 2 {}", "X 1 2 3 {}", "../x 1 2 3 {}",
		"x -1 2 3 {}", "x 1 2 3 []", "x 1 2 3 {", "x 1 2 99999999999999999999 {}" };
	struct snapshot_record record;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(snapshot_record_read(&record, bad[i], NULL), -1);
		snapshot_record_free(&record);
	}
}

static void
an_id_can_be_nothing_but_a_name(void **state)
{
	(void)state;
	assert_true(snapshot_id_valid("20260101t000000-ab12"));
	assert_false(snapshot_id_valid(""));
	assert_false(snapshot_id_valid("."));
	assert_false(snapshot_id_valid(".."));
	assert_false(snapshot_id_valid("a/b"));
	assert_false(snapshot_id_valid("-rf"));
	assert_false(snapshot_id_valid("A"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_directory_modules_and_git_are_always_left_out),
		cmocka_unit_test(the_seeds_three_forms_are_understood),
		cmocka_unit_test(patterns_are_those_of_listings),
		cmocka_unit_test(what_is_special_to_expressions_is_not_to_patterns),
		cmocka_unit_test(a_pattern_that_makes_no_sense_is_refused),
		cmocka_unit_test(every_file_of_the_archive_is_restored),
		cmocka_unit_test(what_was_made_since_is_deleted),
		cmocka_unit_test(excluded_paths_are_left_alone_with_the_directories_that_hold_them),
		cmocka_unit_test(skipped_paths_are_left_alone),
		cmocka_unit_test(new_files_over_the_limit_are_left_alone),
		cmocka_unit_test(our_own_directory_is_no_part_of_it),
		cmocka_unit_test(a_file_whose_place_is_taken_by_a_directory_comes_back),
		cmocka_unit_test(what_must_be_left_alone_wins_over_what_is_to_be_restored),
		cmocka_unit_test(names_may_hold_anything_but_nul),
		cmocka_unit_test(damaged_lists_are_refused),
		cmocka_unit_test(directories_are_removed_after_what_is_in_them),
		cmocka_unit_test(a_record_survives_the_way_there_and_back),
		cmocka_unit_test(a_damaged_record_is_refused),
		cmocka_unit_test(an_id_can_be_nothing_but_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
