/* SPDX-License-Identifier: ISC */
/*
 * A service of a session with no SSH around it: its channel is only a struct, its worker is played
 * here and holds a handful of files in memory. For tests and for fuzzing.
 */
#ifndef TESTS_UNIT_SFTP_TALK_H
#define TESTS_UNIT_SFTP_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buffer.h"

struct channel;
struct talk;

struct talk *talk_open(void);
void talk_close(struct talk *talk);
struct channel *talk_channel(struct talk *talk);

/*
 * Gives the service input as a channel would, and lets it and the worker go on until nothing moves.
 */
void talk_say(struct talk *talk, const void *data, size_t size);

/* The client has no more to say. */
void talk_end(struct talk *talk);

/* What the service said so far, which is taken. */
struct buffer *talk_heard(struct talk *talk);

/* Did it end the channel, and how? */
bool talk_ended(const struct talk *talk, uint32_t *status);

/* Holds back the worker's replies, or gives those that were held. */
void talk_hold_replies(struct talk *talk, bool hold);

/* Requests of the worker's of a verb, so far. */
unsigned talk_requests(const struct talk *talk, unsigned verb);

#endif
