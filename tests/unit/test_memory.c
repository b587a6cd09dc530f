/* SPDX-License-Identifier: ISC */
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/memory.h"

static void
texts_are_copies_of_their_own(void **state)
{
	char source[] = "abcdef";
	char *whole, *part, *made;

	(void)state;
	whole = memory_text(source);
	part = memory_text_bounded(source, 3);
	made = memory_text_format("%s-%d", source, 7);
	source[0] = 'x';
	assert_string_equal(whole, "abcdef");
	assert_string_equal(part, "abc");
	assert_string_equal(made, "abcdef-7");
	memory_free(whole);
	memory_free(part);
	memory_free(made);
}

static void
lists_are_copied_and_grow(void **state)
{
	char first[] = "one";
	char *list[] = { first, NULL };
	char **copy;

	(void)state;
	copy = memory_list(list);
	copy = memory_list_add(copy, 1, "two");
	first[0] = 'x';
	assert_string_equal(copy[0], "one");
	assert_string_equal(copy[1], "two");
	assert_null(copy[2]);
	memory_list_free(copy);
	memory_list_free(NULL);
	copy = memory_list_add(memory_list(NULL), 0, "first");
	assert_string_equal(copy[0], "first");
	assert_null(copy[1]);
	memory_list_free(copy);
}

static void
size_zero_gives_a_pointer_that_can_be_freed(void **state)
{
	void *memory;

	(void)state;
	memory = memory_allocate(0);
	assert_non_null(memory);
	memory = memory_resize(memory, 0, 8);
	assert_non_null(memory);
	memory_free(memory);
	memory_free(NULL);
	memory_text_wipe(NULL);
}

static void
zeroed_memory_is_zero(void **state)
{
	unsigned char *memory;
	size_t i;

	(void)state;
	memory = memory_zeroed(100, 3);
	for (i = 0; i < 300; i++)
		assert_int_equal(memory[i], 0);
	memory_free(memory);
}

/* A product that wraps round would give a small block for a large array. */
static void
an_array_whose_size_overflows_ends_the_process(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	pid = fork();
	if (pid == 0) {
		(void)close(STDERR_FILENO);
		memory_free(memory_resize(NULL, SIZE_MAX / 2, 4));
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 70);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_copies_of_their_own),
		cmocka_unit_test(lists_are_copied_and_grow),
		cmocka_unit_test(size_zero_gives_a_pointer_that_can_be_freed),
		cmocka_unit_test(zeroed_memory_is_zero),
		cmocka_unit_test(an_array_whose_size_overflows_ends_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
