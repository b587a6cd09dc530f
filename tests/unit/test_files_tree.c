/* SPDX-License-Identifier: ISC */
/* Names, directories, links and attributes of a workspace's files, on every backend. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/descriptor.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/file_path.h"
#include "core/files.h"
#include "core/workspace.h"
#include "tests/unit/files_subject.h"

#define BILLION INT64_C(1000000000)

static void
list_puts_each_directory_before_what_is_in_it(void **state)
{
	struct subject *subject = *state;
	struct file_request request;

	subject_prepare(subject,
	    "mkdir -p a/b skip/in .hid; touch a/b/c a-b a.b a/x .hid/y skip/in/z Z; ln -s a/b l");
	subject_expect_list(subject, subject_request(FILE_LIST, "."), "Z\na\na-b\na.b\nl\nskip\n");
	request = subject_request(FILE_LIST, ".");
	request.flags = FILE_RECURSIVE;
	subject_expect_list(
	    subject, request, "Z\na\na/b\na/b/c\na/x\na-b\na.b\nl\nskip\nskip/in\nskip/in/z\n");
	request = subject_request(FILE_LIST, ".");
	request.flags = FILE_RECURSIVE | FILE_HIDDEN;
	request.skip = memory_list_add(NULL, 0, "skip");
	request.skip = memory_list_add(request.skip, 1, "b*");
	subject_expect_list(
	    subject, request, ".hid\n.hid/y\nZ\na\na/b\na/b/c\na/x\na-b\na.b\nl\nskip\n");
	subject_expect_list(subject, subject_request(FILE_LIST, "a"), "b\nx\n");
	subject_expect_list(subject, subject_request(FILE_LIST, "l"), "c\n");
	subject_expect_error(
	    subject, subject_try(subject, FILE_LIST, "a/x", 0), ERROR_NOT_DIRECTORY);
	subject_expect_error(subject, subject_try(subject, FILE_LIST, "none", 0), ERROR_NOT_FOUND);
}

static void
list_applies_glob_and_limit_after_sorting(void **state)
{
	static const struct {
		const char *glob;
		uint32_t limit;
		const char *lines;
	} cases[] = {
		{ "*.c", 0, "b.c\n" },
		{ "**/*.c", 0, "b.c\nd/a.c\nd/e/f.c\n" },
		{ "d/**", 0, "d\nd/a.c\nd/e\nd/e/f.c\nd/g.h\n" },
		{ "d/*", 0, "d/a.c\nd/e\nd/g.h\n" },
		{ "**/*.{c,h}", 2, "b.c\nd/a.c\n" },
		{ "**/[f-z].?", 0, "d/e/f.c\nd/g.h\n" },
		{ NULL, 3, "b.c\nd\nd/a.c\n" },
		{ "nothing", 0, "" },
	};
	struct subject *subject = *state;
	struct file_request request;
	size_t i;

	subject_prepare(subject, "mkdir -p d/e; touch b.c d/a.c d/e/f.c d/g.h");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		request = subject_request(FILE_LIST, ".");
		request.flags = FILE_RECURSIVE;
		request.glob = cases[i].glob == NULL ? NULL : memory_text(cases[i].glob);
		request.limit = cases[i].limit;
		subject_expect_list(subject, request, cases[i].lines);
	}
}

static void
list_carries_attributes_and_odd_names(void **state)
{
	struct subject *subject = *state;
	struct file_request request = subject_request(FILE_LIST, ".");
	struct file_entry entry;
	struct file_list *list;

	subject_prepare(subject, "printf 123 >'a\nb'; chmod 640 'a\nb'; touch -d @-5.5 'a\nb'");
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_true(S_ISDIR(subject->reply.attributes.mode));
	list = file_list_open(subject->reply.fd);
	subject->reply.fd = -1;
	assert_int_equal(file_list_next(list, &entry, NULL), 1);
	assert_string_equal(entry.path, "a\nb");
	assert_int_equal(entry.attributes.mode, S_IFREG | 0640);
	assert_int_equal(entry.attributes.size, 3);
	assert_int_equal(entry.attributes.modified, -5 * BILLION - BILLION / 2);
	assert_int_equal(file_list_next(list, &entry, NULL), 0);
	file_list_free(list);
}

