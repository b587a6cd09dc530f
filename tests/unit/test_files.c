/* SPDX-License-Identifier: ISC */
/* Every rule for a workspace's files, on every backend: the same tests for all of them. */
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
#include "core/files.h"
#include "core/workspace.h"
#include "tests/unit/files_subject.h"

#define BILLION INT64_C(1000000000)
#define SWAPS 60

static const char *backend;

static int
set_up(void **state)
{
	struct subject *subject;

	subject = memory_zeroed(1, sizeof(*subject));
	subject_open(subject, backend);
	*state = subject;
	return 0;
}

static int
tear_down(void **state)
{
	subject_close(*state);
	memory_free(*state);
	return 0;
}

static struct file_request
request_two(enum file_verb verb, const char *path, const char *other, unsigned flags)
{
	struct file_request request = subject_request(verb, path);

	request.other = memory_text(other);
	request.flags = flags;
	return request;
}

static int
ask(struct subject *subject, enum file_verb verb, const char *path, unsigned flags)
{
	struct file_request request = subject_request(verb, path);

	request.flags = flags;
	return subject_ask(subject, &request);
}

static void
expect_error(struct subject *subject, int result, enum error_code code)
{
	assert_int_equal(result, -1);
	assert_string_equal(error_kind(subject->err.code)->name, error_kind(code)->name);
	assert_true(strlen(subject->err.message) > 0);
}

static void
expect_content(struct subject *subject, const char *path, const char *text)
{
	char *content;

	content = subject_read(subject, path);
	assert_non_null(content);
	assert_string_equal(content, text);
	memory_free(content);
}

static void
expect_list(struct subject *subject, struct file_request request, const char *lines)
{
	char *text;

	text = subject_list(subject, &request);
	assert_non_null(text);
	assert_string_equal(text, lines);
	memory_free(text);
}

