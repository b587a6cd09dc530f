/* SPDX-License-Identifier: ISC */
/*
 * A sink tries to write at once and watches its descriptor only while something waits, so a
 * reader that keeps up costs one system call a piece.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/pump.h"

/* Bytes asked for in one read. */
#define READ_SIZE 65536

struct pump_sink {
	struct loop *loop;
	int fd; /* -1 once it is closed or nobody reads it */
	struct loop_watch *watch;
	struct buffer waiting;
	bool ended;
	pump_fn *room;
	void *argument;
};

struct pump_source {
	struct loop *loop;
	int fd;
	struct loop_watch *watch; /* NULL while there is no room */
	struct buffer content;
	bool ended;
	pump_fn *ready;
	void *argument;
};

/* Our own descriptors take this flag, or there is nothing to do about it. */
static void
make_nonblocking(int fd)
{
	struct error err;

	if (descriptor_nonblock(fd, &err) != 0)
		log_error("%s", err.message);
}

struct pump_sink *
pump_sink_new(struct loop *loop, int fd, size_t limit, pump_fn *room, void *argument)
{
	struct pump_sink *sink;

	sink = memory_zeroed(1, sizeof(*sink));
	sink->loop = loop;
	sink->fd = fd;
	sink->room = room;
	sink->argument = argument;
	buffer_init(&sink->waiting, limit);
	make_nonblocking(fd);
	return sink;
}

static void
unwatch_sink(struct pump_sink *sink)
{
	loop_unwatch(sink->watch);
	sink->watch = NULL;
}

void
pump_sink_free(struct pump_sink *sink)
{
	if (sink == NULL)
		return;
	unwatch_sink(sink);
	descriptor_close(&sink->fd);
	buffer_wipe(&sink->waiting);
	memory_free(sink);
}

size_t
pump_sink_room(const struct pump_sink *sink)
{
	return sink->fd < 0 ? SIZE_MAX : buffer_room(&sink->waiting);
}

/*
 * The other end of a socket may have more holders than this descriptor,
 * so closing does not tell it.
 */
static void
close_sink(struct pump_sink *sink)
{
	unwatch_sink(sink);
	(void)shutdown(sink->fd, SHUT_WR);
	descriptor_close(&sink->fd);
	buffer_wipe(&sink->waiting);
}

/* Writes what it can; returns how much of data was taken or dropped. */
static size_t
write_some(struct pump_sink *sink, const void *data, size_t size)
{
	ssize_t written;

	written = write(sink->fd, data, size);
	if (written >= 0)
		return (size_t)written;
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	close_sink(sink);
	return size;
}

static void
sink_ready(void *argument, unsigned events)
{
	struct pump_sink *sink = argument;
	size_t written;

	(void)events;
	written = write_some(sink, buffer_data(&sink->waiting), sink->waiting.length);
	if (sink->fd >= 0) {
		buffer_consume(&sink->waiting, written);
		if (sink->waiting.length == 0)
			unwatch_sink(sink);
		if (sink->waiting.length == 0 && sink->ended)
			close_sink(sink);
	}
	sink->room(sink->argument);
}

void
pump_sink_put(struct pump_sink *sink, const void *data, size_t size)
{
	size_t written;

	if (sink->fd < 0 || size == 0)
		return;
	written = sink->waiting.length == 0 ? write_some(sink, data, size) : 0;
	if (sink->fd < 0 || written == size)
		return;
	if (buffer_append(&sink->waiting, (const char *)data + written, size - written) != 0)
		log_fatal("more was put into a pump than it had room for");
	if (sink->watch == NULL)
		sink->watch = loop_watch(sink->loop, sink->fd, LOOP_WRITE, sink_ready, sink);
}

void
pump_sink_end(struct pump_sink *sink)
{
	sink->ended = true;
	if (sink->fd >= 0 && sink->waiting.length == 0)
		close_sink(sink);
}

bool
pump_sink_is_done(const struct pump_sink *sink)
{
	return sink->fd < 0;
}

static void
unwatch_source(struct pump_source *source)
{
	loop_unwatch(source->watch);
	source->watch = NULL;
}

static void
source_ready(void *argument, unsigned events)
{
	struct pump_source *source = argument;
	unsigned char *place;
	size_t size;
	ssize_t got;

	(void)events;
	size = buffer_room(&source->content);
	if (size > READ_SIZE)
		size = READ_SIZE;
	place = buffer_reserve(&source->content, size);
	got = read(source->fd, place, size);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		source->ended = true;
		unwatch_source(source);
	} else {
		buffer_extend(&source->content, (size_t)got);
		if (buffer_room(&source->content) == 0)
			unwatch_source(source);
	}
	source->ready(source->argument);
}

struct pump_source *
pump_source_new(struct loop *loop, int fd, size_t limit, pump_fn *ready, void *argument)
{
	struct pump_source *source;

	source = memory_zeroed(1, sizeof(*source));
	source->loop = loop;
	source->fd = fd;
	source->ready = ready;
	source->argument = argument;
	buffer_init(&source->content, limit);
	make_nonblocking(fd);
	source->watch = loop_watch(loop, fd, LOOP_READ, source_ready, source);
	return source;
}

void
pump_source_free(struct pump_source *source)
{
	if (source == NULL)
		return;
	pump_source_close(source);
	memory_free(source);
}

const struct buffer *
pump_source_buffer(const struct pump_source *source)
{
	return &source->content;
}

void
pump_source_consume(struct pump_source *source, size_t size)
{
	buffer_consume(&source->content, size);
	if (source->watch == NULL && source->fd >= 0 && !source->ended)
		source->watch = loop_watch(
		    source->loop, source->fd, LOOP_READ, source_ready, source);
}

bool
pump_source_has_ended(const struct pump_source *source)
{
	return source->ended;
}

void
pump_source_close(struct pump_source *source)
{
	unwatch_source(source);
	descriptor_close(&source->fd);
	buffer_wipe(&source->content);
	source->ended = true;
}
