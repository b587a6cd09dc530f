/* SPDX-License-Identifier: ISC */
/*
 * A driver that has nothing but terminals of this machine, as a provider without better streams
 * does; for tests of core/transport.
 */
#ifndef TESTS_UNIT_PTY_DRIVER_H
#define TESTS_UNIT_PTY_DRIVER_H

#include "core/driver.h"

struct driver_sandbox {
	struct loop *loop;
	const char *path; /* where commands find sh and everything else */
	struct driver_stream *streams;
	struct driver_operation *operations;
};

extern const struct driver pty_driver;

/* Takes all terminals away and leaves what runs on them, as a network that breaks does. */
void pty_driver_break(struct driver_sandbox *sandbox);

/* Gives up what is still under way. */
void pty_driver_close(struct driver_sandbox *sandbox);

#endif
