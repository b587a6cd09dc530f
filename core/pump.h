/* SPDX-License-Identifier: ISC */
/*
 * One end of a descriptor and a bounded buffer: what a driver pumps between its provider and the
 * descriptors it hands out. A sink writes what is put into it, a source reads as long as there is
 * room.
 */
#ifndef CORE_PUMP_H
#define CORE_PUMP_H

#include <stdbool.h>
#include <stddef.h>

struct buffer;
struct loop;
struct pump_sink;
struct pump_source;

/* Never called from within a call to the pump. */
typedef void pump_fn(void *argument);

/*
 * Takes over fd, which becomes non-blocking; holds at most limit bytes that wait to be written.
 * room is called when some of them were written, and when all were after pump_sink_end.
 */
struct pump_sink *pump_sink_new(
    struct loop *loop, int fd, size_t limit, pump_fn *room, void *argument);

/* Closes the descriptor; accepts NULL. */
void pump_sink_free(struct pump_sink *sink);

/*
 * How many bytes pump_sink_put takes now. A sink whose reader went away takes everything and
 * drops it: nobody waits for it.
 */
size_t pump_sink_room(const struct pump_sink *sink);

/* Writes or keeps size bytes, no more than there is room for. */
void pump_sink_put(struct pump_sink *sink, const void *data, size_t size);

/*
 * No more will be put: the reader finds the end after what waits.
 * A socket is shut down for writing.
 */
void pump_sink_end(struct pump_sink *sink);

/* Was all of it written (or dropped), and the end made known? */
bool pump_sink_is_done(const struct pump_sink *sink);

/*
 * Takes over fd, which becomes non-blocking; reads until limit bytes wait in its buffer. ready is
 * called when there are more of them, and at the end.
 */
struct pump_source *pump_source_new(
    struct loop *loop, int fd, size_t limit, pump_fn *ready, void *argument);

/* Closes the descriptor; accepts NULL. */
void pump_source_free(struct pump_source *source);

/* What was read and waits; the owner takes it with pump_source_consume. */
const struct buffer *pump_source_buffer(const struct pump_source *source);
void pump_source_consume(struct pump_source *source, size_t size);

/* Nothing will come after what is in the buffer. */
bool pump_source_has_ended(const struct pump_source *source);

/* Reads no more; the writer finds its descriptor broken. What is in the buffer is dropped. */
void pump_source_close(struct pump_source *source);

#endif
