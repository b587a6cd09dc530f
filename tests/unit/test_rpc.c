/* SPDX-License-Identifier: ISC */
/* The reader of the rws subsystem: lines in, lines out, whatever comes. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/driver.h"
#include "gateway/rpc_call.h"
#include "gateway/rpc_job.h"
#include "gateway/worker.h"
#include "tests/unit/stub_driver.h"

#define ROUNDS 2000

struct fixture {
	struct worker worker;
	struct rpc *rpc;
	struct driver_descriptors ends;
	struct buffer answers;
	bool ended;
};

static void
rpc_has_ended(void *argument)
{
	struct fixture *fixture = argument;

	fixture->ended = true;
}

static int
setup(void **state)
{
	char *environment[] = { NULL };
	struct fixture *fixture;
	struct error err;

	fixture = memory_zeroed(1, sizeof(*fixture));
	stub_worker_open(&fixture->worker);
	fixture->rpc = rpc_open(
	    &fixture->worker, environment, rpc_has_ended, fixture, &fixture->ends, &err);
	assert_non_null(fixture->rpc);
	assert_int_equal(descriptor_nonblock(fixture->ends.output, &err), 0);
	buffer_init(&fixture->answers, 64U << 20);
	*state = fixture;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *fixture = *state;

	rpc_close(fixture->rpc);
	job_free_all(&fixture->worker);
	descriptor_close(&fixture->ends.input);
	descriptor_close(&fixture->ends.output);
	buffer_free(&fixture->answers);
	stub_worker_close(&fixture->worker);
	memory_free(fixture);
	return 0;
}

/* Dispatches until the answers hold so many lines, and takes what was answered. */
static void
wait_lines(struct fixture *fixture, unsigned lines)
{
	unsigned char *place;
	unsigned have, round;
	struct error err;
	ssize_t got;
	size_t i;

	for (round = 0; round < ROUNDS; round++) {
		assert_int_equal(loop_dispatch(fixture->worker.loop, 10, &err), 0);
		place = buffer_reserve(&fixture->answers, 65536);
		assert_non_null(place);
		got = read(fixture->ends.output, place, 65536);
		if (got > 0)
			buffer_extend(&fixture->answers, (size_t)got);
		for (i = have = 0; i < fixture->answers.length; i++)
			have += buffer_data(&fixture->answers)[i] == '\n';
		if (have >= lines)
			return;
	}
	fail_msg("only %zu bytes were answered", fixture->answers.length);
}

/* The next answer as JSON; the caller puts it. */
static struct json_object *
take_answer(struct fixture *fixture)
{
	struct json_object *object;
	unsigned char *end;

	wait_lines(fixture, 1);
	end = memchr(buffer_data(&fixture->answers), '\n', fixture->answers.length);
	*end = '\0';
	object = json_tokener_parse((char *)buffer_data(&fixture->answers));
	assert_non_null(object);
	buffer_consume(&fixture->answers, (size_t)(end + 1 - buffer_data(&fixture->answers)));
	return object;
}

static void
send_line(struct fixture *fixture, const char *text)
{
	rpc_take(fixture->rpc, text, strlen(text));
	rpc_take(fixture->rpc, "\n", 1);
}

/* Sends a line and compares the error number of its answer, and data.code when name is given. */
static void
expect_error(struct fixture *fixture, const char *line, int number, const char *name)
{
	struct json_object *answer, *error, *value;

	send_line(fixture, line);
	answer = take_answer(fixture);
	assert_true(json_object_object_get_ex(answer, "error", &error));
	assert_true(json_object_object_get_ex(error, "code", &value));
	assert_int_equal(json_object_get_int(value), number);
	assert_true(json_object_object_get_ex(error, "data", &value));
	assert_true(json_object_object_get_ex(value, "code", &value));
	assert_string_equal(json_object_get_string(value), name);
	json_object_put(answer);
}

static void
expect_result(struct fixture *fixture, const char *line, const char *id)
{
	struct json_object *answer, *value;

	send_line(fixture, line);
	answer = take_answer(fixture);
	assert_true(json_object_object_get_ex(answer, "result", NULL));
	assert_true(json_object_object_get_ex(answer, "id", &value));
	assert_string_equal(json_object_to_json_string(value), id);
	json_object_put(answer);
}

static void
answers_a_request_with_its_id_as_it_was_sent(void **state)
{
	expect_result(*state, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"info\"}", "1");
	expect_result(*state,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"a b\",\"method\":\"jobs\",\"params\":{}}", "\"a b\"");
	expect_result(*state, "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", "1.5");
}

