/* SPDX-License-Identifier: ISC */
/* Reads the configuration with the options of the drivers of this build. */
#include "conf/conf.h"
#include "core/base/memory.h"
#include "core/driver.h"
#include "gateway/listener.h"

#define DRIVERS_MAX 32

struct conf *
listener_load_conf(const char *path, char *const *overrides, struct error *err)
{
	static struct conf_driver known[DRIVERS_MAX + 1];
	size_t i;

	/* Kept by the configuration, and the same each time. */
	for (i = 0; i < DRIVERS_MAX && driver_kinds[i] != NULL; i++) {
		known[i].name = driver_kinds[i]->name;
		known[i].options = driver_kinds[i]->options;
	}
	return conf_load(path, overrides, known, err);
}