/* Makes something under the root by a shell command. */
static void
prepare(const struct subject *subject, const char *command)
{
	pid_t pid;
	int status;

	pid = fork();
	if (pid == 0) {
		if (chdir(subject->root) == 0)
			(void)execl("/bin/sh", "sh", "-ec", command, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
commit_makes_a_file_that_open_reads(void **state)
{
	struct subject *subject = *state;

	assert_int_equal(subject_write(subject, "a", "hello", 0), 0);
	assert_int_equal(subject->reply.attributes.size, 5);
	assert_int_equal(subject->reply.attributes.mode, S_IFREG | 0644);
	expect_content(subject, "a", "hello");
	assert_int_equal(subject->reply.limit, 10 << 20);
}

static void
commit_keeps_the_mode_of_what_it_replaces(void **state)
{
	struct subject *subject = *state;
	struct file_request request;

	prepare(subject, "echo old >a; chmod 751 a; ln a b");
	assert_int_equal(subject_write(subject, "a", "new", 0), 0);
	assert_int_equal(subject->reply.attributes.mode & 07777, 0751);
	expect_content(subject, "a", "new");
	/* A new file took the name: the other name has the old one still. */
	expect_content(subject, "b", "old\n");
	request = subject_request(FILE_COMMIT, "a");
	request.fd = file_content("x", 1, NULL);
	request.change.fields = FILE_CHANGE_MODE;
	request.change.mode = 0600;
	request.flags = FILE_CREATE;
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_int_equal(subject->reply.attributes.mode & 07777, 0751);
}

static void
commit_sets_mode_and_times(void **state)
{
	struct subject *subject = *state;
	struct file_request request = subject_request(FILE_COMMIT, "a");

	request.fd = file_content("x", 1, NULL);
	request.change.fields = FILE_CHANGE_MODE | FILE_CHANGE_TIMES;
	request.change.mode = 0640;
	request.change.accessed = 1000 * BILLION;
	request.change.modified = 2000 * BILLION + 5;
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_int_equal(subject->reply.attributes.mode & 07777, 0640);
	assert_int_equal(subject->reply.attributes.modified, 2000 * BILLION + 5);
}

static void
commit_with_exclusive_refuses_what_is_there(void **state)
{
	struct subject *subject = *state;

	assert_int_equal(subject_write(subject, "a", "one", FILE_EXCLUSIVE), 0);
	expect_error(subject, subject_write(subject, "a", "two", FILE_EXCLUSIVE), ERROR_EXISTS);
	expect_content(subject, "a", "one");
}

static void
commit_makes_parents_only_when_asked(void **state)
{
	struct subject *subject = *state;

	expect_error(subject, subject_write(subject, "d/e/a", "x", 0), ERROR_NOT_FOUND);
	assert_int_equal(subject_write(subject, "d/e/a", "x", FILE_PARENTS), 0);
	expect_content(subject, "d/e/a", "x");
	expect_error(subject, subject_write(subject, "d/e", "x", 0), ERROR_IS_DIRECTORY);
	expect_error(subject, subject_write(subject, "d/e/a/b", "x", 0), ERROR_NOT_DIRECTORY);
}

static void
commit_through_a_symlink_replaces_its_target(void **state)
{
	struct subject *subject = *state;

	prepare(subject, "echo old >target; ln -s target link; ln -s missing dangling");
	assert_int_equal(subject_write(subject, "link", "new", 0), 0);
	expect_content(subject, "target", "new");
	assert_int_equal(subject_write(subject, "dangling", "made", 0), 0);
	expect_content(subject, "missing", "made");
	assert_int_equal(ask(subject, FILE_STAT, "link", 0), 0);
	assert_true(S_ISLNK(subject->reply.attributes.mode));
}

static void
nothing_is_left_beside_what_was_written(void **state)
{
	struct subject *subject = *state;
	struct file_request request;

	prepare(subject, "mkdir d");
	assert_int_equal(subject_write(subject, "a", "1", 0), 0);
	assert_int_equal(subject_write(subject, "a", "2", 0), 0);
	expect_error(subject, subject_write(subject, "d", "3", 0), ERROR_IS_DIRECTORY);
	request = subject_request(FILE_LIST, ".");
	request.flags = FILE_HIDDEN;
	expect_list(subject, request, "a\nd\n");
}

static void
content_of_any_size_is_byte_exact(void **state)
{
	static const size_t sizes[] = { 0, 1, 65536, 1024 * 1024, 3 * 1024 * 1024 + 17 };
	struct subject *subject = *state;
	struct file_request request;
	unsigned char *data, *back;
	size_t i, j, size;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		data = memory_allocate(sizes[i] + 1);
		for (j = 0; j < sizes[i]; j++)
			data[j] = (unsigned char)(j * 7 + (j >> 8) * 13 + (j >> 16));
		request = subject_request(FILE_COMMIT, "big");
		request.fd = file_content(data, sizes[i], NULL);
		assert_int_equal(subject_ask(subject, &request), 0);
		assert_int_equal(subject->reply.attributes.size, sizes[i]);
		assert_int_equal(ask(subject, FILE_OPEN, "big", FILE_WHOLE), 0);
		assert_int_equal(subject->reply.arrived, sizes[i]);
		back = file_content_read(subject->reply.fd, sizes[i], &size, NULL);
		assert_int_equal(size, sizes[i]);
		assert_memory_equal(back, data, size);
		memory_free(back);
		memory_free(data);
	}
}

static void
names_may_hold_any_byte(void **state)
{
	static const char *const names[] = { "-rf", "--", "a\nb", "a\n", "\n", " ", "a b", "it's",
		"\"q\"", "$(touch x)", "`x`", "a;b", "a*b", "?", "[a]", "\\n", "\\0101", "\xff\xfe",
		"\x01\x02", "=x", "~", "#", "caf\xc3\xa9", "\t", "a\\", "%s%n" };
	struct subject *subject = *state;
	char longest[256], *path;
	size_t i;

	memset(longest, 'n', 255);
	longest[255] = '\0';
	assert_int_equal(subject_write(subject, longest, longest, 0), 0);
	expect_content(subject, longest, longest);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		path = memory_text_format("./%s", names[i]);
		assert_int_equal(subject_write(subject, path, names[i], 0), 0);
		expect_content(subject, path, names[i]);
		assert_int_equal(ask(subject, FILE_REMOVE, path, 0), 0);
		memory_free(path);
	}
	assert_int_equal(ask(subject, FILE_REMOVE, longest, 0), 0);
	expect_list(subject, subject_request(FILE_LIST, "."), "");
}

static void
what_cannot_be_a_path_is_refused(void **state)
{
	struct subject *subject = *state;
	char longest[5000];

	memset(longest, 'n', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	expect_error(subject, ask(subject, FILE_STAT, longest, 0), ERROR_INVALID);
	expect_error(subject, ask(subject, FILE_STAT, "", 0), ERROR_INVALID);
	longest[256] = '\0';
	expect_error(subject, subject_write(subject, longest, "x", 0), ERROR_INVALID);
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

	prepare(subject,
	    "mkdir -p d/sub; ln -s d link; ln -s \"$PWD/d/sub\" abs; ln -s nowhere dangling; "
	    "ln -s .. d/up");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(ask(subject, FILE_RESOLVE, cases[i][0], 0), 0);
		expected = memory_text_format("%s%s", subject->root, cases[i][1]);
		assert_string_equal(subject->reply.text, expected);
		memory_free(expected);
	}
	assert_int_equal(ask(subject, FILE_RESOLVE, "d", 0), 0);
	assert_true(S_ISDIR(subject->reply.attributes.mode));
	assert_int_equal(ask(subject, FILE_RESOLVE, "nothing", 0), 0);
	assert_int_equal(subject->reply.attributes.mode, 0);
}

static void
stat_says_what_lstat_says(void **state)
{
	struct subject *subject = *state;
	struct stat status;
	char *path;

	prepare(
	    subject, "printf 12345 >a; chmod 4751 a; touch -d @1234567890.123456789 a; ln -s a l");
	path = subject_path(subject, "a");
	assert_int_equal(lstat(path, &status), 0);
	memory_free(path);
	assert_int_equal(ask(subject, FILE_STAT, "a", 0), 0);
	assert_int_equal(subject->reply.attributes.mode, status.st_mode);
	assert_int_equal(subject->reply.attributes.size, 5);
	assert_int_equal(subject->reply.attributes.inode, status.st_ino);
	assert_int_equal(subject->reply.attributes.user, status.st_uid);
	assert_int_equal(subject->reply.attributes.links, 1);
	assert_int_equal(subject->reply.attributes.modified, 1234567890 * BILLION + 123456789);
	assert_int_equal(ask(subject, FILE_STAT, "l", 0), 0);
	assert_true(S_ISLNK(subject->reply.attributes.mode));
	assert_int_equal(ask(subject, FILE_STAT, "l", FILE_FOLLOW), 0);
	assert_true(S_ISREG(subject->reply.attributes.mode));
	expect_error(subject, ask(subject, FILE_STAT, "b", 0), ERROR_NOT_FOUND);
	expect_error(subject, ask(subject, FILE_STAT, "a/b", 0), ERROR_NOT_DIRECTORY);
}

/* Every verb, on a path that leads out in each way there is. */
static void
no_verb_leaves_the_root(void **state)
{
	static const char *const paths[] = { "../outside/f", "out/f", "out/deep/../f", "far/f" };
	static const enum file_verb verbs[] = { FILE_RESOLVE, FILE_STAT, FILE_LIST, FILE_OPEN,
		FILE_EDIT, FILE_MKDIR, FILE_REMOVE, FILE_READLINK, FILE_STATVFS, FILE_SETSTAT };
	struct subject *subject = *state;
	struct file_request request;
	size_t i, j;

	prepare(subject,
	    "ln -s ../outside out; ln -s out/f far; mkdir d; echo in >in; rm far; "
	    "ln -s \"$PWD/../outside\" far; echo secret >../outside/f; mkdir ../outside/deep");
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		for (j = 0; j < sizeof(verbs) / sizeof(verbs[0]); j++) {
			request = subject_request(verbs[j], paths[i]);
			request.change.fields = FILE_CHANGE_MODE;
			request.change.mode = 0777;
			expect_error(subject, subject_ask(subject, &request), ERROR_OUTSIDE_ROOT);
		}
		expect_error(subject, subject_write(subject, paths[i], "x", 0), ERROR_OUTSIDE_ROOT);
		request = request_two(FILE_RENAME, "in", paths[i], FILE_OVERWRITE);
		expect_error(subject, subject_ask(subject, &request), ERROR_OUTSIDE_ROOT);
		request = request_two(FILE_RENAME, paths[i], "in2", 0);
		expect_error(subject, subject_ask(subject, &request), ERROR_OUTSIDE_ROOT);
		request = request_two(FILE_LINK, paths[i], "in2", 0);
		expect_error(subject, subject_ask(subject, &request), ERROR_OUTSIDE_ROOT);
		request = request_two(FILE_COPY, paths[i], "in2", 0);
		expect_error(subject, subject_ask(subject, &request), ERROR_OUTSIDE_ROOT);
		request = request_two(FILE_COPY, "in", paths[i], FILE_OVERWRITE);
		expect_error(subject, subject_ask(subject, &request), ERROR_OUTSIDE_ROOT);
		request = request_two(FILE_SYMLINK, paths[i], "x", 0);
		expect_error(subject, subject_ask(subject, &request), ERROR_OUTSIDE_ROOT);
	}
	prepare(subject,
	    "[ \"$(cat ../outside/f)\" = secret ]; [ \"$(ls ../outside)\" = \"deep\nf\" ]");
}