static void
bad_json_is_answered_and_survived(void **state)
{
	static const char *const lines[] = {
		"{",
		"nonsense",
		"{\"jsonrpc\":\"2.0\"} more",
		"\xff\xfe",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xed\xa0\x80\"}",
		"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
	};
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		expect_error(*state, lines[i], RPC_PARSE_ERROR, "INVALID");
	expect_result(*state, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"jobs\"}", "1");
}

static void
a_request_that_is_none_is_refused(void **state)
{
	static const char *const lines[] = {
		"{}",
		"\"text\"",
		"[]",
		"[1]",
		"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"info\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":1}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"info\",\"params\":[1]}",
		"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"info\"}",
	};
	struct json_object *answer;
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (strcmp(lines[i], "[1]") != 0) {
			expect_error(*state, lines[i], RPC_INVALID_REQUEST, "INVALID");
			continue;
		}
		send_line(*state, lines[i]);
		answer = take_answer(*state);
		assert_int_equal(json_object_array_length(answer), 1);
		json_object_put(answer);
	}
}

static void
an_unknown_method_has_the_number_of_the_specification(void **state)
{
	expect_error(*state, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"nope\"}",
	    RPC_METHOD_NOT_FOUND, "UNSUPPORTED");
}

static void
parameters_are_checked_against_the_table(void **state)
{
	static const char *const params[] = {
		"{}",
		"{\"command\":1}",
		"{\"command\":\"a\",\"argv\":[\"b\"]}",
		"{\"command\":\"a\",\"unknown\":1}",
		"{\"command\":\"a\\u0000b\"}",
		"{\"command\":\"a\",\"timeout\":-1}",
		"{\"command\":\"a\",\"timeout\":\"1\"}",
		"{\"command\":\"a\",\"timeout\":1.5}",
		"{\"command\":\"a\",\"background\":\"never\"}",
		"{\"command\":\"a\",\"env\":{\"A=B\":\"c\"}}",
		"{\"command\":\"a\",\"env\":[]}",
		"{\"argv\":[1]}",
		"{\"command\":\"a\",\"stdin_base64\":\"***\"}",
		"{\"command\":\"a\",\"cwd_base64\":\"AA==\"}",
		"{\"command\":\"a\",\"detach\":1}",
		"{\"command\":\"a\",\"timeout_base64\":\"AA==\"}",
	};
	char *line;
	size_t i;

	for (i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
		line = memory_text_format(
		    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"exec\",\"params\":%s}", params[i]);
		expect_error(*state, line, RPC_INVALID_PARAMS, "INVALID");
		memory_free(line);
	}
}

static void
what_is_missing_is_named(void **state)
{
	expect_error(*state, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"read\"}",
	    RPC_INVALID_PARAMS, "INVALID");
}

static void
a_notification_is_never_answered(void **state)
{
	struct fixture *fixture = *state;

	send_line(fixture, "{\"jsonrpc\":\"2.0\",\"method\":\"nope\"}");
	send_line(fixture, "{\"jsonrpc\":\"2.0\",\"method\":\"info\"}");
	send_line(fixture, "{\"jsonrpc\":\"2.0\",\"method\":\"exec\",\"params\":{\"bad\":1}}");
	expect_result(fixture, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"info\"}", "9");
	assert_int_equal(fixture->answers.length, 0);
}

static void
a_batch_is_answered_at_once_without_its_notifications(void **state)
{
	struct json_object *answer;

	send_line(*state,
	    "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"info\"},{\"jsonrpc\":\"2.0\",\"method\":\"info\"},"
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"nope\"},{\"id\":3}]");
	answer = take_answer(*state);
	assert_true(json_object_is_type(answer, json_type_array));
	assert_int_equal(json_object_array_length(answer), 3);
	json_object_put(answer);
	send_line(*state, "[{\"jsonrpc\":\"2.0\",\"method\":\"info\"}]");
	expect_result(*state, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"info\"}", "9");
}

static void
an_id_in_use_is_refused(void **state)
{
	struct json_object *answer;

	send_line(*state, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"info\"}");
	expect_error(*state, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"info\"}",
	    RPC_INVALID_REQUEST, "INVALID");
	answer = take_answer(*state);
	assert_true(json_object_object_get_ex(answer, "result", NULL));
	json_object_put(answer);
}

static void
too_many_requests_at_once_are_busy(void **state)
{
	struct json_object *answer, *error;
	unsigned i, busy;
	char *line;

	for (i = 0; i < RPC_CALLS_MAX + 10; i++) {
		line = memory_text_format("{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"info\"}", i);
		send_line(*state, line);
		memory_free(line);
	}
	for (i = busy = 0; i < RPC_CALLS_MAX + 10; i++) {
		answer = take_answer(*state);
		if (json_object_object_get_ex(answer, "error", &error))
			busy++;
		json_object_put(answer);
	}
	assert_int_equal(busy, 10);
}

