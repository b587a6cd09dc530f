/* SPDX-License-Identifier: ISC */
/* What rws takes for the gateway, before ssh gets to see it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gateway/cli.h"

struct sample {
	const char *text;
	int login;
	const char *host, *port;
};

static void
expect_all(const struct sample *samples, size_t count)
{
	struct cli_destination destination;
	size_t i;

	for (i = 0; i < count; i++) {
		cli_destination_parse(&destination, samples[i].text);
		assert_int_equal(destination.login, samples[i].login);
		assert_string_equal(destination.host, samples[i].host);
		if (samples[i].port == NULL)
			assert_null(destination.port);
		else
			assert_string_equal(destination.port, samples[i].port);
		cli_destination_free(&destination);
	}
}

static void
a_host_behind_a_login_may_have_a_port(void **state)
{
	static const struct sample samples[] = {
		{ "box@gw", 3, "gw", NULL },
		{ "box+a@gw:2200", 5, "gw", "2200" },
		{ "box@[::1]", 3, "::1", NULL },
		{ "box@[::1]:22", 3, "::1", "22" },
		{ "box@fe80::1", 3, "fe80::1", NULL },
		{ "box@gw:", 3, "gw:", NULL },
		{ "box@gw:ssh", 3, "gw:ssh", NULL },
		{ "box@[]", 3, "[]", NULL },
		{ "a@b@gw", 3, "gw", NULL },
	};

	(void)state;
	expect_all(samples, sizeof(samples) / sizeof(samples[0]));
}

static void
without_a_login_nothing_is_taken_off(void **state)
{
	static const struct sample samples[] = {
		{ "box.gw", 0, "box.gw", NULL },
		{ "gw:22", 0, "gw:22", NULL },
		{ "ssh://box@gw:22", 0, "ssh://box@gw:22", NULL },
		/* Without the first byte these would be options of ssh's, ProxyCommand for one. */
		{ "[-oProxyCommand=x]", 0, "[-oProxyCommand=x]", NULL },
		{ "@-oProxyCommand=x", 0, "@-oProxyCommand=x", NULL },
		{ "@[-oProxyCommand=x]:22", 0, "@[-oProxyCommand=x]:22", NULL },
		{ "", 0, "", NULL },
	};

	(void)state;
	expect_all(samples, sizeof(samples) / sizeof(samples[0]));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_behind_a_login_may_have_a_port),
		cmocka_unit_test(without_a_login_nothing_is_taken_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
