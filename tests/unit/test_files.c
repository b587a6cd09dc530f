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

static void
commit_makes_a_file_that_open_reads(void **state)
{
	struct subject *subject = *state;

	assert_int_equal(subject_write(subject, "a", "hello", 0), 0);
	assert_int_equal(subject->reply.attributes.size, 5);
	assert_int_equal(subject->reply.attributes.mode, S_IFREG | 0644);
	subject_expect_content(subject, "a", "hello");
	assert_int_equal(subject->reply.limit, 10 << 20);
}

static void
commit_keeps_the_mode_of_what_it_replaces(void **state)
{
	struct subject *subject = *state;
	struct file_request request;

	subject_prepare(subject, "echo old >a; chmod 751 a; ln a b");
	assert_int_equal(subject_write(subject, "a", "new", 0), 0);
	assert_int_equal(subject->reply.attributes.mode & 07777, 0751);
	subject_expect_content(subject, "a", "new");
	/* A new file took the name: the other name has the old one still. */
	subject_expect_content(subject, "b", "old\n");
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
	subject_expect_error(
	    subject, subject_write(subject, "a", "two", FILE_EXCLUSIVE), ERROR_EXISTS);
	subject_expect_content(subject, "a", "one");
}

static void
commit_makes_parents_only_when_asked(void **state)
{
	struct subject *subject = *state;

	subject_expect_error(subject, subject_write(subject, "d/e/a", "x", 0), ERROR_NOT_FOUND);
	assert_int_equal(subject_write(subject, "d/e/a", "x", FILE_PARENTS), 0);
	subject_expect_content(subject, "d/e/a", "x");
	subject_expect_error(subject, subject_write(subject, "d/e", "x", 0), ERROR_IS_DIRECTORY);
	subject_expect_error(
	    subject, subject_write(subject, "d/e/a/b", "x", 0), ERROR_NOT_DIRECTORY);
}

static void
commit_through_a_symlink_replaces_its_target(void **state)
{
	struct subject *subject = *state;

	subject_prepare(subject, "echo old >target; ln -s target link; ln -s missing dangling");
	assert_int_equal(subject_write(subject, "link", "new", 0), 0);
	subject_expect_content(subject, "target", "new");
	assert_int_equal(subject_write(subject, "dangling", "made", 0), 0);
	subject_expect_content(subject, "missing", "made");
	assert_int_equal(subject_try(subject, FILE_STAT, "link", 0), 0);
	assert_true(S_ISLNK(subject->reply.attributes.mode));
}

static void
nothing_is_left_beside_what_was_written(void **state)
{
	struct subject *subject = *state;
	struct file_request request;

	subject_prepare(subject, "mkdir d");
	assert_int_equal(subject_write(subject, "a", "1", 0), 0);
	assert_int_equal(subject_write(subject, "a", "2", 0), 0);
	subject_expect_error(subject, subject_write(subject, "d", "3", 0), ERROR_IS_DIRECTORY);
	request = subject_request(FILE_LIST, ".");
	request.flags = FILE_HIDDEN;
	subject_expect_list(subject, request, "a\nd\n");
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
		assert_int_equal(subject_try(subject, FILE_OPEN, "big", FILE_WHOLE), 0);
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
	subject_expect_content(subject, longest, longest);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		path = memory_text_format("./%s", names[i]);
		assert_int_equal(subject_write(subject, path, names[i], 0), 0);
		subject_expect_content(subject, path, names[i]);
		assert_int_equal(subject_try(subject, FILE_REMOVE, path, 0), 0);
		memory_free(path);
	}
	assert_int_equal(subject_try(subject, FILE_REMOVE, longest, 0), 0);
	subject_expect_list(subject, subject_request(FILE_LIST, "."), "");
}

