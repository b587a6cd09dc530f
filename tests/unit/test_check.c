/* SPDX-License-Identifier: ISC */
/* What the drivers say to options before anything is started: their kinds' checks. */
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/option.h"
#include "core/driver.h"
#include "drivers/check.h"
#include "drivers/kinds.h"

#define PAIRS_MAX 8

/* NAME, VALUE, ... of a case, and what is said to it; NULL for nothing. */
struct sample {
	const char *pairs[PAIRS_MAX];
	const char *words;
};

/* Made of the driver's own options and no others. */
static struct settings *
make_settings(const struct driver_kind *kind, const char *const *pairs)
{
	const struct option *const tables[] = { kind->options, NULL };
	struct settings *settings;
	struct error err;

	settings = settings_new(tables);
	for (; *pairs != NULL; pairs += 2)
		if (settings_set(settings, pairs[0], pairs[1], &err) != 0)
			fail_msg("%s = %s: %s", pairs[0], pairs[1], err.message);
	return settings;
}

/* Each of the samples, on top of what the driver cannot do without. */
static void
expect_all(const struct driver_kind *kind, const char *const *needed, const struct sample *samples)
{
	const char *pairs[2 * PAIRS_MAX + 1];
	struct settings *settings;
	struct error err;
	size_t count, i;

	for (; samples->pairs[0] != NULL; samples++) {
		for (count = 0; needed[count] != NULL; count++)
			pairs[count] = needed[count];
		for (i = 0; i < PAIRS_MAX && samples->pairs[i] != NULL; i++)
			pairs[count++] = samples->pairs[i];
		pairs[count] = NULL;
		settings = make_settings(kind, pairs);
		memset(&err, 0, sizeof(err));
		if (check_options(kind, settings, &err) != (samples->words == NULL ? 0 : -1))
			fail_msg("%s = %s: %s", samples->pairs[0], samples->pairs[1],
			    samples->words == NULL ? err.message : "it is taken");
		if (samples->words != NULL && strcmp(err.message, samples->words) != 0)
			fail_msg("\"%s\" is not: %s", samples->words, err.message);
		settings_free(settings);
	}
}

static void
e2b_wants_a_key_and_urls(void **state)
{
	static const char *const none[] = { NULL };
	static const char *const key[] = { "api_key", "e2b_1", NULL };
	static const struct sample without[] = {
		{ { "template", "base" }, "there is no api_key, and no E2B_API_KEY either" },
		{ { "api_key", "a\r\nb" }, "api_key: it is no key" },
		{ { NULL }, NULL },
	};
	static const struct sample with[] = {
		{ { "template", "base", "api_url", "HTTPS://x", "sandbox_url", "http://[::1]:1" },
		    NULL },
		{ { "ca_file", "/proc/version" }, NULL },
		{ { "api_url", "https://" },
		    "api_url: it is no URL that begins with https:// or http://" },
		{ { "api_url", "http:///x" },
		    "api_url: it is no URL that begins with https:// or http://" },
		{ { "sandbox_url", "e2b.app" },
		    "sandbox_url: it is no URL that begins with https:// or http://" },
		{ { "sandbox_url", "http://a b" },
		    "sandbox_url: it is no URL that begins with https:// or http://" },
		{ { "ca_file", "/proc/none" }, "ca_file: /proc/none: No such file or directory" },
		{ { "ca_file", "/proc" }, "ca_file: /proc: not a regular file" },
		{ { NULL }, NULL },
	};

	(void)state;
	expect_all(&driver_e2b_kind, none, without);
	expect_all(&driver_e2b_kind, key, with);
}

