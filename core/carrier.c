/* SPDX-License-Identifier: ISC */
#include "core/carrier.h"
#include "core/base/memory.h"
#include "core/driver.h"
#include "core/transport.h"

/* What a driver's own streams need for a command's bytes to arrive unchanged. */
#define EXACT (DRIVER_STDIN | DRIVER_END_OF_STDIN | DRIVER_STDERR | DRIVER_BINARY | DRIVER_FLOW)

struct carrier {
	const struct driver *driver;
	struct driver_stream *stream;
	struct transport *transport; /* instead of stream */
};

struct carrier *
carrier_start(const struct transport_setup *setup, const struct driver_command *command,
    const struct driver_stream_events *events, void *argument)
{
	struct carrier *carrier;

	carrier = memory_zeroed(1, sizeof(*carrier));
	carrier->driver = setup->driver;
	if ((setup->driver->kind->supports & EXACT) == EXACT)
		carrier->stream = setup->driver->start(setup->sandbox, command, events, argument);
	else
		carrier->transport = transport_start(setup, command, events, argument);
	return carrier;
}

bool
carrier_resize(
    struct carrier *carrier, uint32_t columns, uint32_t rows, uint32_t x_pixels, uint32_t y_pixels)
{
	if (carrier->stream == NULL)
		return false;
	carrier->driver->resize(carrier->stream, columns, rows, x_pixels, y_pixels);
	return true;
}

void
carrier_close(struct carrier *carrier)
{
	if (carrier == NULL)
		return;
	if (carrier->stream != NULL)
		carrier->driver->close_stream(carrier->stream);
	if (carrier->transport != NULL)
		transport_close(carrier->transport);
	memory_free(carrier);
}
