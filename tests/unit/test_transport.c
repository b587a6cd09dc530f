/* SPDX-License-Identifier: ISC */
/*
 * Commands over two terminals of this machine, with each shell that a sandbox may have as its sh.
 * They run as users see them, in their wrapper; the transport is what makes that possible on such a
 * driver.
 */
#include <errno.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/driver.h"
#include "core/scripts.h"
#include "core/wrapped.h"
#include "tests/unit/pty_driver.h"
#include "tests/unit/transport_fixture.h"

#define PATIENCE 60000
#define MIB ((uint64_t)1024 * 1024)
#define CONTENT_MAX ((size_t)1024 * 1024)

static void
all_bytes_come_back_unchanged(void **state)
{
	int64_t began;

	(void)state;
	began = loop_now();
	transport_start_script("cat", 16 * MIB, false);
	transport_finish_command();
	assert_false(transport_fixture.unknown);
	assert_int_equal(transport_fixture.ended.status, 0);
	assert_int_equal(transport_fixture.output.size, 16 * MIB);
	assert_false(transport_fixture.output.differs);
	assert_int_equal(transport_fixture.errors.size, 0);
	print_message("both ways: %.0f MB/s\n", 16.777 * 1000 / (double)(loop_now() - began + 1));
}

static void
much_output_arrives_whole(void **state)
{
	int64_t began;

	(void)state;
	began = loop_now();
	transport_start_script("head -c 67108864 /dev/zero", 0, false);
	transport_finish_command();
	assert_int_equal(transport_fixture.output.size, 64 * MIB);
	assert_int_equal(transport_fixture.ended.status, 0);
	print_message("out: %.0f MB/s\n", 67.109 * 1000 / (double)(loop_now() - began + 1));
}

static void
errors_come_apart_from_output(void **state)
{
	(void)state;
	transport_start_script("head -c 3000000 /dev/zero >&2; echo ok", 0, false);
	transport_finish_command();
	assert_string_equal(transport_text_of(&transport_fixture.output), "ok\n");
	assert_int_equal(transport_fixture.errors.size, 3000000);
}

static void
end_of_input_is_seen_and_the_command_goes_on(void **state)
{
	(void)state;
	transport_start_script("wc -c; echo end", 5, false);
	transport_finish_command();
	assert_string_equal(transport_text_of(&transport_fixture.output), "5\nend\n");
}

static void
input_without_an_end_keeps_the_command_waiting(void **state)
{
	(void)state;
	transport_start_script("read a; echo \"got $a\"; cat; echo end", 0, true);
	transport_dispatch(&transport_fixture.started);
	transport_type(transport_fixture.input, "one\n");
	transport_expect_text(&transport_fixture.output, "got one\n");
	assert_false(transport_fixture.exited);
	transport_end_input();
	transport_finish_command();
	assert_string_equal(transport_text_of(&transport_fixture.output), "got one\nend\n");
}

static void
a_prompt_is_not_held_back(void **state)
{
	(void)state;
	transport_start_script(
	    "printf 'name? '; printf 'really? ' >&2; read a; echo \"$a\"", 0, true);
	transport_expect_text(&transport_fixture.output, "name? ");
	transport_expect_text(&transport_fixture.errors, "really? ");
	transport_type(transport_fixture.input, "me\n");
	transport_finish_command();
	assert_string_equal(transport_text_of(&transport_fixture.output), "name? me\n");
}

static void
without_input_there_is_none(void **state)
{
	(void)state;
	transport_expect_run("cat; echo end", "end\n", 0);
}

static void
a_command_that_reads_no_input_still_ends(void **state)
{
	(void)state;
	transport_start_script("echo early", 32 * MIB, false);
	transport_finish_command();
	assert_string_equal(transport_text_of(&transport_fixture.output), "early\n");
	assert_int_equal(transport_fixture.ended.status, 0);
}

