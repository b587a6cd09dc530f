/* SPDX-License-Identifier: ISC */
/*
 * Encode and decode of the messages of the listener with the processes it starts, next to each
 * other. A decoder that fails has freed what it made. Commands are in protocol_command.c.
 */
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/protocol.h"

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
	message_require(message, connection->address);
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
	message_require(message, login->name);
	message_require(message, login->instances);
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
	message_require(message, request->user);
	message_require(message, request->algorithm);
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
	message_require(message, check->address);
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
		message_require(message, result->login);
		message_require(message, result->workspace);
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
		message_require(message, answer->workspace);
	if (message_end(message, err) == 0)
		return 0;
	auth_answer_free(answer);
	return -1;
}

void
auth_answer_free(struct auth_answer *answer)
{
	memory_free(answer->workspace);
	if (answer->worker > STDERR_FILENO)
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
	message_require(message, configure->login);
	message_require(message, configure->workspace);
	message_require(message, configure->instance);
	message_require(message, configure->driver);
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
	if (configure->directory > STDERR_FILENO)
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
