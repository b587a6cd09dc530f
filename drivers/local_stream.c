/* SPDX-License-Identifier: ISC */
/*
 * Commands of the local driver. Their bytes never pass here: init makes the pipes or the terminal,
 * and whoever started the command gets the other ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "drivers/local_driver.h"
#include "drivers/local_protocol.h"
#include "drivers/local_scan.h"

struct driver_stream {
	struct driver_stream *next;
	struct driver_sandbox *sandbox;
	uint32_t id;
	struct driver_stream_events events;
	void *argument;
	int fds[LOCAL_STREAM_KINDS]; /* gathered until STARTED */
	int terminal;                /* our own hold on it, to resize */
	pid_t leader;                /* 0 until STARTED */
	bool sent;                   /* init knows of it */
	bool ended, gone;
	struct error failure; /* why it could not be sent */
	struct loop_timer *failed;
};

static struct driver_stream *
find_stream(struct driver_sandbox *sandbox, uint32_t id)
{
	struct driver_stream *stream;

	for (stream = sandbox->streams; stream != NULL; stream = stream->next)
		if (stream->id == id)
			return stream;
	return NULL;
}

static void
report_failure(void *argument)
{
	struct driver_stream *stream = argument;

	stream->ended = stream->gone = true;
	stream->events.exited(stream->argument, NULL, &stream->failure);
}

static size_t
list_size(char *const *list)
{
	size_t i, size = 0;

	for (i = 0; list != NULL && list[i] != NULL; i++)
		size += strlen(list[i]) + sizeof(uint32_t);
	return i < MESSAGE_LIST_MAX ? size : SIZE_MAX / 4;
}

static int
check_command(
    const struct driver_sandbox *sandbox, const struct driver_command *command, struct error *err)
{
	if (sandbox->state != LOCAL_RUNNING)
		return error_set(err, ERROR_UNAVAILABLE, "the sandbox does not run");
	if (list_size(command->argv) + list_size(command->environment) > LOCAL_START_MAX)
		return error_set(err, ERROR_TOO_LARGE,
		    "the command and its environment are over %u bytes", LOCAL_START_MAX);
	return 0;
}

static uint32_t
bound_size(uint32_t size)
{
	return size > LOCAL_WINDOW_MAX ? LOCAL_WINDOW_MAX : size;
}

/* The request lives for the encoding only. */
static void
send_start(const struct driver_stream *stream, const struct driver_command *command)
{
	struct local_start start = { 0 };
	struct message message;

	start.id = stream->id;
	start.argv = memory_list(command->argv);
	start.environment = memory_list(command->environment);
	start.directory = command->directory == NULL ? NULL : memory_text(command->directory);
	start.want_stdin = command->want_stdin;
	start.pty = command->pty;
	start.term = command->term == NULL ? NULL : memory_text(command->term);
	start.columns = bound_size(command->columns);
	start.rows = bound_size(command->rows);
	start.x_pixels = bound_size(command->x_pixels);
	start.y_pixels = bound_size(command->y_pixels);
	start.keep = command->keep_background;
	start.grace = command->kill_grace;
	local_start_encode(&message, &start);
	local_start_free(&start);
	peer_send(stream->sandbox->init, &message);
}

struct driver_stream *
local_stream_start(struct driver_sandbox *sandbox, const struct driver_command *command,
    const struct driver_stream_events *events, void *argument)
{
	struct driver_stream *stream;
	size_t i;

	stream = memory_zeroed(1, sizeof(*stream));
	stream->sandbox = sandbox;
	stream->id = local_next_id(sandbox);
	stream->events = *events;
	stream->argument = argument;
	for (i = 0; i < LOCAL_STREAM_KINDS; i++)
		stream->fds[i] = -1;
	stream->terminal = -1;
	stream->failed = loop_timer_new(sandbox->context.loop, report_failure, stream);
	stream->next = sandbox->streams;
	sandbox->streams = stream;
	if (check_command(sandbox, command, &stream->failure) != 0) {
		loop_timer_start(stream->failed, 0);
		return stream;
	}
	stream->sent = true;
	send_start(stream, command);
	return stream;
}

int
local_stream_take(void *argument, struct message *message, struct error *err)
{
	struct driver_stream *stream;
	struct local_stream got;

	if (local_stream_decode(message, &got, err) != 0)
		return -1;
	stream = find_stream(argument, got.id);
	if (stream == NULL)
		return 0;
	if (stream->fds[got.kind] >= 0 || message->fd < 0)
		return error_set(err, ERROR_INVALID, "a stream without its descriptor, or twice");
	stream->fds[got.kind] = message_take_fd(message);
	if (got.kind == LOCAL_TERMINAL)
		stream->terminal = fcntl(stream->fds[got.kind], F_DUPFD_CLOEXEC, 0);
	return 0;
}

