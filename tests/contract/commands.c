/* SPDX-License-Identifier: ISC */
/* The contract: commands, their bytes, their ends and what they leave behind. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/loop.h"
#include "core/base/memory.h"
#include "tests/contract/contract.h"
#include "tests/contract/harness.h"

#define BULK (64U * 1024U * 1024U)

static struct contract contract;

static int
open_group(void **state)
{
	(void)state;
	contract_open(&contract);
	if (!contract_connect(&contract, NULL, true))
		fail_msg("connect: %s", contract.failure.message);
	return 0;
}

static int
close_group(void **state)
{
	(void)state;
	assert_int_equal(contract.lost, 0);
	contract_recover(&contract);
	(void)contract_release(&contract, DRIVER_DESTROY);
	contract_close(&contract);
	return 0;
}

static void
binary_input_comes_back_unchanged(void **state)
{
	const char *argv[] = { "cat", NULL };
	struct contract_start start = { .argv = argv, .pattern_total = BULK };
	struct contract_command command;

	(void)state;
	contract_command_start(&contract, &command, &start);
	contract_command_finish(&command);
	assert_false(command.unknown);
	assert_int_equal(command.ended.status, 0);
	assert_int_equal(command.output.size, BULK);
	assert_true(command.output.sum == contract_pattern_sum(BULK));
	assert_int_equal(command.errors.size, 0);
	contract_command_free(&command);
}

static void
the_pattern_holds_every_byte(void **state)
{
	bool seen[256] = { false };
	size_t i, count = 0;

	(void)state;
	for (i = 0; i < 65536; i++) {
		count += seen[contract_pattern(i)] ? 0 : 1;
		seen[contract_pattern(i)] = true;
	}
	assert_int_equal(count, 256);
}

static void
errors_come_apart_from_output(void **state)
{
	struct contract_command command;

	(void)state;
	contract_shell(&contract, &command, "head -c 8388608 /dev/zero >&2; echo ok");
	contract_command_finish(&command);
	assert_string_equal(contract_text(&command.output), "ok\n");
	assert_int_equal(command.errors.size, 8388608);
	contract_command_free(&command);
}

static void
end_of_input_is_seen_and_the_command_goes_on(void **state)
{
	const char *argv[] = { "sh", "-c", "cat; echo end", NULL };
	struct contract_start start = { .argv = argv, .input = "some\n" };
	struct contract_command command;

	(void)state;
	contract_command_start(&contract, &command, &start);
	contract_command_finish(&command);
	assert_string_equal(contract_text(&command.output), "some\nend\n");
	contract_command_free(&command);
}

static void
input_without_an_end_keeps_the_command_waiting(void **state)
{
	const char *argv[] = { "sh", "-c", "read line; echo got $line; cat; echo end", NULL };
	struct contract_start start = { .argv = argv, .keep_input = true };
	struct contract_command command;

	(void)state;
	contract_command_start(&contract, &command, &start);
	contract_wait(&contract, &command.started);
	contract_command_type(&command, "one\n");
	contract_command_expect(&command, "got one");
	contract_settle(&contract);
	assert_false(command.exited);
	contract_command_end_input(&command);
	contract_command_finish(&command);
	assert_string_equal(contract_text(&command.output), "got one\nend\n");
	contract_command_free(&command);
}

static void
without_input_there_is_none(void **state)
{
	(void)state;
	contract_check(&contract, "cat; echo end", 0, "end\n");
}

static void
a_command_that_reads_no_input_still_ends(void **state)
{
	const char *argv[] = { "sh", "-c", "echo early", NULL };
	struct contract_start start = { .argv = argv, .pattern_total = BULK };
	struct contract_command command;

	(void)state;
	contract_command_start(&contract, &command, &start);
	contract_command_finish(&command);
	assert_string_equal(contract_text(&command.output), "early\n");
	contract_command_free(&command);
}

static void
every_exit_status_is_exact(void **state)
{
	char script[64], output[16];
	int status;

	(void)state;
	for (status = 0; status < 256; status++) {
		snprintf(script, sizeof(script), "printf %d; exit %d", status, status);
		snprintf(output, sizeof(output), "%d", status);
		contract_check(&contract, script, status, output);
	}
}

static void
death_by_signal_is_told_by_its_number(void **state)
{
	static const int numbers[] = { SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGKILL, SIGUSR1, SIGSEGV,
		SIGUSR2, SIGPIPE, SIGALRM, SIGTERM };
	struct contract_command command;
	char script[64];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		snprintf(script, sizeof(script), "ulimit -c 0; kill -%d $$; sleep 60", numbers[i]);
		contract_shell(&contract, &command, script);
		contract_command_finish(&command);
		assert_true(command.ended.signaled);
		assert_int_equal(command.ended.status, numbers[i]);
		assert_false(command.ended.core);
		contract_command_free(&command);
	}
}

/* Signals 32 and 33 are the C library's own: its posix_spawn, which make uses, leaves them ignored. */
static void
signals_start_out_as_in_a_fresh_process(void **state)
{
	(void)state;
	contract_check(&contract,
	    "cat /proc/self/status | while read -r name mask; do case $name in SigBlk: | SigIgn:) "
	    "echo $name$((0x$mask & ~0x180000000)) ;; esac; done; umask",
	    0, "SigBlk:0\nSigIgn:0\n0022\n");
}

