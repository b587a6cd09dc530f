/* SPDX-License-Identifier: ISC */
/*
 * Makes up for drivers what DRIVER_GROUP and DRIVER_EXIT promise, with core/scripts/command.sh
 * around the command and core/scripts/signal.sh for its group. To its user a wrapped command is
 * like a stream of a driver that can do it all: same events, same order.
 */
#ifndef CORE_WRAPPED_H
#define CORE_WRAPPED_H

#include <stdbool.h>
#include <stdint.h>

struct driver;
struct driver_command;
struct driver_sandbox;
struct driver_stream_events;
struct loop;
struct wrapped;

struct wrapped_setup {
	struct loop *loop;
	const struct driver *driver;
	struct driver_sandbox *sandbox;
	int directory;  /* for core/ledger.h, or -1 */
	const char *id; /* of the sandbox; copied */
	/*
	 * A script of ours, which ends by itself: when its stream breaks it is asked to end and not killed, since
	 * it may be in the middle of what must be done as a whole. For the same reason it is in no ledger.
	 */
	bool is_script;
	/*
	 * With keep_background: the output goes on behind the command's end, until nothing of it is left. A
	 * provider does not tell when nobody holds the output any more, so whoever waits for that must not ask for it.
	 */
	bool follow_background;
};

/* As driver->start. */
struct wrapped *wrapped_start(const struct wrapped_setup *setup,
    const struct driver_command *command, const struct driver_stream_events *events,
    void *argument);

/* To the whole group; signals that are sent together arrive in order. */
void wrapped_signal(struct wrapped *wrapped, int number);
void wrapped_resize(
    struct wrapped *wrapped, uint32_t columns, uint32_t rows, uint32_t x_pixels, uint32_t y_pixels);

/* Frees it; what still runs, or may, gets KILL. */
void wrapped_close(struct wrapped *wrapped);

#endif
