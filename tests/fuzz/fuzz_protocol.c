/* SPDX-License-Identifier: ISC */
/* Every decoder of core/protocol.h. */
/*
 * Every decoder of core/protocol.h: the first byte is the message's type, the second says whether a
 * descriptor comes with it, the rest is the payload. What a decoder accepts must survive being
 * encoded again: the bytes of our own messages have one form only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/message.h"
#include "core/protocol.h"
#include "tests/fuzz/recode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
command_stream_free(struct command_stream *stream)
{
	(void)stream;
}

static void
command_resize_free(struct command_resize *resize)
{
	(void)resize;
}

RECODE(session_start)
RECODE(connection)
RECODE(auth_login)
RECODE(auth_request)
RECODE(auth_check)
RECODE(auth_result)
RECODE(worker_attach)
RECODE(command_start)
RECODE(command_stream)
RECODE(command_progress)
RECODE(command_exit)
RECODE(command_signal)
RECODE(command_resize)

static int
recode_auth_answer(struct message *message, struct message *again)
{
	struct auth_answer answer;

	if (auth_answer_decode(message, &answer, NULL) != 0)
		return -1;
	auth_answer_encode(again, &answer);
	answer.worker = -1;
	auth_answer_free(&answer);
	return 0;
}

static int
recode_drain(struct message *message, struct message *again)
{
	bool dispose;

	if (drain_decode(message, &dispose, NULL) != 0)
		return -1;
	drain_encode(again, dispose);
	return 0;
}

static int
recode_worker_configure(struct message *message, struct message *again)
{
	struct worker_configure configure;

	if (worker_configure_decode(message, &configure, NULL) != 0)
		return -1;
	worker_configure_encode(again, &configure);
	configure.directory = -1;
	worker_configure_free(&configure);
	/* Settings may follow: what is left over is not this decoder's to judge. */
	return message_end(message, NULL) == 0 ? 0 : (message_free(again), -1);
}

static int
recode_worker_idle(struct message *message, struct message *again)
{
	if (worker_idle_decode(message, NULL) != 0)
		return -1;
	worker_idle_encode(again);
	return 0;
}

static int
recode_id(struct message *message, struct message *again)
{
	uint32_t id;

	if (command_id_decode(message, &id, NULL) != 0)
		return -1;
	command_id_encode(again, message->type, id);
	return 0;
}

static recode_fn *const recoders[256] = {
	[MESSAGE_SESSION_START] = recode_session_start,
	[MESSAGE_CONNECTION] = recode_connection,
	[MESSAGE_AUTH_REQUEST] = recode_auth_request,
	[MESSAGE_AUTH_ANSWER] = recode_auth_answer,
	[MESSAGE_DRAIN] = recode_drain,
	[MESSAGE_AUTH_LOGIN] = recode_auth_login,
	[MESSAGE_AUTH_CHECK] = recode_auth_check,
	[MESSAGE_AUTH_RESULT] = recode_auth_result,
	[MESSAGE_WORKER_CONFIGURE] = recode_worker_configure,
	[MESSAGE_WORKER_IDLE] = recode_worker_idle,
	[MESSAGE_WORKER_ATTACH] = recode_worker_attach,
	[MESSAGE_COMMAND_START] = recode_command_start,
	[MESSAGE_COMMAND_STREAM] = recode_command_stream,
	[MESSAGE_COMMAND_PROGRESS] = recode_command_progress,
	[MESSAGE_COMMAND_EXIT] = recode_command_exit,
	[MESSAGE_COMMAND_SIGNAL] = recode_command_signal,
	[MESSAGE_COMMAND_RESIZE] = recode_command_resize,
	[MESSAGE_COMMAND_LIMIT] = recode_id,
	[MESSAGE_COMMAND_CLOSE] = recode_id,
};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	recode_check_input(recoders, data, size);
	return 0;
}
