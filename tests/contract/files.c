/* SPDX-License-Identifier: ISC */
/* The contract: read, write and run. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/descriptor.h"
#include "core/base/memory.h"
#include "tests/contract/contract.h"
#include "tests/contract/harness.h"

#define BULK (8U * 1024U * 1024U)

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

/* Below the default directory; valid until the next call. */
static const char *
path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", contract.directory, name);
	return path;
}

static void
expect_read(const char *name, uint64_t max, enum error_code code, const char *content)
{
	struct buffer got;

	buffer_init(&got, BULK * 2);
	assert_int_equal(contract_read(&contract, path_of(name), max, &got), code);
	if (content != NULL) {
		assert_int_equal(got.length, strlen(content));
		assert_memory_equal(buffer_data(&got), content, got.length);
	}
	buffer_free(&got);
}

static void
a_file_is_written_and_read_back(void **state)
{
	unsigned char *data = memory_allocate(BULK);
	struct buffer got;
	size_t i;

	(void)state;
	for (i = 0; i < BULK; i++)
		data[i] = contract_pattern(i);
	assert_int_equal(contract_write(&contract, path_of("bulk"), BULK, data, BULK), ERROR_NONE);
	buffer_init(&got, BULK * 2);
	assert_int_equal(contract_read(&contract, path_of("bulk"), BULK, &got), ERROR_NONE);
	assert_int_equal(got.length, BULK);
	assert_memory_equal(buffer_data(&got), data, BULK);
	buffer_free(&got);
	memory_free(data);
	contract_check(&contract, "stat -c '%a %s' bulk; rm bulk", 0, "600 8388608\n");
}

static void
a_read_stops_one_byte_over_its_limit(void **state)
{
	(void)state;
	contract_check(&contract, "printf 0123456789 >ten", 0, "");
	expect_read("ten", 10, ERROR_NONE, "0123456789");
	expect_read("ten", 9, ERROR_NONE, "0123456789");
	expect_read("ten", 8, ERROR_NONE, "012345678");
	expect_read("ten", 0, ERROR_NONE, "0");
}

static void
an_empty_file_is_read_and_written(void **state)
{
	(void)state;
	assert_int_equal(contract_write(&contract, path_of("empty"), 0, "", 0), ERROR_NONE);
	expect_read("empty", 100, ERROR_NONE, "");
	contract_check(&contract, "stat -c %s empty", 0, "0\n");
}

static void
a_missing_file_is_not_found(void **state)
{
	(void)state;
	expect_read("missing", 100, ERROR_NOT_FOUND, "");
	expect_read("missing/below", 100, ERROR_NOT_FOUND, "");
	assert_int_equal(
	    contract_write(&contract, path_of("missing/below"), 1, "x", 1), ERROR_NOT_FOUND);
}

static void
a_directory_is_neither_read_nor_replaced(void **state)
{
	(void)state;
	contract_check(&contract, "mkdir -p directory/full", 0, "");
	expect_read("directory", 100, ERROR_IS_DIRECTORY, "");
	assert_int_equal(
	    contract_write(&contract, path_of("directory"), 1, "x", 1), ERROR_IS_DIRECTORY);
	contract_check(&contract, "ls directory", 0, "full\n");
}

static void
a_short_source_changes_nothing(void **state)
{
	(void)state;
	contract_check(&contract, "echo before >kept", 0, "");
	assert_int_not_equal(
	    contract_write(&contract, path_of("kept"), 100, "short", 5), ERROR_NONE);
	contract_check(
	    &contract, "cat kept; while ls -A | grep -q rws; do sleep 0.01; done", 0, "before\n");
}

static void
a_long_source_gives_no_more_than_the_size(void **state)
{
	(void)state;
	assert_int_equal(contract_write(&contract, path_of("cut"), 3, "abcdef", 6), ERROR_NONE);
	contract_check(&contract, "cat cut", 0, "abc");
}

static void
links_mean_what_they_mean_inside(void **state)
{
	(void)state;
	contract_check(&contract,
	    "echo target >target; ln -s target link; ln -s /etc/hostname outside", 0, "");
	expect_read("link", 100, ERROR_NONE, "target\n");
	assert_int_equal(contract_write(&contract, path_of("link"), 4, "new\n", 4), ERROR_NONE);
	contract_check(&contract, "test -L link && cat target", 0, "new\n");
}

static void
what_may_not_be_read_is_denied(void **state)
{
	(void)state;
	if (contract.user != NULL && strcmp(contract.user, "root") == 0)
		return;
	contract_check(&contract, "echo secret >closed; chmod 000 closed", 0, "");
	expect_read("closed", 100, ERROR_DENIED, "");
}

static void
a_pipe_in_the_file_system_holds_nobody_up(void **state)
{
	(void)state;
	contract_check(&contract, "mkfifo pipe", 0, "");
	expect_read("pipe", 100, ERROR_INVALID, "");
}

static void
never_done(void *argument, const struct error *err)
{
	(void)argument;
	fail_msg("a cancelled operation reported: %s", err == NULL ? "success" : err->message);
}

static void
a_cancelled_read_reports_no_more(void **state)
{
	struct driver_operation *operation;
	int ends[2];

	(void)state;
	contract_check(&contract, "head -c 8388608 /dev/zero >zeros", 0, "");
	assert_int_equal(descriptor_pipe(ends, NULL), 0);
	operation = contract.driver->read(
	    contract.sandbox, path_of("zeros"), BULK, ends[1], never_done, NULL);
	contract_settle(&contract);
	contract.driver->cancel(operation);
	contract_settle(&contract);
	(void)close(ends[0]);
	contract_check(&contract, "rm zeros", 0, "");
}

