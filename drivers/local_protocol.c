/* SPDX-License-Identifier: ISC */
/* Encode and decode of the messages between the local driver and its init. */
#include <string.h>

#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/driver.h"
#include "drivers/local_protocol.h"

void
local_start_encode(struct message *message, const struct local_start *start)
{
	message_start(message, LOCAL_START);
	message_put_u32(message, start->id);
	message_put_list(message, start->argv);
	message_put_list(message, start->environment);
	message_put_text(message, start->directory);
	message_put_bool(message, start->want_stdin);
	message_put_bool(message, start->pty);
	message_put_text(message, start->term);
	message_put_u32(message, start->columns);
	message_put_u32(message, start->rows);
	message_put_u32(message, start->x_pixels);
	message_put_u32(message, start->y_pixels);
	message_put_bool(message, start->keep);
	message_put_u32(message, start->grace);
}

static int
check_start(const struct local_start *start, struct error *err)
{
	size_t i;

	if (start->argv[0] == NULL)
		return error_set(err, ERROR_INVALID, "a command without a name");
	if (start->directory != NULL && start->directory[0] != '/')
		return error_set(
		    err, ERROR_INVALID, "directory %s is not absolute", start->directory);
	for (i = 0; start->environment[i] != NULL; i++)
		if (strchr(start->environment[i], '=') == NULL)
			return error_set(err, ERROR_INVALID, "an environment entry has no value");
	if (start->columns > LOCAL_WINDOW_MAX || start->rows > LOCAL_WINDOW_MAX ||
	    start->x_pixels > LOCAL_WINDOW_MAX || start->y_pixels > LOCAL_WINDOW_MAX)
		return error_set(
		    err, ERROR_INVALID, "a window of %ux%u", start->columns, start->rows);
	return 0;
}

int
local_start_decode(struct message *message, struct local_start *start, struct error *err)
{
	memset(start, 0, sizeof(*start));
	start->id = message_get_u32(message);
	start->argv = message_get_list(message);
	start->environment = message_get_list(message);
	start->directory = message_get_text(message);
	start->want_stdin = message_get_bool(message);
	start->pty = message_get_bool(message);
	start->term = message_get_text(message);
	start->columns = message_get_u32(message);
	start->rows = message_get_u32(message);
	start->x_pixels = message_get_u32(message);
	start->y_pixels = message_get_u32(message);
	start->keep = message_get_bool(message);
	start->grace = message_get_u32(message);
	if (message_end(message, err) == 0 && check_start(start, err) == 0)
		return 0;
	local_start_free(start);
	return -1;
}

void
local_start_free(struct local_start *start)
{
	memory_list_free(start->argv);
	memory_list_free(start->environment);
	memory_free(start->directory);
	memory_free(start->term);
	memset(start, 0, sizeof(*start));
}

void
local_stream_encode(struct message *message, const struct local_stream *stream)
{
	message_start(message, LOCAL_STREAM);
	message_put_u32(message, stream->id);
	message_put_u8(message, (uint8_t)stream->kind);
}

int
local_stream_decode(struct message *message, struct local_stream *stream, struct error *err)
{
	uint8_t kind;

	stream->id = message_get_u32(message);
	kind = message_get_u8(message);
	if (message_end(message, err) != 0)
		return -1;
	if (kind >= LOCAL_STREAM_KINDS)
		return error_set(err, ERROR_INVALID, "unknown kind of stream %u", kind);
	stream->kind = (enum local_stream_kind)kind;
	return 0;
}

void
local_started_encode(struct message *message, const struct local_started *started)
{
	message_start(message, LOCAL_STARTED);
	message_put_u32(message, started->id);
	message_put_u32(message, started->pid);
}

int
local_started_decode(struct message *message, struct local_started *started, struct error *err)
{
	started->id = message_get_u32(message);
	started->pid = message_get_u32(message);
	return message_end(message, err);
}

void
local_ended_encode(struct message *message, const struct local_ended *ended)
{
	message_start(message, LOCAL_ENDED);
	message_put_u32(message, ended->id);
	message_put_bool(message, ended->failed);
	if (ended->failed)
		message_put_error(message, &ended->failure);
	message_put_bool(message, ended->signaled);
	message_put_u32(message, ended->status);
	message_put_bool(message, ended->core);
}

int
local_ended_decode(struct message *message, struct local_ended *ended, struct error *err)
{
	memset(ended, 0, sizeof(*ended));
	ended->id = message_get_u32(message);
	ended->failed = message_get_bool(message);
	if (ended->failed)
		message_get_error(message, &ended->failure);
	ended->signaled = message_get_bool(message);
	ended->status = message_get_u32(message);
	ended->core = message_get_bool(message);
	if (message_end(message, err) != 0)
		return -1;
	if (ended->status > (ended->signaled ? DRIVER_SIGNAL_MAX : DRIVER_STATUS_MAX))
		return error_set(err, ERROR_INVALID, "exit status %u", ended->status);
	return 0;
}

void
local_signal_encode(struct message *message, const struct local_signal *signal)
{
	message_start(message, LOCAL_SIGNAL);
	message_put_u32(message, signal->id);
	message_put_u32(message, signal->number);
}

int
local_signal_decode(struct message *message, struct local_signal *signal, struct error *err)
{
	signal->id = message_get_u32(message);
	signal->number = message_get_u32(message);
	if (message_end(message, err) != 0)
		return -1;
	if (signal->number == 0 || signal->number > DRIVER_SIGNAL_MAX)
		return error_set(err, ERROR_INVALID, "signal %u", signal->number);
	return 0;
}

void
local_copy_encode(struct message *message, const struct local_copy *copy)
{
	message_start(message, LOCAL_COPY);
	message_put_u32(message, copy->id);
	message_put_bool(message, copy->write);
	message_put_text(message, copy->path);
	message_put_u64(message, copy->size);
}

int
local_copy_decode(struct message *message, struct local_copy *copy, struct error *err)
{
	memset(copy, 0, sizeof(*copy));
	copy->id = message_get_u32(message);
	copy->write = message_get_bool(message);
	copy->path = message_get_text(message);
	copy->size = message_get_u64(message);
	if (message_end(message, err) == 0) {
		if (copy->path != NULL && copy->path[0] == '/')
			return 0;
		error_set(err, ERROR_INVALID, "a copy without an absolute path");
	}
	local_copy_free(copy);
	return -1;
}

void
local_copy_free(struct local_copy *copy)
{
	memory_free(copy->path);
	memset(copy, 0, sizeof(*copy));
}

void
local_done_encode(struct message *message, const struct local_done *done)
{
	message_start(message, LOCAL_DONE);
	message_put_u32(message, done->id);
	message_put_error(message, &done->failure);
}

int
local_done_decode(struct message *message, struct local_done *done, struct error *err)
{
	memset(done, 0, sizeof(*done));
	done->id = message_get_u32(message);
	message_get_error(message, &done->failure);
	return message_end(message, err);
}

void
local_id_encode(struct message *message, enum local_message type, uint32_t id)
{
	message_start(message, (uint8_t)type);
	message_put_u32(message, id);
}

int
local_id_decode(struct message *message, uint32_t *id, struct error *err)
{
	*id = message_get_u32(message);
	return message_end(message, err);
}