static void
mkdir_makes_one_directory_or_a_path_of_them(void **state)
{
	struct subject *subject = *state;
	struct file_request request;

	assert_int_equal(subject_try(subject, FILE_MKDIR, "d", 0), 0);
	subject_expect_error(subject, subject_try(subject, FILE_MKDIR, "d", 0), ERROR_EXISTS);
	assert_int_equal(subject_try(subject, FILE_MKDIR, "d", FILE_PARENTS), 0);
	subject_expect_error(subject, subject_try(subject, FILE_MKDIR, "x/y", 0), ERROR_NOT_FOUND);
	assert_int_equal(subject_try(subject, FILE_MKDIR, "x/y", FILE_PARENTS), 0);
	subject_prepare(subject, "echo f >f; [ -d x/y ]; [ \"$(stat -c %a d)\" = 755 ]");
	subject_expect_error(
	    subject, subject_try(subject, FILE_MKDIR, "f", FILE_PARENTS), ERROR_EXISTS);
	request = subject_request(FILE_MKDIR, "m");
	request.change.fields = FILE_CHANGE_MODE;
	request.change.mode = 0700;
	assert_int_equal(subject_ask(subject, &request), 0);
	subject_prepare(subject, "[ \"$(stat -c %a m)\" = 700 ]");
}

static void
remove_takes_what_it_was_asked_for_and_no_more(void **state)
{
	struct subject *subject = *state;

	subject_prepare(subject,
	    "mkdir -p d/e ro; echo x >d/e/f; echo x >f; ln -s d l; ln -s ../outside d/out; "
	    "echo keep >../outside/keep; touch ro/x; chmod 500 ro");
	subject_expect_error(
	    subject, subject_try(subject, FILE_REMOVE, "none", 0), ERROR_NOT_FOUND);
	subject_expect_error(subject, subject_try(subject, FILE_REMOVE, "d", 0), ERROR_NOT_EMPTY);
	subject_expect_error(
	    subject, subject_try(subject, FILE_REMOVE, "d", FILE_ONLY_FILE), ERROR_IS_DIRECTORY);
	subject_expect_error(subject, subject_try(subject, FILE_REMOVE, "f", FILE_ONLY_DIRECTORY),
	    ERROR_NOT_DIRECTORY);
	subject_expect_error(
	    subject, subject_try(subject, FILE_REMOVE, ".", FILE_RECURSIVE), ERROR_DENIED);
	assert_int_equal(subject_try(subject, FILE_REMOVE, "l", FILE_ONLY_FILE), 0);
	subject_prepare(subject, "[ -f d/e/f ]");
	assert_int_equal(subject_try(subject, FILE_REMOVE, "d", FILE_RECURSIVE), 0);
	assert_int_equal(subject_try(subject, FILE_REMOVE, "f", 0), 0);
	subject_prepare(subject, "[ ! -e d ]; [ ! -e f ]; [ -f ../outside/keep ]");
}

static void
remove_with_trash_moves_away(void **state)
{
	struct subject *subject = *state;

	subject_prepare(subject, "mkdir -p d/e; echo x >d/e/f; echo one >f");
	subject_expect_error(
	    subject, subject_try(subject, FILE_REMOVE, "d", FILE_TRASH), ERROR_NOT_EMPTY);
	assert_int_equal(subject_try(subject, FILE_REMOVE, "d", FILE_TRASH | FILE_RECURSIVE), 0);
	assert_int_equal(strncmp(subject->reply.text, subject->root, strlen(subject->root)), 0);
	assert_int_equal(subject_try(subject, FILE_REMOVE, "f", FILE_TRASH), 0);
	subject_expect_content(subject, subject->reply.text, "one\n");
	subject_prepare(
	    subject, "[ ! -e d ]; [ ! -e f ]; [ \"$(ls .rws/trash | wc -l)\" = 2 ]; echo two >f");
	assert_int_equal(subject_try(subject, FILE_REMOVE, "f", FILE_TRASH), 0);
	subject_prepare(subject, "[ \"$(ls .rws/trash | wc -l)\" = 3 ]");
	subject_expect_error(subject,
	    subject_try(subject, FILE_REMOVE, ".rws/trash", FILE_TRASH | FILE_RECURSIVE),
	    ERROR_INVALID);
	subject_prepare(subject, "rm -rf .rws; ln -s ../outside .rws; echo x >f");
	subject_expect_error(
	    subject, subject_try(subject, FILE_REMOVE, "f", FILE_TRASH), ERROR_NOT_DIRECTORY);
	subject_prepare(subject, "[ -f f ]; [ -z \"$(ls ../outside)\" ]");
}

