/* SPDX-License-Identifier: ISC */
/*
 * Who we are at Vercel: an access token with the ids of a team and a project, or an OIDC token, which
 * holds both and dies within 12 hours.
 */
#ifndef DRIVERS_VERCEL_CREDENTIALS_H
#define DRIVERS_VERCEL_CREDENTIALS_H

#include <stdint.h>

struct error;
struct settings;

/* Longer tokens are none. */
#define VERCEL_TOKEN_LENGTH 16384

struct vercel_credentials {
	char *token; /* secret */
	char *team, *project;
	int64_t expires; /* seconds since 1970; 0 when that is not known */
};

/*
 * Fills credentials from settings that were checked; -1 (INVALID) when an OIDC token holds none. Free
 * them in either case.
 */
int vercel_credentials_read(
    const struct settings *settings, struct vercel_credentials *credentials, struct error *err);
void vercel_credentials_free(struct vercel_credentials *credentials);

/*
 * The claims of an OIDC token, whose signature is the server's to verify. What it does not tell is
 * left alone. -1 when it is no such token, or names no team and project.
 */
int vercel_credentials_decode(
    const char *token, struct vercel_credentials *credentials, struct error *err);

/* -1 (UNAVAILABLE), with words for a person, once the token has expired; now is in seconds. */
int vercel_credentials_check(
    const struct vercel_credentials *credentials, int64_t now, struct error *err);

/* Logs that the token ends soon, when it does. */
void vercel_credentials_warn(const struct vercel_credentials *credentials, int64_t now);

#endif
