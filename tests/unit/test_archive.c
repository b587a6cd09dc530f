/* SPDX-License-Identifier: ISC */
/* Archives from outside: good ones come out as they were, evil ones do not come out. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/archive.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"

#define BLOCK 512U
#define LIMIT 100000
#define ROUNDS 5000

struct fixture {
	struct loop *loop;
	struct buffer input; /* a tar file */
	struct buffer output, entries;
	uint64_t files, bytes;
	bool done;
	struct error err; /* code NONE: success */
	size_t stall;     /* the owner takes so many bytes at a time, 0: all */
};

/* One entry in the format of POSIX.1-1988, which every reader knows; data is zeros. */
static void
add_entry(struct fixture *fixture, const char *name, char type, const char *link, size_t size)
{
	unsigned char header[BLOCK] = { 0 }, zeros[BLOCK] = { 0 };
	unsigned sum;
	size_t i;

	(void)snprintf((char *)header, 100, "%s", name);
	memcpy(header + 100, "0000644\0000001750\0000001750", 24);
	(void)snprintf((char *)header + 124, 12, "%011zo", size);
	memcpy(header + 136, "14723450123", 12);
	memset(header + 148, ' ', 8);
	header[156] = (unsigned char)type;
	(void)snprintf((char *)header + 157, 100, "%s", link);
	memcpy(header + 257, "ustar\00000", 8);
	for (i = 0, sum = 0; i < BLOCK; i++)
		sum += header[i];
	(void)snprintf((char *)header + 148, 8, "%06o", sum);
	assert_int_equal(buffer_append(&fixture->input, header, BLOCK), 0);
	for (i = 0; i < size; i += BLOCK)
		assert_int_equal(buffer_append(&fixture->input, zeros, BLOCK), 0);
}

static void
end_archive(struct fixture *fixture)
{
	unsigned char zeros[BLOCK * 2] = { 0 };

	assert_int_equal(buffer_append(&fixture->input, zeros, sizeof(zeros)), 0);
}

static size_t
take_output(void *argument, const unsigned char *data, size_t size)
{
	struct fixture *fixture = argument;

	if (fixture->stall > 0 && size > fixture->stall)
		size = fixture->stall;
	assert_int_equal(buffer_append(&fixture->output, data, size), 0);
	return size;
}

static void
take_hunger(void *argument)
{
	(void)argument;
}

static void
take_end(void *argument, const struct buffer *entries, uint64_t files, uint64_t bytes,
    const struct error *err)
{
	struct fixture *fixture = argument;

	fixture->done = true;
	fixture->files = files;
	fixture->bytes = bytes;
	if (err != NULL)
		fixture->err = *err;
	if (entries->length > 0)
		assert_int_equal(
		    buffer_append(&fixture->entries, buffer_data(entries), entries->length), 0);
}

static const struct archive_events events = { take_output, take_hunger, take_end };

/* Puts the input through a copy. */
static void
copy(struct fixture *fixture)
{
	struct archive_copy *copy;
	struct error err;
	size_t given;
	unsigned round;

	buffer_free(&fixture->output);
	buffer_free(&fixture->entries);
	fixture->done = false;
	error_clear(&fixture->err);
	copy = archive_copy_new(fixture->loop, LIMIT, &events, fixture, &err);
	assert_non_null(copy);
	given = 0;
	for (round = 0; round < ROUNDS && !fixture->done; round++) {
		if (given < fixture->input.length)
			given += archive_copy_input(copy, buffer_data(&fixture->input) + given,
			    fixture->input.length - given);
		if (given == fixture->input.length)
			archive_copy_end(copy);
		archive_copy_resume(copy);
		assert_int_equal(loop_dispatch(fixture->loop, 10, &err), 0);
	}
	assert_true(fixture->done);
	buffer_free(&fixture->input);
}

static int
setup(void **state)
{
	struct fixture *fixture;

	fixture = memory_zeroed(1, sizeof(*fixture));
	fixture->loop = loop_new(NULL);
	buffer_init(&fixture->input, 1U << 24);
	buffer_init(&fixture->output, 1U << 24);
	buffer_init(&fixture->entries, 1U << 24);
	*state = fixture;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *fixture = *state;

	buffer_free(&fixture->input);
	buffer_free(&fixture->output);
	buffer_free(&fixture->entries);
	loop_free(fixture->loop);
	memory_free(fixture);
	return 0;
}

/* Entries as a text with "|" for NUL. */
static void
expect_entries(struct fixture *fixture, const char *expected)
{
	char *text;
	size_t i;

	assert_int_equal(fixture->err.code, ERROR_NONE);
	text = memory_text_bounded(buffer_data(&fixture->entries), fixture->entries.length);
	for (i = 0; i < fixture->entries.length; i++)
		if (text[i] == '\0')
			text[i] = '|';
	assert_string_equal(text, expected);
	memory_free(text);
}

