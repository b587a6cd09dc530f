/* SPDX-License-Identifier: ISC */
/*
 * Every message of core/protocol.h: what was encoded comes out again, and no frame that is cut
 * short or has a byte too many is taken for one. The samples give each field a value of its own,
 * so that two fields that changed places show.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/protocol.h"

struct sample {
	const char *name;
	uint8_t type;
	void (*encode)(struct message *message);
	/* Decodes, and on success checks every field and frees. */
	int (*decode)(struct message *message, struct error *err);
};

static char environment_first[] = "LANG=C";
static char environment_second[] = "EMPTY=";
static char *environment[] = { environment_first, environment_second, NULL };

static void
assert_environment(char **list)
{
	assert_string_equal(list[0], "LANG=C");
	assert_string_equal(list[1], "EMPTY=");
	assert_null(list[2]);
}

static int
open_descriptor(void)
{
	int fd;

	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void
encode_auth_request(struct message *message)
{
	unsigned char blob[] = { 0, 1, 2, 255 };
	char user[] = "sandbox+a", algorithm[] = "ssh-ed25519";
	struct auth_request request = { user, algorithm, blob, sizeof(blob), true };

	auth_request_encode(message, &request);
}

static int
decode_auth_request(struct message *message, struct error *err)
{
	struct auth_request request;

	if (auth_request_decode(message, &request, err) != 0)
		return -1;
	assert_string_equal(request.user, "sandbox+a");
	assert_string_equal(request.algorithm, "ssh-ed25519");
	assert_int_equal(request.blob_size, 4);
	assert_memory_equal(request.blob, "\0\1\2\377", 4);
	assert_true(request.is_signed);
	auth_request_free(&request);
	return 0;
}

static void
encode_auth_check(struct message *message)
{
	unsigned char bytes[] = { 9, 8, 7 };
	char address[] = "192.0.2.1";
	struct auth_check check = { 0x0102030405060708U, address, bytes, sizeof(bytes) };

	auth_check_encode(message, &check);
}

static int
decode_auth_check(struct message *message, struct error *err)
{
	struct auth_check check;

	if (auth_check_decode(message, &check, err) != 0)
		return -1;
	assert_true(check.connection == 0x0102030405060708U);
	assert_string_equal(check.address, "192.0.2.1");
	assert_int_equal(check.request_size, 3);
	assert_memory_equal(check.request, "\t\b\a", 3);
	auth_check_free(&check);
	return 0;
}

static void
encode_auth_result(struct message *message)
{
	char login[] = "sandbox", workspace[] = "sandbox+a", fingerprint[] = "SHA256:x";
	char command[] = "git-shell";
	struct auth_result result = { 7, true, false, login, workspace, fingerprint,
		{ command, true, environment } };

	auth_result_encode(message, &result);
}

static int
decode_auth_result(struct message *message, struct error *err)
{
	struct auth_result result;

	if (auth_result_decode(message, &result, err) != 0)
		return -1;
	assert_true(result.connection == 7);
	assert_true(result.allowed);
	assert_false(result.is_signed);
	assert_string_equal(result.login, "sandbox");
	assert_string_equal(result.workspace, "sandbox+a");
	assert_string_equal(result.fingerprint, "SHA256:x");
	assert_string_equal(result.restrictions.command, "git-shell");
	assert_true(result.restrictions.no_pty);
	assert_environment(result.restrictions.environment);
	auth_result_free(&result);
	return 0;
}

static void
encode_auth_answer(struct message *message)
{
	char workspace[] = "sandbox=id-1";
	struct auth_answer answer = { true, false, workspace };

	auth_answer_encode(message, &answer);
}

static int
decode_auth_answer(struct message *message, struct error *err)
{
	struct auth_answer answer;

	if (auth_answer_decode(message, &answer, err) != 0)
		return -1;
	assert_true(answer.allowed);
	assert_false(answer.no_pty);
	assert_string_equal(answer.workspace, "sandbox=id-1");
	auth_answer_free(&answer);
	return 0;
}

static void
encode_worker_attach(struct message *message)
{
	char command[] = "true";
	struct worker_attach attach = { 11, open_descriptor(), { command, false, environment } };

	worker_attach_encode(message, &attach);
}

static int
decode_worker_attach(struct message *message, struct error *err)
{
	struct worker_attach attach;

	if (worker_attach_decode(message, &attach, err) != 0)
		return -1;
	assert_true(attach.connection == 11);
	assert_string_equal(attach.restrictions.command, "true");
	assert_false(attach.restrictions.no_pty);
	assert_environment(attach.restrictions.environment);
	assert_true(attach.fd >= 0);
	assert_int_equal(message->fd, -1);
	assert_int_equal(close(attach.fd), 0);
	worker_attach_free(&attach);
	return 0;
}

static void
encode_command_start(struct message *message)
{
	char command[] = "exit 3", term[] = "xterm";
	struct command_start start = { 1, COMMAND_EXEC, command, environment, true, term, 80, 24, 640,
		480 };

	command_start_encode(message, &start);
}

static int
decode_command_start(struct message *message, struct error *err)
{
	struct command_start start;

	if (command_start_decode(message, &start, err) != 0)
		return -1;
	assert_int_equal(start.id, 1);
	assert_int_equal(start.kind, COMMAND_EXEC);
	assert_string_equal(start.command, "exit 3");
	assert_environment(start.environment);
	assert_true(start.pty);
	assert_string_equal(start.term, "xterm");
	assert_int_equal(start.columns, 80);
	assert_int_equal(start.rows, 24);
	assert_int_equal(start.x_pixels, 640);
	assert_int_equal(start.y_pixels, 480);
	command_start_free(&start);
	return 0;
}

static void
encode_command_stream(struct message *message)
{
	struct command_stream stream = { 2, COMMAND_ERRORS, true, 1ULL << 40, open_descriptor() };

	command_stream_encode(message, &stream);
}

static int
decode_command_stream(struct message *message, struct error *err)
{
	struct command_stream stream;

	if (command_stream_decode(message, &stream, err) != 0)
		return -1;
	assert_int_equal(stream.id, 2);
	assert_int_equal(stream.kind, COMMAND_ERRORS);
	assert_true(stream.last);
	assert_true(stream.max_stream == 1ULL << 40);
	assert_int_equal(message->fd, -1);
	assert_int_equal(close(stream.fd), 0);
	return 0;
}

static void
encode_command_progress(struct message *message)
{
	char text[] = "starting sandbox…";
	struct command_progress progress = { 3, text };

	command_progress_encode(message, &progress);
}

static int
decode_command_progress(struct message *message, struct error *err)
{
	struct command_progress progress;

	if (command_progress_decode(message, &progress, err) != 0)
		return -1;
	assert_int_equal(progress.id, 3);
	assert_string_equal(progress.text, "starting sandbox…");
	command_progress_free(&progress);
	return 0;
}

static void
encode_command_exit(struct message *message)
{
	char note[] = "stopped: more than 64 MiB of output";
	struct command_exit ended = { .id = 4, .failed = true, .signaled = true, .status = 9,
		.core = false, .note = note };

	error_system(&ended.failure, ENOENT, "open workspace");
	command_exit_encode(message, &ended);
}

static int
decode_command_exit(struct message *message, struct error *err)
{
	struct command_exit ended;

	if (command_exit_decode(message, &ended, err) != 0)
		return -1;
	assert_int_equal(ended.id, 4);
	assert_true(ended.failed);
	assert_int_equal(ended.failure.code, ERROR_NOT_FOUND);
	assert_int_equal(ended.failure.saved_errno, ENOENT);
	assert_string_equal(ended.failure.message, "open workspace: No such file or directory");
	assert_true(ended.signaled);
	assert_int_equal(ended.status, 9);
	assert_false(ended.core);
	assert_string_equal(ended.note, "stopped: more than 64 MiB of output");
	command_exit_free(&ended);
	return 0;
}

static void
encode_command_signal(struct message *message)
{
	char name[] = "USR1";
	struct command_signal request = { 5, name };

	command_signal_encode(message, &request);
}

static int
decode_command_signal(struct message *message, struct error *err)
{
	struct command_signal request;

	if (command_signal_decode(message, &request, err) != 0)
		return -1;
	assert_int_equal(request.id, 5);
	assert_string_equal(request.name, "USR1");
	command_signal_free(&request);
	return 0;
}

static void
encode_command_resize(struct message *message)
{
	struct command_resize resize = { 6, 132, 43, 1056, 688 };

	command_resize_encode(message, &resize);
}

static int
decode_command_resize(struct message *message, struct error *err)
{
	struct command_resize resize;

	if (command_resize_decode(message, &resize, err) != 0)
		return -1;
	assert_int_equal(resize.id, 6);
	assert_int_equal(resize.columns, 132);
	assert_int_equal(resize.rows, 43);
	assert_int_equal(resize.x_pixels, 1056);
	assert_int_equal(resize.y_pixels, 688);
	return 0;
}

static void
encode_command_close(struct message *message)
{
	command_id_encode(message, MESSAGE_COMMAND_CLOSE, 0xfffffffeU);
}

static int
decode_command_close(struct message *message, struct error *err)
{
	uint32_t id;

	if (command_id_decode(message, &id, err) != 0)
		return -1;
	assert_true(id == 0xfffffffeU);
	return 0;
}

static const struct sample samples[] = {
	{ "auth_request", MESSAGE_AUTH_REQUEST, encode_auth_request, decode_auth_request },
	{ "auth_check", MESSAGE_AUTH_CHECK, encode_auth_check, decode_auth_check },
	{ "auth_result", MESSAGE_AUTH_RESULT, encode_auth_result, decode_auth_result },
	{ "auth_answer", MESSAGE_AUTH_ANSWER, encode_auth_answer, decode_auth_answer },
	{ "worker_attach", MESSAGE_WORKER_ATTACH, encode_worker_attach, decode_worker_attach },
	{ "command_start", MESSAGE_COMMAND_START, encode_command_start, decode_command_start },
	{ "command_stream", MESSAGE_COMMAND_STREAM, encode_command_stream, decode_command_stream },
	{ "command_progress", MESSAGE_COMMAND_PROGRESS, encode_command_progress,
	    decode_command_progress },
	{ "command_exit", MESSAGE_COMMAND_EXIT, encode_command_exit, decode_command_exit },
	{ "command_signal", MESSAGE_COMMAND_SIGNAL, encode_command_signal, decode_command_signal },
	{ "command_resize", MESSAGE_COMMAND_RESIZE, encode_command_resize, decode_command_resize },
	{ "command_close", MESSAGE_COMMAND_CLOSE, encode_command_close, decode_command_close },
};
#define SAMPLES (sizeof(samples) / sizeof(samples[0]))

/* The lowest free descriptor: it moves when one was leaked. */
static int
next_descriptor(void)
{
	int fd;

	fd = open_descriptor();
	assert_int_equal(close(fd), 0);
	return fd;
}

static void
every_message_decodes_to_what_was_encoded(void **state)
{
	struct message message;
	struct error err = { 0 };
	size_t i;
	int before;

	(void)state;
	before = next_descriptor();
	for (i = 0; i < SAMPLES; i++) {
		samples[i].encode(&message);
		assert_int_equal(message.type, samples[i].type);
		if (samples[i].decode(&message, &err) != 0)
			fail_msg("%s: %s", samples[i].name, err.message);
		message_free(&message);
	}
	assert_int_equal(next_descriptor(), before);
}

static void
decode_rejects_a_message_cut_at_any_byte(void **state)
{
	struct message message;
	struct error err;
	size_t i, cut, whole;
	int before;

	(void)state;
	before = next_descriptor();
	for (i = 0; i < SAMPLES; i++) {
		whole = 1;
		for (cut = 0; cut < whole; cut++) {
			samples[i].encode(&message);
			whole = message.payload.length;
			message.payload.length = cut;
			error_clear(&err);
			if (samples[i].decode(&message, &err) == 0)
				fail_msg("%s: %zu of %zu bytes are enough", samples[i].name, cut, whole);
			assert_int_equal(err.code, ERROR_INVALID);
			message_free(&message);
			if (next_descriptor() != before)
				fail_msg("%s: a descriptor leaks at byte %zu", samples[i].name, cut);
		}
	}
}

static void
decode_rejects_trailing_bytes(void **state)
{
	struct message message;
	struct error err = { 0 };
	size_t i;
	int before;

	(void)state;
	before = next_descriptor();
	for (i = 0; i < SAMPLES; i++) {
		samples[i].encode(&message);
		message_put_u8(&message, 0);
		if (samples[i].decode(&message, &err) == 0)
			fail_msg("%s takes a byte too many", samples[i].name);
		assert_int_equal(err.code, ERROR_INVALID);
		message_free(&message);
	}
	assert_int_equal(next_descriptor(), before);
}

static void
messages_that_carry_a_descriptor_are_refused_without_one(void **state)
{
	struct message message;
	struct error err = { 0 };
	size_t i, refused;

	(void)state;
	refused = 0;
	for (i = 0; i < SAMPLES; i++) {
		samples[i].encode(&message);
		if (message.fd >= 0) {
			assert_int_equal(close(message_take_fd(&message)), 0);
			assert_int_equal(samples[i].decode(&message, &err), -1);
			refused++;
		}
		message_free(&message);
	}
	assert_int_equal(refused, 2);
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
	assert_int_equal(decode_start_of_kind(COMMAND_SUBSYSTEM, NULL), -1);
	assert_int_equal(decode_start_of_kind(COMMAND_SHELL, NULL), 0);
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
	struct auth_request request = { 0 };
	struct auth_check check = { 0 };
	struct auth_result result = { 0 };
	struct auth_answer answer = { 0 };
	struct worker_attach attach = { 0 };
	struct command_start start = { 0 };
	struct command_progress progress = { 0 };
	struct command_exit ended = { 0 };
	struct command_signal request_signal = { 0 };

	(void)state;
	auth_request_free(&request);
	auth_check_free(&check);
	auth_result_free(&result);
	auth_answer_free(&answer);
	worker_attach_free(&attach);
	command_start_free(&start);
	command_progress_free(&progress);
	command_exit_free(&ended);
	command_signal_free(&request_signal);
	assert_null(result.restrictions.environment);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_decodes_to_what_was_encoded),
		cmocka_unit_test(decode_rejects_a_message_cut_at_any_byte),
		cmocka_unit_test(decode_rejects_trailing_bytes),
		cmocka_unit_test(messages_that_carry_a_descriptor_are_refused_without_one),
		cmocka_unit_test(command_start_needs_a_known_kind_and_its_text),
		cmocka_unit_test(command_exit_holds_a_status_or_a_signal_that_exists),
		cmocka_unit_test(an_allowed_result_names_login_and_workspace),
		cmocka_unit_test(free_accepts_a_zeroed_struct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