static void
what_cannot_be_a_path_is_refused(void **state)
{
	struct subject *subject = *state;
	char longest[5000];

	memset(longest, 'n', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	subject_expect_error(subject, subject_try(subject, FILE_STAT, longest, 0), ERROR_INVALID);
	subject_expect_error(subject, subject_try(subject, FILE_STAT, "", 0), ERROR_INVALID);
	longest[256] = '\0';
	subject_expect_error(subject, subject_write(subject, longest, "x", 0), ERROR_INVALID);
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

	subject_prepare(subject,
	    "ln -s ../outside out; ln -s out/f far; mkdir d; echo in >in; rm far; "
	    "ln -s \"$PWD/../outside\" far; echo secret >../outside/f; mkdir ../outside/deep");
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		for (j = 0; j < sizeof(verbs) / sizeof(verbs[0]); j++) {
			request = subject_request(verbs[j], paths[i]);
			request.change.fields = FILE_CHANGE_MODE;
			request.change.mode = 0777;
			subject_expect_error(
			    subject, subject_ask(subject, &request), ERROR_OUTSIDE_ROOT);
		}
		subject_expect_error(
		    subject, subject_write(subject, paths[i], "x", 0), ERROR_OUTSIDE_ROOT);
		request = subject_request_two(FILE_RENAME, "in", paths[i], FILE_OVERWRITE);
		subject_expect_error(subject, subject_ask(subject, &request), ERROR_OUTSIDE_ROOT);
		request = subject_request_two(FILE_RENAME, paths[i], "in2", 0);
		subject_expect_error(subject, subject_ask(subject, &request), ERROR_OUTSIDE_ROOT);
		request = subject_request_two(FILE_LINK, paths[i], "in2", 0);
		subject_expect_error(subject, subject_ask(subject, &request), ERROR_OUTSIDE_ROOT);
		request = subject_request_two(FILE_COPY, paths[i], "in2", 0);
		subject_expect_error(subject, subject_ask(subject, &request), ERROR_OUTSIDE_ROOT);
		request = subject_request_two(FILE_COPY, "in", paths[i], FILE_OVERWRITE);
		subject_expect_error(subject, subject_ask(subject, &request), ERROR_OUTSIDE_ROOT);
		request = subject_request_two(FILE_SYMLINK, paths[i], "x", 0);
		subject_expect_error(subject, subject_ask(subject, &request), ERROR_OUTSIDE_ROOT);
	}
	subject_prepare(subject,
	    "[ \"$(cat ../outside/f)\" = secret ]; [ \"$(ls ../outside)\" = \"deep\nf\" ]");
}

/*
 * A child that makes "swap" a directory and a symlink out of the root, in turn, until it is killed.
 */
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

	subject_prepare(subject,
	    "mkdir real; echo keep >../outside/keep; chmod 600 ../outside/keep; echo in >real/keep");
	assert_int_equal(subject_try(subject, FILE_STAT, ".", 0), 0);
	pid = start_swapping(subject);
	for (i = 0; i < SWAPS; i++) {
		(void)subject_write(subject, "swap/new", "x", 0);
		(void)subject_try(subject, FILE_MKDIR, "swap/dir", 0);
		(void)subject_try(subject, FILE_REMOVE, "swap/keep", 0);
		request = subject_request(FILE_SETSTAT, "swap/keep");
		request.change.fields = FILE_CHANGE_MODE;
		request.change.mode = 0666;
		(void)subject_ask(subject, &request);
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	subject_prepare(subject,
	    "[ \"$(ls -A ../outside)\" = keep ]; [ \"$(stat -c %a ../outside/keep)\" = 600 ]");
}

static void
copy_makes_another_file_in_one_step(void **state)
{
	struct subject *subject = *state;
	struct file_request request;

	subject_prepare(subject, "echo one >a; chmod 750 a; echo two >b; mkdir d");
	request = subject_request_two(FILE_COPY, "a", "c", 0);
	assert_int_equal(subject_ask(subject, &request), 0);
	assert_int_equal(subject->reply.attributes.mode & 07777, 0750);
	subject_expect_content(subject, "c", "one\n");
	request = subject_request_two(FILE_COPY, "a", "b", 0);
	subject_expect_error(subject, subject_ask(subject, &request), ERROR_EXISTS);
	request = subject_request_two(FILE_COPY, "a", "b", FILE_OVERWRITE);
	assert_int_equal(subject_ask(subject, &request), 0);
	subject_expect_content(subject, "b", "one\n");
	request = subject_request_two(FILE_COPY, "d", "e", 0);
	subject_expect_error(subject, subject_ask(subject, &request), ERROR_IS_DIRECTORY);
	request = subject_request_two(FILE_COPY, "a", "x/y", FILE_PARENTS);
	assert_int_equal(subject_ask(subject, &request), 0);
	subject_expect_content(subject, "x/y", "one\n");
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

	subject_prepare(subject, "printf '..hello..' >a; : >empty");
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
	subject_expect_error(subject, subject_ask(subject, &request), ERROR_UNSUPPORTED);
}

