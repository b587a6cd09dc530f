/* SPDX-License-Identifier: ISC */
/*
 * Sandboxes with our label that are not the one we use: made for a worker that was killed before it
 * heard of them. How they are listed and released is each provider's own.
 */
#ifndef DRIVERS_OTHERS_H
#define DRIVERS_OTHERS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/driver.h"
#include "drivers/http.h"

struct others;

struct others_kind {
	/* Asks for a page of the list of what has our label; page NULL: the first one. */
	struct http_request *(*list)(
	    struct driver_sandbox *sandbox, const char *page, http_done_fn *done, void *argument);
	/*
	 * All ids in a page but that of the sandbox in use, as a new list of *count, and the next page
	 * as a new text or NULL. destroys: stopped ones too. UNAVAILABLE when no sandbox is in use any
	 * more: then any of them may be the right one.
	 */
	int (*read)(const struct driver_sandbox *sandbox, const struct http_answer *answer,
	    bool destroys, char ***ids, size_t *count, char **page, struct error *err);
	struct http_request *(*release)(struct driver_sandbox *sandbox, const char *id,
	    bool destroys, http_done_fn *done, void *argument);
	/* Does this answer mean that there is nothing left to release? */
	bool (*is_released)(const struct http_answer *answer);
};

/*
 * As the driver's release_others. *place is where the sandbox keeps it: what is there is given up, and it is
 * NULL again before done is called.
 */
void others_release(const struct others_kind *kind, struct driver_sandbox *sandbox,
    struct others **place, enum driver_release release, driver_done_fn *done, void *argument);

/* Gives up; done does not come any more. Accepts a place that is empty. */
void others_cancel(struct others **place);

#endif
