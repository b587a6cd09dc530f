/* SPDX-License-Identifier: ISC */
/*
 * The bytes of a channel that come from the client. They stay in libssh's buffer, whose window is
 * what holds the client back, until the command takes them.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/log.h"
#include "gateway/channel.h"
#include "gateway/service.h"
#include "gateway/session_state.h"

/* A larger buffer for input is given back once it is empty. A pipe takes as much at once. */
#define INPUT_KEPT 65536
/* What one channel may hold back, and all of a connection together. */
#define WINDOW_MAX CHANNEL_SCRATCH_SIZE
#define WINDOW_ALL (8U * 1024U * 1024U)

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
	got = ssh_channel_read_timeout(channel->ssh, channel_scratch, share, 0, 0);
	if (got <= 0)
		return;
	channel->unread = 0;
	channel->bytes_in += (size_t)got;
	(void)buffer_append(&channel->input_held, channel_scratch, (size_t)got);
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

void
channel_input_advance(struct channel *channel)
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