static void
a_good_archive_comes_out_with_a_list_of_its_entries(void **state)
{
	struct fixture *fixture = *state;

	add_entry(fixture, "./", '5', "", 0);
	add_entry(fixture, "a/", '5', "", 0);
	add_entry(fixture, "a/b", '0', "", 700);
	add_entry(fixture, "a/hard", '1', "a/b", 0);
	add_entry(fixture, "./a/l", '2', "../c/d", 0);
	end_archive(fixture);
	copy(fixture);
	expect_entries(fixture, "d ./a|f ./a/b|f ./a/hard|l ./a/l|");
	assert_int_equal(fixture->files, 1);
	assert_int_equal(fixture->bytes, 700);
	/* Four headers, two blocks of data, and the end, filled up to a record. */
	assert_int_equal(fixture->output.length, 10240);
	assert_string_equal((char *)buffer_data(&fixture->output), "./a/");
}

static void
a_copy_can_be_copied_again(void **state)
{
	struct fixture *fixture = *state;
	struct buffer first;

	add_entry(fixture, "x/caf\xc3\xa9\xff", '0', "", 1000);
	end_archive(fixture);
	copy(fixture);
	expect_entries(fixture, "d ./x|f ./x/caf\xc3\xa9\xff|");
	first = fixture->output;
	buffer_init(&fixture->output, 1U << 24);
	assert_int_equal(buffer_append(&fixture->input, buffer_data(&first), first.length), 0);
	copy(fixture);
	expect_entries(fixture, "d ./x|f ./x/caf\xc3\xa9\xff|");
	assert_int_equal(fixture->output.length, first.length);
	assert_memory_equal(buffer_data(&fixture->output), buffer_data(&first), first.length);
	buffer_free(&first);
}

static void
an_owner_that_takes_little_gets_all_of_it(void **state)
{
	struct fixture *fixture = *state;

	fixture->stall = 1000;
	add_entry(fixture, "a", '0', "", 50000);
	end_archive(fixture);
	copy(fixture);
	expect_entries(fixture, "f ./a|");
	assert_true(fixture->output.length > 50000);
}

/* An archive with one entry is refused with this code. */
static void
expect_refusal(struct fixture *fixture, const char *name, char type, const char *link, size_t size,
    enum error_code code)
{
	add_entry(fixture, "good", '0', "", 1);
	add_entry(fixture, name, type, link, size);
	end_archive(fixture);
	copy(fixture);
	if (fixture->err.code != code)
		fail_msg("%s -> %s: %s %s", name, link, error_kind(fixture->err.code)->name,
		    fixture->err.message);
}

static void
names_that_leave_the_root_are_refused(void **state)
{
	expect_refusal(*state, "../x", '0', "", 1, ERROR_OUTSIDE_ROOT);
	expect_refusal(*state, "a/../../x", '0', "", 1, ERROR_OUTSIDE_ROOT);
	expect_refusal(*state, "a/..", '5', "", 0, ERROR_OUTSIDE_ROOT);
	expect_refusal(*state, "/etc/passwd", '0', "", 1, ERROR_OUTSIDE_ROOT);
	expect_refusal(*state, "..", '5', "", 0, ERROR_OUTSIDE_ROOT);
}

static void
names_in_our_own_directory_are_refused(void **state)
{
	expect_refusal(*state, ".rws", '2', "x", 0, ERROR_DENIED);
	expect_refusal(*state, "./.rws/snapshots/x", '0', "", 1, ERROR_DENIED);
	expect_refusal(*state, ".//.rws//x", '0', "", 1, ERROR_DENIED);
}

static void
links_that_leave_the_root_are_refused(void **state)
{
	expect_refusal(*state, "l", '2', "/etc", 0, ERROR_OUTSIDE_ROOT);
	expect_refusal(*state, "l", '2', "..", 0, ERROR_OUTSIDE_ROOT);
	expect_refusal(*state, "a/l", '2', "../../x", 0, ERROR_OUTSIDE_ROOT);
	/* Harmless by itself, but not when "b" is a link elsewhere. */
	expect_refusal(*state, "a/l", '2', "b/../..", 0, ERROR_OUTSIDE_ROOT);
	expect_refusal(*state, "l", '1', "/etc/passwd", 0, ERROR_OUTSIDE_ROOT);
	expect_refusal(*state, "l", '1', "../x", 0, ERROR_OUTSIDE_ROOT);
}

