/* SPDX-License-Identifier: ISC */
/* The drivers of this build with their code: a line here and one in kinds.c for each. */
#include <string.h>

#include "core/driver.h"
#include "drivers/daytona.h"
#include "drivers/e2b.h"
#include "drivers/local.h"
#include "drivers/vercel.h"

const struct driver *const drivers[] = {
	&driver_local,
	&driver_e2b,
	&driver_daytona,
	&driver_vercel,
	NULL,
};

const struct driver *
driver_find(const char *name)
{
	size_t i;

	for (i = 0; drivers[i] != NULL; i++)
		if (strcmp(drivers[i]->kind->name, name) == 0)
			return drivers[i];
	return NULL;
}
