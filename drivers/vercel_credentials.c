/* SPDX-License-Identifier: ISC */
#include <string.h>
#include <time.h>

#include "core/base/base64.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/json.h"
#include "drivers/check.h"
#include "drivers/vercel_credentials.h"

/* Longer ids are none. */
#define ID_MAX 128
/* Seconds before its end from which on a token's end is said. */
#define WARNING 3600
#define DATE_MAX 32

/* The JSON in one part of a token: base64url without padding (RFC 7515 section 2). */
static struct json_object *
decode_part(const char *part, size_t length)
{
	struct json_object *object;
	unsigned char *bytes;
	size_t size, i;
	char *text;

	text = memory_allocate(length + 4);
	for (i = 0; i < length; i++)
		text[i] = part[i] == '-' ? '+' : part[i] == '_' ? '/' : part[i];
	while (length % 4 != 0)
		text[length++] = '=';
	bytes = memory_allocate(length / 4 * 3 + 1);
	object = NULL;
	if (base64_decode(bytes, &size, text, length) == 0)
		object = json_parse_object(bytes, size, NULL);
	memory_free(bytes);
	memory_free(text);
	return object;
}

static int
take_claims(
    const struct json_object *claims, struct vercel_credentials *credentials, struct error *err)
{
	const char *team, *project;

	team = json_text(claims, "owner_id");
	project = json_text(claims, "project_id");
	if (team == NULL || project == NULL || !check_is_name(team, ID_MAX) ||
	    !check_is_name(project, ID_MAX))
		return error_set(err, ERROR_INVALID,
		    "the OIDC token names no team and project (owner_id, project_id)");
	memory_free(credentials->team);
	memory_free(credentials->project);
	credentials->team = memory_text(team);
	credentials->project = memory_text(project);
	credentials->expires = json_number(claims, "exp", 1, INT64_MAX / 1000, 0);
	return 0;
}

int
vercel_credentials_decode(
    const char *token, struct vercel_credentials *credentials, struct error *err)
{
	struct json_object *claims;
	const char *part;
	int result;

	part = strchr(token, '.');
	claims = part == NULL || strlen(token) > VERCEL_TOKEN_LENGTH
		     ? NULL
		     : decode_part(part + 1, strcspn(part + 1, "."));
	if (claims == NULL)
		return error_set(err, ERROR_INVALID, "the OIDC token is none: it holds no claims");
	result = take_claims(claims, credentials, err);
	json_object_put(claims);
	return result;
}

int
vercel_credentials_read(
    const struct settings *settings, struct vercel_credentials *credentials, struct error *err)
{
	const char *token;

	token = settings_text(settings, "token");
	if (token != NULL) {
		credentials->team = memory_text(settings_text(settings, "team_id"));
		credentials->project = memory_text(settings_text(settings, "project_id"));
	} else {
		token = settings_text(settings, "oidc_token");
		if (vercel_credentials_decode(token, credentials, err) != 0)
			return -1;
	}
	credentials->token = memory_text(token);
	return 0;
}

void
vercel_credentials_free(struct vercel_credentials *credentials)
{
	memory_text_wipe(credentials->token);
	memory_free(credentials->team);
	memory_free(credentials->project);
	memset(credentials, 0, sizeof(*credentials));
}

static void
format_date(char out[DATE_MAX], int64_t seconds)
{
	struct tm broken;
	time_t when = (time_t)seconds;

	if (gmtime_r(&when, &broken) == NULL ||
	    strftime(out, DATE_MAX, "%Y-%m-%d %H:%M UTC", &broken) == 0)
		out[0] = '\0';
}

void
vercel_credentials_warn(const struct vercel_credentials *credentials, int64_t now)
{
	char date[DATE_MAX];

	if (credentials->expires == 0 || credentials->expires - now > WARNING)
		return;
	format_date(date, credentials->expires);
	log_info("vercel: the OIDC token ends at %s; get a new one before (vercel env pull)", date);
}

int
vercel_credentials_check(
    const struct vercel_credentials *credentials, int64_t now, struct error *err)
{
	char date[DATE_MAX];

	if (credentials->expires == 0 || credentials->expires > now)
		return 0;
	format_date(date, credentials->expires);
	return error_set(err, ERROR_UNAVAILABLE,
	    "the OIDC token ended at %s: get a new one (vercel env pull), or use a token with "
	    "team_id and project_id",
	    date);
}
