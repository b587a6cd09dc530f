/* SPDX-License-Identifier: ISC */
/* A queue of lots in front of a descriptor. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "gateway/rpc_feed.h"

#define HELD_MAX (32U * 1024U * 1024U)

struct feed_lot {
	struct feed_lot *next;
	unsigned char *data;
	size_t size, written;
	bool end;
	void (*taken)(void *argument);
	void *argument;
};

struct feed {
	struct loop *loop;
	int fd;
	struct loop_watch *watch;
	feed_sink_fn *sink; /* in place of the descriptor */
	void *argument;
	struct loop_timer *soon; /* offers to the sink */
	bool open;               /* more may come */
	bool closed;             /* nobody reads */
	struct feed_lot *lots;
	size_t held;
};

static void
close_descriptor(struct feed *feed)
{
	loop_unwatch(feed->watch);
	feed->watch = NULL;
	descriptor_close(&feed->fd);
}

/* Ends the first lot. */
static void
finish_lot(struct feed *feed)
{
	struct feed_lot *lot = feed->lots;

	feed->lots = lot->next;
	feed->held -= lot->size;
	if (lot->end)
		feed->open = false;
	if (lot->taken != NULL)
		lot->taken(lot->argument);
	memory_free(lot->data);
	memory_free(lot);
}

static void
write_ready(void *argument, unsigned events)
{
	struct feed *feed = argument;
	struct feed_lot *lot = feed->lots;
	ssize_t written;

	if ((events & LOOP_WRITE) == 0) {
		feed_close(feed);
		return;
	}
	if (lot != NULL) {
		written = write(feed->fd, lot->data + lot->written, lot->size - lot->written);
		if (written < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (written < 0) {
			feed_close(feed);
			return;
		}
		lot->written += (size_t)written;
		if (lot->written == lot->size)
			finish_lot(feed);
	}
	if (feed->lots == NULL && !feed->open)
		close_descriptor(feed);
	else if (feed->lots == NULL)
		loop_watch_change(feed->watch, 0);
}

static void
soon_expired(void *argument)
{
	struct feed *feed = argument;
	struct feed_lot *lot;

	while (feed->sink != NULL && (lot = feed->lots) != NULL) {
		lot->written += feed->sink(
		    feed->argument, lot->data + lot->written, lot->size - lot->written, lot->end);
		if (lot->written < lot->size)
			return;
		finish_lot(feed);
	}
}

struct feed *
feed_new(struct loop *loop, bool open)
{
	struct feed *feed;

	feed = memory_zeroed(1, sizeof(*feed));
	feed->loop = loop;
	feed->fd = -1;
	feed->open = open;
	feed->soon = loop_timer_new(loop, soon_expired, feed);
	return feed;
}

void
feed_free(struct feed *feed)
{
	if (feed == NULL)
		return;
	feed_close(feed);
	loop_timer_free(feed->soon);
	memory_free(feed);
}

void
feed_start(struct feed *feed, int fd)
{
	feed->fd = fd;
	if (fd < 0 || feed->closed || descriptor_nonblock(fd, NULL) != 0) {
		feed_close(feed);
		return;
	}
	feed->watch = loop_watch(
	    feed->loop, fd, feed->lots != NULL || !feed->open ? LOOP_WRITE : 0, write_ready, feed);
}

void
feed_start_sink(struct feed *feed, feed_sink_fn *sink, void *argument)
{
	feed->sink = sink;
	feed->argument = argument;
	loop_timer_start(feed->soon, 0);
}

void
feed_resume(struct feed *feed)
{
	loop_timer_start(feed->soon, 0);
}

void
feed_close(struct feed *feed)
{
	feed->sink = NULL;
	close_descriptor(feed);
	feed->closed = true;
	while (feed->lots != NULL)
		finish_lot(feed);
}

int
feed_put(
    struct feed *feed, const struct feed_input *input, struct feed_lot **lot, struct error *err)
{
	struct feed_lot *added, **place;

	if (!feed->open || feed->closed)
		return error_set(err, ERROR_INVALID, "it takes no more input");
	if (feed->held + input->size > HELD_MAX)
		return error_set(err, ERROR_BUSY, "too much input waits to be taken");
	added = memory_zeroed(1, sizeof(*added));
	added->data = memory_allocate(input->size);
	if (input->size > 0)
		memcpy(added->data, input->data, input->size);
	added->size = input->size;
	added->end = input->end;
	added->taken = input->taken;
	added->argument = input->argument;
	for (place = &feed->lots; *place != NULL; place = &(*place)->next)
		continue;
	*place = added;
	feed->held += input->size;
	if (lot != NULL)
		*lot = added;
	if (feed->watch != NULL)
		loop_watch_change(feed->watch, LOOP_WRITE);
	else if (feed->sink != NULL)
		loop_timer_start(feed->soon, 0);
	return 0;
}

void
feed_forget(struct feed_lot *lot)
{
	lot->taken = NULL;
}