static void
ends_are_exact(void **state)
{
	(void)state;
	transport_expect_run("exit 0", "", 0);
	transport_expect_run("echo x; exit 143", "x\n", 143);
	transport_expect_run("exit 255", "", 255);
	transport_start_script("kill -KILL $$", 0, false);
	transport_finish_command();
	assert_true(transport_fixture.ended.signaled);
	assert_int_equal(transport_fixture.ended.status, SIGKILL);
}

static void
what_looks_like_a_marker_is_output(void **state)
{
	(void)state;
	transport_expect_run(
	    "printf '\\036rws:0123456789abcdef0123456789abcdef end exited 0\\n\\036rws:\\036'; exit 9",
	    "\036rws:0123456789abcdef0123456789abcdef end exited 0\n\036rws:\036", 9);
}

static void
the_environment_has_nothing_of_ours(void **state)
{
	(void)state;
	/* Of the descriptors stderr is one: it goes through a FIFO. */
	transport_expect_run(
	    "env | grep -ciE 'token|meeting|rws'; ls -l /proc/$$/fd | grep -cE 'pts|rws'", "0\n1\n",
	    0);
}

static void
a_signal_reaches_the_command(void **state)
{
	(void)state;
	transport_start_script(
	    "trap 'echo got it; exit 5' USR1; echo ready; while :; do sleep 0.02; done", 0, false);
	transport_expect_text(&transport_fixture.output, "ready");
	wrapped_signal(transport_fixture.wrapped, SIGUSR1);
	transport_finish_command();
	assert_non_null(strstr(transport_text_of(&transport_fixture.output), "got it\n"));
	assert_int_equal(transport_fixture.ended.status, 5);
}

static void
a_slow_reader_holds_the_writer_back_and_loses_nothing(void **state)
{
	uint64_t sent;
	int idle;

	(void)state;
	transport_start_script("cat", 64 * MIB, false);
	transport_dispatch(&transport_fixture.started);
	/* Until nothing moves any more. */
	for (idle = 0, sent = 0; idle < 5; idle++) {
		assert_int_equal(loop_dispatch(transport_fixture.loop, 100, NULL), 0);
		if (transport_fixture.sent != sent)
			idle = 0;
		sent = transport_fixture.sent;
	}
	assert_false(transport_fixture.exited);
	assert_true(transport_fixture.sent < 8 * MIB);
	transport_finish_command();
	assert_int_equal(transport_fixture.output.size, 64 * MIB);
	assert_false(transport_fixture.output.differs);
}

static void
what_is_left_behind_holding_output_does_not_hold_up_the_end(void **state)
{
	char *pid;

	(void)state;
	transport_start_script("setsid sleep 600 & echo $!; exit 4", 0, false);
	transport_finish_command();
	assert_int_equal(transport_fixture.ended.status, 4);
	transport_dispatch(&transport_fixture.gone);
	pid = memory_text_bounded(transport_text_of(&transport_fixture.output),
	    strcspn(transport_text_of(&transport_fixture.output), "\n"));
	(void)kill((pid_t)strtol(pid, NULL, 10), SIGKILL);
	memory_free(pid);
}

static void
a_broken_connection_is_an_unknown_end(void **state)
{
	(void)state;
	transport_start_script("echo $$; sleep 600", 0, false);
	transport_expect_text(&transport_fixture.output, "\n");
	pty_driver_break(&transport_fixture.sandbox);
	transport_finish_command();
	assert_true(transport_fixture.unknown);
	assert_int_equal(transport_fixture.failure.code, ERROR_UNAVAILABLE);
	assert_non_null(strstr(transport_fixture.failure.message, "the connection broke"));
	(void)kill(-(pid_t)strtol(transport_text_of(&transport_fixture.output), NULL, 10), SIGKILL);
}

static void
a_terminal_is_one_with_its_size_and_its_end(void **state)
{
	(void)state;
	transport_start_terminal(
	    "test -t 0 && test -t 1 && test -t 2 && stty size && echo it >/dev/tty; exit 7");
	transport_finish_command();
	assert_false(transport_fixture.unknown);
	assert_string_equal(transport_text_of(&transport_fixture.output), "37 91\r\nit\r\n");
	assert_int_equal(transport_fixture.ended.status, 7);
}