static void
a_signal_reaches_the_whole_group(void **state)
{
	struct contract_command command;

	(void)state;
	contract_shell(&contract, &command,
	    "(sh -c 'trap \"echo grandchild; exit\" USR1; echo a; while :; do sleep 0.02; done') &"
	    "trap 'wait; echo leader; exit 3' USR1; echo b; while :; do sleep 0.02; done");
	contract_command_expect(&command, "a\n");
	contract_command_expect(&command, "b\n");
	contract_command_signal(&command, SIGUSR1);
	contract_command_finish(&command);
	assert_int_equal(command.ended.status, 3);
	assert_non_null(strstr(contract_text(&command.output), "grandchild"));
	contract_command_free(&command);
}

static void
a_signal_right_after_the_start_is_not_lost(void **state)
{
	const char *argv[] = { "sleep", "600", NULL };
	struct contract_start start = { .argv = argv };
	struct contract_command command;
	int i;

	(void)state;
	for (i = 0; i < 50; i++) {
		contract_command_start(&contract, &command, &start);
		contract_wait(&contract, &command.started);
		contract_command_signal(&command, SIGTERM);
		contract_command_finish(&command);
		assert_true(command.ended.signaled);
		assert_int_equal(command.ended.status, SIGTERM);
		contract_command_free(&command);
	}
}

/* Waits in the sandbox until no such process is left there. */
static void
expect_dead(uint32_t pid)
{
	char script[96];

	snprintf(script, sizeof(script), "while kill -0 %u 2>/dev/null; do sleep 0.01; done", pid);
	contract_check(&contract, script, 0, "");
}

static uint32_t
leave_behind(struct contract_command *command, const char *script, bool keep, uint32_t grace)
{
	const char *argv[] = { "sh", "-c", script, NULL };
	struct contract_start start = {
		.argv = argv, .keep_background = keep, .kill_grace = grace
	};

	contract_command_start(&contract, command, &start);
	contract_command_finish(command);
	assert_int_equal(command->ended.status, 0);
	return (uint32_t)strtoul(contract_text(&command->output), NULL, 10);
}

static void
what_is_left_behind_is_ended(void **state)
{
	struct contract_command command;
	uint32_t pid;

	(void)state;
	pid = leave_behind(&command, "sleep 600 >/dev/null 2>&1 & echo $!", false, 60000);
	assert_true(pid > 1);
	contract_wait(&contract, &command.gone);
	expect_dead(pid);
	contract_command_free(&command);
}

static void
what_resists_is_killed_after_the_grace(void **state)
{
	struct contract_command command;
	uint32_t pid;

	(void)state;
	pid = leave_behind(&command,
	    "sh -c 'trap \"\" HUP TERM; : >ready; while :; do sleep 0.05; done' >/dev/null 2>&1 &"
	    "while ! test -e ready; do :; done; rm ready; echo $!",
	    false, 300);
	assert_true(pid > 1);
	contract_wait(&contract, &command.gone);
	expect_dead(pid);
	contract_command_free(&command);
}

static void
what_is_left_behind_may_be_kept(void **state)
{
	struct contract_command command;
	char script[32];
	uint32_t pid;

	(void)state;
	pid = leave_behind(&command, "sleep 600 >/dev/null 2>&1 & echo $!", true, 100);
	contract_settle(&contract);
	assert_false(command.gone);
	snprintf(script, sizeof(script), "kill %u", pid);
	contract_check(&contract, script, 0, "");
	contract_wait(&contract, &command.gone);
	contract_command_free(&command);
}

static void
closing_a_kept_command_leaves_it_alone(void **state)
{
	struct contract_command command;
	char script[64];
	uint32_t pid;

	(void)state;
	pid = leave_behind(&command, "sleep 600 >/dev/null 2>&1 & echo $!", true, 100);
	contract_command_free(&command);
	contract_settle(&contract);
	snprintf(script, sizeof(script), "kill -0 %u && kill -9 %u", pid, pid);
	contract_check(&contract, script, 0, "");
}