/* A child that makes "swap" a directory and a symlink out of the root, in turn, until it is killed. */
static pid_t
start_swapping(const struct subject *subject)
{
	pid_t pid;

	pid = fork();
	if (pid != 0)
		return pid;
	if (chdir(subject->root) != 0)
		_exit(1);
	for (;;) {
		if (rename("real", "swap") != 0)
			_exit(1);
		(void)rename("swap", "real");
		if (symlink(subject->outside, "swap") != 0)
			_exit(1);
		(void)unlink("swap");
	}
}

static void
a_symlink_swapped_in_leads_nowhere(void **state)
{
	struct subject *subject = *state;
	struct file_request request;
	pid_t pid;
	int i;

	prepare(subject,
	    "mkdir real; echo keep >../outside/keep; chmod 600 ../outside/keep; echo in >real/keep");
	assert_int_equal(ask(subject, FILE_STAT, ".", 0), 0);
	pid = start_swapping(subject);
	for (i = 0; i < SWAPS; i++) {
		(void)subject_write(subject, "swap/new", "x", 0);
		(void)ask(subject, FILE_MKDIR, "swap/dir", 0);
		(void)ask(subject, FILE_REMOVE, "swap/keep", 0);
		request = subject_request(FILE_SETSTAT, "swap/keep");
		request.change.fields = FILE_CHANGE_MODE;
		request.change.mode = 0666;
		(void)subject_ask(subject, &request);
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	prepare(subject,
	    "[ \"$(ls -A ../outside)\" = keep ]; [ \"$(stat -c %a ../outside/keep)\" = 600 ]");
}

static void
list_puts_each_directory_before_what_is_in_it(void **state)
{
	struct subject *subject = *state;
	struct file_request request;

	prepare(subject,
	    "mkdir -p a/b skip/in .hid; touch a/b/c a-b a.b a/x .hid/y skip/in/z Z; ln -s a/b l");
	expect_list(subject, subject_request(FILE_LIST, "."), "Z\na\na-b\na.b\nl\nskip\n");
	request = subject_request(FILE_LIST, ".");
	request.flags = FILE_RECURSIVE;
	expect_list(
	    subject, request, "Z\na\na/b\na/b/c\na/x\na-b\na.b\nl\nskip\nskip/in\nskip/in/z\n");
	request = subject_request(FILE_LIST, ".");
	request.flags = FILE_RECURSIVE | FILE_HIDDEN;
	request.skip = memory_list_add(NULL, 0, "skip");
	request.skip = memory_list_add(request.skip, 1, "b*");
	expect_list(subject, request, ".hid\n.hid/y\nZ\na\na/b\na/b/c\na/x\na-b\na.b\nl\nskip\n");
	expect_list(subject, subject_request(FILE_LIST, "a"), "b\nx\n");
	expect_list(subject, subject_request(FILE_LIST, "l"), "c\n");
	expect_error(subject, ask(subject, FILE_LIST, "a/x", 0), ERROR_NOT_DIRECTORY);
	expect_error(subject, ask(subject, FILE_LIST, "none", 0), ERROR_NOT_FOUND);
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

	prepare(subject, "mkdir -p d/e; touch b.c d/a.c d/e/f.c d/g.h");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		request = subject_request(FILE_LIST, ".");
		request.flags = FILE_RECURSIVE;
		request.glob = cases[i].glob == NULL ? NULL : memory_text(cases[i].glob);
		request.limit = cases[i].limit;
		expect_list(subject, request, cases[i].lines);
	}
}

