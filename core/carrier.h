/* SPDX-License-Identifier: ISC */
/*
 * A command's streams, byte-exact on every driver: those of the driver itself, or made up by a
 * transport (core/transport.h). To its user it is a stream of a driver with DRIVER_STDIN,
 * END_OF_STDIN, STDERR, BINARY and FLOW.
 */
#ifndef CORE_CARRIER_H
#define CORE_CARRIER_H

#include <stdbool.h>
#include <stdint.h>

struct carrier;
struct driver_command;
struct driver_stream_events;
struct transport_setup;

/* As driver->start. */
struct carrier *carrier_start(const struct transport_setup *setup,
    const struct driver_command *command, const struct driver_stream_events *events,
    void *argument);

/* false when the terminal is none that the driver knows: core/scripts/resize.sh reaches it. */
bool carrier_resize(
    struct carrier *carrier, uint32_t columns, uint32_t rows, uint32_t x_pixels, uint32_t y_pixels);

/* Frees it; what still runs gets KILL. Accepts NULL. */
void carrier_close(struct carrier *carrier);

#endif
