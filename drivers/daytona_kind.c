/* SPDX-License-Identifier: ISC */
/* What can be known of the Daytona driver without its code. */
#include <stddef.h>
#include <stdint.h>

#include "core/base/option.h"
#include "core/driver.h"
#include "drivers/kinds.h"

#define SECOND INT64_C(1000)
#define DAY (86400 * SECOND)

static const struct option daytona_options[] = {
	{ .name = "api_key",
	    .type = OPTION_SECRET,
	    .scope = OPTION_BOTH,
	    .environment = "DAYTONA_API_KEY",
	    .help = "Key of the Daytona organization whose sandboxes these are." },
	{ .name = "api_url",
	    .type = OPTION_TEXT,
	    .scope = OPTION_BOTH,
	    .standard = "https://app.daytona.io/api",
	    .environment = "DAYTONA_API_URL",
	    .help = "URL of the API." },
	{ .name = "target",
	    .type = OPTION_TEXT,
	    .scope = OPTION_BOTH,
	    .environment = "DAYTONA_TARGET",
	    .help = "Region that a sandbox is made in." },
	{ .name = "sandbox",
	    .type = OPTION_TEXT,
	    .scope = OPTION_LOGIN,
	    .help =
		"Id or name of a sandbox to use instead of making one; it is started when stopped." },
	{ .name = "image",
	    .type = OPTION_TEXT,
	    .scope = OPTION_BOTH,
	    .help = "Image that a sandbox is made from." },
	{ .name = "snapshot",
	    .type = OPTION_TEXT,
	    .scope = OPTION_BOTH,
	    .help =
		"Snapshot that a sandbox is made from; without this and image it is Daytona's." },
	{ .name = "resources",
	    .type = OPTION_PAIRS,
	    .scope = OPTION_BOTH,
	    .help = "cpu=N, memory=N or disk=N (in GiB) of a sandbox that is made from an image." },
	{ .name = "name",
	    .type = OPTION_TEXT,
	    .scope = OPTION_LOGIN,
	    .help = "Name of a sandbox that is made." },
	{ .name = "labels",
	    .type = OPTION_PAIRS,
	    .scope = OPTION_BOTH,
	    .help = "Labels of a sandbox that is made." },
	{ .name = "sandbox_env",
	    .type = OPTION_PAIRS,
	    .scope = OPTION_BOTH,
	    .help = "Environment of a sandbox that is made." },
	{ .name = "auto_stop_interval",
	    .type = OPTION_DURATION,
	    .scope = OPTION_BOTH,
	    .min = 0,
	    .max = 365 * DAY,
	    .standard = "15m",
	    .help =
		"Time of disuse after which Daytona stops a sandbox, in whole minutes; 0 for never." },
	{ .name = "start_timeout",
	    .type = OPTION_DURATION,
	    .scope = OPTION_BOTH,
	    .min = SECOND,
	    .max = DAY,
	    .standard = "60s",
	    .help = "Time that a sandbox may take to start." },
	KINDS_CA_FILE,
	KINDS_PROXY,
	KINDS_NO_PROXY,
	{ .name = NULL },
};

const struct driver_kind driver_daytona_kind = {
	.name = "daytona",
	/*
	 * Its terminals are the only stream that goes both ways, and they lose what a slow reader
	 * does not take: core/transport makes a command's streams out of them.
	 */
	.supports = DRIVER_STDIN | DRIVER_PTY | DRIVER_RAW_PTY | DRIVER_STOP | DRIVER_ADOPT,
	.options = daytona_options,
	.standard_dispose = "destroy",
};
