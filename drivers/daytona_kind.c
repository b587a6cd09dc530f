/* SPDX-License-Identifier: ISC */
/* What can be known of the Daytona driver without its code. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/number.h"
#include "core/base/option.h"
#include "core/driver.h"
#include "drivers/check.h"
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

/* cpu, memory and disk, as whole numbers. */
static int
check_resources(char *const *pairs, struct error *err)
{
	static const char *const names[] = { "cpu", "memory", "disk" };
	int64_t number;
	size_t i, length;

	for (; *pairs != NULL; pairs++) {
		length = strcspn(*pairs, "=");
		for (i = 0; i < 3; i++)
			if (strlen(names[i]) == length && strncmp(*pairs, names[i], length) == 0)
				break;
		if (i == 3)
			return error_set(
			    err, ERROR_INVALID, "%s is neither cpu, memory nor disk", *pairs);
		if (number_parse(*pairs + length + 1, 1, 65536, &number, err) != 0)
			return error_wrap(err, "%s", names[i]);
	}
	return 0;
}

/* What a sandbox is made from. */
static int
check_origin(const struct settings *settings, const char **option, struct error *err)
{
	const char *image;

	image = settings_text(settings, "image");
	*option = "snapshot";
	if (image != NULL && settings_text(settings, "snapshot") != NULL)
		return error_set(err, ERROR_INVALID, "image and snapshot exclude each other");
	*option = "image";
	if (image != NULL && strcspn(image, " \t\r\n") != strlen(image))
		return error_set(err, ERROR_INVALID, "it is no name of an image");
	*option = "resources";
	if (image == NULL && *settings_list(settings, "resources") != NULL)
		return error_set(err, ERROR_INVALID, "resources need an image");
	if (check_resources(settings_list(settings, "resources"), err) != 0)
		return -1;
	*option = NULL;
	return 0;
}

static int
check_daytona(const struct settings *settings, const char **option, struct error *err)
{
	if (check_key(settings, "DAYTONA_API_KEY", option, err) != 0 ||
	    check_url(settings, "api_url", option, err) != 0 ||
	    check_origin(settings, option, err) != 0)
		return -1;
	return check_ca_file(settings, option, err);
}

const struct driver_kind driver_daytona_kind = {
	.name = "daytona",
	/*
	 * Its terminals are the only stream that goes both ways, and they lose what a slow reader
	 * does not take: core/transport makes a command's streams out of them.
	 */
	.supports = DRIVER_STDIN | DRIVER_PTY | DRIVER_RAW_PTY | DRIVER_STOP | DRIVER_ADOPT,
	.options = daytona_options,
	.check = check_daytona,
	.standard_dispose = "destroy",
};
