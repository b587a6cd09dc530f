/* SPDX-License-Identifier: ISC */
/* The kinds of drivers that a configuration may name: a line here and one in driver.c for each. */
#include <stddef.h>

#include "drivers/kinds.h"

const struct driver_kind *const driver_kinds[] = {
	&driver_local_kind,
	&driver_e2b_kind,
	&driver_daytona_kind,
	&driver_vercel_kind,
	NULL,
};