static void
a_cancelled_write_changes_nothing(void **state)
{
	struct driver_operation *operation;
	int ends[2];

	(void)state;
	contract_check(&contract, "echo before >kept", 0, "");
	assert_int_equal(descriptor_pipe(ends, NULL), 0);
	operation = contract.driver->write(
	    contract.sandbox, path_of("kept"), BULK, ends[0], never_done, NULL);
	assert_int_equal(write(ends[1], "some", 4), 4);
	contract_settle(&contract);
	contract.driver->cancel(operation);
	contract_settle(&contract);
	(void)close(ends[1]);
	/* Nobody tells when a provider has removed the private file. */
	contract_check(&contract,
	    "cat kept; for i in $(seq 300); do ls -A | grep -q rws || break; sleep 0.1; done; "
	    "ls -A | grep -c rws",
	    1, "before\n0\n");
}

struct run {
	bool done;
	struct error failure;
	struct driver_exit ended;
	char output[64], errors[64];
	size_t output_size, errors_size;
	bool truncated;
};

static void
run_done(void *argument, const struct driver_result *result, const struct error *err)
{
	struct run *run = argument;

	assert_false(run->done);
	run->done = true;
	if (result == NULL) {
		run->failure = *err;
		return;
	}
	run->ended = result->ended;
	run->truncated = result->truncated;
	run->output_size = result->output_size;
	run->errors_size = result->errors_size;
	if (result->output_size > 0)
		memcpy(run->output, result->output,
		    result->output_size < 63 ? result->output_size : 63);
	if (result->errors_size > 0)
		memcpy(run->errors, result->errors,
		    result->errors_size < 63 ? result->errors_size : 63);
}

static void
run_shell(struct run *run, const char *script, const char *input, size_t max_output)
{
	const char *texts[] = { "sh", "-c", script, NULL };
	char **argv = contract_list(texts);

	memset(run, 0, sizeof(*run));
	assert_non_null(contract.driver->run(
	    contract.sandbox, argv, input, strlen(input), max_output, run_done, run));
	assert_false(run->done);
	memory_list_free(argv);
	contract_wait(&contract, &run->done);
}

static void
a_run_gives_status_and_both_outputs(void **state)
{
	struct run run;

	(void)state;
	run_shell(&run, "cat; echo problem >&2; exit 3", "input", 1024);
	assert_int_equal(run.ended.status, 3);
	assert_string_equal(run.output, "input");
	assert_string_equal(run.errors, "problem\n");
	assert_false(run.truncated);
	run_shell(&run, "kill -9 $$", "", 1024);
	assert_true(run.ended.signaled);
	assert_int_equal(run.ended.status, SIGKILL);
}

static void
a_run_keeps_no_more_output_than_its_limit(void **state)
{
	struct run run;

	(void)state;
	run_shell(&run, "head -c 5000000 /dev/zero; echo end >&2", "", 1000);
	assert_int_equal(run.ended.status, 0);
	assert_int_equal(run.output_size, 1000);
	assert_string_equal(run.errors, "end\n");
	assert_true(run.truncated);
	run_shell(&run, "head -c 1000 /dev/zero", "", 1000);
	assert_int_equal(run.output_size, 1000);
	assert_false(run.truncated);
}

static void
a_run_ends_though_its_output_is_held_open(void **state)
{
	struct run run;

	(void)state;
	/* Without it the end of a command cannot be told from that of its output. */
	if (!contract_supports(DRIVER_GROUP))
		return;
	run_shell(&run,
	    "setsid sh -c 'echo $$ >ready; exec sleep 600' & while ! test -s ready; do :; done; echo said",
	    "", 1000);
	assert_string_equal(run.output, "said\n");
	contract_check(&contract, "kill $(cat ready)", 0, "");
}

static void
a_cancelled_run_is_killed(void **state)
{
	const char *texts[] = { "sleep", "7654", NULL };
	char **argv = contract_list(texts);
	struct driver_operation *operation;

	(void)state;
	operation = contract.driver->run(contract.sandbox, argv, "", 0, 100, NULL, NULL);
	memory_list_free(argv);
	contract_settle(&contract);
	contract.driver->cancel(operation);
	contract_check(
	    &contract, "while pgrep -fx 'sleep 7654' >/dev/null; do sleep 0.01; done", 0, "");
}

int
contract_test_files(void)
{
	const struct CMUnitTest tests[] = {
		CONTRACT_TEST(a_file_is_written_and_read_back),
		CONTRACT_TEST(a_read_stops_one_byte_over_its_limit),
		CONTRACT_TEST(an_empty_file_is_read_and_written),
		CONTRACT_TEST(a_missing_file_is_not_found),
		CONTRACT_TEST(a_directory_is_neither_read_nor_replaced),
		CONTRACT_TEST(a_short_source_changes_nothing),
		CONTRACT_TEST(a_long_source_gives_no_more_than_the_size),
		CONTRACT_TEST(links_mean_what_they_mean_inside),
		CONTRACT_TEST(what_may_not_be_read_is_denied),
		CONTRACT_TEST(a_pipe_in_the_file_system_holds_nobody_up),
		CONTRACT_TEST(a_cancelled_read_reports_no_more),
		CONTRACT_TEST(a_cancelled_write_changes_nothing),
		CONTRACT_TEST(a_run_gives_status_and_both_outputs),
		CONTRACT_TEST(a_run_keeps_no_more_output_than_its_limit),
		CONTRACT_TEST(a_run_ends_though_its_output_is_held_open),
		CONTRACT_TEST(a_cancelled_run_is_killed),
	};

	return cmocka_run_group_tests_name("files", tests, open_group, close_group);
}
