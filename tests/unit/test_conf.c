/* SPDX-License-Identifier: ISC */
/* The configuration: what is read, and what is refused with which words. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conf/conf.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "tests/unit/conf_samples.h"

static void
defaults_hold_in_an_empty_file(void **state)
{
	const struct settings *global;
	struct conf *conf;

	(void)state;
	conf = conf_sample_load("");
	global = conf_global(conf);
	assert_int_equal(conf_login_count(conf), 0);
	assert_string_equal(settings_list(global, "listen")[0], "127.0.0.1:2222");
	assert_null(settings_list(global, "listen")[1]);
	assert_string_equal(settings_text(global, "host_keys"), "/etc/rwsd/host_keys");
	assert_int_equal(settings_number(global, "login_grace_time"), 30000);
	assert_int_equal(settings_number(global, "max_snapshot_bytes"), 1 << 30);
	assert_null(settings_text(global, "on_dispose"));
	assert_null(settings_text(global, "banner"));
	assert_string_equal(settings_list(global, "accept_env")[1], "LC_*");
	assert_false(settings_has(global, "timeout"));
	conf_free(conf);
}

static void
block_goes_over_global_over_environment_over_default(void **state)
{
	struct conf *conf;

	(void)state;
	assert_int_equal(setenv("RWS_TEST_RED_KEY", "from-red", 1), 0);
	assert_int_equal(setenv("RWS_TEST_BLUE_KEY", "from-blue", 1), 0);
	conf = conf_sample_load(
	    "timeout = 5s\nstart_timeout = 9s\nenv = A=1\nenv = B=2\n"
	    "[login one]\ndriver = red\napi_key = mine\ntimeout = 7s\nenv = C=3\n"
	    "[login two]\ndriver = blue\n");
	assert_int_equal(settings_number(conf_login(conf, 0), "timeout"), 7000);
	assert_int_equal(settings_number(conf_login(conf, 1), "timeout"), 5000);
	assert_string_equal(settings_text(conf_login(conf, 0), "api_key"), "mine");
	assert_string_equal(settings_text(conf_login(conf, 1), "api_key"), "from-blue");
	assert_int_equal(settings_number(conf_login(conf, 1), "start_timeout"), 9000);
	assert_string_equal(settings_text(conf_login(conf, 0), "template"), "base");
	assert_true(settings_has(conf_login(conf, 1), "timeout"));
	assert_false(settings_has(conf_login(conf, 1), "kill_grace"));
	assert_string_equal(settings_list(conf_login(conf, 0), "env")[0], "C=3");
	assert_null(settings_list(conf_login(conf, 0), "env")[1]);
	assert_string_equal(settings_list(conf_login(conf, 1), "env")[1], "B=2");
	conf_free(conf);
	assert_int_equal(unsetenv("RWS_TEST_RED_KEY"), 0);
	assert_int_equal(unsetenv("RWS_TEST_BLUE_KEY"), 0);
}

static void
driver_may_be_named_after_its_options_or_globally(void **state)
{
	struct conf *conf;

	(void)state;
	conf = conf_sample_load(
	    "driver = red\napi_key = shared\n[login a]\nstart_timeout = 1s\ndriver = blue\n"
	    "[login b]\ntemplate = big\n");
	assert_int_equal(settings_number(conf_login(conf, 0), "start_timeout"), 1000);
	assert_string_equal(settings_text(conf_login(conf, 0), "api_key"), "shared");
	assert_string_equal(settings_text(conf_login(conf, 1), "template"), "big");
	assert_string_equal(settings_text(conf_login(conf, 1), "driver"), "red");
	conf_free(conf);
}

static void
login_settings_include_the_global_options(void **state)
{
	struct conf *conf;

	(void)state;
	conf = conf_sample_load("gateway = east\n[login a]\ndriver = red\n");
	assert_string_equal(settings_text(conf_login(conf, 0), "gateway"), "east");
	conf_free(conf);
}

static void
logins_are_found_by_name_in_file_order(void **state)
{
	struct conf *conf;

	(void)state;
	conf = conf_sample_load("[login b.b]\ndriver = red\n[  login \t a ]\ndriver = blue\n");
	assert_int_equal(conf_login_count(conf), 2);
	assert_string_equal(conf_login_name(conf, 0), "b.b");
	assert_int_equal(conf_login_find(conf, "a"), 1);
	assert_int_equal(conf_login_find(conf, "b"), -1);
	conf_free(conf);
}

static void
values_are_trimmed_and_keep_hashes_and_quotes_inside(void **state)
{
	struct conf *conf;
	char *const *env;

	(void)state;
	conf = conf_sample_load(
	    "  # a comment\r\n\tenv =  A=1 # no comment \t\r\n"
	    "env = \"B= two \\\"quoted\\\" \\\\ words\\n \"\nenv = C=say \"hi\"");
	env = settings_list(conf_global(conf), "env");
	assert_string_equal(env[0], "A=1 # no comment");
	assert_string_equal(env[1], "B= two \"quoted\" \\ words\n ");
	assert_string_equal(env[2], "C=say \"hi\"");
	conf_free(conf);
}

static void
an_empty_value_empties_a_list(void **state)
{
	struct conf *conf;

	(void)state;
	conf = conf_sample_load("env = A=1\naccept_env =\n[login a]\ndriver = red\nenv = \"\"\n");
	assert_null(settings_list(conf_global(conf), "accept_env")[0]);
	assert_null(settings_list(conf_login(conf, 0), "env")[0]);
	assert_null(settings_list(conf_login(conf, 0), "accept_env")[0]);
	conf_free(conf);
}

static void
lists_take_several_words_or_several_lines(void **state)
{
	char *const *listen;
	struct conf *conf;

	(void)state;
	conf = conf_sample_load("listen = 0.0.0.0:22 [::1]:0\nlisten = 127.0.0.2:65535\n");
	listen = settings_list(conf_global(conf), "listen");
	assert_string_equal(listen[0], "0.0.0.0:22");
	assert_string_equal(listen[1], "[::1]:0");
	assert_string_equal(listen[2], "127.0.0.2:65535");
	assert_null(listen[3]);
	conf_free(conf);
}

static void
relative_paths_start_at_the_files_directory(void **state)
{
	struct conf *conf;

	(void)state;
	conf = conf_sample_load("host_keys = keys\nstate = /abs\nauthorized_keys = a key file\n");
	assert_string_equal(
	    settings_text(conf_global(conf), "host_keys"), conf_sample_path("keys"));
	assert_string_equal(settings_text(conf_global(conf), "state"), "/abs");
	assert_string_equal(
	    settings_list(conf_global(conf), "authorized_keys")[0], conf_sample_path("a key file"));
	conf_free(conf);
}

static void
a_dash_is_a_file_like_any_other(void **state)
{
	struct conf *conf;
	int here;

	(void)state;
	here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(here >= 0);
	assert_int_equal(chdir(conf_sample_path(".")), 0);
	conf_sample_write("-", "gateway = dash\nhost_keys = k\n", 29, 0600);
	conf = conf_load("-", NULL, conf_sample_drivers, &conf_sample_err);
	assert_int_equal(fchdir(here), 0);
	assert_int_equal(close(here), 0);
	assert_non_null(conf);
	assert_string_equal(settings_text(conf_global(conf), "gateway"), "dash");
	assert_string_equal(settings_text(conf_global(conf), "host_keys"), conf_sample_path("k"));
	conf_free(conf);
}

static void
overrides_replace_what_the_file_says(void **state)
{
	static const char *const overrides[] = { "listen=127.0.0.1:0", "listen = 127.0.0.1:1",
		"max_channels=5", "max_channels=6", "a.b.timeout=3s", NULL };
	struct conf *conf;

	(void)state;
	conf = conf_sample_try("listen = 0.0.0.0:22\nmax_channels = 9\n[login a.b]\ndriver = red\n"
			       "timeout = 1h\n",
	    overrides);
	assert_non_null(conf);
	assert_string_equal(settings_list(conf_global(conf), "listen")[0], "127.0.0.1:0");
	assert_string_equal(settings_list(conf_global(conf), "listen")[1], "127.0.0.1:1");
	assert_null(settings_list(conf_global(conf), "listen")[2]);
	assert_int_equal(settings_number(conf_global(conf), "max_channels"), 6);
	assert_int_equal(settings_number(conf_login(conf, 0), "timeout"), 3000);
	conf_free(conf);
}

static void
bad_overrides_are_refused(void **state)
{
	static const char *const cases[][2] = {
		{ "listen", "-o listen: an option is written NAME = VALUE" },
		{ "max_channels=0", "-o max_channels: 0 is not between 1 and 1024" },
		{ "maxchannels=1", "-o maxchannels: unknown option (did you mean max_channels?)" },
		{ "=1", "-o : there is no name before the =" },
		{ "a.listen=127.0.0.1:1",
		    "-o listen: this option belongs in front of the first [login NAME] block" },
	};
	const char *overrides[2] = { NULL, NULL };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		overrides[0] = cases[i][0];
		assert_null(conf_sample_try("[login a]\ndriver = red\n", overrides));
		assert_string_equal(conf_sample_err.message, cases[i][1]);
	}
	overrides[0] = "b.timeout=1s";
	assert_null(conf_sample_try("[login a]\ndriver = red\n", overrides));
	assert_non_null(strstr(conf_sample_err.message, "has no [login b]"));
}

static void
mistakes_are_refused_with_line_name_and_reason(void **state)
{
	static const char *const cases[][2] = {
		{ "\nmax_chanels = 3",
		    "rwsd.conf:2: max_chanels: unknown option (did you mean max_channels?)" },
		{ "zzz = 3", "rwsd.conf:1: zzz: unknown option" },
		{ "max_channels = 3\nmax_channels = 3",
		    "rwsd.conf:2: max_channels: it is given twice" },
		{ "max_channels = many", "rwsd.conf:1: max_channels: \"many\" is not a number" },
		{ "max_channels =", "rwsd.conf:1: max_channels: \"\" is not a number" },
		{ "host_keys =", "rwsd.conf:1: host_keys: there is no value" },
		{ "login_grace_time = 0",
		    "rwsd.conf:1: login_grace_time: 0 is not between 1s and 1d" },
		{ "log_level = loud",
		    "rwsd.conf:1: log_level: \"loud\" is none of: error warning info debug" },
		{ "create_root = maybe",
		    "rwsd.conf:1: create_root: \"maybe\" is neither on nor off" },
		{ "env = A", "rwsd.conf:1: env: \"A\" is not of the form NAME=VALUE" },
		{ "env = 1A=x", "rwsd.conf:1: env: \"1A\" cannot name a variable" },
		{ "accept_env = LC_* A-B",
		    "rwsd.conf:1: accept_env: \"A-B\" is no name of a variable, with or without the "
		    "wildcards * and ?" },
		{ "gateway = a b",
		    "rwsd.conf:1: gateway: \"a b\" is not 1 to 64 of A-Z a-z 0-9 . _ -" },
		{ "listen = localhost:22",
		    "rwsd.conf:1: listen: \"localhost\" is no numeric address (IPv6 stands in brackets)" },
		{ "listen = ::1:22",
		    "rwsd.conf:1: listen: \"\" is no numeric address (IPv6 stands in brackets)" },
		{ "listen = 1.2.3.4",
		    "rwsd.conf:1: listen: \"1.2.3.4\" is not of the form ADDRESS:PORT or [ADDRESS]:PORT" },
		{ "listen = 1.2.3.4:65536",
		    "rwsd.conf:1: listen: port: 65536 is not between 0 and 65535" },
		{ "nonsense", "rwsd.conf:1: nonsense: an option is written NAME = VALUE" },
		{ "= 1", "rwsd.conf:1: : there is no name before the =" },
		{ "banner = \"x", "rwsd.conf:1: banner: the closing quote is missing" },
		{ "banner = \"x\\",
		    "rwsd.conf:1: banner: a backslash in quotes takes one of n r t \" \\" },
		{ "banner = \"x\" y",
		    "rwsd.conf:1: banner: there is text after the closing quote (quotes go around a "
		    "whole value)" },
		{ "[login a", "rwsd.conf:1: the closing ] is missing" },
		{ "[a]", "rwsd.conf:1: [a]: a block is written [login NAME]" },
		{ "[login]", "rwsd.conf:1: [login]: a block is written [login NAME]" },
		{ "[logina]", "rwsd.conf:1: [logina]: a block is written [login NAME]" },
		{ "[login a+b]", "rwsd.conf:1: login a+b: a name is 1 to 64 of A-Z a-z 0-9 . _ -" },
		{ "[login ..]", "rwsd.conf:1: login ..: a name is 1 to 64 of A-Z a-z 0-9 . _ -" },
		{ "[login a]\ndriver = red\n[login a]",
		    "rwsd.conf:3: login a: there is one already, in line 1" },
		{ "[login a]\ndriver = rde",
		    "rwsd.conf:2: driver: there is no driver \"rde\" (did you mean red?)" },
		{ "[login a]\ndriver = red\nlisten = 1.2.3.4:1",
		    "rwsd.conf:3: listen: this option belongs in front of the first [login NAME] block" },
		{ "sandbox_id = x",
		    "rwsd.conf:1: sandbox_id: this option belongs in a [login NAME] block" },
		{ "[login a]\ndriver = red\nstart_timeout = 3s",
		    "rwsd.conf:3: start_timeout: this is an option of driver blue, and the login's is red" },
		{ "[login a]\ntemplate = x",
		    "rwsd.conf:2: template: this is an option of driver red, and the login has none" },
		{ "[login a]\ndriver = red\ntmplate = x",
		    "rwsd.conf:3: tmplate: unknown option (did you mean template?)" },
		{ "start_timeout = soon",
		    "rwsd.conf:1: start_timeout: \"soon\" is not a duration such as 90s or 1h30m" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_null(conf_sample_try(cases[i][0], NULL));
		assert_string_equal(conf_sample_message(), cases[i][1]);
	}
}

static void
nul_bytes_long_lines_and_large_files_are_refused(void **state)
{
	char *text;

	(void)state;
	conf_sample_write(conf_sample_file, "\n\ngateway = a\0b\n", 17, 0600);
	assert_null(conf_load(conf_sample_file, NULL, conf_sample_drivers, &conf_sample_err));
	assert_string_equal(conf_sample_message(), "rwsd.conf:3: there is a NUL byte");

	text = memory_allocate((1 << 20) + 1);
	memset(text, '#', (1 << 20) + 1);
	conf_sample_write(conf_sample_file, text, (1 << 16) + 1, 0600);
	assert_null(conf_load(conf_sample_file, NULL, conf_sample_drivers, &conf_sample_err));
	assert_string_equal(conf_sample_message(), "rwsd.conf:1: the line is over 65536 bytes");
	conf_sample_write(conf_sample_file, text, 1 << 16, 0600);
	conf_free(conf_load(conf_sample_file, NULL, conf_sample_drivers, &conf_sample_err));
	memset(text, '\n', (1 << 20) + 1);
	conf_sample_write(conf_sample_file, text, (1 << 20) + 1, 0600);
	assert_null(conf_load(conf_sample_file, NULL, conf_sample_drivers, &conf_sample_err));
	assert_int_equal(conf_sample_err.code, ERROR_TOO_LARGE);
	memory_free(text);
}

static void
a_missing_file_is_named(void **state)
{
	(void)state;
	assert_null(
	    conf_load(conf_sample_path("absent"), NULL, conf_sample_drivers, &conf_sample_err));
	assert_non_null(strstr(conf_sample_err.message, "/absent: No such file or directory"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, conf_sample_start, conf_sample_end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(defaults_hold_in_an_empty_file),
		TEST(block_goes_over_global_over_environment_over_default),
		TEST(driver_may_be_named_after_its_options_or_globally),
		TEST(login_settings_include_the_global_options),
		TEST(logins_are_found_by_name_in_file_order),
		TEST(values_are_trimmed_and_keep_hashes_and_quotes_inside),
		TEST(an_empty_value_empties_a_list),
		TEST(lists_take_several_words_or_several_lines),
		TEST(relative_paths_start_at_the_files_directory),
		TEST(a_dash_is_a_file_like_any_other),
		TEST(overrides_replace_what_the_file_says),
		TEST(bad_overrides_are_refused),
		TEST(mistakes_are_refused_with_line_name_and_reason),
		TEST(nul_bytes_long_lines_and_large_files_are_refused),
		TEST(a_missing_file_is_named),
	};

	return cmocka_run_group_tests_name("conf", tests, NULL, NULL);
}
