/* SPDX-License-Identifier: ISC */
/*
 * A byte-exact command out of two terminals of a driver that has no better: stdin with an end,
 * stdout and stderr apart, any byte, and a slow reader that slows the command down
 * (core/scripts/transport.sh). To its user it is a stream of a driver with DRIVER_STDIN,
 * END_OF_STDIN, STDERR, BINARY, PTY and FLOW.
 */
#ifndef CORE_TRANSPORT_H
#define CORE_TRANSPORT_H

struct driver;
struct driver_command;
struct driver_sandbox;
struct driver_stream_events;
struct loop;
struct transport;

struct transport_setup {
	struct loop *loop;
	const struct driver *driver; /* with DRIVER_PTY */
	struct driver_sandbox *sandbox;
	int directory;  /* for core/ledger.h, or -1 */
	const char *id; /* of the sandbox; copied */
};

/*
 * As driver->start; of the events gone is not used. The command is not repeated, and a terminal
 * that breaks is not picked up: the end is then unknown, and the rest of the command is killed.
 */
struct transport *transport_start(const struct transport_setup *setup,
    const struct driver_command *command, const struct driver_stream_events *events,
    void *argument);

/* Frees it; what still runs gets KILL. */
void transport_close(struct transport *transport);

#endif
