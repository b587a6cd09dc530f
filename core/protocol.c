/* SPDX-License-Identifier: ISC */
/*
 * Encode and decode of the messages between our processes, next to each other. A decoder that
 * fails has freed what it made.
 */
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/protocol.h"

#define EXIT_STATUS_MAX 255
#define SIGNAL_MAX 64

static unsigned char *
copy_bytes(struct message *message, size_t *size)
{
	const unsigned char *data;
	unsigned char *copy;

	data = message_get_bytes(message, size);
	copy = memory_allocate(*size);
	if (*size > 0)
		memcpy(copy, data, *size);
	return copy;
}

/* Refuses a text that must be there and is not. */
static void
require(struct message *message, const char *text)
{
	if (text == NULL)
		message->failed = true;
}

void
session_start_encode(struct message *message, const struct session_start *start)
{
	message_start(message, MESSAGE_SESSION_START);
	message_put_text(message, start->ciphers);
	message_put_text(message, start->kex);
	message_put_text(message, start->macs);
	message_put_text(message, start->banner);
	message_put_u32(message, start->login_grace);
	message_put_u32(message, start->max_auth_tries);
	message_put_u32(message, start->max_channels);
	message_put_u32(message, start->alive_interval);
	message_put_u32(message, start->alive_count);
}

int
session_start_decode(struct message *message, struct session_start *start, struct error *err)
{
	memset(start, 0, sizeof(*start));
	start->ciphers = message_get_text(message);
	start->kex = message_get_text(message);
	start->macs = message_get_text(message);
	start->banner = message_get_text(message);
	start->login_grace = message_get_u32(message);
	start->max_auth_tries = message_get_u32(message);
	start->max_channels = message_get_u32(message);
	start->alive_interval = message_get_u32(message);
	start->alive_count = message_get_u32(message);
	if (message_end(message, err) == 0)
		return 0;
	session_start_free(start);
	return -1;
}

void
session_start_free(struct session_start *start)
{
	memory_free(start->ciphers);
	memory_free(start->kex);
	memory_free(start->macs);
	memory_free(start->banner);
	memset(start, 0, sizeof(*start));
}

void
connection_encode(struct message *message, const struct connection *connection)
{
	message_start(message, MESSAGE_CONNECTION);
	message->fd = connection->fd;
	message_put_u64(message, connection->number);
	message_put_text(message, connection->address);
	message_put_u32(message, connection->port);
}

int
connection_decode(struct message *message, struct connection *connection, struct error *err)
{
	memset(connection, 0, sizeof(*connection));
	connection->number = message_get_u64(message);
	connection->address = message_get_text(message);
	connection->port = message_get_u32(message);
	connection->fd = message->fd;
	require(message, connection->address);
	if (message->fd < 0 || connection->port > UINT16_MAX)
		message->failed = true;
	if (message_end(message, err) == 0) {
		(void)message_take_fd(message);
		return 0;
	}
	connection_free(connection);
	connection->fd = -1;
	return -1;
}

void
connection_free(struct connection *connection)
{
	memory_free(connection->address);
	connection->address = NULL;
}

void
auth_login_encode(struct message *message, const struct auth_login *login)
{
	message_start(message, MESSAGE_AUTH_LOGIN);
	message_put_text(message, login->name);
	message_put_text(message, login->instances);
	message_put_list(message, login->files);
	message_put_list(message, login->keys);
}

int
auth_login_decode(struct message *message, struct auth_login *login, struct error *err)
{
	memset(login, 0, sizeof(*login));
	login->name = message_get_text(message);
	login->instances = message_get_text(message);
	login->files = message_get_list(message);
	login->keys = message_get_list(message);
	require(message, login->name);
	require(message, login->instances);
	if (message_end(message, err) == 0)
		return 0;
	auth_login_free(login);
	return -1;
}

void
auth_login_free(struct auth_login *login)
{
	memory_free(login->name);
	memory_free(login->instances);
	memory_list_free(login->files);
	memory_list_free(login->keys);
	memset(login, 0, sizeof(*login));
}

void
drain_encode(struct message *message, bool dispose)
{
	message_start(message, MESSAGE_DRAIN);
	message_put_bool(message, dispose);
}

int
drain_decode(struct message *message, bool *dispose, struct error *err)
{
	*dispose = message_get_bool(message);
	return message_end(message, err);
}

void
auth_request_encode(struct message *message, const struct auth_request *request)
{
	message_start(message, MESSAGE_AUTH_REQUEST);
	message_put_text(message, request->user);
	message_put_text(message, request->algorithm);
	message_put_bytes(message, request->blob, request->blob_size);
	message_put_bool(message, request->is_signed);
}

