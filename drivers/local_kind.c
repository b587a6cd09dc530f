/* SPDX-License-Identifier: ISC */
/*
 * What can be known of the local driver without its code. Its sandboxes are stopped rather than
 * destroyed by default: they cost nothing, and their files are all that a user has here.
 */
#include <stddef.h>

#include "core/base/option.h"
#include "core/driver.h"
#include "drivers/kinds.h"

static const struct option local_options[] = {
	{ .name = "isolation",
	    .type = OPTION_CHOICE,
	    .scope = OPTION_LOGIN,
	    .standard = "bwrap",
	    .choices = "bwrap none",
	    .help =
		"How a local sandbox is kept apart: bwrap, or none at all, where commands run as the "
		"gateway's user and see all it sees." },
	{ .name = "network",
	    .type = OPTION_CHOICE,
	    .scope = OPTION_LOGIN,
	    .standard = "none",
	    .choices = "none host",
	    .help =
		"What a local sandbox reaches: nothing but itself, or all that this machine does." },
	{ .name = "files",
	    .type = OPTION_CHOICE,
	    .scope = OPTION_LOGIN,
	    .standard = "native",
	    .choices = "native script",
	    .help =
		"How files of a local sandbox are reached: by the gateway's own server in it, or by "
		"the script that serves every other driver." },
	{ .name = NULL },
};

const struct driver_kind driver_local_kind = {
	.name = "local",
	.supports = DRIVER_STDIN | DRIVER_END_OF_STDIN | DRIVER_STDERR | DRIVER_BINARY |
		    DRIVER_PTY | DRIVER_EXIT | DRIVER_GROUP | DRIVER_STOP | DRIVER_ADOPT |
		    DRIVER_FLOW | DRIVER_HERE,
	.options = local_options,
	.standard_dispose = "stop",
};