static void
a_session_of_its_own_lives_on(void **state)
{
	struct contract_command command;
	char script[64];
	uint32_t pid;

	(void)state;
	pid = leave_behind(&command,
	    "setsid sh -c 'echo $$; : >ready; exec sleep 600 >/dev/null 2>&1' &"
	    "while ! test -e ready; do :; done; rm ready",
	    false, 100);
	contract_wait(&contract, &command.gone);
	snprintf(script, sizeof(script), "kill -9 %u", pid);
	contract_check(&contract, script, 0, "");
	contract_command_free(&command);
}

static void
closing_a_stream_kills_the_command(void **state)
{
	struct contract_command command;
	uint32_t pid;

	(void)state;
	contract_shell(
	    &contract, &command, "trap '' HUP TERM INT; sleep 600 & echo $!; wait; sleep 600");
	contract_command_expect(&command, "\n");
	pid = (uint32_t)strtoul(contract_text(&command.output), NULL, 10);
	contract_command_free(&command);
	expect_dead(pid);
}

static void
closing_a_stream_before_it_started_kills_the_command(void **state)
{
	const char *argv[] = { "sleep", "6543", NULL };
	struct contract_start start = { .argv = argv };
	struct contract_command command;

	(void)state;
	contract_command_start(&contract, &command, &start);
	contract_command_free(&command);
	contract_check(
	    &contract, "while pgrep -fx 'sleep 6543' >/dev/null; do sleep 0.01; done", 0, "");
}

static void
orphans_are_reaped(void **state)
{
	(void)state;
	contract_check(&contract,
	    "i=0; while [ $i -lt 50 ]; do (setsid true &); i=$((i+1)); done;"
	    "while ps -o stat= --ppid $PPID | grep -q Z; do sleep 0.01; done",
	    0, "");
}

static void
a_missing_directory_is_replaced_with_a_warning(void **state)
{
	const char *argv[] = { "pwd", NULL };
	struct contract_start start = { .argv = argv, .directory = "/no/such/place" };
	struct contract_command command;

	(void)state;
	contract_command_start(&contract, &command, &start);
	contract_command_finish(&command);
	assert_int_equal(command.ended.status, 0);
	assert_non_null(strstr(contract_text(&command.errors), "/no/such/place"));
	assert_true(command.output.size > 1);
	contract_command_free(&command);
}

static void
a_missing_program_is_127_and_a_useless_one_126(void **state)
{
	static const struct {
		const char *program;
		int status;
	} cases[] = { { "no-such-program", 127 }, { "/no/such/program", 127 }, { "/etc", 126 } };
	struct contract_command command;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *argv[] = { cases[i].program, NULL };
		struct contract_start start = { .argv = argv };

		contract_command_start(&contract, &command, &start);
		contract_command_finish(&command);
		assert_false(command.unknown);
		assert_int_equal(command.ended.status, cases[i].status);
		assert_non_null(strstr(contract_text(&command.errors), cases[i].program));
		contract_command_free(&command);
	}
}

static void
environment_is_added_and_replaces(void **state)
{
	const char *argv[] = { "sh", "-c", "echo \"$ONE|$HOME|$USER\"; test -n \"$PATH\"", NULL };
	const char *environment[] = { "ONE=a b=c", "USER=me", NULL };
	struct contract_start start = { .argv = argv, .environment = environment };
	struct contract_command command;
	char *expected;

	(void)state;
	contract_command_start(&contract, &command, &start);
	contract_command_finish(&command);
	expected = memory_text_format("a b=c|%s|me\n", contract.directory);
	assert_string_equal(contract_text(&command.output), expected);
	memory_free(expected);
	contract_command_free(&command);
}

static void
nothing_of_the_worker_is_in_the_environment(void **state)
{
	(void)state;
	assert_int_equal(setenv("RWS_TEST_SECRET", "hidden", 1), 0);
	contract_check(&contract, "env | grep -c SECRET", 1, "0\n");
}

static void
arguments_arrive_byte_for_byte(void **state)
{
	const char *argv[] = { "printf", "%s\n", "", "a b", "'\"$`\\", "two\nlines", "\xff\xfe",
		"*", "-n", NULL };
	struct contract_start start = { .argv = argv };
	struct contract_command command;

	(void)state;
	contract_command_start(&contract, &command, &start);
	contract_command_finish(&command);
	assert_string_equal(
	    contract_text(&command.output), "\na b\n'\"$`\\\ntwo\nlines\n\xff\xfe\n*\n-n\n");
	contract_command_free(&command);
}