static void
rename_replaces_only_when_asked(void **state)
{
	struct subject *subject = *state;
	struct file_request request;

	subject_prepare(subject, "echo a >a; echo b >b; mkdir -p d full/x empty; ln -s nowhere l");
	request = subject_request_two(FILE_RENAME, "a", "b", 0);
	subject_expect_error(subject, subject_ask(subject, &request), ERROR_EXISTS);
	request = subject_request_two(FILE_RENAME, "a", "l", 0);
	subject_expect_error(subject, subject_ask(subject, &request), ERROR_EXISTS);
	request = subject_request_two(FILE_RENAME, "a", "b", FILE_OVERWRITE);
	assert_int_equal(subject_ask(subject, &request), 0);
	subject_expect_content(subject, "b", "a\n");
	request = subject_request_two(FILE_RENAME, "b", "b", 0);
	assert_int_equal(subject_ask(subject, &request), 0);
	request = subject_request_two(FILE_RENAME, "d", "d/in", 0);
	subject_expect_error(subject, subject_ask(subject, &request), ERROR_INVALID);
	request = subject_request_two(FILE_RENAME, "d", "full", FILE_OVERWRITE);
	subject_expect_error(subject, subject_ask(subject, &request), ERROR_NOT_EMPTY);
	request = subject_request_two(FILE_RENAME, "d", "empty", FILE_OVERWRITE);
	assert_int_equal(subject_ask(subject, &request), 0);
	request = subject_request_two(FILE_RENAME, "b", "empty", FILE_OVERWRITE);
	subject_expect_error(subject, subject_ask(subject, &request), ERROR_IS_DIRECTORY);
	request = subject_request_two(FILE_RENAME, "none", "x", 0);
	subject_expect_error(subject, subject_ask(subject, &request), ERROR_NOT_FOUND);
	request = subject_request_two(FILE_RENAME, "b", "p/q/b", FILE_PARENTS);
	assert_int_equal(subject_ask(subject, &request), 0);
	request = subject_request_two(FILE_RENAME, "l", "l2", 0);
	assert_int_equal(subject_ask(subject, &request), 0);
	subject_prepare(subject, "[ -L l2 ]; [ -f p/q/b ]");
}

static void
links_of_both_kinds_are_made_and_read(void **state)
{
	struct subject *subject = *state;
	struct file_request request;

	subject_prepare(subject, "echo a >a");
	request = subject_request_two(FILE_SYMLINK, "s", "any\nthing\n", 0);
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_int_equal(subject_try(subject, FILE_READLINK, "s", 0), 0);
	assert_string_equal(subject->reply.text, "any\nthing\n");
	request = subject_request_two(FILE_SYMLINK, "a", "x", 0);
	subject_expect_error(subject, subject_ask(subject, &request), ERROR_EXISTS);
	subject_expect_error(subject, subject_try(subject, FILE_READLINK, "a", 0), ERROR_INVALID);
	request = subject_request_two(FILE_LINK, "a", "b", 0);
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_int_equal(subject_try(subject, FILE_STAT, "b", 0), 0);
	assert_int_equal(subject->reply.attributes.links, 2);
	request = subject_request_two(FILE_LINK, "a", "b", 0);
	subject_expect_error(subject, subject_ask(subject, &request), ERROR_EXISTS);
	request = subject_request_two(FILE_LINK, "s", "s2", 0);
	assert_int_equal(subject_ask(subject, &request), 0);
	subject_prepare(subject, "[ -L s2 ]");
}

