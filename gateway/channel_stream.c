/* SPDX-License-Identifier: ISC */
/*
 * The bytes of a channel, those from the client aside (channel_input.c). Both directions are
 * pulled, never pushed: output is read from the command only when the window has room and libssh
 * has nothing left to send.
 */
#include <errno.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "gateway/channel.h"
#include "gateway/service.h"
#include "gateway/session_state.h"

/* Read from one stream in a round, and from all of a connection together. */
#define OUTPUT_ROUND (256U * 1024U)
#define OUTPUT_ALL (4U * 1024U * 1024U)
/*
 * ms; how long a pty whose command has ended may be held open by somebody else,
 * in silence and in all once it was empty.
 */
#define QUIET_WAIT 250
#define QUIET_ALL 2000
/* More than any pipe, socket or pty holds: what comes behind that is not the ended command's. */
#define LATE_MAX (8U * 1024U * 1024U)

/*
 * Shared by all channels of the process, and empty whenever the loop waits. Pages that are never
 * touched cost nothing; those that were go back in channels_rest, for which they must begin a page
 * of any size.
 */
unsigned char channel_scratch[CHANNEL_SCRATCH_SIZE] __attribute__((aligned(65536)));

static void
stream_ready(void *argument, unsigned events)
{
	struct stream *stream = argument;

	(void)events;
	stream->ready = true;
	/* Asked for again by channel_stream_watch, once it was served. */
	loop_watch_change(stream->watch, 0);
	if ((events & LOOP_HANGUP) != 0) {
		/* A hang-up is reported whatever is asked for, and would keep the loop awake. */
		loop_unwatch(stream->watch);
		stream->watch = NULL;
	}
}

void
stream_open(struct stream *stream, int fd)
{
	struct error err;

	stream->fd = fd;
	stream->ready = true;
	stream->ended = false;
	if (descriptor_nonblock(fd, &err) != 0) {
		log_error("%s", err.message);
		stream_close(stream);
		return;
	}
	stream->watch = loop_watch(stream->channel->session->loop, fd, 0, stream_ready, stream);
}

void
stream_close(struct stream *stream)
{
	loop_unwatch(stream->watch);
	stream->watch = NULL;
	descriptor_close(&stream->fd);
	stream->ended = true;
}

/* Hands bytes to libssh: how many it took. Of a closed channel none; the callback says so. */
static size_t
write_output(struct channel *channel, bool is_errors, const unsigned char *data, size_t size)
{
	int written;

	if (is_errors)
		written = ssh_channel_write_stderr(channel->ssh, data, (uint32_t)size);
	else
		written = ssh_channel_write(channel->ssh, data, (uint32_t)size);
	if (written < 0)
		return 0;
	channel->bytes_out += (size_t)written;
	return (size_t)written;
}

/* Writes held output; true when something went out. */
static bool
flush_held_output(struct channel *channel)
{
	size_t window, size, written;

	window = ssh_channel_window_size(channel->ssh);
	size = channel->output_held.length < window ? channel->output_held.length : window;
	if (size == 0)
		return false;
	written = write_output(
	    channel, channel->held_is_errors, buffer_data(&channel->output_held), size);
	buffer_consume(&channel->output_held, written);
	return written > 0;
}

void
channel_say(struct channel *channel, const char *text)
{
	if (channel->output_held.length > 0 && !channel->held_is_errors)
		return; /* the client is not reading anyway */
	channel->held_is_errors = true;
	if (buffer_append_text(&channel->output_held, text) != 0)
		log_debug("no room to tell the client: %s", text);
	(void)flush_held_output(channel);
}

/* Counts output against the login's limit; the worker stops the command when it is told. */
static void
count_output(struct channel *channel, size_t size)
{
	struct message message;

	channel->sent += size;
	if (channel->max_stream == 0 || channel->sent <= channel->max_stream || channel->limit_told)
		return;
	channel->limit_told = true;
	if (channel->session->worker == NULL)
		return;
	command_id_encode(&message, MESSAGE_COMMAND_LIMIT, channel->command);
	peer_send(channel->session->worker, &message);
}

/* How much of size may still be shown to the client. */
static size_t
within_limit(const struct channel *channel, size_t size)
{
	uint64_t left;

	if (channel->max_stream == 0)
		return size;
	left = channel->sent < channel->max_stream ? channel->max_stream - channel->sent : 0;
	return size < left ? size : (size_t)left;
}