static void
hand_out(struct driver_stream *stream, struct driver_descriptors *descriptors)
{
	bool pty = stream->fds[LOCAL_TERMINAL] >= 0;
	size_t i;

	descriptors->input = stream->fds[LOCAL_INPUT];
	descriptors->output = pty ? stream->fds[LOCAL_TERMINAL] : stream->fds[LOCAL_OUTPUT];
	descriptors->errors = stream->fds[LOCAL_ERRORS];
	for (i = 0; i < LOCAL_STREAM_KINDS; i++)
		stream->fds[i] = -1;
}

int
local_started_take(void *argument, struct message *message, struct error *err)
{
	struct driver_descriptors descriptors;
	struct driver_stream *stream;
	struct local_started started;

	if (local_started_decode(message, &started, err) != 0)
		return -1;
	stream = find_stream(argument, started.id);
	if (stream == NULL)
		return 0;
	stream->leader = (pid_t)started.pid;
	hand_out(stream, &descriptors);
	stream->events.started(stream->argument, &descriptors, started.pid);
	return 0;
}

int
local_ended_take(void *argument, struct message *message, struct error *err)
{
	struct driver_stream *stream;
	struct local_ended got;
	struct driver_exit ended;

	if (local_ended_decode(message, &got, err) != 0)
		return -1;
	stream = find_stream(argument, got.id);
	if (stream == NULL || stream->ended)
		return 0;
	stream->ended = true;
	if (got.failed) {
		stream->gone = true;
		stream->events.exited(stream->argument, NULL, &got.failure);
		return 0;
	}
	ended.signaled = got.signaled;
	ended.status = (int)got.status;
	ended.core = got.core;
	stream->events.exited(stream->argument, &ended, NULL);
	return 0;
}

static void
report_gone(struct driver_stream *stream)
{
	stream->gone = true;
	if (stream->events.gone != NULL)
		stream->events.gone(stream->argument);
}

int
local_gone_take(void *argument, struct message *message, struct error *err)
{
	struct driver_stream *stream;
	uint32_t id;

	if (local_id_decode(message, &id, err) != 0)
		return -1;
	stream = find_stream(argument, id);
	if (stream != NULL && stream->ended && !stream->gone)
		report_gone(stream);
	return 0;
}

void
local_stream_resize(struct driver_stream *stream, uint32_t columns, uint32_t rows,
    uint32_t x_pixels, uint32_t y_pixels)
{
	struct winsize size = {
		.ws_col = (unsigned short)bound_size(columns),
		.ws_row = (unsigned short)bound_size(rows),
		.ws_xpixel = (unsigned short)bound_size(x_pixels),
		.ws_ypixel = (unsigned short)bound_size(y_pixels),
	};

	if (stream->terminal >= 0)
		(void)ioctl(stream->terminal, TIOCSWINSZ, &size);
}

/* True while init may know the command. */
static bool
is_known(const struct driver_stream *stream)
{
	return stream->sent && !stream->gone && stream->sandbox->state == LOCAL_RUNNING;
}

void
local_stream_signal(struct driver_stream *stream, int number)
{
	struct local_signal signal = { .id = stream->id, .number = (uint32_t)number };
	struct message message;

	if (!is_known(stream))
		return;
	local_signal_encode(&message, &signal);
	peer_send(stream->sandbox->init, &message);
}

static void
free_stream(struct driver_stream *stream)
{
	size_t i;

	for (i = 0; i < LOCAL_STREAM_KINDS; i++)
		descriptor_close(&stream->fds[i]);
	descriptor_close(&stream->terminal);
	loop_timer_free(stream->failed);
	memory_free(stream);
}

void
local_stream_close(struct driver_stream *stream)
{
	struct driver_stream **place;
	struct message message;

	if (is_known(stream)) {
		local_id_encode(&message, LOCAL_CLOSE, stream->id);
		peer_send(stream->sandbox->init, &message);
	}
	for (place = &stream->sandbox->streams; *place != stream; place = &(*place)->next)
		continue;
	*place = stream->next;
	free_stream(stream);
}

bool
local_stream_lose(struct driver_sandbox *sandbox, const struct error *err)
{
	struct driver_stream *stream;

	for (stream = sandbox->streams; stream != NULL; stream = stream->next) {
		if (!stream->ended) {
			loop_timer_stop(stream->failed);
			stream->ended = stream->gone = true;
			stream->events.exited(stream->argument, NULL, err);
			return true;
		}
		if (!stream->gone) {
			report_gone(stream);
			return true;
		}
	}
	return false;
}

/*
 * Leaders died with init, and their numbers are held as long as anybody is left in their sessions.
 */
void
local_stream_kill_all(struct driver_sandbox *sandbox)
{
	struct driver_stream *stream;

	for (stream = sandbox->streams; stream != NULL; stream = stream->next)
		if (stream->leader > 1 && !stream->gone)
			local_scan_signal(stream->leader, SIGKILL);
}

void
local_stream_free_all(struct driver_sandbox *sandbox)
{
	struct driver_stream *stream;

	while ((stream = sandbox->streams) != NULL) {
		sandbox->streams = stream->next;
		free_stream(stream);
	}
}
