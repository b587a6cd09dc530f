/* SPDX-License-Identifier: ISC */
/*
 * The bytes of a channel. Both directions are pulled, never pushed: output is read from the command
 * only when the window has room and libssh has nothing left to send; input stays in libssh's
 * buffer, whose window is what holds the client back, until the command takes it.
 */
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "gateway/channel.h"
#include "gateway/service.h"
#include "gateway/session_state.h"

/* Read from one stream in a round, and from all of a connection together. */
#define OUTPUT_ROUND (256U * 1024U)
#define OUTPUT_ALL (4U * 1024U * 1024U)
/* A larger buffer for input is given back once it is empty. A pipe takes as much at once. */
#define INPUT_KEPT 65536
/* What one channel may hold back, and all of a connection together. */
#define WINDOW_MAX (4U * 1024U * 1024U)
#define WINDOW_ALL (8U * 1024U * 1024U)
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
static unsigned char scratch[WINDOW_MAX] __attribute__((aligned(65536)));

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

/*
 * The command's stdin is at its end:
 * closed for a pipe, half closed for a socket, left alone for a pty.
 */
static void
end_input(struct channel *channel)
{
	if (channel->service != NULL) {
		channel->input.ended = true;
		channel->service->ended(channel->service_argument);
		return;
	}
	if (channel->input.fd >= 0 && !channel->pty)
		(void)shutdown(channel->input.fd, SHUT_WR);
	stream_close(&channel->input);
}

static size_t
give_service(struct channel *channel, const unsigned char *data, size_t size)
{
	size_t taken;

	if (!channel->input.ready)
		return 0;
	taken = channel->service->take(channel->service_argument, data, size);
	if (taken < size)
		channel->input.ready = false;
	return taken;
}

/* Is there, or can there be, somebody who takes input? */
static bool
has_taker(const struct channel *channel)
{
	return channel->service != NULL || channel->input.fd >= 0;
}

/* Writes what the command takes now; nobody reads any more: what comes is dropped, as sshd does. */
static size_t
write_input(struct channel *channel, const unsigned char *data, size_t size)
{
	ssize_t written;

	if (channel->input.ended)
		return size;
	if (channel->service != NULL)
		return give_service(channel, data, size);
	written = write(channel->input.fd, data, size);
	if (written >= 0) {
		if ((size_t)written < size)
			channel->input.ready = false;
		return (size_t)written;
	}
	if (errno == EAGAIN || errno == EINTR) {
		channel->input.ready = false;
		return 0;
	}
	stream_close(&channel->input);
	return size;
}

/*
 * While the sandbox is being started there is no terminal yet that could make a signal of ^C. Returns how
 * many bytes it ends, as a terminal forgets what was typed before it.
 */
static size_t
take_interrupt(struct channel *channel, const unsigned char *data, size_t size)
{
	const unsigned char *found;

	if (!channel->pty || channel->stage != CHANNEL_STARTING)
		return 0;
	found = memchr(data, '\003', size);
	if (found == NULL)
		return 0;
	channel_signal(channel, "INT");
	return (size_t)(found - data) + 1;
}

/*
 * libssh's callback for data: passes on what the command takes at once. The rest stays in libssh's
 * buffer and is not offered again, so it is fetched by take_unread.
 */
int
channel_data(ssh_session ssh, ssh_channel ssh_channel, void *data, uint32_t size, int is_stderr,
    void *argument)
{
	struct channel *channel = argument;
	size_t written;

	(void)ssh;
	(void)ssh_channel;
	if (is_stderr != 0)
		return (int)size;
	written = take_interrupt(channel, data, size);
	if (written == 0 && channel->stage != CHANNEL_CLOSED && channel->input_held.length == 0 &&
	    (channel->input.ended || has_taker(channel)))
		written = write_input(channel, data, size);
	channel->taken += written;
	channel->bytes_in += written;
	channel->unread = size - written;
	/*
	 * What is read of a closed channel would open its window once more:
	 * it stays until libssh frees it.
	 */
	if (channel->unread > channel->window && !channel->session->dead) {
		log_info("the client sends past the window of a channel");
		session_disconnect(channel->session, "Data past the window of a channel");
	}
	return (int)written;
}

