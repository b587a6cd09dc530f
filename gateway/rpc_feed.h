/* SPDX-License-Identifier: ISC */
/*
 * Bytes on their way to a descriptor or a function, with a limit, each lot told when it was taken.
 */
#ifndef GATEWAY_RPC_FEED_H
#define GATEWAY_RPC_FEED_H

#include <stdbool.h>
#include <stddef.h>

struct error;
struct feed;
struct feed_lot;
struct loop;

/* open: more lots may come, until one with end. What may wait is bounded. */
struct feed *feed_new(struct loop *loop, bool open);
void feed_free(struct feed *feed); /* accepts NULL; closes it first */

/*
 * The descriptor, taken over and made non-blocking; -1: there will be none, what comes is dropped.
 */
void feed_start(struct feed *feed, int fd);

/*
 * Or a function, called from the loop, that returns how much it took; when not all, it is called
 * again after feed_resume. end: it was given everything with this.
 */
typedef size_t feed_sink_fn(void *argument, const void *data, size_t size, bool end);
void feed_start_sink(struct feed *feed, feed_sink_fn *sink, void *argument);
void feed_resume(struct feed *feed);

/* No more is wanted: all lots are told to be taken. */
void feed_close(struct feed *feed);

/*
 * Queues bytes (copied) and calls taken (may be NULL) when they were written, or dropped as nobody
 * reads them; *lot (may be NULL) is for feed_forget. -1 when it is closed, or too much waits
 * (BUSY).
 */
struct feed_input {
	const void *data;
	size_t size;
	bool end; /* nothing comes after it */
	void (*taken)(void *argument);
	void *argument;
};
int feed_put(
    struct feed *feed, const struct feed_input *input, struct feed_lot **lot, struct error *err);

/* taken is not called any more for a lot that it was not called for yet. */
void feed_forget(struct feed_lot *lot);

#endif
