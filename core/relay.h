/* SPDX-License-Identifier: ISC */
/*
 * Moves bytes from one descriptor to another through a bounded buffer, decoding markers on the
 * way if asked to: reads no faster than the other side takes.
 */
#ifndef CORE_RELAY_H
#define CORE_RELAY_H

#include <stdbool.h>

struct error;
struct loop;
struct marker;
struct relay;

struct relay_events {
	/*
	 * The start marker was read; or, when more may follow the end marker, everything before that
	 * was delivered. Must not free the relay.
	 */
	void (*marked)(void *argument, struct relay *relay);
	/*
	 * It is over: everything up to the end marker (unless more may follow), or the end of the
	 * source, was delivered (err NULL), or the markers were malformed. Both descriptors are
	 * closed, and the relay is to be freed.
	 */
	void (*ended)(void *argument, struct relay *relay, const struct error *err);
};

/*
 * Takes over both descriptors. marker may be NULL, and is kept.
 * Callbacks never come from within the call.
 */
struct relay *relay_new(struct loop *loop, int source, int sink, struct marker *marker,
    const struct relay_events *events, void *argument);
void relay_free(struct relay *relay); /* accepts NULL */

/* The end marker was read, and everything before it was delivered. */
bool relay_has_delivered(const struct relay *relay);

#endif