int
auth_request_decode(struct message *message, struct auth_request *request, struct error *err)
{
	memset(request, 0, sizeof(*request));
	request->user = message_get_text(message);
	request->algorithm = message_get_text(message);
	request->blob = copy_bytes(message, &request->blob_size);
	request->is_signed = message_get_bool(message);
	require(message, request->user);
	require(message, request->algorithm);
	if (message_end(message, err) == 0)
		return 0;
	auth_request_free(request);
	return -1;
}

void
auth_request_free(struct auth_request *request)
{
	memory_free(request->user);
	memory_free(request->algorithm);
	memory_free(request->blob);
	memset(request, 0, sizeof(*request));
}

void
auth_check_encode(struct message *message, const struct auth_check *check)
{
	message_start(message, MESSAGE_AUTH_CHECK);
	message_put_u64(message, check->connection);
	message_put_text(message, check->address);
	message_put_bytes(message, check->request, check->request_size);
}

int
auth_check_decode(struct message *message, struct auth_check *check, struct error *err)
{
	memset(check, 0, sizeof(*check));
	check->connection = message_get_u64(message);
	check->address = message_get_text(message);
	check->request = copy_bytes(message, &check->request_size);
	require(message, check->address);
	if (message_end(message, err) == 0)
		return 0;
	auth_check_free(check);
	return -1;
}

void
auth_check_free(struct auth_check *check)
{
	memory_free(check->address);
	memory_free(check->request);
	memset(check, 0, sizeof(*check));
}

static void
put_restrictions(struct message *message, const struct restrictions *restrictions)
{
	message_put_text(message, restrictions->command);
	message_put_bool(message, restrictions->no_pty);
	message_put_list(message, restrictions->environment);
}

static void
get_restrictions(struct message *message, struct restrictions *restrictions)
{
	restrictions->command = message_get_text(message);
	restrictions->no_pty = message_get_bool(message);
	restrictions->environment = message_get_list(message);
}

void
restrictions_free(struct restrictions *restrictions)
{
	memory_free(restrictions->command);
	memory_list_free(restrictions->environment);
	memset(restrictions, 0, sizeof(*restrictions));
}

void
auth_result_encode(struct message *message, const struct auth_result *result)
{
	message_start(message, MESSAGE_AUTH_RESULT);
	message_put_u64(message, result->connection);
	message_put_bool(message, result->allowed);
	message_put_bool(message, result->is_signed);
	message_put_text(message, result->login);
	message_put_text(message, result->workspace);
	message_put_text(message, result->fingerprint);
	put_restrictions(message, &result->restrictions);
}

int
auth_result_decode(struct message *message, struct auth_result *result, struct error *err)
{
	memset(result, 0, sizeof(*result));
	result->connection = message_get_u64(message);
	result->allowed = message_get_bool(message);
	result->is_signed = message_get_bool(message);
	result->login = message_get_text(message);
	result->workspace = message_get_text(message);
	result->fingerprint = message_get_text(message);
	get_restrictions(message, &result->restrictions);
	if (result->allowed) {
		require(message, result->login);
		require(message, result->workspace);
	}
	if (message_end(message, err) == 0)
		return 0;
	auth_result_free(result);
	return -1;
}

void
auth_result_free(struct auth_result *result)
{
	memory_free(result->login);
	memory_free(result->workspace);
	memory_free(result->fingerprint);
	restrictions_free(&result->restrictions);
	memset(result, 0, sizeof(*result));
}

enum forced_command
forced_command_parse(const char *command)
{
	if (command == NULL)
		return FORCED_NONE;
	return strcmp(command, "internal-sftp") == 0 ? FORCED_SFTP : FORCED_COMMAND;
}

void
auth_answer_encode(struct message *message, const struct auth_answer *answer)
{
	message_start(message, MESSAGE_AUTH_ANSWER);
	message->fd = answer->worker;
	message_put_bool(message, answer->allowed);
	message_put_bool(message, answer->no_pty);
	message_put_u8(message, (uint8_t)answer->forced);
	message_put_text(message, answer->workspace);
}

int
auth_answer_decode(struct message *message, struct auth_answer *answer, struct error *err)
{
	uint8_t forced;

	memset(answer, 0, sizeof(*answer));
	answer->allowed = message_get_bool(message);
	answer->no_pty = message_get_bool(message);
	forced = message_get_u8(message);
	if (forced >= FORCED_COMMANDS)
		message->failed = true;
	answer->forced = (enum forced_command)forced;
	answer->workspace = message_get_text(message);
	answer->worker = message_take_fd(message);
	if (answer->allowed)
		require(message, answer->workspace);
	if (message_end(message, err) == 0)
		return 0;
	auth_answer_free(answer);
	return -1;
}

