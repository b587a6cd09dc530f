/* SPDX-License-Identifier: ISC */
/* What can be known of the Vercel driver without its code. */
#include <stddef.h>
#include <stdint.h>

#include "core/base/option.h"
#include "core/driver.h"
#include "drivers/kinds.h"

#define SECOND INT64_C(1000)
#define DAY (86400 * SECOND)

static const struct option vercel_options[] = {
	{ .name = "token",
	    .type = OPTION_SECRET,
	    .scope = OPTION_BOTH,
	    .environment = "VERCEL_TOKEN",
	    .help = "Access token of Vercel; it needs team_id and project_id." },
	{ .name = "team_id",
	    .type = OPTION_TEXT,
	    .scope = OPTION_BOTH,
	    .environment = "VERCEL_TEAM_ID",
	    .help = "Team that the token is for." },
	{ .name = "project_id",
	    .type = OPTION_TEXT,
	    .scope = OPTION_BOTH,
	    .environment = "VERCEL_PROJECT_ID",
	    .help = "Project whose sandboxes these are." },
	{ .name = "oidc_token",
	    .type = OPTION_SECRET,
	    .scope = OPTION_BOTH,
	    .environment = "VERCEL_OIDC_TOKEN",
	    .help =
		"OIDC token of a project, used without a token; it names team and project itself." },
	{ .name = "api_url",
	    .type = OPTION_TEXT,
	    .scope = OPTION_BOTH,
	    .standard = "https://vercel.com/api",
	    .environment = "VERCEL_API_URL",
	    .help = "URL of the API." },
	{ .name = "name",
	    .type = OPTION_TEXT,
	    .scope = OPTION_LOGIN,
	    .help =
		"Name of a sandbox to use, resumed when it is stopped; it is made when there is none." },
	{ .name = "image",
	    .type = OPTION_TEXT,
	    .scope = OPTION_BOTH,
	    .help =
		"Image that a sandbox is made from; without this and runtime it is Vercel's universal one." },
	{ .name = "runtime",
	    .type = OPTION_TEXT,
	    .scope = OPTION_BOTH,
	    .help = "Legacy runtime that a sandbox is made with, such as node24; excludes image." },
	{ .name = "lifetime",
	    .type = OPTION_DURATION,
	    .scope = OPTION_BOTH,
	    .min = 15 * SECOND,
	    .max = DAY,
	    .standard = "30m",
	    .help = "Time that a sandbox runs, extended while it is used." },
	{ .name = "vcpus",
	    .type = OPTION_NUMBER,
	    .scope = OPTION_BOTH,
	    .min = 0,
	    .max = 32,
	    .standard = "0",
	    .help =
		"Processors of a sandbox that is made, 1 or an even number, each with 2 GiB; 0 for "
		"Vercel's default." },
	{ .name = "ports",
	    .type = OPTION_LIST,
	    .scope = OPTION_BOTH,
	    .help = "Ports of a sandbox that is made that anybody may reach, at most 15." },
	KINDS_CA_FILE,
	KINDS_PROXY,
	KINDS_NO_PROXY,
	{ .name = NULL },
};

const struct driver_kind driver_vercel_kind = {
	.name = "vercel",
	/*
	 * A command has no stdin there, and its output is text: core/transport makes a command's
	 * streams out of terminals.
	 */
	.supports = DRIVER_STDIN | DRIVER_PTY | DRIVER_RAW_PTY | DRIVER_STOP | DRIVER_ADOPT,
	.options = vercel_options,
	.standard_dispose = "destroy",
	.name_option = "name",
	.named_dispose = "stop",
};
