/* SPDX-License-Identifier: ISC */
/*
 * One sample of every message of core/protocol.h. Each field has a value of its own, so that two
 * fields that changed places show.
 */
#include <errno.h>
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
encode_session_start(struct message *message)
{
	char ciphers[] = "aes128-gcm@openssh.com", kex[] = "curve25519-sha256";
	char macs[] = "hmac-sha2-256", banner[] = "hello";
	struct session_start start = { ciphers, kex, macs, banner, 30000, 6, 64, 60000, 3 };

	session_start_encode(message, &start);
}

static int
decode_session_start(struct message *message, struct error *err)
{
	struct session_start start;

	if (session_start_decode(message, &start, err) != 0)
		return -1;
	assert_string_equal(start.ciphers, "aes128-gcm@openssh.com");
	assert_string_equal(start.kex, "curve25519-sha256");
	assert_string_equal(start.macs, "hmac-sha2-256");
	assert_string_equal(start.banner, "hello");
	assert_int_equal(start.login_grace, 30000);
	assert_int_equal(start.max_auth_tries, 6);
	assert_int_equal(start.max_channels, 64);
	assert_int_equal(start.alive_interval, 60000);
	assert_int_equal(start.alive_count, 3);
	session_start_free(&start);
	return 0;
}

static void
encode_connection(struct message *message)
{
	char address[] = "2001:db8::1";
	struct connection connection = { 1ULL << 33, open_descriptor(), address, 65535 };

	connection_encode(message, &connection);
}

static int
decode_connection(struct message *message, struct error *err)
{
	struct connection connection;

	if (connection_decode(message, &connection, err) != 0)
		return -1;
	assert_true(connection.number == 1ULL << 33);
	assert_string_equal(connection.address, "2001:db8::1");
	assert_int_equal(connection.port, 65535);
	assert_int_equal(message->fd, -1);
	assert_int_equal(close(connection.fd), 0);
	connection_free(&connection);
	return 0;
}

static void
encode_auth_login(struct message *message)
{
	char name[] = "sandbox", instances[] = "attach", file[] = "/etc/rwsd/keys";
	char *files[] = { file, NULL };
	struct auth_login login = { name, instances, files, environment };

	auth_login_encode(message, &login);
}

static int
decode_auth_login(struct message *message, struct error *err)
{
	struct auth_login login;

	if (auth_login_decode(message, &login, err) != 0)
		return -1;
	assert_string_equal(login.name, "sandbox");
	assert_string_equal(login.instances, "attach");
	assert_string_equal(login.files[0], "/etc/rwsd/keys");
	assert_null(login.files[1]);
	assert_environment(login.keys);
	auth_login_free(&login);
	return 0;
}

static void
encode_drain(struct message *message)
{
	drain_encode(message, true);
}

static int
decode_drain(struct message *message, struct error *err)
{
	bool dispose;

	if (drain_decode(message, &dispose, err) != 0)
		return -1;
	assert_true(dispose);
	return 0;
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
	struct auth_answer answer = { true, false, FORCED_SFTP, workspace, open_descriptor() };

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
	assert_int_equal(answer.forced, FORCED_SFTP);
	assert_string_equal(answer.workspace, "sandbox=id-1");
	assert_true(answer.worker >= 0);
	auth_answer_free(&answer);
	return 0;
}

static void
encode_worker_configure(struct message *message)
{
	char login[] = "sandbox", workspace[] = "sandbox+a", instance[] = "rwsd/sandbox+a";
	char driver[] = "local";
	struct worker_configure configure = { login, workspace, instance, driver,
		open_descriptor() };

	worker_configure_encode(message, &configure);
}

static int
decode_worker_configure(struct message *message, struct error *err)
{
	struct worker_configure configure;

	if (worker_configure_decode(message, &configure, err) != 0)
		return -1;
	assert_true(configure.directory >= 0);
	assert_int_equal(close(configure.directory), 0);
	configure.directory = -1;
	/* The settings would follow here, and end the message. */
	if (message_end(message, err) != 0) {
		worker_configure_free(&configure);
		return -1;
	}
	assert_string_equal(configure.login, "sandbox");
	assert_string_equal(configure.workspace, "sandbox+a");
	assert_string_equal(configure.instance, "rwsd/sandbox+a");
	assert_string_equal(configure.driver, "local");
	worker_configure_free(&configure);
	return 0;
}

static void
encode_worker_idle(struct message *message)
{
	worker_idle_encode(message);
}

static int
decode_worker_idle(struct message *message, struct error *err)
{
	return worker_idle_decode(message, err);
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
	struct command_start start = { 1, COMMAND_EXEC, command, environment, true, term, 80, 24,
		640, 480 };

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
	struct command_exit ended = {
		.id = 4, .failed = true, .signaled = true, .status = 9, .core = false, .note = note
	};

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

const struct protocol_sample protocol_samples[] = {
	{ "session_start", MESSAGE_SESSION_START, encode_session_start, decode_session_start },
	{ "connection", MESSAGE_CONNECTION, encode_connection, decode_connection },
	{ "auth_login", MESSAGE_AUTH_LOGIN, encode_auth_login, decode_auth_login },
	{ "drain", MESSAGE_DRAIN, encode_drain, decode_drain },
	{ "auth_request", MESSAGE_AUTH_REQUEST, encode_auth_request, decode_auth_request },
	{ "auth_check", MESSAGE_AUTH_CHECK, encode_auth_check, decode_auth_check },
	{ "auth_result", MESSAGE_AUTH_RESULT, encode_auth_result, decode_auth_result },
	{ "auth_answer", MESSAGE_AUTH_ANSWER, encode_auth_answer, decode_auth_answer },
	{ "worker_configure", MESSAGE_WORKER_CONFIGURE, encode_worker_configure,
	    decode_worker_configure },
	{ "worker_idle", MESSAGE_WORKER_IDLE, encode_worker_idle, decode_worker_idle },
	{ "worker_attach", MESSAGE_WORKER_ATTACH, encode_worker_attach, decode_worker_attach },
	{ "command_start", MESSAGE_COMMAND_START, encode_command_start, decode_command_start },
	{ "command_stream", MESSAGE_COMMAND_STREAM, encode_command_stream, decode_command_stream },
	{ "command_progress", MESSAGE_COMMAND_PROGRESS, encode_command_progress,
	    decode_command_progress },
	{ "command_exit", MESSAGE_COMMAND_EXIT, encode_command_exit, decode_command_exit },
	{ "command_signal", MESSAGE_COMMAND_SIGNAL, encode_command_signal, decode_command_signal },
	{ "command_resize", MESSAGE_COMMAND_RESIZE, encode_command_resize, decode_command_resize },
	{ "command_close", MESSAGE_COMMAND_CLOSE, encode_command_close, decode_command_close },
	{ NULL, 0, NULL, NULL },
};