/*
 * Reading found nothing. While the command runs that means to wait. Afterwards a pipe that is
 * empty is at its end, whoever else still holds it; a pty may still have bytes under way inside the
 * kernel, so it gets a moment of silence.
 */
static void
found_nothing(struct channel *channel, struct stream *stream)
{
	stream->ready = false;
	if (channel->has_ended && channel->quiet_end == 0)
		channel->quiet_end = loop_now() + QUIET_ALL;
	if (channel->has_ended && (!channel->pty || loop_now() > channel->quiet_end))
		stream_close(stream);
	else if ((channel->has_ended || stream->watch == NULL) &&
		 !loop_timer_running(channel->quiet))
		loop_timer_start(channel->quiet, QUIET_WAIT);
}

void
channel_quiet_expired(void *argument)
{
	struct channel *channel = argument;

	if (channel->has_ended)
		stream_close(&channel->output);
	else
		channel->output.ready = true;
}

/*
 * How much one stream of the channel may send now: its window, its part of a round, nothing once
 * libssh has enough. A client that wants packets of a byte makes much of little.
 */
static size_t
output_room(const struct channel *channel)
{
	size_t room, share;

	if (session_unsent(channel->session) > SESSION_UNSENT_MAX)
		return 0;
	room = ssh_channel_window_size(channel->ssh);
	share = OUTPUT_ALL / (2 * channel->session->channel_count);
	if (share > OUTPUT_ROUND)
		share = OUTPUT_ROUND;
	return room < share ? room : share;
}

/* Moves one round of a stream to the client; true when there was something to move. */
static bool
advance_output(struct channel *channel, struct stream *stream)
{
	bool is_errors = stream == &channel->errors;
	size_t room, shown, written;
	ssize_t got;

	room = output_room(channel);
	if (stream->fd < 0 || !stream->ready || room == 0 || channel->output_held.length > 0)
		return false;
	got = read(stream->fd, channel_scratch, room);
	if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
		found_nothing(channel, stream);
		return false;
	}
	if (got <= 0) {
		/* EIO is how a pty says that its last process is gone. */
		stream_close(stream);
		return false;
	}
	loop_timer_stop(channel->quiet);
	if (channel->has_ended)
		channel->late += (size_t)got;
	if (channel->late > LATE_MAX)
		stream_close(stream);
	shown = within_limit(channel, (size_t)got);
	count_output(channel, (size_t)got);
	if (shown == 0)
		return true;
	written = write_output(channel, is_errors, channel_scratch, shown);
	if (written < shown) {
		/* During a key exchange libssh takes nothing. */
		channel->held_is_errors = is_errors;
		(void)buffer_append(
		    &channel->output_held, channel_scratch + written, shown - written);
	}
	return true;
}

/* Moves one round of a service's output to the client; true when there was something to move. */
static bool
advance_service(struct channel *channel)
{
	struct buffer *output = channel->service_output;
	size_t size, written;

	size = output_room(channel);
	if (size > output->length)
		size = output->length;
	written = size == 0 ? 0 : write_output(channel, false, buffer_data(output), size);
	if (written == 0)
		return false;
	buffer_consume(output, written);
	if (!channel->has_ended)
		channel->service->drained(channel->service_argument);
	return true;
}

bool
channel_stream_advance(struct channel *channel)
{
	bool moved;

	channel_input_advance(channel);
	if (!channel->session->writable)
		return false;
	moved = flush_held_output(channel);
	if (channel->service != NULL && advance_service(channel))
		moved = true;
	if (advance_output(channel, &channel->errors))
		moved = true;
	if (advance_output(channel, &channel->output))
		moved = true;
	return moved;
}

static void
watch_stream(struct stream *stream, bool wanted, unsigned events)
{
	if (stream->watch != NULL)
		loop_watch_change(stream->watch, wanted && !stream->ready ? events : 0);
}

void
channels_rest(void)
{
	if (madvise(channel_scratch, sizeof(channel_scratch), MADV_DONTNEED) != 0)
		log_debug("the scratch memory stays: errno %d", errno);
	(void)malloc_trim(0);
}

void
channel_stream_watch(struct channel *channel)
{
	bool room;

	room = output_room(channel) > 0 && channel->output_held.length == 0 &&
	       channel->session->writable;
	watch_stream(&channel->output, room, LOOP_READ);
	watch_stream(&channel->errors, room, LOOP_READ);
	watch_stream(
	    &channel->input, channel->unread > 0 || channel->input_held.length > 0, LOOP_WRITE);
}
