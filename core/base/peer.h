/* SPDX-License-Identifier: ISC */
/*
 * The other end of a socket pair: sends and receives messages through the loop. Each process says
 * in a const table which messages it takes in which of its states; anything else ends the peer.
 */
#ifndef CORE_BASE_PEER_H
#define CORE_BASE_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct loop;
struct message;
struct peer;

/* What a process does with one type of message; returns -1 to end the peer. */
typedef int peer_message_fn(void *argument, struct message *message, struct error *err);

struct peer_rule {
	uint8_t type;
	const char *name; /* for the trace */
	unsigned states;  /* bits of the states in which it may come */
	peer_message_fn *take;
};

struct peer_events {
	const struct peer_rule *rules; /* ends with a rule without a name */
	/*
	 * The other end is gone or broke the rules (err says which); the peer is still to be freed.
	 */
	void (*closed)(void *argument, const struct error *err);
	/* May be NULL: the queue fell below half of its limit after peer_full was true. */
	void (*drained)(void *argument);
};

/*
 * Takes over fd and makes it non-blocking. local and remote name both ends in the trace that
 * log_level debug shows ("session 41 -> worker 42"); both are kept, not copied.
 */
struct peer *peer_new(struct loop *loop, int fd, const char *local, const char *remote,
    const struct peer_events *events, void *argument);
void peer_free(struct peer *peer); /* accepts NULL; closes the descriptor */

/* The state that the rules' bits are compared with; starts as bit 0 (1). */
void peer_set_state(struct peer *peer, unsigned state);

/*
 * Queues the message and frees it. A queue over its limit (PEER_QUEUE_MAX) closes the peer:
 * senders of bulk check peer_full first.
 */
#define PEER_QUEUE_MAX (8U * 1024U * 1024U)
void peer_send(struct peer *peer, struct message *message);

/* True while so much is queued that the sender should wait for drained. */
bool peer_full(const struct peer *peer);

/* Reads no further messages while paused: the sender's queue fills, which is how it learns. */
void peer_pause(struct peer *peer, bool paused);

/*
 * For a process that must wait for an answer: sends what is queued, then takes one message,
 * waiting at most timeout ms. Returns 0, or -1 when there was none in time or the peer is gone.
 */
int peer_wait(struct peer *peer, int timeout, struct error *err);

/* Sends what is queued, waiting at most timeout ms. */
int peer_flush(struct peer *peer, int timeout, struct error *err);

/* As the system calls, for the few that talk before there is a loop; fd is blocking. */
int message_send(int fd, struct message *message, struct error *err);

#endif
