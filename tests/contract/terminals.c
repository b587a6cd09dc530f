/* SPDX-License-Identifier: ISC */
/* The contract: commands on a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/descriptor.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "tests/contract/contract.h"
#include "tests/contract/harness.h"

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
	contract_recover(&contract);
	(void)contract_release(&contract, DRIVER_DESTROY);
	contract_close(&contract);
	return 0;
}

static void
start_terminal(struct contract_command *command, const char *script)
{
	const char *argv[] = { "sh", "-c", script, NULL };
	struct contract_start start = { .argv = argv, .pty = true, .columns = 91, .rows = 37 };

	contract_command_start(&contract, command, &start);
}

static void
expect_terminal(const char *script, int status, const char *output)
{
	struct contract_command command;

	start_terminal(&command, script);
	contract_command_finish(&command);
	assert_false(command.unknown);
	assert_string_equal(contract_text(&command.output), output);
	assert_int_equal(command.ended.status, status);
	contract_command_free(&command);
}

static void
all_three_are_one_terminal(void **state)
{
	(void)state;
	expect_terminal(
	    "test -t 0 && test -t 1 && test -t 2 && tty | sed 's/[0-9]*$/N/'; echo e >&2", 0,
	    "/dev/pts/N\r\ne\r\n");
}

static void
it_is_the_controlling_terminal(void **state)
{
	(void)state;
	expect_terminal("echo to it >/dev/tty", 0, "to it\r\n");
}

static void
it_has_the_size_and_the_name_asked_for(void **state)
{
	(void)state;
	expect_terminal("stty size; echo $TERM", 0, "37 91\r\nxterm\r\n");
}

static void
its_modes_are_those_of_a_sane_terminal(void **state)
{
	(void)state;
	expect_terminal(
	    "stty -a | tr -s ' ;' '\\n' | "
	    "grep -xE -- '-?(icanon|echo|isig|icrnl|ixon|opost|onlcr|iutf8)' | sort | tr '\\n' ' '",
	    0, "echo icanon icrnl isig iutf8 ixon onlcr opost ");
}

static void
a_new_size_is_told_by_a_signal(void **state)
{
	struct contract_command command;

	(void)state;
	start_terminal(
	    &command, "trap 'stty size; exit 5' WINCH; echo ready; while :; do sleep 0.02; done");
	contract_command_expect(&command, "ready");
	contract_command_resize(&command, 120, 50);
	contract_command_finish(&command);
	assert_non_null(strstr(contract_text(&command.output), "50 120"));
	assert_int_equal(command.ended.status, 5);
	contract_command_free(&command);
}

static void
the_last_output_is_not_lost(void **state)
{
	struct contract_command command;
	int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		start_terminal(&command, "seq 1 3000; exit 9");
		contract_command_finish(&command);
		assert_int_equal(command.ended.status, 9);
		/* 1..3000, each with carriage return and line feed. */
		assert_int_equal(command.output.size, 9 + 180 + 2700 + 4 * 2001 + 2 * 3000);
		contract_command_free(&command);
	}
}

static void
keys_are_signals_and_the_end_of_input(void **state)
{
	struct contract_command command;

	(void)state;
	start_terminal(&command, "trap 'echo interrupted; go=1' INT; echo ready;"
				 "while [ -z \"$go\" ]; do sleep 0.02; done; cat; echo end");
	contract_command_expect(&command, "ready");
	contract_command_type(&command, "\003");
	contract_command_expect(&command, "interrupted");
	contract_command_type(&command, "line\n\004");
	contract_command_finish(&command);
	assert_non_null(strstr(contract_text(&command.output), "line\r\nline\r\nend\r\n"));
	contract_command_free(&command);
}

static void
a_raw_terminal_passes_every_byte(void **state)
{
	struct contract_command command;
	unsigned char bytes[256];
	struct error err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)i;
	start_terminal(&command, "stty raw -echo; echo ready; head -c 256");
	contract_command_expect(&command, "ready\n");
	assert_int_equal(descriptor_write(command.output.fd, bytes, sizeof(bytes), &err), 0);
	contract_command_finish(&command);
	assert_int_equal(command.output.size, 6 + 256);
	assert_memory_equal(contract_text(&command.output) + 6, bytes, 256);
	contract_command_free(&command);
}

static void
jobs_of_a_shell_end_with_it(void **state)
{
	struct contract_command command;
	char script[96];
	const char *text;

	(void)state;
	start_terminal(&command, "exec bash -i 2>&1");
	contract_wait(&contract, &command.started);
	contract_command_type(
	    &command, "nohup sleep 600 >/dev/null 2>&1 & echo 'job'=$!; echo 'do''ne'\n");
	contract_command_expect(&command, "done\r\n");
	contract_command_type(&command, "exit\nexit\n");
	contract_command_finish(&command);
	contract_wait(&contract, &command.gone);
	text = strstr(contract_text(&command.output), "\njob=");
	assert_non_null(text);
	snprintf(script, sizeof(script), "kill -0 %.*s 2>/dev/null",
	    (int)strspn(text + 5, "0123456789"), text + 5);
	contract_check(&contract, script, 1, "");
	contract_command_free(&command);
}

int
contract_test_terminals(void)
{
	const struct CMUnitTest tests[] = {
		CONTRACT_TEST(all_three_are_one_terminal),
		CONTRACT_TEST(it_is_the_controlling_terminal),
		CONTRACT_TEST(it_has_the_size_and_the_name_asked_for),
		CONTRACT_TEST(its_modes_are_those_of_a_sane_terminal),
		CONTRACT_TEST(a_new_size_is_told_by_a_signal),
		CONTRACT_TEST(the_last_output_is_not_lost),
		CONTRACT_TEST(keys_are_signals_and_the_end_of_input),
		CONTRACT_TEST(a_raw_terminal_passes_every_byte),
	};
	const struct CMUnitTest group_tests[] = {
		CONTRACT_TEST(jobs_of_a_shell_end_with_it),
	};
	int failed;

	failed = cmocka_run_group_tests_name("terminals", tests, open_group, close_group);
	if (contract_supports(DRIVER_GROUP))
		failed += cmocka_run_group_tests_name("jobs", group_tests, open_group, close_group);
	return failed;
}