static void
a_death_by_signal_on_a_terminal_is_exact(void **state)
{
	(void)state;
	transport_start_terminal("kill -TERM $$");
	transport_finish_command();
	assert_true(transport_fixture.ended.signaled);
	assert_int_equal(transport_fixture.ended.status, SIGTERM);
	transport_forget_command();
	transport_start_terminal("exit 143");
	transport_finish_command();
	assert_false(transport_fixture.ended.signaled);
	assert_int_equal(transport_fixture.ended.status, 143);
}

static void
a_terminal_takes_keys_and_a_new_size(void **state)
{
	(void)state;
	/*
	 * Not with "read": that of busybox 1.38 hangs for ever once a trap has interrupted it. Nor with
	 * "wait": a trap between the test of $a and it is not seen.
	 */
	transport_start_terminal(
	    "trap 'stty size' WINCH; trap 'echo int; a=q' INT; a=; "
	    "echo ready; while ! [ \"$a\" ]; do sleep 0.1; done; cat; echo end");
	transport_expect_text(&transport_fixture.output, "ready");
	wrapped_resize(transport_fixture.wrapped, 120, 50, 0, 0);
	transport_expect_text(&transport_fixture.output, "50 120\r\n");
	transport_type(transport_fixture.output.fd, "\003");
	transport_expect_text(&transport_fixture.output, "int\r\n");
	transport_type(transport_fixture.output.fd, "line\n\004");
	transport_finish_command();
	assert_non_null(
	    strstr(transport_text_of(&transport_fixture.output), "line\r\nline\r\nend\r\n"));
}

static void
the_last_output_of_a_terminal_is_not_lost(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 10; i++) {
		transport_start_terminal("seq 1 3000; exit 9");
		transport_finish_command();
		assert_int_equal(transport_fixture.ended.status, 9);
		/* 1..3000, each with carriage return and line feed. */
		assert_int_equal(
		    transport_fixture.output.size, 9 + 180 + 2700 + 4 * 2001 + 2 * 3000);
		transport_forget_command();
	}
}

static pid_t
spawn(int *terminal, char **argv)
{
	pid_t pid;

	pid = forkpty(terminal, NULL, NULL, NULL);
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)setenv("PATH", transport_fixture.path, 1);
		(void)execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

/* Reads until the terminal is at its end. */
static void
read_all(int terminal)
{
	char chunk[4096];

	while (read(terminal, chunk, sizeof(chunk)) > 0)
		continue;
}

