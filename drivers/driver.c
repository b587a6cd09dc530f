/* SPDX-License-Identifier: ISC */
/* The drivers of this build. A new provider is one file beside this one and one line in the table.
 */
#include <string.h>

#include "core/driver.h"
#include "drivers/local.h"

const struct driver *const drivers[] = {
	&driver_local,
	NULL,
};

const struct driver *
driver_find(const char *name)
{
	size_t i;

	for (i = 0; drivers[i] != NULL; i++)
		if (strcmp(drivers[i]->name, name) == 0)
			return drivers[i];
	return NULL;
}
