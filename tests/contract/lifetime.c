/* SPDX-License-Identifier: ISC */
/* The contract: creating, finding again, stopping and destroying sandboxes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/memory.h"
#include "tests/contract/contract.h"
#include "tests/contract/harness.h"

static struct contract contract;

static int
open_test(void **state)
{
	(void)state;
	contract_open(&contract);
	return 0;
}

static int
close_test(void **state)
{
	(void)state;
	contract_recover(&contract);
	(void)contract_release(&contract, DRIVER_DESTROY);
	contract_close(&contract);
	return 0;
}

static void
must_connect(const char *id)
{
	if (!contract_connect(&contract, id, true))
		fail_msg("connect: %s", contract.failure.message);
}

static void
connecting_creates_once(void **state)
{
	char *id;

	(void)state;
	must_connect(NULL);
	assert_true(contract.created);
	assert_int_equal(contract.directory[0], '/');
	id = memory_text(contract.id);
	must_connect(NULL);
	assert_false(contract.created);
	assert_string_equal(contract.id, id);
	memory_free(id);
}

static void
nothing_is_created_when_it_may_not(void **state)
{
	(void)state;
	assert_false(contract_connect(&contract, NULL, false));
	assert_int_equal(contract.failure.code, ERROR_NOT_FOUND);
	/* Providers' drivers know that for certain. */
	if (!contract_supports(DRIVER_HERE))
		assert_true(contract.nothing);
}

static void
an_unknown_id_is_not_found(void **state)
{
	(void)state;
	assert_false(contract_connect(&contract, "local-000000000000", true));
	assert_int_equal(contract.failure.code, ERROR_NOT_FOUND);
	must_connect(NULL);
	assert_false(contract_connect(&contract, "local-000000000000", true));
	assert_int_equal(contract.failure.code, ERROR_NOT_FOUND);
}

static void
a_new_worker_finds_the_sandbox_again(void **state)
{
	char *id;

	(void)state;
	must_connect(NULL);
	id = memory_text(contract.id);
	contract_check(&contract, "echo mine >file", 0, "");
	contract_reopen(&contract);
	must_connect(NULL);
	assert_false(contract.created);
	assert_string_equal(contract.id, id);
	contract_check(&contract, "cat file", 0, "mine\n");
	contract_reopen(&contract);
	must_connect(id);
	contract_check(&contract, "cat file", 0, "mine\n");
	memory_free(id);
}

static void
two_sandboxes_are_two(void **state)
{
	struct contract other;

	(void)state;
	must_connect(NULL);
	contract_open(&other);
	if (!contract_connect(&other, NULL, true))
		fail_msg("connect: %s", other.failure.message);
	assert_string_not_equal(contract.id, other.id);
	contract_check(&contract, "echo one >file", 0, "");
	contract_check(&other, "cat file 2>/dev/null", 1, "");
	assert_true(contract_release(&other, DRIVER_DESTROY));
	contract_check(&contract, "cat file", 0, "one\n");
	contract_close(&other);
}

static void
stopping_ends_the_processes_and_keeps_the_files(void **state)
{
	struct contract_command command;

	(void)state;
	must_connect(NULL);
	contract_shell(&contract, &command, "echo mine >file; echo ready; sleep 6001");
	contract_command_expect(&command, "ready");
	assert_true(contract_release(&contract, DRIVER_STOPPED));
	assert_true(command.exited);
	contract_wait(&contract, &command.output.ended);
	contract_command_free(&command);
	must_connect(NULL);
	assert_true(contract.started);
	assert_false(contract.created);
	contract_check(&contract, "cat file", 0, "mine\n");
	/* Elsewhere a stopped sandbox may keep its memory, and with it what runs. */
	if (contract_supports(DRIVER_GROUP))
		contract_check(&contract, "pgrep -fx 'sleep 6001'", 1, "");
	assert_int_equal(contract.lost, 0);
}

static void
keeping_changes_nothing(void **state)
{
	(void)state;
	must_connect(NULL);
	assert_true(contract_release(&contract, DRIVER_KEEP));
	contract_check(&contract, "echo still here", 0, "still here\n");
}

static void
destroying_leaves_nothing(void **state)
{
	char *id;

	(void)state;
	must_connect(NULL);
	id = memory_text(contract.id);
	contract_check(
	    &contract, "echo mine >file; mkdir -p a/b/c; chmod 000 a/b; chmod 000 a", 0, "");
	assert_true(contract_release(&contract, DRIVER_DESTROY));
	assert_false(contract_connect(&contract, id, true));
	must_connect(NULL);
	assert_true(contract.created);
	assert_string_not_equal(contract.id, id);
	contract_check(&contract, "test ! -e file && test ! -e a", 0, "");
	memory_free(id);
}

static void
destroying_what_is_not_there_is_no_error(void **state)
{
	(void)state;
	assert_true(contract_release(&contract, DRIVER_DESTROY));
	must_connect(NULL);
	assert_true(contract_release(&contract, DRIVER_DESTROY));
	assert_true(contract_release(&contract, DRIVER_DESTROY));
}

