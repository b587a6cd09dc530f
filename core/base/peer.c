/* SPDX-License-Identifier: ISC */
/*
 * Messages over a Unix stream socket. A descriptor travels with the first byte of its frame, and
 * no read ever spans past the frame it belongs to: reads stop at the end of a frame as long as a
 * descriptor could come with the next one.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"

#define READ_SIZE 65536
#define FRAMES_A_ROUND 64

/* A frame that waits to be sent. */
struct frame {
	struct frame *next;
	size_t size;
	size_t sent;
	int fd;
	unsigned char bytes[];
};

struct peer {
	struct loop *loop;
	struct loop_watch *watch;
	int fd;
	const char *local, *remote;
	const struct peer_events *events;
	void *argument;
	unsigned state;
	bool paused;
	bool closed;
	bool overflowed;     /* the other end does not take its messages; to be closed */
	bool was_full;       /* the owner is to be told when the queue has drained */
	bool entered, freed; /* peer_free in a handler leaves the memory to peer_ready */
	struct frame *first, *last;
	size_t queued;
	struct buffer input;
	int input_fd;    /* came with the frame being read */
	bool input_lost; /* one came with it, but we had no number free for it */
};

static void peer_ready(void *argument, unsigned events);

struct peer *
peer_new(struct loop *loop, int fd, const char *local, const char *remote,
    const struct peer_events *events, void *argument)
{
	struct peer *peer;
	struct error err;

	if (descriptor_nonblock(fd, &err) != 0)
		log_fatal("%s", err.message);
	peer = memory_zeroed(1, sizeof(*peer));
	peer->loop = loop;
	peer->fd = fd;
	peer->local = local;
	peer->remote = remote;
	peer->events = events;
	peer->argument = argument;
	peer->state = 1;
	peer->input_fd = -1;
	buffer_init(&peer->input, MESSAGE_HEADER_SIZE + MESSAGE_PAYLOAD_MAX + READ_SIZE);
	peer->watch = loop_watch(loop, fd, LOOP_READ, peer_ready, peer);
	return peer;
}

/* Wipes it as well: messages carry secrets. */
static void
free_frame(struct frame *frame)
{
	descriptor_close(&frame->fd);
	explicit_bzero(frame->bytes, frame->size);
	memory_free(frame);
}

static void
drop_frame(struct peer *peer)
{
	struct frame *frame;

	frame = peer->first;
	peer->first = frame->next;
	if (peer->first == NULL)
		peer->last = NULL;
	peer->queued -= frame->size;
	free_frame(frame);
}

void
peer_free(struct peer *peer)
{
	if (peer == NULL)
		return;
	loop_unwatch(peer->watch);
	while (peer->first != NULL)
		drop_frame(peer);
	descriptor_close(&peer->input_fd);
	buffer_wipe(&peer->input);
	descriptor_close(&peer->fd);
	peer->closed = peer->freed = true;
	if (!peer->entered)
		memory_free(peer);
}

void
peer_set_state(struct peer *peer, unsigned state)
{
	peer->state = state;
}

/*
 * With nothing to wait for there is no watch:
 * a hangup is always reported and would be again at once.
 */
static void
update_watch(struct peer *peer)
{
	unsigned events;

	events = peer->paused || peer->closed ? 0 : LOOP_READ;
	if (peer->first != NULL && !peer->closed)
		events |= LOOP_WRITE;
	if (events == 0) {
		loop_unwatch(peer->watch);
		peer->watch = NULL;
	} else if (peer->watch == NULL) {
		peer->watch = loop_watch(peer->loop, peer->fd, events, peer_ready, peer);
	} else {
		loop_watch_change(peer->watch, events);
	}
}

static const struct peer_rule *
find_rule(const struct peer *peer, uint8_t type)
{
	const struct peer_rule *rule;

	for (rule = peer->events->rules; rule->name != NULL; rule++)
		if (rule->type == type)
			return rule;
	return NULL;
}

