/* SPDX-License-Identifier: ISC */
/* Events of a process in E2B's envd (process.proto, StartResponse and ConnectResponse), from their
 * JSON. */
#ifndef DRIVERS_E2B_EVENT_H
#define DRIVERS_E2B_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include "core/driver.h"

enum e2b_event_kind {
	E2B_EVENT_START,
	E2B_EVENT_OUTPUT,
	E2B_EVENT_ERRORS,
	E2B_EVENT_TERMINAL,
	E2B_EVENT_KEEPALIVE,
	E2B_EVENT_END,
	E2B_EVENT_OTHER, /* of newer servers; passed over */
};

struct e2b_event {
	enum e2b_event_kind kind;
	uint32_t pid;        /* START */
	unsigned char *data; /* OUTPUT, ERRORS and TERMINAL: what was written */
	size_t size;
	struct driver_exit ended; /* END */
};

/* Decodes one message; event->data is new. */
int e2b_event_decode(const void *payload, size_t size, struct e2b_event *event, struct error *err);
void e2b_event_free(struct e2b_event *event);

#endif
