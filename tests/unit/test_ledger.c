/* SPDX-License-Identifier: ISC */
/* The ledger: what is written down is found by the next process, in the same sandbox only. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/memory.h"
#include "core/ledger.h"

static int directory;
static char path[] = "/tmp/test-ledger-XXXXXX";

static int
make_directory(void **unused)
{
	(void)unused;
	memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
	if (mkdtemp(path) == NULL)
		return -1;
	directory = open(path, O_RDONLY | O_DIRECTORY);
	return directory < 0 ? -1 : 0;
}

static int
remove_directory(void **unused)
{
	(void)unused;
	(void)unlinkat(directory, "other", 0);
	(void)close(directory);
	return rmdir(path);
}

static size_t
count_of(char **list)
{
	size_t count;

	for (count = 0; list[count] != NULL; count++)
		continue;
	memory_list_free(list);
	return count;
}

static void
what_is_added_is_listed_until_it_is_removed(void **unused)
{
	char **list;

	(void)unused;
	assert_true(ledger_is_empty(directory));
	ledger_add(directory, "box", 77, UINT64_C(123456789012));
	assert_false(ledger_is_empty(directory));
	list = ledger_list(directory, "box");
	assert_string_equal(list[0], "77");
	assert_string_equal(list[1], "123456789012");
	assert_null(list[2]);
	memory_list_free(list);
	ledger_remove(directory, 77, UINT64_C(123456789012));
	assert_true(ledger_is_empty(directory));
	assert_int_equal(count_of(ledger_list(directory, "box")), 0);
}

static void
what_ran_in_another_sandbox_is_forgotten(void **unused)
{
	(void)unused;
	ledger_add(directory, "box", 1, 1);
	ledger_add(directory, "box2", 2, 2);
	ledger_add(directory, "bo", 3, 3);
	assert_int_equal(count_of(ledger_list(directory, "box")), 2);
	ledger_remove(directory, 1, 1);
	assert_true(ledger_is_empty(directory));
}

static void
names_that_are_no_entries_are_no_commands(void **unused)
{
	static const char *const names[] = { "command.", "command.1", "command.x.1", "command.0.1",
		"command.1.2.3", "command.-1.2" };
	size_t i;
	int fd;

	(void)unused;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		fd = openat(directory, names[i], O_WRONLY | O_CREAT, 0600);
		assert_int_equal(write(fd, "box", 3), 3);
		(void)close(fd);
	}
	fd = openat(directory, "other", O_WRONLY | O_CREAT, 0600);
	(void)close(fd);
	assert_int_equal(count_of(ledger_list(directory, "box")), 0);
	assert_true(ledger_is_empty(directory));
	assert_int_equal(faccessat(directory, "other", F_OK, 0), 0);
}

static void
more_than_the_most_stay_for_the_next_time(void **unused)
{
	uint32_t pid;

	(void)unused;
	for (pid = 1; pid <= LEDGER_MAX + 1; pid++)
		ledger_add(directory, "box", pid, 5);
	assert_int_equal(count_of(ledger_list(directory, "box")), 2 * LEDGER_MAX);
	assert_int_equal(count_of(ledger_list(directory, "none")), 0);
	assert_true(ledger_is_empty(directory));
}

static void
without_a_directory_nothing_is_kept(void **unused)
{
	(void)unused;
	ledger_add(-1, "box", 1, 1);
	ledger_remove(-1, 1, 1);
	assert_true(ledger_is_empty(-1));
	assert_int_equal(count_of(ledger_list(-1, "box")), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    what_is_added_is_listed_until_it_is_removed, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(
		    what_ran_in_another_sandbox_is_forgotten, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(
		    names_that_are_no_entries_are_no_commands, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(
		    more_than_the_most_stay_for_the_next_time, make_directory, remove_directory),
		cmocka_unit_test(without_a_directory_nothing_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
