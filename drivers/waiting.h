/* SPDX-License-Identifier: ISC */
/* Callers of one driver call that all wait for the same outcome. */
#ifndef DRIVERS_WAITING_H
#define DRIVERS_WAITING_H

#include "core/driver.h"

struct loop;
struct loop_timer;
struct waiting_caller;

/* Zeroed it is one that nobody waits in. */
struct waiting {
	struct waiting_caller *callers;
	struct loop_timer *soon;
};

void waiting_add(struct waiting *waiting, driver_done_fn *done, void *argument);

/* Tells everybody; they may ask again, or close the driver. */
void waiting_tell(struct waiting *waiting, const struct error *err);

/* Tells them of success, from the loop. */
void waiting_tell_soon(struct waiting *waiting, struct loop *loop);

/* Forgets them. */
void waiting_clear(struct waiting *waiting);

#endif
