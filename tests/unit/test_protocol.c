/* SPDX-License-Identifier: ISC */
/*
 * Every message of core/protocol.h: what was encoded comes out again, and no frame that is cut
 * short or has a byte too many is taken for one.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/message.h"
#include "core/protocol.h"
#include "tests/unit/protocol_samples.h"

/* The lowest free descriptor: it moves when one was leaked. */
static int
next_descriptor(void)
{
	int fd;

	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	return fd;
}

static void
every_message_decodes_to_what_was_encoded(void **state)
{
	struct message message;
	struct error err = { 0 };
	const struct protocol_sample *sample;
	int before;

	(void)state;
	before = next_descriptor();
	for (sample = protocol_samples; sample->name != NULL; sample++) {
		sample->encode(&message);
		assert_int_equal(message.type, sample->type);
		if (sample->decode(&message, &err) != 0)
			fail_msg("%s: %s", sample->name, err.message);
		message_free(&message);
	}
	assert_int_equal(next_descriptor(), before);
}

static void
decode_rejects_a_message_cut_at_any_byte(void **state)
{
	struct message message;
	struct error err;
	const struct protocol_sample *sample;
	size_t cut, whole;
	int before;

	(void)state;
	before = next_descriptor();
	for (sample = protocol_samples; sample->name != NULL; sample++) {
		sample->encode(&message);
		whole = message.payload.length;
		message_free(&message);
		for (cut = 0; cut < whole; cut++) {
			sample->encode(&message);
			message.payload.length = cut;
			error_clear(&err);
			if (sample->decode(&message, &err) == 0)
				fail_msg(
				    "%s: %zu of %zu bytes are enough", sample->name, cut, whole);
			assert_int_equal(err.code, ERROR_INVALID);
			message_free(&message);
			if (next_descriptor() != before)
				fail_msg("%s: a descriptor leaks at byte %zu", sample->name, cut);
		}
	}
}

static void
decode_rejects_trailing_bytes(void **state)
{
	struct message message;
	struct error err = { 0 };
	const struct protocol_sample *sample;
	int before;

	(void)state;
	before = next_descriptor();
	for (sample = protocol_samples; sample->name != NULL; sample++) {
		sample->encode(&message);
		message_put_u8(&message, 0);
		if (sample->decode(&message, &err) == 0)
			fail_msg("%s takes a byte too many", sample->name);
		assert_int_equal(err.code, ERROR_INVALID);
		message_free(&message);
	}
	assert_int_equal(next_descriptor(), before);
}

static void
messages_that_need_a_descriptor_are_refused_without_one(void **state)
{
	struct message message;
	struct error err = { 0 };
	const struct protocol_sample *sample;
	int refused;

	(void)state;
	refused = 0;
	for (sample = protocol_samples; sample->name != NULL; sample++) {
		sample->encode(&message);
		/* An answer has one only when it lets somebody in. */
		if (message.fd >= 0 && message.type != MESSAGE_AUTH_ANSWER) {
			assert_int_equal(close(message_take_fd(&message)), 0);
			assert_int_equal(sample->decode(&message, &err), -1);
			refused++;
		}
		message_free(&message);
	}
	assert_int_equal(refused, 4);
}

static int
decode_start_of_kind(uint8_t kind, const char *command)
{
	struct command_start start;
	struct message message;
	struct error err;
	int result;

	message_start(&message, MESSAGE_COMMAND_START);
	message_put_u32(&message, 1);
	message_put_u8(&message, kind);
	message_put_text(&message, command);
	message_put_list(&message, NULL);
	message_put_bool(&message, false);
	message_put_text(&message, NULL);
	message_put_u32(&message, 0);
	message_put_u32(&message, 0);
	message_put_u32(&message, 0);
	message_put_u32(&message, 0);
	result = command_start_decode(&message, &start, &err);
	if (result == 0)
		command_start_free(&start);
	message_free(&message);
	return result;
}

static void
command_start_needs_a_known_kind_and_its_text(void **state)
{
	(void)state;
	assert_int_equal(decode_start_of_kind(COMMAND_EXEC, "true"), 0);
	assert_int_equal(decode_start_of_kind(COMMAND_EXEC, NULL), -1);
	assert_int_equal(decode_start_of_kind(COMMAND_SHELL, NULL), 0);
	assert_int_equal(decode_start_of_kind(COMMAND_RWS, NULL), 0);
	assert_int_equal(decode_start_of_kind(COMMAND_KINDS, "true"), -1);
	assert_int_equal(decode_start_of_kind(255, "true"), -1);
}

