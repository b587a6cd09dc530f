/* SPDX-License-Identifier: ISC */
/*
 * core/scripts/gather.sh and gather_cancel.sh, with each shell that a sandbox may have as its sh.
 */
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

#include "core/base/base64.h"
#include "core/base/descriptor.h"
#include "core/base/memory.h"
#include "core/scripts.h"

static char *directory, *path, *work;

static int
open_with(const char *shell)
{
	char *link;

	directory = memory_text("/tmp/gather-XXXXXX");
	if (mkdtemp(directory) == NULL)
		return -1;
	work = memory_text_format("%s/work", directory);
	link = memory_text_format("%s/sh", directory);
	path = memory_text_format("%s:%s", directory, getenv("PATH"));
	if (symlink(shell, link) != 0)
		return -1;
	memory_free(link);
	return 0;
}

static int
open_dash(void **state)
{
	(void)state;
	return open_with("/bin/dash");
}

static int
open_bash(void **state)
{
	(void)state;
	return open_with("/bin/bash");
}

static int
open_busybox(void **state)
{
	(void)state;
	return open_with("/bin/busybox");
}

static int
close_all(void **state)
{
	char *link;

	(void)state;
	link = memory_text_format("%s/sh", directory);
	(void)unlink(link);
	(void)rmdir(work);
	/* Nothing else may be left. */
	assert_int_equal(rmdir(directory), 0);
	memory_free(link);
	memory_free(work);
	memory_free(path);
	memory_free(directory);
	return 0;
}

/* Starts a script whose stdout is the pipe. */
static pid_t
start(const char *name, char *const *arguments, int *output)
{
	char **argv;
	int ends[2];
	pid_t pid;

	argv = script_argv(name, arguments);
	assert_int_equal(descriptor_pipe(ends, NULL), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)setenv("PATH", path, 1);
		(void)execvp(argv[0], argv);
		_exit(127);
	}
	descriptor_close(&ends[1]);
	memory_list_free(argv);
	*output = ends[0];
	return pid;
}

/* All that it prints, until it ends; a new text. */
static char *
finish(pid_t pid, int output, int *status)
{
	static char text[65536];
	size_t size;
	ssize_t got;

	for (size = 0; (got = read(output, text + size, sizeof(text) - 1 - size)) > 0;)
		size += (size_t)got;
	text[size] = '\0';
	descriptor_close(&output);
	assert_int_equal(waitpid(pid, status, 0), pid);
	return memory_text(text);
}

static char **
gather_arguments(const char *max, const char *input, const char *script)
{
	char **list, *encoded;
	size_t count = 0;

	list = memory_zeroed(1, sizeof(*list));
	list = memory_list_add(list, count++, work);
	list = memory_list_add(list, count++, max);
	list = memory_list_add(list, count++, input == NULL ? "0" : "1");
	if (input != NULL) {
		encoded = base64_text(input, strlen(input));
		list = memory_list_add(list, count++, encoded);
		memory_free(encoded);
	}
	list = memory_list_add(list, count++, "=c2g=");
	list = memory_list_add(list, count++, "=LWM=");
	encoded = base64_text(script, strlen(script));
	list = memory_list_add(list, count, "=");
	memory_free(list[count]);
	list[count++] = memory_text_format("=%s", encoded);
	memory_free(encoded);
	/* An empty word stays one. */
	return memory_list_add(list, count, "=");
}

static void
expect(const char *max, const char *input, const char *script, const char *line)
{
	char **arguments, *said;
	int output, status;
	pid_t pid;

	arguments = gather_arguments(max, input, script);
	pid = start("gather", arguments, &output);
	said = finish(pid, output, &status);
	assert_string_equal(said, line);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	memory_free(said);
	memory_list_free(arguments);
}

static void
status_and_both_outputs_are_told(void **state)
{
	(void)state;
	expect("100", "in", "cat; echo err >&2; exit 3", "rws-result exited 3 0 .aW4= .ZXJyCg==\n");
	expect("100", NULL, "cat; exit 200", "rws-result exited 200 0 . .\n");
	expect("100", NULL, "printf '\\000\\377'", "rws-result exited 0 0 .AP8= .\n");
}

static void
an_empty_word_and_newlines_at_the_end_of_words_are_kept(void **state)
{
	(void)state;
	expect("100", NULL, "printf %s \"[$0]\"\n\n", "rws-result exited 0 0 .W10= .\n");
}

static void
a_death_by_signal_is_told_by_its_number(void **state)
{
	(void)state;
	expect("100", NULL, "kill -KILL $$", "rws-result signaled 9 0 . .\n");
	expect("100", NULL, "kill -TERM $$", "rws-result signaled 15 0 . .\n");
	expect("100", NULL, "exit 143", "rws-result exited 143 0 . .\n");
}

static void
what_is_over_the_limit_is_cut_and_said_so(void **state)
{
	(void)state;
	expect("3", NULL, "printf abc", "rws-result exited 0 0 .YWJj .\n");
	expect("3", NULL, "printf abcd", "rws-result exited 0 1 .YWJj .\n");
	expect("3", NULL, "head -c 3000000 /dev/zero >&2", "rws-result exited 0 1 . .AAAA\n");
}

static void
cancel(void)
{
	char *arguments[] = { work, NULL };
	int output, status;
	pid_t pid;

	pid = start("gather_cancel", arguments, &output);
	memory_free(finish(pid, output, &status));
	assert_int_equal(status, 0);
}

static void
what_is_cancelled_before_it_began_does_not_begin(void **state)
{
	char **arguments, *said;
	int output, status;
	pid_t pid;

	(void)state;
	cancel();
	arguments = gather_arguments("100", NULL, "echo began");
	pid = start("gather", arguments, &output);
	said = finish(pid, output, &status);
	assert_string_equal(said, "");
	assert_int_equal(WEXITSTATUS(status), 1);
	memory_free(said);
	memory_list_free(arguments);
}

static void
what_is_cancelled_is_killed(void **state)
{
	char **arguments, *said;
	int output, status;
	pid_t pid;

	(void)state;
	arguments = gather_arguments("100", NULL, "trap '' TERM; while :; do sleep 600; done");
	pid = start("gather", arguments, &output);
	while (access(work, F_OK) != 0)
		(void)usleep(1000);
	cancel();
	said = finish(pid, output, &status);
	assert_string_equal(said, "rws-result signaled 9 0 . .\n");
	memory_free(said);
	memory_list_free(arguments);
}

#define WITH(shell)                                                                                \
	cmocka_unit_test_setup_teardown(                                                           \
	    status_and_both_outputs_are_told, open_##shell, close_all),                            \
	    cmocka_unit_test_setup_teardown(                                                       \
		an_empty_word_and_newlines_at_the_end_of_words_are_kept, open_##shell, close_all), \
	    cmocka_unit_test_setup_teardown(                                                       \
		a_death_by_signal_is_told_by_its_number, open_##shell, close_all),                 \
	    cmocka_unit_test_setup_teardown(                                                       \
		what_is_over_the_limit_is_cut_and_said_so, open_##shell, close_all),               \
	    cmocka_unit_test_setup_teardown(                                                       \
		what_is_cancelled_before_it_began_does_not_begin, open_##shell, close_all),        \
	    cmocka_unit_test_setup_teardown(what_is_cancelled_is_killed, open_##shell, close_all)

int
main(void)
{
	const struct CMUnitTest tests[] = { WITH(dash), WITH(bash), WITH(busybox) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
