/* SPDX-License-Identifier: ISC */
/*
 * The kinds of the drivers of this build,
 * each in a file NAME_kind.c that needs no other of its driver.
 */
#ifndef DRIVERS_KINDS_H
#define DRIVERS_KINDS_H

#include "core/base/option.h"
#include "core/driver.h"

/* Rows that are the same for every driver over HTTP: how its provider is reached. */
#define KINDS_CA_FILE                                                             \
	{                                                                         \
		.name = "ca_file", .type = OPTION_PATH, .scope = OPTION_BOTH,     \
		.help = "Certificates that are trusted instead of the system's.", \
	}
#define KINDS_PROXY                                                                \
	{                                                                          \
		.name = "proxy", .type = OPTION_SECRET, .scope = OPTION_BOTH,      \
		.environment = "HTTPS_PROXY",                                      \
		.help = "URL of the proxy through which the provider is reached.", \
	}
#define KINDS_NO_PROXY                                                                 \
	{                                                                              \
		.name = "no_proxy", .type = OPTION_TEXT, .scope = OPTION_BOTH,         \
		.environment = "NO_PROXY",                                             \
		.help = "Hosts that are reached without the proxy, parted by commas.", \
	}

extern const struct driver_kind driver_local_kind;
extern const struct driver_kind driver_daytona_kind;
extern const struct driver_kind driver_e2b_kind;
extern const struct driver_kind driver_vercel_kind;

#endif
