/* SPDX-License-Identifier: ISC */
/* What can be known of the E2B driver without its code. */
#include <stddef.h>
#include <stdint.h>

#include "core/base/option.h"
#include "core/driver.h"
#include "drivers/check.h"
#include "drivers/kinds.h"

#define SECOND INT64_C(1000)
#define DAY (86400 * SECOND)

static const struct option e2b_options[] = {
	{ .name = "api_key",
	    .type = OPTION_SECRET,
	    .scope = OPTION_BOTH,
	    .environment = "E2B_API_KEY",
	    .help = "Key of the E2B team whose sandboxes these are." },
	{ .name = "template",
	    .type = OPTION_TEXT,
	    .scope = OPTION_BOTH,
	    .standard = "base",
	    .help = "Template that a sandbox is made from." },
	{ .name = "sandbox_id",
	    .type = OPTION_TEXT,
	    .scope = OPTION_LOGIN,
	    .help = "Sandbox to connect to, running or paused, instead of making one." },
	{ .name = "lifetime",
	    .type = OPTION_DURATION,
	    .scope = OPTION_BOTH,
	    .min = 15 * SECOND,
	    .max = DAY,
	    .standard = "30m",
	    .help = "Time of disuse after which E2B ends a sandbox." },
	{ .name = "metadata",
	    .type = OPTION_PAIRS,
	    .scope = OPTION_BOTH,
	    .help = "Metadata of a sandbox that is made." },
	{ .name = "domain",
	    .type = OPTION_TEXT,
	    .scope = OPTION_BOTH,
	    .standard = "e2b.app",
	    .environment = "E2B_DOMAIN",
	    .help = "Domain of the E2B cloud, or of a deployment of one's own." },
	{ .name = "api_url",
	    .type = OPTION_TEXT,
	    .scope = OPTION_BOTH,
	    .environment = "E2B_API_URL",
	    .help = "URL of the API, when it is not https://api.DOMAIN." },
	{ .name = "sandbox_url",
	    .type = OPTION_TEXT,
	    .scope = OPTION_BOTH,
	    .environment = "E2B_SANDBOX_URL",
	    .help =
		"URL at which all sandboxes are reached, when it does not follow from the domain." },
	{ .name = "request_timeout",
	    .type = OPTION_DURATION,
	    .scope = OPTION_BOTH,
	    .min = SECOND,
	    .max = DAY,
	    .standard = "60s",
	    .help = "Time each request may take, and a command's stream may be silent." },
	KINDS_CA_FILE,
	KINDS_PROXY,
	KINDS_NO_PROXY,
	{ .name = NULL },
};

static int
check_e2b(const struct settings *settings, const char **option, struct error *err)
{
	if (check_key(settings, "E2B_API_KEY", option, err) != 0 ||
	    check_url(settings, "api_url", option, err) != 0 ||
	    check_url(settings, "sandbox_url", option, err) != 0)
		return -1;
	return check_ca_file(settings, option, err);
}

const struct driver_kind driver_e2b_kind = {
	.name = "e2b",
	/* Not DRIVER_RESUME: what a command says while nobody is connected to it is lost at E2B. */
	.supports = DRIVER_STDIN | DRIVER_END_OF_STDIN | DRIVER_STDERR | DRIVER_BINARY |
		    DRIVER_PTY | DRIVER_STOP | DRIVER_ADOPT | DRIVER_FLOW,
	.options = e2b_options,
	.check = check_e2b,
	.standard_dispose = "destroy",
};