static void
list_carries_attributes_and_odd_names(void **state)
{
	struct subject *subject = *state;
	struct file_request request = subject_request(FILE_LIST, ".");
	struct file_entry entry;
	struct file_list *list;

	prepare(subject, "printf 123 >'a\nb'; chmod 640 'a\nb'; touch -d @-5.5 'a\nb'");
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

	assert_int_equal(ask(subject, FILE_MKDIR, "d", 0), 0);
	expect_error(subject, ask(subject, FILE_MKDIR, "d", 0), ERROR_EXISTS);
	assert_int_equal(ask(subject, FILE_MKDIR, "d", FILE_PARENTS), 0);
	expect_error(subject, ask(subject, FILE_MKDIR, "x/y", 0), ERROR_NOT_FOUND);
	assert_int_equal(ask(subject, FILE_MKDIR, "x/y", FILE_PARENTS), 0);
	prepare(subject, "echo f >f; [ -d x/y ]; [ \"$(stat -c %a d)\" = 755 ]");
	expect_error(subject, ask(subject, FILE_MKDIR, "f", FILE_PARENTS), ERROR_EXISTS);
	request = subject_request(FILE_MKDIR, "m");
	request.change.fields = FILE_CHANGE_MODE;
	request.change.mode = 0700;
	assert_int_equal(subject_ask(subject, &request), 0);
	prepare(subject, "[ \"$(stat -c %a m)\" = 700 ]");
}