static void
setstat_changes_what_it_names(void **state)
{
	struct subject *subject = *state;
	struct file_request request = subject_request(FILE_SETSTAT, "l");

	subject_prepare(subject, "echo 12345 >a; ln -s a l");
	request.flags = FILE_FOLLOW;
	request.change.fields = FILE_CHANGE_MODE | FILE_CHANGE_SIZE | FILE_CHANGE_TIMES |
				FILE_CHANGE_OWNER;
	request.change.mode = 0604;
	request.change.size = 3;
	request.change.accessed = 7 * BILLION;
	request.change.modified = 8 * BILLION + 9;
	request.change.user = getuid();
	request.change.group = getgid();
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_int_equal(subject_try(subject, FILE_STAT, "a", 0), 0);
	assert_int_equal(subject->reply.attributes.mode & 07777, 0604);
	assert_int_equal(subject->reply.attributes.size, 3);
	assert_int_equal(subject->reply.attributes.modified, 8 * BILLION + 9);
	request = subject_request(FILE_SETSTAT, "l");
	request.change.fields = FILE_CHANGE_TIMES;
	request.change.modified = 5 * BILLION;
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_int_equal(subject_try(subject, FILE_STAT, "l", 0), 0);
	assert_int_equal(subject->reply.attributes.modified, 5 * BILLION);
	request = subject_request(FILE_SETSTAT, "l");
	request.change.fields = FILE_CHANGE_MODE;
	subject_expect_error(subject, subject_ask(subject, &request), ERROR_UNSUPPORTED);
	request = subject_request(FILE_SETSTAT, "a");
	request.change.fields = FILE_CHANGE_SIZE;
	request.change.size = 11 << 20;
	subject_expect_error(subject, subject_ask(subject, &request), ERROR_TOO_LARGE);
}

static void
statvfs_and_names_tell_of_the_system(void **state)
{
	struct subject *subject = *state;
	struct file_request request;

	assert_int_equal(subject_try(subject, FILE_STATVFS, ".", 0), 0);
	assert_true(subject->reply.volume.block_size > 0);
	assert_true(subject->reply.volume.blocks > 0);
	assert_true(subject->reply.volume.name_max >= 255);
	file_request_init(&request, FILE_NAMES);
	request.numbers = memory_zeroed(3, sizeof(*request.numbers));
	request.numbers[1] = 4000000000U;
	request.number_count = 3;
	request.user_count = 2;
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_string_equal(subject->reply.names[0], "root");
	assert_string_equal(subject->reply.names[1], "");
	assert_string_equal(subject->reply.names[2], "root");
	assert_null(subject->reply.names[3]);
}

/* How often to look whether the sweep, which is done before the second request, was done. */
#define SWEEP_LOOKS 10000

/*
 * The notes of all workspaces of a user may share a directory, so their names carry that of the
 * test's own: it must not matter to others, nor they to it.
 */
static void
leftovers_go_once_they_are_old(void **state)
{
	struct subject *subject = *state;
	struct file_request request;
	struct error err;
	char *lines, *old, *tag;
	unsigned i;

	subject_prepare(subject,
	    "tag=$(basename $(dirname $PWD)); notes=/tmp/.rws-$(id -u); mkdir -p -m 700 $notes; "
	    "for n in old young; do echo x >.rws-$tag-$n; "
	    "printf %s \"$PWD/.rws-$tag-$n\" >$notes/.rws-$tag-$n; done; "
	    "echo x >precious; printf %s \"$PWD/precious\" >$notes/.rws-$tag-forged; "
	    "echo x >../outside/.rws-$tag-far; "
	    "printf %s \"${PWD%/*}/outside/.rws-$tag-far\" >$notes/.rws-$tag-far; "
	    "touch -d '2 hours ago' $notes/.rws-$tag-old $notes/.rws-$tag-f*");
	tag = memory_text(path_last(subject->directory));
	old = memory_text_format(".rws-%s-old", tag);
	lines = memory_text_format(".rws-%s-young\nprecious\n", tag);
	assert_int_equal(settings_set(subject->settings, "leftover_age", "1h", &err), 0);
	/* The first request starts the server, which sweeps before it serves the next. */
	assert_int_equal(subject_try(subject, FILE_STAT, ".", 0), 0);
	for (i = 0; i < SWEEP_LOOKS && subject_try(subject, FILE_STAT, old, 0) == 0; i++)
		continue;
	assert_true(i < SWEEP_LOOKS);
	request = subject_request(FILE_LIST, ".");
	request.flags = FILE_HIDDEN;
	subject_expect_list(subject, request, lines);
	subject_prepare(subject,
	    "tag=$(basename $(dirname $PWD)); cd /tmp/.rws-$(id -u); ls -d .rws-$tag-* | tr '\\n' ' ' | "
	    "grep -qx \".rws-$tag-far .rws-$tag-young \"; s=$?; rm -f .rws-$tag-*; "
	    "[ -f $OLDPWD/../outside/.rws-$tag-far ] && exit $s");
	memory_free(lines);
	memory_free(old);
	memory_free(tag);
}