static void
what_is_not_connected_is_stopped_and_destroyed_by_its_id(void **state)
{
	char *id;

	(void)state;
	must_connect(NULL);
	id = memory_text(contract.id);
	contract_check(&contract, "echo mine >file", 0, "");
	contract_reopen(&contract);
	assert_true(contract_put_away(&contract, id, DRIVER_STOPPED));
	assert_true(contract_put_away(&contract, id, DRIVER_STOPPED));
	must_connect(id);
	assert_true(contract.started);
	contract_check(&contract, "cat file", 0, "mine\n");
	contract_reopen(&contract);
	assert_true(contract_put_away(&contract, id, DRIVER_DESTROY));
	assert_true(contract_put_away(&contract, id, DRIVER_DESTROY));
	assert_false(contract_connect(&contract, id, true));
	assert_int_equal(contract.failure.code, ERROR_NOT_FOUND);
	/* The object is of use as ever. */
	must_connect(NULL);
	assert_true(contract.created);
	memory_free(id);
}

static void
connecting_waits_for_a_release_under_way(void **state)
{
	struct contract_command command;

	(void)state;
	must_connect(NULL);
	contract_check(&contract, "echo mine >file", 0, "");
	contract_shell(&contract, &command, "sleep 600");
	assert_true(contract_release(&contract, DRIVER_STOPPED));
	must_connect(NULL);
	contract_check(&contract, "cat file", 0, "mine\n");
	contract_command_free(&command);
}

static void
before_connecting_commands_are_unavailable(void **state)
{
	const char *argv[] = { "true", NULL };
	struct contract_start start = { .argv = argv, .directory = "/" };
	struct contract_command command;
	struct buffer content;

	(void)state;
	contract_command_start(&contract, &command, &start);
	contract_wait(&contract, &command.exited);
	assert_true(command.unknown);
	assert_int_equal(command.failure.code, ERROR_UNAVAILABLE);
	contract_command_free(&command);
	buffer_init(&content, 1);
	assert_int_equal(contract_read(&contract, "/etc/passwd", 1, &content), ERROR_UNAVAILABLE);
}

static void
extended(void *argument, const struct error *err)
{
	assert_null(err);
	*(bool *)argument = true;
}

static void
extending_answers(void **state)
{
	bool done = false;

	(void)state;
	must_connect(NULL);
	contract.driver->extend(contract.sandbox, extended, &done);
	assert_false(done);
	contract_wait(&contract, &done);
}

static void
must_not_come(void *argument, const struct error *err)
{
	(void)argument;
	(void)err;
	fail_msg("a callback after close");
}

static void
closing_with_everything_under_way_is_silent(void **state)
{
	struct contract_command command;
	static const struct driver_stream_events silent = { .started = NULL };
	const char *texts[] = { "sleep", "600", NULL };
	char **argv = contract_list(texts);
	struct driver_command request = { .argv = argv, .directory = "/" };

	(void)state;
	must_connect(NULL);
	contract_shell(&contract, &command, "echo ready; sleep 600");
	contract_command_expect(&command, "ready");
	assert_non_null(contract.driver->start(contract.sandbox, &request, &silent, NULL));
	assert_non_null(contract.driver->run(contract.sandbox, argv, "", 0, 1, NULL, NULL));
	memory_list_free(argv);
	contract.driver->extend(contract.sandbox, must_not_come, NULL);
	/* What core makes of a stream does not outlive the driver. */
	if (!contract_supports(DRIVER_GROUP))
		contract_command_free(&command);
	contract_reopen(&contract);
	if (contract_supports(DRIVER_GROUP)) {
		contract_wait(&contract, &command.output.ended);
		assert_false(command.exited);
		contract_command_forget(&command);
	}
	must_connect(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_test, close_test)

int
contract_test_lifetime(void)
{
	const struct CMUnitTest tests[] = {
		TEST(connecting_creates_once),
		TEST(nothing_is_created_when_it_may_not),
		TEST(an_unknown_id_is_not_found),
		TEST(two_sandboxes_are_two),
		TEST(keeping_changes_nothing),
		TEST(destroying_leaves_nothing),
		TEST(destroying_what_is_not_there_is_no_error),
		TEST(before_connecting_commands_are_unavailable),
		TEST(extending_answers),
		TEST(closing_with_everything_under_way_is_silent),
	};
	const struct CMUnitTest stop_tests[] = {
		TEST(stopping_ends_the_processes_and_keeps_the_files),
		TEST(what_is_not_connected_is_stopped_and_destroyed_by_its_id),
		TEST(connecting_waits_for_a_release_under_way),
	};
	const struct CMUnitTest adopt_tests[] = {
		TEST(a_new_worker_finds_the_sandbox_again),
	};
	int failed;

	failed = cmocka_run_group_tests_name("lifetime", tests, NULL, NULL);
	if (contract_supports(DRIVER_STOP))
		failed += cmocka_run_group_tests_name("stop", stop_tests, NULL, NULL);
	if (contract_supports(DRIVER_ADOPT))
		failed += cmocka_run_group_tests_name("adopt", adopt_tests, NULL, NULL);
	return failed;
}