static void
remove_takes_what_it_was_asked_for_and_no_more(void **state)
{
	struct subject *subject = *state;

	prepare(subject,
	    "mkdir -p d/e ro; echo x >d/e/f; echo x >f; ln -s d l; ln -s ../outside d/out; "
	    "echo keep >../outside/keep; touch ro/x; chmod 500 ro");
	expect_error(subject, ask(subject, FILE_REMOVE, "none", 0), ERROR_NOT_FOUND);
	expect_error(subject, ask(subject, FILE_REMOVE, "d", 0), ERROR_NOT_EMPTY);
	expect_error(subject, ask(subject, FILE_REMOVE, "d", FILE_ONLY_FILE), ERROR_IS_DIRECTORY);
	expect_error(
	    subject, ask(subject, FILE_REMOVE, "f", FILE_ONLY_DIRECTORY), ERROR_NOT_DIRECTORY);
	expect_error(subject, ask(subject, FILE_REMOVE, ".", FILE_RECURSIVE), ERROR_DENIED);
	assert_int_equal(ask(subject, FILE_REMOVE, "l", FILE_ONLY_FILE), 0);
	prepare(subject, "[ -f d/e/f ]");
	assert_int_equal(ask(subject, FILE_REMOVE, "d", FILE_RECURSIVE), 0);
	assert_int_equal(ask(subject, FILE_REMOVE, "f", 0), 0);
	prepare(subject, "[ ! -e d ]; [ ! -e f ]; [ -f ../outside/keep ]");
}

static void
remove_with_trash_moves_away(void **state)
{
	struct subject *subject = *state;

	prepare(subject, "mkdir -p d/e; echo x >d/e/f; echo one >f");
	expect_error(subject, ask(subject, FILE_REMOVE, "d", FILE_TRASH), ERROR_NOT_EMPTY);
	assert_int_equal(ask(subject, FILE_REMOVE, "d", FILE_TRASH | FILE_RECURSIVE), 0);
	assert_int_equal(strncmp(subject->reply.text, subject->root, strlen(subject->root)), 0);
	assert_int_equal(ask(subject, FILE_REMOVE, "f", FILE_TRASH), 0);
	expect_content(subject, subject->reply.text, "one\n");
	prepare(
	    subject, "[ ! -e d ]; [ ! -e f ]; [ \"$(ls .rws/trash | wc -l)\" = 2 ]; echo two >f");
	assert_int_equal(ask(subject, FILE_REMOVE, "f", FILE_TRASH), 0);
	prepare(subject, "[ \"$(ls .rws/trash | wc -l)\" = 3 ]");
	expect_error(subject, ask(subject, FILE_REMOVE, ".rws/trash", FILE_TRASH | FILE_RECURSIVE),
	    ERROR_INVALID);
	prepare(subject, "rm -rf .rws; ln -s ../outside .rws; echo x >f");
	expect_error(subject, ask(subject, FILE_REMOVE, "f", FILE_TRASH), ERROR_NOT_DIRECTORY);
	prepare(subject, "[ -f f ]; [ -z \"$(ls ../outside)\" ]");
}