/* Tells the owner once that the peer is of no more use; from here on nothing is read or sent. */
static void
close_peer(struct peer *peer, const struct error *err)
{
	if (peer->closed)
		return;
	peer->closed = true;
	update_watch(peer);
	peer->events->closed(peer->argument, err);
}

/* One sendmsg; with the descriptor when the frame's first byte is among the bytes. */
static ssize_t
send_bytes(int fd, const unsigned char *bytes, size_t size, int passed)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr header = { 0 };
	struct iovec vector;
	struct cmsghdr *part;

	/* sendmsg does not write through the pointer; the interface predates const. */
	memcpy(&vector.iov_base, &bytes, sizeof(vector.iov_base));
	vector.iov_len = size;
	header.msg_iov = &vector;
	header.msg_iovlen = 1;
	if (passed >= 0) {
		memset(&control, 0, sizeof(control));
		header.msg_control = &control;
		header.msg_controllen = sizeof(control.space);
		part = CMSG_FIRSTHDR(&header);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(part), &passed, sizeof(int));
	}
	return sendmsg(fd, &header, MSG_NOSIGNAL);
}

/* Sends queued frames until the socket is full; -1 when the other end is gone. */
static int
send_queued(struct peer *peer, struct error *err)
{
	struct frame *frame;
	ssize_t sent;

	while ((frame = peer->first) != NULL) {
		sent = send_bytes(peer->fd, frame->bytes + frame->sent, frame->size - frame->sent,
		    frame->sent == 0 ? frame->fd : -1);
		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (sent < 0)
			return error_system(err, errno, "send to %s", peer->remote);
		frame->sent += (size_t)sent;
		if (frame->sent == frame->size)
			drop_frame(peer);
	}
	return 0;
}

static void
encode_header(unsigned char *header, const struct message *message)
{
	uint32_t length;

	length = (uint32_t)message->payload.length;
	header[0] = (unsigned char)(length >> 24);
	header[1] = (unsigned char)(length >> 16);
	header[2] = (unsigned char)(length >> 8);
	header[3] = (unsigned char)length;
	header[4] = message->type;
	header[5] = MESSAGE_VERSION;
	header[6] = message->fd >= 0 ? 1 : 0;
}

static struct frame *
make_frame(struct message *message)
{
	struct frame *frame;
	size_t size;

	size = MESSAGE_HEADER_SIZE + message->payload.length;
	frame = memory_allocate(sizeof(*frame) + size);
	frame->next = NULL;
	frame->size = size;
	frame->sent = 0;
	encode_header(frame->bytes, message);
	if (message->payload.length > 0)
		memcpy(frame->bytes + MESSAGE_HEADER_SIZE, buffer_data(&message->payload),
		    message->payload.length);
	frame->fd = message_take_fd(message);
	return frame;
}

static void
trace(const struct peer *peer, bool out, uint8_t type, size_t size)
{
	const struct peer_rule *rule;

	if (log_level() < LOG_LEVEL_DEBUG)
		return;
	rule = find_rule(peer, type);
	if (rule != NULL)
		log_debug("%s %s %s %s %zu bytes", peer->local, out ? "->" : "<-", peer->remote,
		    rule->name, size);
	else
		log_debug("%s %s %s message %u %zu bytes", peer->local, out ? "->" : "<-",
		    peer->remote, type, size);
}

void
peer_send(struct peer *peer, struct message *message)
{
	struct error err;
	struct frame *frame;

	if (peer->closed || peer->overflowed) {
		message_free(message);
		return;
	}
	trace(peer, true, message->type, message->payload.length);
	frame = make_frame(message);
	message_free(message);
	if (peer->last != NULL)
		peer->last->next = frame;
	else
		peer->first = frame;
	peer->last = frame;
	peer->queued += frame->size;
	if (peer->queued > PEER_QUEUE_MAX / 2)
		peer->was_full = true;
	/* A failure shows again in peer_ready, where the owner can be told safely. */
	(void)send_queued(peer, &err);
	if (peer->queued > PEER_QUEUE_MAX) {
		peer->overflowed = true;
		(void)shutdown(peer->fd, SHUT_RDWR);
	}
	update_watch(peer);
}