static int
decode_exit_with(bool signaled, uint32_t status)
{
	struct command_exit ended = { .signaled = signaled, .status = status };
	struct command_exit decoded;
	struct message message;
	struct error err;
	int result;

	command_exit_encode(&message, &ended);
	result = command_exit_decode(&message, &decoded, &err);
	if (result == 0)
		command_exit_free(&decoded);
	message_free(&message);
	return result;
}

static void
command_exit_holds_a_status_or_a_signal_that_exists(void **state)
{
	(void)state;
	assert_int_equal(decode_exit_with(false, 255), 0);
	assert_int_equal(decode_exit_with(false, 256), -1);
	assert_int_equal(decode_exit_with(false, UINT32_MAX), -1);
	assert_int_equal(decode_exit_with(true, 64), 0);
	assert_int_equal(decode_exit_with(true, 65), -1);
}

static void
an_allowed_result_names_login_and_workspace(void **state)
{
	char login[] = "a", workspace[] = "a+b";
	struct auth_result result = { .allowed = true, .login = login };
	struct auth_result decoded;
	struct message message;
	struct error err;

	(void)state;
	auth_result_encode(&message, &result);
	assert_int_equal(auth_result_decode(&message, &decoded, &err), -1);
	message_free(&message);
	result.login = NULL;
	result.workspace = workspace;
	auth_result_encode(&message, &result);
	assert_int_equal(auth_result_decode(&message, &decoded, &err), -1);
	message_free(&message);
	result.allowed = false;
	auth_result_encode(&message, &result);
	assert_int_equal(auth_result_decode(&message, &decoded, &err), 0);
	auth_result_free(&decoded);
	message_free(&message);
}

static void
free_accepts_a_zeroed_struct(void **state)
{
	struct session_start session = { 0 };
	struct connection connection = { 0 };
	struct auth_login login = { 0 };
	struct auth_request request = { 0 };
	struct auth_check check = { 0 };
	struct auth_result result = { 0 };
	struct worker_attach attach = { 0 };
	struct command_start start = { 0 };
	struct command_progress progress = { 0 };
	struct command_exit ended = { 0 };
	struct command_signal request_signal = { 0 };

	(void)state;
	session_start_free(&session);
	connection_free(&connection);
	auth_login_free(&login);
	auth_request_free(&request);
	auth_check_free(&check);
	auth_result_free(&result);
	worker_attach_free(&attach);
	command_start_free(&start);
	command_progress_free(&progress);
	command_exit_free(&ended);
	command_signal_free(&request_signal);
	assert_null(result.restrictions.environment);
}

static void
a_stream_whose_descriptor_was_lost_says_so_and_others_end_the_peer(void **state)
{
	struct command_stream stream;
	struct message message;
	struct error err;
	uint32_t id;

	(void)state;
	stream = (struct command_stream){ 7, COMMAND_OUTPUT, true, 0, -1 };
	command_stream_encode(&message, &stream);
	message.lost = true;
	assert_int_equal(command_stream_decode(&message, &stream, &err), 0);
	assert_int_equal(stream.id, 7);
	assert_int_equal(stream.fd, -1);
	message_free(&message);
	command_id_encode(&message, MESSAGE_COMMAND_CLOSE, 7);
	message.lost = true;
	assert_int_equal(command_id_decode(&message, &id, &err), -1);
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	message_free(&message);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    a_stream_whose_descriptor_was_lost_says_so_and_others_end_the_peer),
		cmocka_unit_test(every_message_decodes_to_what_was_encoded),
		cmocka_unit_test(decode_rejects_a_message_cut_at_any_byte),
		cmocka_unit_test(decode_rejects_trailing_bytes),
		cmocka_unit_test(messages_that_need_a_descriptor_are_refused_without_one),
		cmocka_unit_test(command_start_needs_a_known_kind_and_its_text),
		cmocka_unit_test(command_exit_holds_a_status_or_a_signal_that_exists),
		cmocka_unit_test(an_allowed_result_names_login_and_workspace),
		cmocka_unit_test(free_accepts_a_zeroed_struct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