static void
rename_replaces_only_when_asked(void **state)
{
	struct subject *subject = *state;
	struct file_request request;

	prepare(subject, "echo a >a; echo b >b; mkdir -p d full/x empty; ln -s nowhere l");
	request = request_two(FILE_RENAME, "a", "b", 0);
	expect_error(subject, subject_ask(subject, &request), ERROR_EXISTS);
	request = request_two(FILE_RENAME, "a", "l", 0);
	expect_error(subject, subject_ask(subject, &request), ERROR_EXISTS);
	request = request_two(FILE_RENAME, "a", "b", FILE_OVERWRITE);
	assert_int_equal(subject_ask(subject, &request), 0);
	expect_content(subject, "b", "a\n");
	request = request_two(FILE_RENAME, "b", "b", 0);
	assert_int_equal(subject_ask(subject, &request), 0);
	request = request_two(FILE_RENAME, "d", "d/in", 0);
	expect_error(subject, subject_ask(subject, &request), ERROR_INVALID);
	request = request_two(FILE_RENAME, "d", "full", FILE_OVERWRITE);
	expect_error(subject, subject_ask(subject, &request), ERROR_NOT_EMPTY);
	request = request_two(FILE_RENAME, "d", "empty", FILE_OVERWRITE);
	assert_int_equal(subject_ask(subject, &request), 0);
	request = request_two(FILE_RENAME, "b", "empty", FILE_OVERWRITE);
	expect_error(subject, subject_ask(subject, &request), ERROR_IS_DIRECTORY);
	request = request_two(FILE_RENAME, "none", "x", 0);
	expect_error(subject, subject_ask(subject, &request), ERROR_NOT_FOUND);
	request = request_two(FILE_RENAME, "b", "p/q/b", FILE_PARENTS);
	assert_int_equal(subject_ask(subject, &request), 0);
	request = request_two(FILE_RENAME, "l", "l2", 0);
	assert_int_equal(subject_ask(subject, &request), 0);
	prepare(subject, "[ -L l2 ]; [ -f p/q/b ]");
}

static void
links_of_both_kinds_are_made_and_read(void **state)
{
	struct subject *subject = *state;
	struct file_request request;

	prepare(subject, "echo a >a");
	request = request_two(FILE_SYMLINK, "s", "any\nthing\n", 0);
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_int_equal(ask(subject, FILE_READLINK, "s", 0), 0);
	assert_string_equal(subject->reply.text, "any\nthing\n");
	request = request_two(FILE_SYMLINK, "a", "x", 0);
	expect_error(subject, subject_ask(subject, &request), ERROR_EXISTS);
	expect_error(subject, ask(subject, FILE_READLINK, "a", 0), ERROR_INVALID);
	request = request_two(FILE_LINK, "a", "b", 0);
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_int_equal(ask(subject, FILE_STAT, "b", 0), 0);
	assert_int_equal(subject->reply.attributes.links, 2);
	request = request_two(FILE_LINK, "a", "b", 0);
	expect_error(subject, subject_ask(subject, &request), ERROR_EXISTS);
	request = request_two(FILE_LINK, "s", "s2", 0);
	assert_int_equal(subject_ask(subject, &request), 0);
	prepare(subject, "[ -L s2 ]");
}

static void
setstat_changes_what_it_names(void **state)
{
	struct subject *subject = *state;
	struct file_request request = subject_request(FILE_SETSTAT, "l");

	prepare(subject, "echo 12345 >a; ln -s a l");
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
	assert_int_equal(ask(subject, FILE_STAT, "a", 0), 0);
	assert_int_equal(subject->reply.attributes.mode & 07777, 0604);
	assert_int_equal(subject->reply.attributes.size, 3);
	assert_int_equal(subject->reply.attributes.modified, 8 * BILLION + 9);
	request = subject_request(FILE_SETSTAT, "l");
	request.change.fields = FILE_CHANGE_TIMES;
	request.change.modified = 5 * BILLION;
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_int_equal(ask(subject, FILE_STAT, "l", 0), 0);
	assert_int_equal(subject->reply.attributes.modified, 5 * BILLION);
	request = subject_request(FILE_SETSTAT, "l");
	request.change.fields = FILE_CHANGE_MODE;
	expect_error(subject, subject_ask(subject, &request), ERROR_UNSUPPORTED);
	request = subject_request(FILE_SETSTAT, "a");
	request.change.fields = FILE_CHANGE_SIZE;
	request.change.size = 11 << 20;
	expect_error(subject, subject_ask(subject, &request), ERROR_TOO_LARGE);
}

static void
copy_makes_another_file_in_one_step(void **state)
{
	struct subject *subject = *state;
	struct file_request request;

	prepare(subject, "echo one >a; chmod 750 a; echo two >b; mkdir d");
	request = request_two(FILE_COPY, "a", "c", 0);
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_int_equal(subject->reply.attributes.mode & 07777, 0750);
	expect_content(subject, "c", "one\n");
	request = request_two(FILE_COPY, "a", "b", 0);
	expect_error(subject, subject_ask(subject, &request), ERROR_EXISTS);
	request = request_two(FILE_COPY, "a", "b", FILE_OVERWRITE);
	assert_int_equal(subject_ask(subject, &request), 0);
	expect_content(subject, "b", "one\n");
	request = request_two(FILE_COPY, "d", "e", 0);
	expect_error(subject, subject_ask(subject, &request), ERROR_IS_DIRECTORY);
	request = request_two(FILE_COPY, "a", "x/y", FILE_PARENTS);
	assert_int_equal(subject_ask(subject, &request), 0);
	expect_content(subject, "x/y", "one\n");
}