static void
links_that_stay_are_kept(void **state)
{
	struct fixture *fixture = *state;

	add_entry(fixture, "a/b/l", '2', "../../c", 0);
	add_entry(fixture, "m", '2', "./a/b", 0);
	end_archive(fixture);
	copy(fixture);
	expect_entries(fixture, "d ./a|d ./a/b|l ./a/b/l|l ./m|");
}

static void
an_entry_below_a_link_is_refused_whichever_comes_first(void **state)
{
	struct fixture *fixture = *state;

	add_entry(fixture, "l", '2', "d", 0);
	add_entry(fixture, "l/x", '0', "", 1);
	end_archive(fixture);
	copy(fixture);
	assert_int_equal(fixture->err.code, ERROR_OUTSIDE_ROOT);
	add_entry(fixture, "l/x", '0', "", 1);
	add_entry(fixture, "l", '2', "d", 0);
	end_archive(fixture);
	copy(fixture);
	assert_int_equal(fixture->err.code, ERROR_OUTSIDE_ROOT);
	/* A directory of the same name does not hide it. */
	add_entry(fixture, "l", '2', "d", 0);
	add_entry(fixture, "l", '5', "", 0);
	add_entry(fixture, "l/x", '0', "", 1);
	end_archive(fixture);
	copy(fixture);
	assert_int_equal(fixture->err.code, ERROR_OUTSIDE_ROOT);
}

static void
devices_and_pipes_are_refused(void **state)
{
	expect_refusal(*state, "null", '3', "", 0, ERROR_UNSUPPORTED);
	expect_refusal(*state, "disk", '4', "", 0, ERROR_UNSUPPORTED);
	expect_refusal(*state, "pipe", '6', "", 0, ERROR_UNSUPPORTED);
}

static void
more_bytes_than_the_limit_are_refused(void **state)
{
	struct fixture *fixture = *state;

	expect_refusal(fixture, "big", '0', "", LIMIT, ERROR_TOO_LARGE);
	add_entry(fixture, "fits", '0', "", LIMIT);
	end_archive(fixture);
	copy(fixture);
	assert_int_equal(fixture->err.code, ERROR_NONE);
}

static void
what_is_no_archive_is_refused(void **state)
{
	struct fixture *fixture = *state;
	char noise[4096];

	copy(fixture);
	assert_int_equal(fixture->err.code, ERROR_INVALID);
	memset(noise, 'x', sizeof(noise));
	assert_int_equal(buffer_append(&fixture->input, noise, sizeof(noise)), 0);
	copy(fixture);
	assert_int_equal(fixture->err.code, ERROR_INVALID);
	/* gzip: what it would grow to is not known. */
	assert_int_equal(buffer_append(&fixture->input, "\x1f\x8b\x08\0\0\0\0\0\0\3", 10), 0);
	copy(fixture);
	assert_int_equal(fixture->err.code, ERROR_INVALID);
}

static void
an_archive_that_is_cut_is_refused(void **state)
{
	struct fixture *fixture = *state;

	add_entry(fixture, "a", '0', "", 5000);
	fixture->input.length -= 1000;
	copy(fixture);
	assert_int_equal(fixture->err.code, ERROR_INVALID);
	/* Between two entries: what is there is good, but nobody said that it is all. */
	add_entry(fixture, "a", '0', "", 5000);
	copy(fixture);
	assert_int_equal(fixture->err.code, ERROR_INVALID);
}

static void
a_copy_under_way_can_be_given_up(void **state)
{
	struct fixture *fixture = *state;
	struct archive_copy *copy;

	add_entry(fixture, "a", '0', "", 50000);
	copy = archive_copy_new(fixture->loop, LIMIT, &events, fixture, NULL);
	(void)archive_copy_input(copy, buffer_data(&fixture->input), 20000);
	(void)loop_dispatch(fixture->loop, 10, NULL);
	archive_copy_free(copy);
	assert_false(fixture->done);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_good_archive_comes_out_with_a_list_of_its_entries),
		TEST(a_copy_can_be_copied_again),
		TEST(an_owner_that_takes_little_gets_all_of_it),
		TEST(names_that_leave_the_root_are_refused),
		TEST(names_in_our_own_directory_are_refused),
		TEST(links_that_leave_the_root_are_refused),
		TEST(links_that_stay_are_kept),
		TEST(an_entry_below_a_link_is_refused_whichever_comes_first),
		TEST(devices_and_pipes_are_refused),
		TEST(more_bytes_than_the_limit_are_refused),
		TEST(what_is_no_archive_is_refused),
		TEST(an_archive_that_is_cut_is_refused),
		TEST(a_copy_under_way_can_be_given_up),
	};

	/* As the worker has it: a thread that refused an archive no longer reads. */
	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