static void
a_line_over_the_limit_is_refused_and_the_next_one_read(void **state)
{
	struct fixture *fixture = *state;
	char *chunk;
	size_t i;

	chunk = memory_allocate(1U << 20);
	memset(chunk, ' ', 1U << 20);
	for (i = 0; i < 17; i++)
		rpc_take(fixture->rpc, chunk, 1U << 20);
	memory_free(chunk);
	expect_error(fixture, "", RPC_INVALID_REQUEST, "INVALID");
	expect_result(fixture, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"jobs\"}", "1");
}

static void
lines_may_come_byte_by_byte(void **state)
{
	static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"jobs\"}\r\n\n  \n";
	struct fixture *fixture = *state;
	struct json_object *answer;
	size_t i;

	for (i = 0; i < strlen(line); i++)
		rpc_take(fixture->rpc, line + i, 1);
	answer = take_answer(fixture);
	assert_true(json_object_object_get_ex(answer, "result", NULL));
	json_object_put(answer);
	assert_int_equal(fixture->answers.length, 0);
}

static void
the_end_of_input_ends_it_after_the_last_answer(void **state)
{
	static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"info\"}";
	struct fixture *fixture = *state;
	struct json_object *answer;
	struct error err;
	unsigned round;

	/* Without a newline at its end, which counts all the same. */
	assert_int_equal(write(fixture->ends.input, line, strlen(line)), strlen(line));
	descriptor_close(&fixture->ends.input);
	answer = take_answer(fixture);
	assert_true(json_object_object_get_ex(answer, "result", NULL));
	json_object_put(answer);
	for (round = 0; round < ROUNDS && !fixture->ended; round++)
		assert_int_equal(loop_dispatch(fixture->worker.loop, 10, &err), 0);
	assert_true(fixture->ended);
}

static void
a_client_that_does_not_read_is_not_read_either(void **state)
{
	static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";
	struct fixture *fixture = *state;
	struct error err;
	unsigned round;
	ssize_t written;

	assert_int_equal(descriptor_nonblock(fixture->ends.input, &err), 0);
	written = 0;
	for (round = 0; round < ROUNDS * 100; round++) {
		written = write(fixture->ends.input, line, strlen(line));
		if (written < 0)
			break;
		assert_int_equal(loop_dispatch(fixture->worker.loop, 0, &err), 0);
	}
	/* The pipe is full: requests wait in it, not in memory. */
	assert_true(written < 0);
	assert_true(fixture->rpc->pending.length < 4U * RPC_PENDING_HIGH);
}

static void
a_request_that_is_under_way_can_be_left(void **state)
{
	struct fixture *fixture = *state;

	/* What the teardown must free: calls, a batch, a job and its input. */
	send_line(fixture, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"info\"}]");
	send_line(fixture,
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"exec\",\"params\":{\"command\":\"a\",\"stdin_open\":true}}");
	send_line(fixture,
	    "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"input\",\"params\":{\"request\":2,\"data\":\"b\"}}");
	send_line(fixture, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"snapshot.list\"}");
	send_line(fixture, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"snapshot.import\"}");
	send_line(fixture,
	    "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"input\",\"params\":{\"request\":5,\"data\":\"b\"}}");
	send_line(fixture,
	    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"search\",\"params\":{\"pattern\":\"b\"}}");
	assert_int_equal(fixture->rpc->call_count, 7);
}

static void
cancelling_by_jsonrpc_answers_aborted(void **state)
{
	struct json_object *answer, *error;

	send_line(*state,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"exec\",\"params\":{\"command\":\"a\"}}");
	send_line(
	    *state, "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":1}}");
	answer = take_answer(*state);
	assert_true(json_object_object_get_ex(answer, "error", &error));
	assert_true(json_object_object_get_ex(error, "code", &error));
	assert_int_equal(json_object_get_int(error), error_kind(ERROR_ABORTED)->rpc_number);
	json_object_put(answer);
}

static void
cancelling_by_mcp_answers_nothing(void **state)
{
	struct fixture *fixture = *state;

	send_line(fixture,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"exec\",\"arguments\":{\"command\":\"a\"}}}");
	send_line(fixture,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}");
	expect_result(fixture, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"info\"}", "2");
	assert_int_equal(fixture->answers.length, 0);
}