bool
peer_full(const struct peer *peer)
{
	return peer->queued > PEER_QUEUE_MAX / 2;
}

void
peer_pause(struct peer *peer, bool paused)
{
	peer->paused = paused;
	update_watch(peer);
}

/* Keeps the one descriptor that may come with a frame; more than one breaks the rules. */
static int
take_descriptors(struct peer *peer, struct msghdr *header, struct error *err)
{
	struct cmsghdr *part;
	int fds[8];
	size_t i, count;

	for (part = CMSG_FIRSTHDR(header); part != NULL; part = CMSG_NXTHDR(header, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (count > sizeof(fds) / sizeof(fds[0]))
			count = sizeof(fds) / sizeof(fds[0]);
		memcpy(fds, CMSG_DATA(part), count * sizeof(int));
		for (i = 0; i < count; i++) {
			if (peer->input_fd < 0)
				peer->input_fd = fds[i];
			else
				(void)close(fds[i]);
		}
		if (count > 1)
			return error_set(err, ERROR_INVALID, "%s sent %zu descriptors at once",
			    peer->remote, count);
	}
	return 0;
}

/*
 * How many bytes the next read may take: the rest of the frame, so that a descriptor is always
 * that of the frame whose first byte it came with.
 */
static int
wanted(const struct peer *peer, size_t *size, struct error *err)
{
	const unsigned char *header;
	size_t length;

	if (peer->input.length < MESSAGE_HEADER_SIZE) {
		*size = MESSAGE_HEADER_SIZE - peer->input.length;
		return 0;
	}
	header = buffer_data(&peer->input);
	length = (size_t)header[0] << 24 | (size_t)header[1] << 16 | (size_t)header[2] << 8 |
		 header[3];
	if (length > MESSAGE_PAYLOAD_MAX || header[5] != MESSAGE_VERSION || header[6] > 1)
		return error_set(err, ERROR_INVALID, "%s sent a frame of %zu bytes, version %u",
		    peer->remote, length, header[5]);
	*size = MESSAGE_HEADER_SIZE + length - peer->input.length;
	return 0;
}

/* Reads towards the end of the frame: 1 when it is whole, 0 when there is no more to read now. */
static int
read_frame(struct peer *peer, struct error *err)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(8 * sizeof(int))];
	} control;
	struct msghdr header = { 0 };
	struct iovec vector;
	ssize_t got;
	size_t size = 0;

	for (;;) {
		if (wanted(peer, &size, err) != 0)
			return -1;
		if (size == 0)
			return 1;
		vector.iov_base = buffer_reserve(&peer->input, size);
		vector.iov_len = size;
		header.msg_iov = &vector;
		header.msg_iovlen = 1;
		header.msg_control = &control;
		header.msg_controllen = sizeof(control.space);
		got = recvmsg(peer->fd, &header, MSG_CMSG_CLOEXEC);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (got < 0)
			return error_system(err, errno, "receive from %s", peer->remote);
		if (got == 0)
			return error_set(err, ERROR_UNAVAILABLE, "%s is gone", peer->remote);
		if (take_descriptors(peer, &header, err) != 0)
			return -1;
		if ((header.msg_flags & MSG_CTRUNC) != 0 && peer->input_fd < 0)
			peer->input_lost = true;
		buffer_extend(&peer->input, (size_t)got);
	}
}