static void
hash_is_that_of_the_bytes(void **state)
{
	static const unsigned char md5_hello[] = { 0x5d, 0x41, 0x40, 0x2a, 0xbc, 0x4b, 0x2a, 0x76,
		0xb9, 0x71, 0x9d, 0x91, 0x10, 0x17, 0xc5, 0x92 };
	static const unsigned char md5_empty[] = { 0xd4, 0x1d, 0x8c, 0xd9, 0x8f, 0x00, 0xb2, 0x04,
		0xe9, 0x80, 0x09, 0x98, 0xec, 0xf8, 0x42, 0x7e };
	struct subject *subject = *state;
	struct file_request request = subject_request(FILE_HASH, "a");

	prepare(subject, "printf '..hello..' >a; : >empty");
	request.algorithm = memory_text("md5");
	request.offset = 2;
	request.size = 5;
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_int_equal(subject->reply.bytes_size, 16);
	assert_memory_equal(subject->reply.bytes, md5_hello, 16);
	request = subject_request(FILE_HASH, "empty");
	request.algorithm = memory_text("md5");
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_int_equal(subject->reply.bytes_size, 16);
	assert_memory_equal(subject->reply.bytes, md5_empty, 16);
	request = subject_request(FILE_HASH, "a");
	request.algorithm = memory_text("sha256");
	request.block = 4;
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_int_equal(subject->reply.bytes_size, 3 * 32);
	request = subject_request(FILE_HASH, "a");
	request.algorithm = memory_text("crc");
	expect_error(subject, subject_ask(subject, &request), ERROR_UNSUPPORTED);
}