static void
daytona_wants_one_origin_and_whole_resources(void **state)
{
	static const char *const none[] = { NULL };
	static const char *const key[] = { "api_key", "dtn_1", NULL };
	static const struct sample without[] = {
		{ { "target", "eu" }, "there is no api_key, and no DAYTONA_API_KEY either" },
		{ { NULL }, NULL },
	};
	static const struct sample with[] = {
		{ { "image", "debian:13", "resources", "cpu=2", "resources", "disk=10" }, NULL },
		{ { "snapshot", "mine" }, NULL },
		{ { "image", "a", "snapshot", "b" },
		    "snapshot: image and snapshot exclude each other" },
		{ { "image", "a\tRUN" }, "image: it is no name of an image" },
		{ { "resources", "cpu=2" }, "resources: resources need an image" },
		{ { "image", "a", "resources", "cpus=2" },
		    "resources: cpus=2 is neither cpu, memory nor disk" },
		{ { "image", "a", "resources", "memory=2G" },
		    "resources: memory: \"2G\" is not a number" },
		{ { "api_url", "ftp://x" },
		    "api_url: it is no URL that begins with https:// or http://" },
		{ { NULL }, NULL },
	};

	(void)state;
	expect_all(&driver_daytona_kind, none, without);
	expect_all(&driver_daytona_kind, key, with);
}

static void
vercel_wants_credentials_that_are_whole(void **state)
{
	static const char *const none[] = { NULL };
	static const struct sample samples[] = {
		{ { "image", "x" },
		    "there is neither a token (VERCEL_TOKEN, with VERCEL_TEAM_ID and "
		    "VERCEL_PROJECT_ID) nor an oidc_token (VERCEL_OIDC_TOKEN)" },
		{ { "token", "tok", "project_id", "prj_1" },
		    "a token needs a team_id and a project_id too: there is no team_id" },
		{ { "token", "tok", "team_id", "team_1" },
		    "a token needs a team_id and a project_id too: there is no project_id" },
		{ { "token", "tok" },
		    "a token needs a team_id and a project_id too: both are missing" },
		{ { "token", "a b", "team_id", "t", "project_id", "p" }, "token: it is no token" },
		{ { "oidc_token", "a\nb" }, "oidc_token: it is no token" },
		{ { "token", "tok", "team_id", "a&b", "project_id", "p" }, "team_id: it is no id" },
		{ { "token", "tok", "team_id", "t", "project_id", "p/" },
		    "project_id: it is no id" },
		{ { "token", "tok", "team_id", "t", "project_id", "p" }, NULL },
		{ { "oidc_token", "a.b.c" }, NULL },
		{ { NULL }, NULL },
	};

	(void)state;
	expect_all(&driver_vercel_kind, none, samples);
}

static void
vercel_wants_a_sandbox_that_can_be(void **state)
{
	static const char *const needed[] = { "token", "tok", "team_id", "t", "project_id", "p",
		NULL };
	static const struct sample samples[] = {
		{ { "image", "ubuntu", "runtime", "node24" },
		    "runtime: image and runtime exclude each other" },
		{ { "name", "a b" },
		    "name: only letters, digits, '-' and '_' can be in it, at most 128" },
		{ { "name", "a/b" },
		    "name: only letters, digits, '-' and '_' can be in it, at most 128" },
		{ { "vcpus", "3" }, "vcpus: it is neither 1 nor an even number" },
		{ { "ports", "80" }, "ports: 80 is not between 1024 and 65535" },
		{ { "ports", "3000 http" }, "ports: \"http\" is not a number" },
		{ { "ports",
		      "2001 2002 2003 2004 2005 2006 2007 2008 2009 2010 2011 2012 2013 2014 "
		      "2015 2016" },
		    "ports: there are more than 15 ports" },
		{ { "name", "a-b_1", "vcpus", "4", "ports", "3000 65535", "runtime", "node24" },
		    NULL },
		{ { NULL }, NULL },
	};

	(void)state;
	expect_all(&driver_vercel_kind, needed, samples);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e2b_wants_a_key_and_urls),
		cmocka_unit_test(daytona_wants_one_origin_and_whole_resources),
		cmocka_unit_test(vercel_wants_credentials_that_are_whole),
		cmocka_unit_test(vercel_wants_a_sandbox_that_can_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