static void
stat_says_what_lstat_says(void **state)
{
	struct subject *subject = *state;
	struct stat status;
	char *path;

	subject_prepare(
	    subject, "printf 12345 >a; chmod 4751 a; touch -d @1234567890.123456789 a; ln -s a l");
	path = subject_path(subject, "a");
	assert_int_equal(lstat(path, &status), 0);
	memory_free(path);
	assert_int_equal(subject_try(subject, FILE_STAT, "a", 0), 0);
	assert_int_equal(subject->reply.attributes.mode, status.st_mode);
	assert_int_equal(subject->reply.attributes.size, 5);
	assert_int_equal(subject->reply.attributes.inode, status.st_ino);
	assert_int_equal(subject->reply.attributes.user, status.st_uid);
	assert_int_equal(subject->reply.attributes.links, 1);
	assert_int_equal(subject->reply.attributes.modified, 1234567890 * BILLION + 123456789);
	assert_int_equal(subject_try(subject, FILE_STAT, "l", 0), 0);
	assert_true(S_ISLNK(subject->reply.attributes.mode));
	assert_int_equal(subject_try(subject, FILE_STAT, "l", FILE_FOLLOW), 0);
	assert_true(S_ISREG(subject->reply.attributes.mode));
	subject_expect_error(subject, subject_try(subject, FILE_STAT, "b", 0), ERROR_NOT_FOUND);
	subject_expect_error(
	    subject, subject_try(subject, FILE_STAT, "a/b", 0), ERROR_NOT_DIRECTORY);
}

static void
resolve_follows_what_is_there_and_keeps_the_rest(void **state)
{
	static const char *const cases[][2] = { { ".", "" }, { "a/b/c", "/a/b/c" },
		{ "link/x/y", "/d/x/y" }, { "./link//sub/../z", "/d/z" }, { "abs", "/d/sub" },
		{ "dangling", "/nowhere" }, { "d/up/d", "/d" } };
	struct subject *subject = *state;
	char *expected;
	size_t i;

	subject_prepare(subject,
	    "mkdir -p d/sub; ln -s d link; ln -s \"$PWD/d/sub\" abs; ln -s nowhere dangling; "
	    "ln -s .. d/up");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(subject_try(subject, FILE_RESOLVE, cases[i][0], 0), 0);
		expected = memory_text_format("%s%s", subject->root, cases[i][1]);
		assert_string_equal(subject->reply.text, expected);
		memory_free(expected);
	}
	assert_int_equal(subject_try(subject, FILE_RESOLVE, "d", 0), 0);
	assert_true(S_ISDIR(subject->reply.attributes.mode));
	assert_int_equal(subject_try(subject, FILE_RESOLVE, "nothing", 0), 0);
	assert_int_equal(subject->reply.attributes.mode, 0);
}

static const struct CMUnitTest tests[] = {
	SUBJECT_TEST(list_puts_each_directory_before_what_is_in_it),
	SUBJECT_TEST(list_applies_glob_and_limit_after_sorting),
	SUBJECT_TEST(list_carries_attributes_and_odd_names),
	SUBJECT_TEST(mkdir_makes_one_directory_or_a_path_of_them),
	SUBJECT_TEST(remove_takes_what_it_was_asked_for_and_no_more),
	SUBJECT_TEST(remove_with_trash_moves_away),
	SUBJECT_TEST(rename_replaces_only_when_asked),
	SUBJECT_TEST(links_of_both_kinds_are_made_and_read),
	SUBJECT_TEST(setstat_changes_what_it_names),
	SUBJECT_TEST(statvfs_and_names_tell_of_the_system),
	SUBJECT_TEST(leftovers_go_once_they_are_old),
	SUBJECT_TEST(stat_says_what_lstat_says),
	SUBJECT_TEST(resolve_follows_what_is_there_and_keeps_the_rest),
};

int
main(void)
{
	return subject_run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
