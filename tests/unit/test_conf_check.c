/* SPDX-License-Identifier: ISC */
/* The configuration: secrets, permissions, what is printed, where values come from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

static const char *const places[] = { "host_keys=h", "state=s", NULL };

static void
secrets_come_from_files_too(void **state)
{
	struct conf *conf;

	(void)state;
	conf_sample_write(conf_sample_path("token"), "s3cret\nrest\n", 12, 0600);
	conf = conf_sample_load("[login a]\ndriver = red\napi_key = file:token\n");
	assert_string_equal(settings_text(conf_login(conf, 0), "api_key"), "s3cret");
	assert_int_equal(chmod(conf_sample_path("token"), 0604), 0);
	conf_free(conf);

	conf = conf_sample_try("[login a]\ndriver = red\nkey = x\napi_key = file:token\n", places);
	assert_non_null(conf);
	assert_int_equal(conf_check(conf, &conf_sample_err), -1);
	assert_non_null(strstr(conf_sample_err.message, "rwsd.conf:4: api_key: "));
	assert_non_null(
	    strstr(conf_sample_err.message, "/token: everyone may read this secret (mode 604)"));
	conf_free(conf);

	assert_null(conf_sample_try("[login a]\ndriver = red\napi_key = file:none\n", NULL));
	assert_non_null(strstr(conf_sample_err.message, "rwsd.conf:3: api_key: open "));
}

/* Loads a configuration, its file having the mode, and returns what conf_check says. */
static int
check_with(const char *text, const char *const *overrides, mode_t mode)
{
	struct conf *conf;
	int result;

	conf = conf_sample_try(text, overrides);
	assert_non_null(conf);
	assert_int_equal(chmod(conf_sample_file, mode), 0);
	memset(&conf_sample_err, 0, sizeof(conf_sample_err));
	result = conf_check(conf, &conf_sample_err);
	conf_free(conf);
	return result;
}

/* The same with directories that can be made, which those that hold by default may not. */
static int
check(const char *text, mode_t mode)
{
	return check_with(text, places, mode);
}

static void
check_wants_a_driver_and_a_key_for_each_login(void **state)
{
	(void)state;
	assert_int_equal(check("[login a]\ndriver = red\nkey = x\n", 0644), 0);
	assert_int_equal(check("key = x\n\n[login a]\n", 0644), -1);
	assert_string_equal(conf_sample_message(), "rwsd.conf:3: login a: no driver is named");
	assert_int_equal(check("[login a]\ndriver = red\n", 0644), -1);
	assert_string_equal(conf_sample_message(),
	    "rwsd.conf:1: login a: neither authorized_keys nor key says who may log in");
}

static void
check_asks_the_driver_and_names_the_place(void **state)
{
	(void)state;
	assert_int_equal(check("[login a]\ndriver = red\nkey = x\nsandbox_id = x\n", 0644), 0);
	assert_int_equal(check("[login a]\ndriver = red\nkey = x\nsandbox_id = none\n", 0644), -1);
	assert_string_equal(conf_sample_message(), "rwsd.conf:4: sandbox_id: it is none");
	assert_int_equal(
	    check("\n[login a]\ndriver = red\nkey = x\nsandbox_id = both\n", 0644), -1);
	assert_string_equal(conf_sample_message(), "rwsd.conf:2: login a: there is no template");
}

static void
check_refuses_key_files_that_others_may_write(void **state)
{
	static const char text[] = "[login a]\ndriver = red\nauthorized_keys = good\n"
				   "authorized_keys = bad\n";
	static const struct {
		mode_t mode;
		int result;
	} cases[] = { { 0644, 0 }, { 0400, 0 }, { 0664, -1 }, { 0646, -1 } };
	size_t i;

	(void)state;
	conf_sample_write(conf_sample_path("good"), "", 0, 0600);
	assert_int_equal(check(text, 0600), -1);
	assert_non_null(strstr(conf_sample_err.message, "rwsd.conf:4: authorized_keys: "));
	assert_non_null(strstr(conf_sample_err.message, "/bad: No such file or directory"));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		conf_sample_write(conf_sample_path("bad"), "", 0, cases[i].mode);
		assert_int_equal(check(text, 0600), cases[i].result);
		if (cases[i].result != 0)
			assert_non_null(
			    strstr(conf_sample_err.message, "/bad: group or others may write it"));
	}
	assert_int_equal(unlink(conf_sample_path("bad")), 0);
	assert_int_equal(mkdir(conf_sample_path("bad"), 0700), 0);
	assert_int_equal(check(text, 0600), -1);
	assert_non_null(strstr(conf_sample_err.message, "/bad: not a regular file"));
}

static void
check_refuses_directories_that_others_may_write(void **state)
{
	(void)state;
	assert_int_equal(check_with("state = s\nhost_keys = h\n", NULL, 0600), 0);
	assert_int_equal(mkdir(conf_sample_path("s"), 0700), 0);
	assert_int_equal(check_with("state = s\nhost_keys = h\n", NULL, 0600), 0);
	assert_int_equal(chmod(conf_sample_path("s"), 0770), 0);
	assert_int_equal(check_with("state = s\nhost_keys = h\n", NULL, 0600), -1);
	assert_non_null(strstr(conf_sample_err.message, "rwsd.conf:1: state: "));
	conf_sample_write(conf_sample_path("h"), "", 0, 0600);
	assert_int_equal(chmod(conf_sample_path("s"), 0755), 0);
	assert_int_equal(check_with("state = s\nhost_keys = h\n", NULL, 0600), -1);
	assert_non_null(strstr(conf_sample_err.message, "/h: not a directory"));
}