static void
what_is_over_the_limit_is_refused_both_ways(void **state)
{
	struct subject *subject = *state;
	struct file_request request = subject_request(FILE_COMMIT, "big");
	int fd;

	subject_prepare(subject, "truncate -s 10485760 fits; truncate -s 10485761 big");
	assert_int_equal(subject_try(subject, FILE_OPEN, "fits", 0), 0);
	subject_expect_error(subject, subject_try(subject, FILE_OPEN, "big", 0), ERROR_TOO_LARGE);
	assert_non_null(strstr(subject->err.message, "max_file_bytes (10 MiB)"));
	subject_expect_error(
	    subject, subject_try(subject, FILE_EDIT, "big", FILE_CREATE), ERROR_TOO_LARGE);
	fd = file_content("", 0, NULL);
	assert_int_equal(ftruncate(fd, 10485761), 0);
	request.fd = fd;
	subject_expect_error(subject, subject_ask(subject, &request), ERROR_TOO_LARGE);
}

static void
edit_gives_a_private_file_with_the_content(void **state)
{
	struct subject *subject = *state;
	struct file_request request;
	int fd;

	subject_prepare(subject, "printf 0123456789 >a; mkdir d; mkfifo p");
	assert_int_equal(subject_try(subject, FILE_EDIT, "a", 0), 0);
	fd = subject->reply.fd;
	subject->reply.fd = -1;
	assert_int_equal(pwrite(fd, "XY", 2, 4), 2);
	subject_expect_content(subject, "a", "0123456789");
	request = subject_request(FILE_COMMIT, "a");
	request.fd = fd;
	assert_int_equal(subject_ask(subject, &request), 0);
	subject_expect_content(subject, "a", "0123XY6789");
	subject_expect_error(subject, subject_try(subject, FILE_EDIT, "b", 0), ERROR_NOT_FOUND);
	subject_expect_error(subject,
	    subject_try(subject, FILE_EDIT, "a", FILE_CREATE | FILE_EXCLUSIVE), ERROR_EXISTS);
	subject_expect_error(
	    subject, subject_try(subject, FILE_EDIT, "d", FILE_CREATE), ERROR_IS_DIRECTORY);
	subject_expect_error(
	    subject, subject_try(subject, FILE_EDIT, "p", FILE_CREATE), ERROR_INVALID);
	subject_expect_error(subject, subject_try(subject, FILE_OPEN, "p", 0), ERROR_INVALID);
	subject_expect_error(subject, subject_try(subject, FILE_OPEN, "d", 0), ERROR_IS_DIRECTORY);
	assert_int_equal(subject_try(subject, FILE_EDIT, "new", FILE_CREATE), 0);
	assert_int_equal(subject->reply.attributes.mode, 0);
	subject_prepare(subject, "[ ! -e new ]");
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
	assert_int_equal(subject_try(subject, FILE_STAT, ".", 0), 0);
	assert_int_equal(count, 20);
}

static const struct CMUnitTest tests[] = {
	SUBJECT_TEST(commit_makes_a_file_that_open_reads),
	SUBJECT_TEST(commit_keeps_the_mode_of_what_it_replaces),
	SUBJECT_TEST(commit_sets_mode_and_times),
	SUBJECT_TEST(commit_with_exclusive_refuses_what_is_there),
	SUBJECT_TEST(commit_makes_parents_only_when_asked),
	SUBJECT_TEST(commit_through_a_symlink_replaces_its_target),
	SUBJECT_TEST(nothing_is_left_beside_what_was_written),
	SUBJECT_TEST(content_of_any_size_is_byte_exact),
	SUBJECT_TEST(names_may_hold_any_byte),
	SUBJECT_TEST(what_cannot_be_a_path_is_refused),
	SUBJECT_TEST(no_verb_leaves_the_root),
	SUBJECT_TEST(a_symlink_swapped_in_leads_nowhere),
	SUBJECT_TEST(copy_makes_another_file_in_one_step),
	SUBJECT_TEST(hash_is_that_of_the_bytes),
	SUBJECT_TEST(what_is_over_the_limit_is_refused_both_ways),
	SUBJECT_TEST(edit_gives_a_private_file_with_the_content),
	SUBJECT_TEST(requests_are_pipelined_and_cancelled_one_by_one),
};

int
main(void)
{
	return subject_run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