/* Sends initialize with a version and compares the one that is answered. */
static void
expect_version(struct fixture *fixture, const char *asked, const char *given)
{
	struct json_object *answer, *value;
	char *line;

	line = memory_text_format(
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":"
	    "{\"protocolVersion\":\"%s\"}}",
	    asked);
	send_line(fixture, line);
	memory_free(line);
	answer = take_answer(fixture);
	assert_true(json_object_object_get_ex(answer, "result", &value));
	assert_true(json_object_object_get_ex(value, "protocolVersion", &value));
	assert_string_equal(json_object_get_string(value), given);
	json_object_put(answer);
}

static void
mcp_speaks_the_revision_that_is_asked_for_or_offers_its_newest(void **state)
{
	expect_version(*state, "2025-11-25", "2025-11-25");
	expect_version(*state, "2025-06-18", "2025-06-18");
	expect_version(*state, "2025-03-26", "2025-03-26");
	expect_version(*state, "2024-11-05", "2024-11-05");
	expect_version(*state, "2099-01-01", "2025-11-25");
	/* Has no initialize: a client that sends it all the same is offered what has one. */
	expect_version(*state, "2026-07-28", "2025-11-25");
}

static void
mcp_without_a_handshake_has_its_marks_in_each_answer(void **state)
{
	struct json_object *answer, *result, *value;

	send_line(*state,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":"
	    "{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
	    "\"io.modelcontextprotocol/clientCapabilities\":{}}}}");
	answer = take_answer(*state);
	assert_true(json_object_object_get_ex(answer, "result", &result));
	assert_true(json_object_object_get_ex(result, "resultType", &value));
	assert_string_equal(json_object_get_string(value), "complete");
	assert_true(json_object_object_get_ex(result, "ttlMs", &value));
	assert_true(json_object_object_get_ex(result, "cacheScope", &value));
	assert_true(json_object_object_get_ex(result, "_meta", &value));
	assert_true(json_object_object_get_ex(value, "io.modelcontextprotocol/serverInfo", &value));
	json_object_put(answer);
}

static void
mcp_refuses_a_revision_it_does_not_know_and_says_which_it_does(void **state)
{
	struct json_object *answer, *error, *value;

	send_line(*state,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{\"_meta\":"
	    "{\"io.modelcontextprotocol/protocolVersion\":\"2099-01-01\"}}}");
	answer = take_answer(*state);
	assert_true(json_object_object_get_ex(answer, "error", &error));
	assert_true(json_object_object_get_ex(error, "code", &value));
	assert_int_equal(json_object_get_int(value), RPC_UNSUPPORTED_VERSION);
	assert_true(json_object_object_get_ex(error, "data", &value));
	assert_true(json_object_object_get_ex(value, "supported", &value));
	assert_true(json_object_array_length(value) >= 5);
	json_object_put(answer);
}

static void
mcp_tells_a_failed_tool_as_a_result(void **state)
{
	struct json_object *answer, *result, *value;

	send_line(*state, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
			  "{\"name\":\"signal\",\"arguments\":{\"job\":7}}}");
	answer = take_answer(*state);
	assert_true(json_object_object_get_ex(answer, "result", &result));
	assert_true(json_object_object_get_ex(result, "isError", &value));
	assert_true(json_object_get_boolean(value));
	assert_false(json_object_object_get_ex(result, "structuredContent", NULL));
	json_object_put(answer);
	expect_error(*state,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}",
	    RPC_INVALID_PARAMS, "INVALID");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(answers_a_request_with_its_id_as_it_was_sent),
		TEST(bad_json_is_answered_and_survived),
		TEST(a_request_that_is_none_is_refused),
		TEST(an_unknown_method_has_the_number_of_the_specification),
		TEST(parameters_are_checked_against_the_table),
		TEST(what_is_missing_is_named),
		TEST(a_notification_is_never_answered),
		TEST(a_batch_is_answered_at_once_without_its_notifications),
		TEST(an_id_in_use_is_refused),
		TEST(too_many_requests_at_once_are_busy),
		TEST(a_line_over_the_limit_is_refused_and_the_next_one_read),
		TEST(lines_may_come_byte_by_byte),
		TEST(the_end_of_input_ends_it_after_the_last_answer),
		TEST(a_client_that_does_not_read_is_not_read_either),
		TEST(a_request_that_is_under_way_can_be_left),
		TEST(cancelling_by_jsonrpc_answers_aborted),
		TEST(cancelling_by_mcp_answers_nothing),
		TEST(mcp_speaks_the_revision_that_is_asked_for_or_offers_its_newest),
		TEST(mcp_without_a_handshake_has_its_marks_in_each_answer),
		TEST(mcp_refuses_a_revision_it_does_not_know_and_says_which_it_does),
		TEST(mcp_tells_a_failed_tool_as_a_result),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