static void
check_refuses_directories_that_cannot_be_made(void **state)
{
	(void)state;
	assert_int_equal(check_with("state = s\nhost_keys = s//\n", NULL, 0600), 0);
	assert_int_equal(check_with("host_keys = h\nstate = none/s\n", NULL, 0600), -1);
	assert_non_null(strstr(conf_sample_err.message, "rwsd.conf:2: state: "));
	assert_non_null(strstr(conf_sample_err.message, "/none/: No such file or directory"));
	assert_int_equal(check_with("state = s\nhost_keys = none/h/\n", NULL, 0600), -1);
	assert_non_null(strstr(conf_sample_err.message, "rwsd.conf:2: host_keys: "));
}

static void
check_refuses_secrets_that_everyone_may_read(void **state)
{
	(void)state;
	assert_int_equal(check("[login a]\ndriver = red\nkey = x\napi_key = s3cret\n", 0640), 0);
	assert_int_equal(check("[login a]\ndriver = red\nkey = x\napi_key = s3cret\n", 0644), -1);
	assert_non_null(strstr(conf_sample_err.message, "rwsd.conf:4: api_key: "));
	assert_null(strstr(conf_sample_err.message, "s3cret"));
	assert_int_equal(check("api_key = s3cret\n", 0644), -1);
	assert_non_null(strstr(conf_sample_err.message, "rwsd.conf:1: api_key: "));
	assert_int_equal(check("", 0646), -1);
	assert_non_null(strstr(conf_sample_err.message, "rwsd.conf: everyone may write it"));
}

/* What conf_print writes; the caller frees it. */
static char *
print(const struct conf *conf)
{
	char *text;
	size_t size;
	FILE *stream;

	stream = open_memstream(&text, &size);
	assert_non_null(stream);
	conf_print(conf, stream);
	assert_int_equal(fclose(stream), 0);
	return text;
}

static void
print_loads_again_to_the_same(void **state)
{
	struct conf *conf;
	char *first, *second;

	(void)state;
	conf = conf_sample_load(
	    "listen = 0.0.0.0:1 [::]:2\nbanner = \" two\\nlines \"\nenv = A=\"\naccept_env =\n"
	    "template = \"\\\"q\\\"\"\nmax_file_bytes = 1536MiB\ntimeout = 90s\n"
	    "[login a]\ndriver = red\nkey = ssh-ed25519 AAAA a b\nroot = #x\nenv = B= \\n\n"
	    "[login b]\ndriver = blue\nmax_stream_bytes = 0\n");
	first = print(conf);
	conf_free(conf);
	conf = conf_sample_load(first);
	second = print(conf);
	assert_string_equal(first, second);
	assert_string_equal(settings_text(conf_global(conf), "banner"), " two\nlines ");
	assert_false(settings_has(conf_login(conf, 0), "max_stream_bytes"));
	assert_true(settings_has(conf_login(conf, 1), "max_stream_bytes"));
	assert_non_null(strstr(first, "\n#log_level = info\n"));
	assert_non_null(strstr(first, "listen = 0.0.0.0:1 [::]:2\n"));
	assert_non_null(strstr(first, "\naccept_env = \"\"\n"));
	assert_non_null(strstr(first, "\ntemplate = \"\\\"q\\\"\"\n"));
	conf_free(conf);
	free(first);
	free(second);
}

static void
print_hides_secrets(void **state)
{
	struct conf *conf;
	char *text;

	(void)state;
	conf = conf_sample_load("api_key = gl0bal\n[login a]\ndriver = red\napi_key = s3cret\n"
				"[login b]\ndriver = blue\n");
	text = print(conf);
	assert_null(strstr(text, "gl0bal"));
	assert_null(strstr(text, "s3cret"));
	assert_non_null(strstr(text, "\napi_key = ********\n"));
	conf_free(conf);
	free(text);
}

static void
assert_origin(const struct conf *conf, const char *option, size_t entry, const char *expected)
{
	char *origin;

	origin = conf_login_origin(conf, 0, option, entry);
	assert_non_null(strstr(origin, expected));
	assert_string_equal(origin + strlen(origin) - strlen(expected), expected);
	memory_free(origin);
}

static void
origins_say_where_a_value_was_given(void **state)
{
	static const char *const overrides[] = { "a.cwd=x", NULL };
	struct conf *conf;

	(void)state;
	assert_int_equal(setenv("RWS_TEST_RED_KEY", "x", 1), 0);
	conf = conf_sample_try(
	    "timeout = 1s\nkey = g\n[login a]\ndriver = red\nkey = one\nkey = two\n", overrides);
	assert_non_null(conf);
	assert_origin(conf, "key", 0, "rwsd.conf:5");
	assert_origin(conf, "key", 1, "rwsd.conf:6");
	assert_origin(conf, "timeout", 0, "rwsd.conf:1");
	assert_origin(conf, "cwd", 0, "-o");
	assert_origin(conf, "api_key", 0, "RWS_TEST_RED_KEY");
	assert_origin(conf, "kill_grace", 0, "rwsd.conf");
	conf_free(conf);
	assert_int_equal(unsetenv("RWS_TEST_RED_KEY"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, conf_sample_start, conf_sample_end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(secrets_come_from_files_too),
		TEST(check_wants_a_driver_and_a_key_for_each_login),
		TEST(check_asks_the_driver_and_names_the_place),
		TEST(check_refuses_key_files_that_others_may_write),
		TEST(check_refuses_directories_that_others_may_write),
		TEST(check_refuses_directories_that_cannot_be_made),
		TEST(check_refuses_secrets_that_everyone_may_read),
		TEST(print_loads_again_to_the_same),
		TEST(print_hides_secrets),
		TEST(origins_say_where_a_value_was_given),
	};

	return cmocka_run_group_tests_name("conf check", tests, NULL, NULL);
}