void
auth_answer_free(struct auth_answer *answer)
{
	memory_free(answer->workspace);
	if (answer->worker >= 0)
		(void)close(answer->worker);
	memset(answer, 0, sizeof(*answer));
	answer->worker = -1;
}

void
worker_configure_encode(struct message *message, const struct worker_configure *configure)
{
	message_start(message, MESSAGE_WORKER_CONFIGURE);
	message->fd = configure->directory;
	message_put_text(message, configure->login);
	message_put_text(message, configure->workspace);
	message_put_text(message, configure->instance);
	message_put_text(message, configure->driver);
}

int
worker_configure_decode(
    struct message *message, struct worker_configure *configure, struct error *err)
{
	memset(configure, 0, sizeof(*configure));
	configure->login = message_get_text(message);
	configure->workspace = message_get_text(message);
	configure->instance = message_get_text(message);
	configure->driver = message_get_text(message);
	configure->directory = message_take_fd(message);
	require(message, configure->login);
	require(message, configure->workspace);
	require(message, configure->instance);
	require(message, configure->driver);
	if (!message->failed && configure->directory >= 0)
		return 0;
	worker_configure_free(configure);
	return error_set(err, ERROR_INVALID, "the worker's configuration is malformed");
}

void
worker_configure_free(struct worker_configure *configure)
{
	memory_free(configure->login);
	memory_free(configure->workspace);
	memory_free(configure->instance);
	memory_free(configure->driver);
	if (configure->directory >= 0)
		(void)close(configure->directory);
	memset(configure, 0, sizeof(*configure));
	configure->directory = -1;
}

void
worker_idle_encode(struct message *message)
{
	message_start(message, MESSAGE_WORKER_IDLE);
}

int
worker_idle_decode(struct message *message, struct error *err)
{
	return message_end(message, err);
}

void
worker_attach_encode(struct message *message, const struct worker_attach *attach)
{
	message_start(message, MESSAGE_WORKER_ATTACH);
	message->fd = attach->fd;
	message_put_u64(message, attach->connection);
	put_restrictions(message, &attach->restrictions);
}

int
worker_attach_decode(struct message *message, struct worker_attach *attach, struct error *err)
{
	memset(attach, 0, sizeof(*attach));
	attach->connection = message_get_u64(message);
	get_restrictions(message, &attach->restrictions);
	attach->fd = message->fd;
	if (attach->fd < 0)
		message->failed = true;
	if (message_end(message, err) == 0) {
		(void)message_take_fd(message);
		return 0;
	}
	worker_attach_free(attach);
	return -1;
}

void
worker_attach_free(struct worker_attach *attach)
{
	restrictions_free(&attach->restrictions);
	memset(attach, 0, sizeof(*attach));
	attach->fd = -1;
}

void
command_start_encode(struct message *message, const struct command_start *start)
{
	message_start(message, MESSAGE_COMMAND_START);
	message_put_u32(message, start->id);
	message_put_u8(message, (uint8_t)start->kind);
	message_put_text(message, start->command);
	message_put_list(message, start->environment);
	message_put_bool(message, start->pty);
	message_put_text(message, start->term);
	message_put_u32(message, start->columns);
	message_put_u32(message, start->rows);
	message_put_u32(message, start->x_pixels);
	message_put_u32(message, start->y_pixels);
}

int
command_start_decode(struct message *message, struct command_start *start, struct error *err)
{
	uint8_t kind;

	memset(start, 0, sizeof(*start));
	start->id = message_get_u32(message);
	kind = message_get_u8(message);
	start->kind = kind < COMMAND_KINDS ? (enum command_kind)kind : COMMAND_EXEC;
	start->command = message_get_text(message);
	start->environment = message_get_list(message);
	start->pty = message_get_bool(message);
	start->term = message_get_text(message);
	start->columns = message_get_u32(message);
	start->rows = message_get_u32(message);
	start->x_pixels = message_get_u32(message);
	start->y_pixels = message_get_u32(message);
	if (kind >= COMMAND_KINDS || (kind == COMMAND_EXEC && start->command == NULL))
		message->failed = true;
	if (message_end(message, err) == 0)
		return 0;
	command_start_free(start);
	return -1;
}

void
command_start_free(struct command_start *start)
{
	memory_free(start->command);
	memory_list_free(start->environment);
	memory_free(start->term);
	memset(start, 0, sizeof(*start));
}