static void
statvfs_and_names_tell_of_the_system(void **state)
{
	struct subject *subject = *state;
	struct file_request request;

	assert_int_equal(ask(subject, FILE_STATVFS, ".", 0), 0);
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

static void
what_is_over_the_limit_is_refused_both_ways(void **state)
{
	struct subject *subject = *state;
	struct file_request request = subject_request(FILE_COMMIT, "big");
	int fd;

	prepare(subject, "truncate -s 10485760 fits; truncate -s 10485761 big");
	assert_int_equal(ask(subject, FILE_OPEN, "fits", 0), 0);
	expect_error(subject, ask(subject, FILE_OPEN, "big", 0), ERROR_TOO_LARGE);
	assert_non_null(strstr(subject->err.message, "max_file_bytes (10 MiB)"));
	expect_error(subject, ask(subject, FILE_EDIT, "big", FILE_CREATE), ERROR_TOO_LARGE);
	fd = file_content("", 0, NULL);
	assert_int_equal(ftruncate(fd, 10485761), 0);
	request.fd = fd;
	expect_error(subject, subject_ask(subject, &request), ERROR_TOO_LARGE);
}

static void
edit_gives_a_private_file_with_the_content(void **state)
{
	struct subject *subject = *state;
	struct file_request request;
	int fd;

	prepare(subject, "printf 0123456789 >a; mkdir d; mkfifo p");
	assert_int_equal(ask(subject, FILE_EDIT, "a", 0), 0);
	fd = subject->reply.fd;
	subject->reply.fd = -1;
	assert_int_equal(pwrite(fd, "XY", 2, 4), 2);
	expect_content(subject, "a", "0123456789");
	request = subject_request(FILE_COMMIT, "a");
	request.fd = fd;
	assert_int_equal(subject_ask(subject, &request), 0);
	expect_content(subject, "a", "0123XY6789");
	expect_error(subject, ask(subject, FILE_EDIT, "b", 0), ERROR_NOT_FOUND);
	expect_error(
	    subject, ask(subject, FILE_EDIT, "a", FILE_CREATE | FILE_EXCLUSIVE), ERROR_EXISTS);
	expect_error(subject, ask(subject, FILE_EDIT, "d", FILE_CREATE), ERROR_IS_DIRECTORY);
	expect_error(subject, ask(subject, FILE_EDIT, "p", FILE_CREATE), ERROR_INVALID);
	expect_error(subject, ask(subject, FILE_OPEN, "p", 0), ERROR_INVALID);
	expect_error(subject, ask(subject, FILE_OPEN, "d", 0), ERROR_IS_DIRECTORY);
	assert_int_equal(ask(subject, FILE_EDIT, "new", FILE_CREATE), 0);
	assert_int_equal(subject->reply.attributes.mode, 0);
	prepare(subject, "[ ! -e new ]");
}

static void
count_reply(void *argument, struct file_reply *reply, const struct error *err)
{
	(void)reply;
	assert_null(err);
	++*(unsigned *)argument;
}

static void
requests_are_pipelined_and_cancelled_one_by_one(void **state)
{
	struct subject *subject = *state;
	struct files *files = workspace_files(subject->workspace);
	struct files_operation *operations[40];
	struct file_request request;
	unsigned count = 0, i;

	for (i = 0; i < 40; i++) {
		request = subject_request(FILE_STAT, ".");
		operations[i] = files_start(files, &request, count_reply, &count);
		file_request_free(&request);
	}
	assert_int_equal(count, 0);
	for (i = 0; i < 40; i += 2)
		files_cancel(operations[i]);
	/* What is asked last is, of the quick ones, answered last. */
	assert_int_equal(ask(subject, FILE_STAT, ".", 0), 0);
	assert_int_equal(count, 20);
}

static void
leftovers_go_once_they_are_old(void **state)
{
	struct subject *subject = *state;
	struct file_request request;
	struct error err;

	prepare(subject,
	    "notes=/tmp/.rws-$(id -u); mkdir -p -m 700 $notes; "
	    "for n in old young; do echo x >.rws-$n; printf %s \"$PWD/.rws-$n\" >$notes/.rws-$n; done; "
	    "echo x >precious; printf %s \"$PWD/precious\" >$notes/.rws-forged; "
	    "echo x >../outside/.rws-far; printf %s \"$PWD/../outside/.rws-far\" >$notes/.rws-far; "
	    "touch -d '2 hours ago' $notes/.rws-old $notes/.rws-forged $notes/.rws-far");
	assert_int_equal(settings_set(subject->settings, "leftover_age", "1h", &err), 0);
	/* The first request starts the server, which sweeps before it serves the next. */
	assert_int_equal(ask(subject, FILE_STAT, ".", 0), 0);
	while (ask(subject, FILE_STAT, ".rws-old", 0) == 0)
		continue;
	request = subject_request(FILE_LIST, ".");
	request.flags = FILE_HIDDEN;
	expect_list(subject, request, ".rws-young\nprecious\n");
	prepare(subject, "[ -f ../outside/.rws-far ]; rm -f /tmp/.rws-$(id -u)/.rws-young");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
	TEST(commit_makes_a_file_that_open_reads),
	TEST(commit_keeps_the_mode_of_what_it_replaces),
	TEST(commit_sets_mode_and_times),
	TEST(commit_with_exclusive_refuses_what_is_there),
	TEST(commit_makes_parents_only_when_asked),
	TEST(commit_through_a_symlink_replaces_its_target),
	TEST(nothing_is_left_beside_what_was_written),
	TEST(content_of_any_size_is_byte_exact),
	TEST(names_may_hold_any_byte),
	TEST(what_cannot_be_a_path_is_refused),
	TEST(resolve_follows_what_is_there_and_keeps_the_rest),
	TEST(stat_says_what_lstat_says),
	TEST(no_verb_leaves_the_root),
	TEST(a_symlink_swapped_in_leads_nowhere),
	TEST(list_puts_each_directory_before_what_is_in_it),
	TEST(list_applies_glob_and_limit_after_sorting),
	TEST(list_carries_attributes_and_odd_names),
	TEST(mkdir_makes_one_directory_or_a_path_of_them),
	TEST(remove_takes_what_it_was_asked_for_and_no_more),
	TEST(remove_with_trash_moves_away),
	TEST(rename_replaces_only_when_asked),
	TEST(links_of_both_kinds_are_made_and_read),
	TEST(setstat_changes_what_it_names),
	TEST(copy_makes_another_file_in_one_step),
	TEST(hash_is_that_of_the_bytes),
	TEST(statvfs_and_names_tell_of_the_system),
	TEST(what_is_over_the_limit_is_refused_both_ways),
	TEST(edit_gives_a_private_file_with_the_content),
	TEST(requests_are_pipelined_and_cancelled_one_by_one),
	TEST(leftovers_go_once_they_are_old),
};

int
main(void)
{
	static const char *const backends[] = { "native", "dash", "bash", "busybox" };
	int failed = 0;
	size_t i;

	(void)signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
		backend = backends[i];
		print_message("# %s\n", backend);
		failed += cmocka_run_group_tests_name(backend, tests, NULL, NULL);
	}
	return failed;
}