/*
 * Raises the window of a busy channel to its share:
 * libssh before 0.11 keeps it too small for a long line.
 */
static void
raise_window(struct channel *channel)
{
#if LIBSSH_VERSION_INT < SSH_VERSION_INT(0, 11, 0)
	uint32_t share;
	int got;

	share = WINDOW_ALL / channel->session->channel_count;
	if (share > WINDOW_MAX)
		share = WINDOW_MAX;
	if (channel->unread > 0 || channel->input_eof || channel->taken < share / 8)
		return;
	channel->taken = 0;
	if (channel->window < share + CHANNEL_PACKET)
		channel->window = share + CHANNEL_PACKET;
	/*
	 * Asks for that much, takes what is there (little),
	 * and sets the window to what was asked for.
	 */
	got = ssh_channel_read_timeout(channel->ssh, scratch, share, 0, 0);
	if (got <= 0)
		return;
	channel->unread = 0;
	channel->bytes_in += (size_t)got;
	(void)buffer_append(&channel->input_held, scratch, (size_t)got);
#else
	channel->taken = 0;
#endif
}

static void
flush_held_input(struct channel *channel)
{
	size_t written;

	while (channel->input_held.length > 0 && (channel->input.ready || channel->input.ended)) {
		written = write_input(
		    channel, buffer_data(&channel->input_held), channel->input_held.length);
		if (written == 0)
			break;
		buffer_consume(&channel->input_held, written);
	}
	if (channel->input_held.length == 0 && channel->input_held.capacity > INPUT_KEPT)
		buffer_free(&channel->input_held);
}

/*
 * Fetches what is waiting in libssh's buffer: as much as the command may take, so that the rest
 * holds the client back. Before 0.11 all of it at once: whenever a part is read, that libssh opens
 * the window again without regard to the rest, and a slow command would let it grow for ever. True
 * when there is more.
 */
static bool
take_unread(struct channel *channel)
{
	unsigned char *place;
	size_t size;
	int got;

	if (channel->unread == 0 || channel->input_held.length > 0 ||
	    (!channel->input.ended && (!has_taker(channel) || !channel->input.ready)))
		return false;
	size = channel->unread;
#if LIBSSH_VERSION_INT >= SSH_VERSION_INT(0, 11, 0)
	if (size > INPUT_KEPT)
		size = INPUT_KEPT;
#endif
	place = buffer_reserve(&channel->input_held, size);
	if (place == NULL) {
		channel->session->dead = true;
		return false;
	}
	got = ssh_channel_read_timeout(channel->ssh, place, (uint32_t)size, 0, 0);
	if (got <= 0) {
		channel->unread = 0;
		return false;
	}
	channel->unread -= (size_t)got;
	buffer_extend(&channel->input_held, (size_t)got);
	channel->taken += (size_t)got;
	channel->bytes_in += (size_t)got;
	flush_held_input(channel);
	return channel->unread > 0;
}

static void
advance_input(struct channel *channel)
{
	if (channel->stage != CHANNEL_RUNNING)
		return;
	flush_held_input(channel);
	while (take_unread(channel))
		continue;
	raise_window(channel);
	flush_held_input(channel);
	if (channel->input_eof && channel->unread == 0 && channel->input_held.length == 0 &&
	    !channel->input.ended)
		end_input(channel);
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
	got = read(stream->fd, scratch, room);
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
	written = write_output(channel, is_errors, scratch, shown);
	if (written < shown) {
		/* During a key exchange libssh takes nothing. */
		channel->held_is_errors = is_errors;
		(void)buffer_append(&channel->output_held, scratch + written, shown - written);
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

	advance_input(channel);
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
	if (madvise(scratch, sizeof(scratch), MADV_DONTNEED) != 0)
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