/* Hands the whole frame in the input to its rule. */
static int
take_frame(struct peer *peer, struct error *err)
{
	const struct peer_rule *rule;
	const unsigned char *header;
	struct message message;
	int result;

	header = buffer_data(&peer->input);
	message_start(&message, header[4]);
	message.fd = peer->input_fd;
	peer->input_fd = -1;
	message.lost = peer->input_lost;
	peer->input_lost = false;
	(void)buffer_append(&message.payload, header + MESSAGE_HEADER_SIZE,
	    peer->input.length - MESSAGE_HEADER_SIZE);
	result = -1;
	rule = find_rule(peer, message.type);
	trace(peer, false, message.type, message.payload.length);
	if ((header[6] == 1) != (message.fd >= 0 || message.lost))
		error_set(err, ERROR_INVALID, "%s: message %u lost its descriptor", peer->remote,
		    message.type);
	else if (rule == NULL || rule->take == NULL)
		error_set(
		    err, ERROR_INVALID, "%s sent unknown message %u", peer->remote, message.type);
	else if ((rule->states & peer->state) == 0)
		error_set(err, ERROR_INVALID, "%s sent %s out of turn", peer->remote, rule->name);
	else {
		buffer_consume(&peer->input, peer->input.length);
		result = rule->take(peer->argument, &message, err);
	}
	message_free(&message);
	return result;
}

/* Takes a round of frames, up to one whose handler closes the peer. */
static void
take_frames(struct peer *peer)
{
	struct error err;
	int i, result;

	for (i = 0; i < FRAMES_A_ROUND && !peer->paused && !peer->closed; i++) {
		result = read_frame(peer, &err);
		if (result == 0)
			return;
		if (result > 0)
			result = take_frame(peer, &err);
		if (result != 0)
			close_peer(peer, &err);
	}
}

static void
tell_drained(struct peer *peer)
{
	if (!peer->was_full || peer->queued >= PEER_QUEUE_MAX / 4 || peer->closed)
		return;
	peer->was_full = false;
	if (peer->events->drained != NULL)
		peer->events->drained(peer->argument);
}

static void
peer_ready(void *argument, unsigned events)
{
	struct peer *peer = argument;
	struct error err;

	if (peer->overflowed) {
		error_set(&err, ERROR_TOO_LARGE,
		    "%s does not take its messages: over %u bytes wait", peer->remote,
		    PEER_QUEUE_MAX);
		close_peer(peer, &err);
		return;
	}
	if ((events & LOOP_WRITE) != 0 && send_queued(peer, &err) != 0) {
		close_peer(peer, &err);
		return;
	}
	peer->entered = true;
	take_frames(peer);
	tell_drained(peer);
	peer->entered = false;
	if (peer->freed)
		memory_free(peer);
	else
		update_watch(peer);
}

static int
wait_for(int fd, short events, int64_t deadline, struct error *err)
{
	struct pollfd entry = { .fd = fd, .events = events };
	int64_t left;
	int result;

	do {
		left = deadline - loop_now();
		result = poll(&entry, 1, left < 0 ? 0 : (int)left);
	} while (result < 0 && errno == EINTR);
	if (result < 0)
		return error_system(err, errno, "poll");
	if (result == 0)
		return error_set(err, ERROR_TIMEOUT, "no answer in time");
	return 0;
}

int
peer_flush(struct peer *peer, int timeout, struct error *err)
{
	int64_t deadline;

	deadline = loop_now() + timeout;
	while (peer->first != NULL) {
		if (send_queued(peer, err) != 0)
			return -1;
		if (peer->first != NULL && wait_for(peer->fd, POLLOUT, deadline, err) != 0)
			return -1;
	}
	update_watch(peer);
	return 0;
}

int
peer_wait(struct peer *peer, int timeout, struct error *err)
{
	int64_t deadline;
	int result;

	deadline = loop_now() + timeout;
	if (peer_flush(peer, timeout, err) != 0)
		return -1;
	while ((result = read_frame(peer, err)) == 0)
		if (wait_for(peer->fd, POLLIN, deadline, err) != 0)
			return -1;
	return result < 0 ? -1 : take_frame(peer, err);
}

int
message_send(int fd, struct message *message, struct error *err)
{
	struct frame *frame;
	ssize_t sent;
	int result;

	frame = make_frame(message);
	message_free(message);
	result = 0;
	while (frame->sent < frame->size) {
		sent = send_bytes(fd, frame->bytes + frame->sent, frame->size - frame->sent,
		    frame->sent == 0 ? frame->fd : -1);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0) {
			result = error_system(err, errno, "send message");
			break;
		}
		frame->sent += (size_t)sent;
	}
	free_frame(frame);
	return result;
}
