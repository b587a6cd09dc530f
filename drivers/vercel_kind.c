/* SPDX-License-Identifier: ISC */
/* What can be known of the Vercel driver without its code. */
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/number.h"
#include "core/base/option.h"
#include "core/driver.h"
#include "drivers/check.h"
#include "drivers/kinds.h"
#include "drivers/vercel_credentials.h"

#define SECOND INT64_C(1000)
#define DAY (86400 * SECOND)

/* Limits of Vercel's. */
#define NAME_LENGTH 128
#define PORTS_MAX 15
#define PORT_MIN 1024

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

/* Which project's a token is. */
static int
check_project(const struct settings *settings, const char **option, struct error *err)
{
	static const char *const names[] = { "team_id", "project_id" };
	const char *team, *project;
	size_t i;

	team = settings_text(settings, "team_id");
	project = settings_text(settings, "project_id");
	if (team == NULL || project == NULL)
		return error_set(err, ERROR_INVALID,
		    "a token needs a team_id and a project_id too: %s",
		    team == NULL && project == NULL ? "both are missing"
		    : team == NULL                  ? "there is no team_id"
						    : "there is no project_id");
	for (i = 0; i < 2; i++)
		if (!check_is_name(settings_text(settings, names[i]), NAME_LENGTH)) {
			*option = names[i];
			return error_set(err, ERROR_INVALID, "it is no id");
		}
	return 0;
}

/* What an OIDC token holds is seen when it is used: it may be another one every day. */
static int
check_credentials(const struct settings *settings, const char **option, struct error *err)
{
	const char *token, *oidc;

	token = settings_text(settings, "token");
	oidc = settings_text(settings, "oidc_token");
	if (token == NULL && oidc == NULL)
		return error_set(err, ERROR_INVALID,
		    "there is neither a token (VERCEL_TOKEN, with VERCEL_TEAM_ID and "
		    "VERCEL_PROJECT_ID) nor an oidc_token (VERCEL_OIDC_TOKEN)");
	if (!check_is_token(token != NULL ? token : oidc, VERCEL_TOKEN_LENGTH)) {
		*option = token != NULL ? "token" : "oidc_token";
		return error_set(err, ERROR_INVALID, "it is no token");
	}
	return token == NULL ? 0 : check_project(settings, option, err);
}

static int
check_ports(char *const *ports, struct error *err)
{
	int64_t number;
	size_t i;

	for (i = 0; ports[i] != NULL; i++)
		if (number_parse(ports[i], PORT_MIN, UINT16_MAX, &number, err) != 0)
			return -1;
	if (i > PORTS_MAX)
		return error_set(err, ERROR_INVALID, "there are more than %d ports", PORTS_MAX);
	return 0;
}

/* What a sandbox is to be. */
static int
check_sandbox(const struct settings *settings, const char **option, struct error *err)
{
	const char *name;
	int64_t vcpus;

	*option = "name";
	name = settings_text(settings, "name");
	if (name != NULL && !check_is_name(name, NAME_LENGTH))
		return error_set(err, ERROR_INVALID,
		    "only letters, digits, '-' and '_' can be in it, at most %d", NAME_LENGTH);
	*option = "runtime";
	if (settings_text(settings, "image") != NULL && settings_text(settings, "runtime") != NULL)
		return error_set(err, ERROR_INVALID, "image and runtime exclude each other");
	*option = "vcpus";
	vcpus = settings_number(settings, "vcpus");
	if (vcpus > 1 && vcpus % 2 != 0)
		return error_set(err, ERROR_INVALID, "it is neither 1 nor an even number");
	*option = "ports";
	if (check_ports(settings_list(settings, "ports"), err) != 0)
		return -1;
	*option = NULL;
	return 0;
}

static int
check_vercel(const struct settings *settings, const char **option, struct error *err)
{
	if (check_credentials(settings, option, err) != 0 ||
	    check_url(settings, "api_url", option, err) != 0 ||
	    check_sandbox(settings, option, err) != 0)
		return -1;
	return check_ca_file(settings, option, err);
}

const struct driver_kind driver_vercel_kind = {
	.name = "vercel",
	/*
	 * A command has no stdin there, and its output is text: core/transport makes a command's
	 * streams out of terminals.
	 */
	.supports = DRIVER_STDIN | DRIVER_PTY | DRIVER_RAW_PTY | DRIVER_STOP | DRIVER_ADOPT,
	.options = vercel_options,
	.check = check_vercel,
	.standard_dispose = "destroy",
	.name_option = "name",
	.named_dispose = "stop",
};