/* Without a sign of life the far side ends even a command that ignores all that can be ignored. */
static void
silence_ends_the_command(void **state)
{
	char *meeting = memory_text_format("%s/meeting", transport_fixture.directory);
	char second[] = "1", pipe[] = "pipe", *arguments[] = { meeting, pipe, NULL };
	static const char *const stubborn[] = { "setsid", "-f", "-w", "sh", "-c",
		"trap '' HUP TERM; while :; do sleep 600; done", NULL };
	char **main_argv, **side_argv;
	int main_terminal, side_terminal, status;
	pid_t main_pid, side_pid;
	size_t i, count;

	(void)state;
	main_argv = script_argv("transport", arguments);
	for (count = 0; main_argv[count] != NULL; count++)
		continue;
	for (i = 0; stubborn[i] != NULL; i++)
		main_argv = memory_list_add(main_argv, count++, stubborn[i]);
	arguments[1] = second;
	side_argv = script_argv("transport_side", arguments);
	main_pid = spawn(&main_terminal, main_argv);
	side_pid = spawn(&side_terminal, side_argv);
	transport_type(main_terminal, "0123456789abcdef0123456789abcdef\n");
	transport_type(side_terminal, "0123456789abcdef0123456789abcdef\n");
	read_all(main_terminal);
	assert_int_equal(waitpid(main_pid, &status, 0), main_pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	descriptor_close(&main_terminal);
	(void)kill(side_pid, SIGKILL);
	(void)waitpid(side_pid, NULL, 0);
	descriptor_close(&side_terminal);
	memory_list_free(main_argv);
	memory_list_free(side_argv);
	memory_free(meeting);
}

#define WITH(shell)                                                                                \
	cmocka_unit_test_setup_teardown(                                                           \
	    all_bytes_come_back_unchanged, transport_open_##shell, transport_close_all),           \
	    cmocka_unit_test_setup_teardown(                                                       \
		much_output_arrives_whole, transport_open_##shell, transport_close_all),           \
	    cmocka_unit_test_setup_teardown(                                                       \
		errors_come_apart_from_output, transport_open_##shell, transport_close_all),       \
	    cmocka_unit_test_setup_teardown(end_of_input_is_seen_and_the_command_goes_on,          \
		transport_open_##shell, transport_close_all),                                      \
	    cmocka_unit_test_setup_teardown(input_without_an_end_keeps_the_command_waiting,        \
		transport_open_##shell, transport_close_all),                                      \
	    cmocka_unit_test_setup_teardown(                                                       \
		a_prompt_is_not_held_back, transport_open_##shell, transport_close_all),           \
	    cmocka_unit_test_setup_teardown(                                                       \
		without_input_there_is_none, transport_open_##shell, transport_close_all),         \
	    cmocka_unit_test_setup_teardown(a_command_that_reads_no_input_still_ends,              \
		transport_open_##shell, transport_close_all),                                      \
	    cmocka_unit_test_setup_teardown(                                                       \
		ends_are_exact, transport_open_##shell, transport_close_all),                      \
	    cmocka_unit_test_setup_teardown(                                                       \
		what_looks_like_a_marker_is_output, transport_open_##shell, transport_close_all),  \
	    cmocka_unit_test_setup_teardown(                                                       \
		the_environment_has_nothing_of_ours, transport_open_##shell, transport_close_all), \
	    cmocka_unit_test_setup_teardown(                                                       \
		a_signal_reaches_the_command, transport_open_##shell, transport_close_all),        \
	    cmocka_unit_test_setup_teardown(a_slow_reader_holds_the_writer_back_and_loses_nothing, \
		transport_open_##shell, transport_close_all),                                      \
	    cmocka_unit_test_setup_teardown(                                                       \
		what_is_left_behind_holding_output_does_not_hold_up_the_end,                       \
		transport_open_##shell, transport_close_all),                                      \
	    cmocka_unit_test_setup_teardown(a_broken_connection_is_an_unknown_end,                 \
		transport_open_##shell, transport_close_all),                                      \
	    cmocka_unit_test_setup_teardown(a_terminal_is_one_with_its_size_and_its_end,           \
		transport_open_##shell, transport_close_all),                                      \
	    cmocka_unit_test_setup_teardown(a_death_by_signal_on_a_terminal_is_exact,              \
		transport_open_##shell, transport_close_all),                                      \
	    cmocka_unit_test_setup_teardown(a_terminal_takes_keys_and_a_new_size,                  \
		transport_open_##shell, transport_close_all),                                      \
	    cmocka_unit_test_setup_teardown(the_last_output_of_a_terminal_is_not_lost,             \
		transport_open_##shell, transport_close_all),                                      \
	    cmocka_unit_test_setup_teardown(                                                       \
		silence_ends_the_command, transport_open_##shell, transport_close_all)

int
main(int count, char **arguments)
{
	const struct CMUnitTest dash[] = { WITH(dash) };
	const struct CMUnitTest bash[] = { WITH(bash) };
	const struct CMUnitTest busybox[] = { WITH(busybox) };

	/* What our own starter left open is not to be seen in the commands of the tests. */
	if (close_range(STDERR_FILENO + 1, ~0U, 0) != 0)
		return 1;
	if (count > 1)
		cmocka_set_test_filter(arguments[1]);
	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("dash", dash, NULL, NULL) +
	       cmocka_run_group_tests_name("bash", bash, NULL, NULL) +
	       cmocka_run_group_tests_name("busybox", busybox, NULL, NULL);
}
