/* SPDX-License-Identifier: ISC */
/*
 * From one descriptor to another:
 * the buffer is filled when it is empty, and emptied before it is filled again.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/marker.h"
#include "core/relay.h"

#define CHUNK 65536

struct relay {
	struct loop *loop;
	int source, sink;
	struct loop_watch *source_watch, *sink_watch;
	struct buffer buffer;
	struct marker *marker;
	const struct relay_events *events;
	void *argument;
	bool source_ended;
	bool delivered; /* all that comes before the end marker */
	struct error failure;
	bool failed;
};

static void source_ready(void *argument, unsigned events);
static void sink_ready(void *argument, unsigned events);

struct relay *
relay_new(struct loop *loop, int source, int sink, struct marker *marker,
    const struct relay_events *events, void *argument)
{
	struct relay *relay;
	struct error err;

	relay = memory_zeroed(1, sizeof(*relay));
	relay->loop = loop;
	relay->source = source;
	relay->sink = sink;
	relay->marker = marker;
	relay->events = events;
	relay->argument = argument;
	buffer_init(&relay->buffer, 2 * CHUNK);
	if (descriptor_nonblock(source, &err) != 0 || descriptor_nonblock(sink, &err) != 0)
		log_fatal("%s", err.message);
	relay->source_watch = loop_watch(loop, source, LOOP_READ, source_ready, relay);
	relay->sink_watch = loop_watch(loop, sink, 0, sink_ready, relay);
	return relay;
}

static void
close_source(struct relay *relay)
{
	loop_unwatch(relay->source_watch);
	relay->source_watch = NULL;
	descriptor_close(&relay->source);
}

static void
close_sink(struct relay *relay)
{
	loop_unwatch(relay->sink_watch);
	relay->sink_watch = NULL;
	if (relay->sink >= 0)
		(void)shutdown(relay->sink, SHUT_WR);
	descriptor_close(&relay->sink);
}

void
relay_free(struct relay *relay)
{
	if (relay == NULL)
		return;
	close_source(relay);
	close_sink(relay);
	buffer_free(&relay->buffer);
	memory_free(relay);
}

static void
fail(struct relay *relay, const struct error *err)
{
	relay->failed = true;
	relay->failure = *err;
	relay->source_ended = true;
}

/* Puts what was read into the buffer, less the markers in it. */
static void
decode(struct relay *relay, const char *data, size_t size)
{
	bool had_started;
	struct error err;

	if (relay->marker == NULL) {
		(void)buffer_append(&relay->buffer, data, size);
		return;
	}
	had_started = relay->marker->stage != MARKER_BEFORE;
	if (marker_decode(relay->marker, data, size, &relay->buffer, &err) != 0)
		fail(relay, &err);
	else if (!had_started && relay->marker->stage != MARKER_BEFORE)
		relay->events->marked(relay->argument, relay);
}

static void
fill(struct relay *relay)
{
	char chunk[CHUNK];
	struct error err;
	ssize_t got;

	got = read(relay->source, chunk, sizeof(chunk));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got > 0) {
		decode(relay, chunk, (size_t)got);
		return;
	}
	/* EIO is how a pty ends. */
	relay->source_ended = true;
	if (relay->marker != NULL && marker_finish(relay->marker, &relay->buffer, &err) != 0)
		fail(relay, &err);
}

static void
drain(struct relay *relay)
{
	ssize_t written;

	while (relay->buffer.length > 0) {
		written = write(relay->sink, buffer_data(&relay->buffer), relay->buffer.length);
		if (written < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (written < 0) {
			/*
			 * Nobody reads any more:
			 * the rest is dropped, and the source drained for its markers.
			 */
			buffer_consume(&relay->buffer, relay->buffer.length);
			return;
		}
		buffer_consume(&relay->buffer, (size_t)written);
	}
}

static bool
is_over(const struct relay *relay)
{
	return relay->buffer.length == 0 &&
	       (relay->source_ended || (relay->delivered && !relay->marker->follows));
}

/* It is read on from the end marker only when the buffer is empty: then what came before is delivered. */
static void
look_for_end(struct relay *relay)
{
	if (relay->delivered || relay->marker == NULL || relay->marker->stage != MARKER_ENDED ||
	    relay->buffer.length > 0)
		return;
	relay->delivered = true;
	if (relay->marker->follows)
		relay->events->marked(relay->argument, relay);
}

/*
 * Waits for events; a watch that was taken away because of a hang-up comes back when it is of use.
 */
static void
watch(struct relay *relay, struct loop_watch **watch_place, int fd, loop_ready_fn *ready,
    unsigned events)
{
	if (*watch_place != NULL)
		loop_watch_change(*watch_place, events);
	else if (events != 0)
		*watch_place = loop_watch(relay->loop, fd, events, ready, relay);
}

static void
advance(struct relay *relay)
{
	if (relay->buffer.length == 0 && !relay->source_ended)
		fill(relay);
	drain(relay);
	look_for_end(relay);
	if (is_over(relay)) {
		close_source(relay);
		close_sink(relay);
		/* The owner frees the relay in here. */
		relay->events->ended(
		    relay->argument, relay, relay->failed ? &relay->failure : NULL);
		return;
	}
	watch(relay, &relay->source_watch, relay->source, source_ready,
	    relay->buffer.length == 0 && !relay->source_ended ? LOOP_READ : 0);
	watch(relay, &relay->sink_watch, relay->sink, sink_ready,
	    relay->buffer.length > 0 ? LOOP_WRITE : 0);
}

static void
source_ready(void *argument, unsigned events)
{
	struct relay *relay = argument;

	/*
	 * A hang-up is reported whatever is asked for:
	 * with a full buffer it has to wait for the sink.
	 */
	if ((events & LOOP_READ) == 0 && relay->buffer.length > 0) {
		loop_unwatch(relay->source_watch);
		relay->source_watch = NULL;
		return;
	}
	advance(relay);
}

static void
sink_ready(void *argument, unsigned events)
{
	struct relay *relay = argument;

	if ((events & LOOP_HANGUP) != 0 && relay->buffer.length == 0) {
		/* The receiver left; the next write will say so. */
		loop_unwatch(relay->sink_watch);
		relay->sink_watch = NULL;
		return;
	}
	advance(relay);
}

bool
relay_has_delivered(const struct relay *relay)
{
	return relay->delivered;
}
