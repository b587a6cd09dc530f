/* SPDX-License-Identifier: ISC */
/* Encode and decode of the messages between a session and its worker about commands. */
#include <string.h>

#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/driver.h"
#include "core/protocol.h"

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
	if (kind >= COMMAND_STREAM_KINDS || (message->fd < 0 && !message->lost))
		message->failed = true;
	message->lost = false;
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
	message_require(message, progress->text);
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
	if (ended->status > (ended->signaled ? DRIVER_SIGNAL_MAX : DRIVER_STATUS_MAX))
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
	message_require(message, request->name);
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