static void
too_long_an_argument_list_is_refused(void **state)
{
	char *argument = memory_allocate(4U * 1024U * 1024U + 1);
	const char *argv[] = { "true", argument, NULL };
	struct contract_start start = { .argv = argv };
	struct contract_command command;

	(void)state;
	memset(argument, 'x', 4U * 1024U * 1024U);
	argument[4U * 1024U * 1024U] = '\0';
	contract_command_start(&contract, &command, &start);
	contract_wait(&contract, &command.exited);
	assert_true(command.unknown);
	assert_int_equal(command.failure.code, ERROR_TOO_LARGE);
	contract_command_free(&command);
	memory_free(argument);
	contract_check(&contract, "echo alive", 0, "alive\n");
}

static void
a_slow_reader_holds_the_writer_back_and_loses_nothing(void **state)
{
	const char *argv[] = { "cat", NULL };
	struct contract_start start = { .argv = argv, .pattern_total = BULK, .stopped = true };
	struct contract_command command;

	(void)state;
	contract_command_start(&contract, &command, &start);
	contract_wait(&contract, &command.started);
	contract_settle(&contract);
	assert_false(command.exited);
	/* There may be a network between, with what TCP holds in both directions. */
	assert_true(command.pattern < BULK / 2);
	contract_check(&contract, "echo not held up", 0, "not held up\n");
	contract_command_resume(&command);
	contract_command_finish(&command);
	assert_int_equal(command.output.size, BULK);
	assert_true(command.output.sum == contract_pattern_sum(BULK));
	contract_command_free(&command);
}

#define MANY 40

static void
many_commands_run_at_once(void **state)
{
	struct contract_command commands[MANY];
	char script[64], expected[16];
	int i;

	(void)state;
	for (i = 0; i < MANY; i++) {
		snprintf(script, sizeof(script), "sleep 0.0%d; echo %d; exit %d", i % 7, i, i);
		contract_shell(&contract, &commands[i], script);
	}
	for (i = 0; i < MANY; i++) {
		contract_command_finish(&commands[i]);
		snprintf(expected, sizeof(expected), "%d\n", i);
		assert_string_equal(contract_text(&commands[i].output), expected);
		assert_int_equal(commands[i].ended.status, i);
		contract_command_free(&commands[i]);
	}
}

static void
output_of_a_quick_command_is_never_lost(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 200; i++)
		contract_check(&contract, "echo all of it", 0, "all of it\n");
}

int
contract_test_commands(void)
{
	const struct CMUnitTest tests[] = {
		CONTRACT_TEST(the_pattern_holds_every_byte),
		CONTRACT_TEST(binary_input_comes_back_unchanged),
		CONTRACT_TEST(errors_come_apart_from_output),
		CONTRACT_TEST(end_of_input_is_seen_and_the_command_goes_on),
		CONTRACT_TEST(input_without_an_end_keeps_the_command_waiting),
		CONTRACT_TEST(without_input_there_is_none),
		CONTRACT_TEST(a_command_that_reads_no_input_still_ends),
		CONTRACT_TEST(every_exit_status_is_exact),
		CONTRACT_TEST(death_by_signal_is_told_by_its_number),
		CONTRACT_TEST(signals_start_out_as_in_a_fresh_process),
		CONTRACT_TEST(a_signal_reaches_the_whole_group),
		CONTRACT_TEST(a_signal_right_after_the_start_is_not_lost),
		CONTRACT_TEST(closing_a_stream_kills_the_command),
		CONTRACT_TEST(closing_a_stream_before_it_started_kills_the_command),
		CONTRACT_TEST(orphans_are_reaped),
		CONTRACT_TEST(a_missing_directory_is_replaced_with_a_warning),
		CONTRACT_TEST(a_missing_program_is_127_and_a_useless_one_126),
		CONTRACT_TEST(environment_is_added_and_replaces),
		CONTRACT_TEST(nothing_of_the_worker_is_in_the_environment),
		CONTRACT_TEST(arguments_arrive_byte_for_byte),
		CONTRACT_TEST(too_long_an_argument_list_is_refused),
		CONTRACT_TEST(a_slow_reader_holds_the_writer_back_and_loses_nothing),
		CONTRACT_TEST(many_commands_run_at_once),
		CONTRACT_TEST(output_of_a_quick_command_is_never_lost),
	};
	const struct CMUnitTest group_tests[] = {
		CONTRACT_TEST(what_is_left_behind_is_ended),
		CONTRACT_TEST(what_resists_is_killed_after_the_grace),
		CONTRACT_TEST(what_is_left_behind_may_be_kept),
		CONTRACT_TEST(closing_a_kept_command_leaves_it_alone),
		CONTRACT_TEST(a_session_of_its_own_lives_on),
	};
	int failed;

	failed = cmocka_run_group_tests_name("commands", tests, open_group, close_group);
	failed += cmocka_run_group_tests_name("background", group_tests, open_group, close_group);
	return failed;
}