void
command_stream_encode(struct message *message, const struct command_stream *stream)
{
	message_start(message, MESSAGE_COMMAND_STREAM);
	message->fd = stream->fd;
	message_put_u32(message, stream->id);
	message_put_u8(message, (uint8_t)stream->kind);
	message_put_bool(message, stream->last);
	message_put_u64(message, stream->max_stream);
}

int
command_stream_decode(struct message *message, struct command_stream *stream, struct error *err)
{
	uint8_t kind;

	memset(stream, 0, sizeof(*stream));
	stream->id = message_get_u32(message);
	kind = message_get_u8(message);
	stream->kind = kind < COMMAND_STREAM_KINDS ? (enum command_stream_kind)kind : COMMAND_INPUT;
	stream->last = message_get_bool(message);
	stream->max_stream = message_get_u64(message);
	stream->fd = message->fd;
	if (kind >= COMMAND_STREAM_KINDS || message->fd < 0)
		message->failed = true;
	if (message_end(message, err) != 0)
		return -1;
	(void)message_take_fd(message);
	return 0;
}

void
command_progress_encode(struct message *message, const struct command_progress *progress)
{
	message_start(message, MESSAGE_COMMAND_PROGRESS);
	message_put_u32(message, progress->id);
	message_put_text(message, progress->text);
}

int
command_progress_decode(
    struct message *message, struct command_progress *progress, struct error *err)
{
	memset(progress, 0, sizeof(*progress));
	progress->id = message_get_u32(message);
	progress->text = message_get_text(message);
	require(message, progress->text);
	if (message_end(message, err) == 0)
		return 0;
	command_progress_free(progress);
	return -1;
}

void
command_progress_free(struct command_progress *progress)
{
	memory_free(progress->text);
	memset(progress, 0, sizeof(*progress));
}

void
command_exit_encode(struct message *message, const struct command_exit *ended)
{
	message_start(message, MESSAGE_COMMAND_EXIT);
	message_put_u32(message, ended->id);
	message_put_bool(message, ended->failed);
	message_put_error(message, &ended->failure);
	message_put_bool(message, ended->signaled);
	message_put_u32(message, ended->status);
	message_put_bool(message, ended->core);
	message_put_text(message, ended->note);
}

int
command_exit_decode(struct message *message, struct command_exit *ended, struct error *err)
{
	memset(ended, 0, sizeof(*ended));
	ended->id = message_get_u32(message);
	ended->failed = message_get_bool(message);
	message_get_error(message, &ended->failure);
	ended->signaled = message_get_bool(message);
	ended->status = message_get_u32(message);
	ended->core = message_get_bool(message);
	ended->note = message_get_text(message);
	if (ended->status > (ended->signaled ? SIGNAL_MAX : EXIT_STATUS_MAX))
		message->failed = true;
	if (message_end(message, err) == 0)
		return 0;
	command_exit_free(ended);
	return -1;
}

void
command_exit_free(struct command_exit *ended)
{
	memory_free(ended->note);
	memset(ended, 0, sizeof(*ended));
}

void
command_signal_encode(struct message *message, const struct command_signal *request)
{
	message_start(message, MESSAGE_COMMAND_SIGNAL);
	message_put_u32(message, request->id);
	message_put_text(message, request->name);
}

int
command_signal_decode(struct message *message, struct command_signal *request, struct error *err)
{
	memset(request, 0, sizeof(*request));
	request->id = message_get_u32(message);
	request->name = message_get_text(message);
	require(message, request->name);
	if (message_end(message, err) == 0)
		return 0;
	command_signal_free(request);
	return -1;
}

void
command_signal_free(struct command_signal *request)
{
	memory_free(request->name);
	memset(request, 0, sizeof(*request));
}

void
command_resize_encode(struct message *message, const struct command_resize *resize)
{
	message_start(message, MESSAGE_COMMAND_RESIZE);
	message_put_u32(message, resize->id);
	message_put_u32(message, resize->columns);
	message_put_u32(message, resize->rows);
	message_put_u32(message, resize->x_pixels);
	message_put_u32(message, resize->y_pixels);
}

int
command_resize_decode(struct message *message, struct command_resize *resize, struct error *err)
{
	memset(resize, 0, sizeof(*resize));
	resize->id = message_get_u32(message);
	resize->columns = message_get_u32(message);
	resize->rows = message_get_u32(message);
	resize->x_pixels = message_get_u32(message);
	resize->y_pixels = message_get_u32(message);
	return message_end(message, err);
}

void
command_id_encode(struct message *message, uint8_t type, uint32_t id)
{
	message_start(message, type);
	message_put_u32(message, id);
}

int
command_id_decode(struct message *message, uint32_t *id, struct error *err)
{
	*id = message_get_u32(message);
	return message_end(message, err);
}
