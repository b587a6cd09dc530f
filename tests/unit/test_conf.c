/* SPDX-License-Identifier: ISC */
/* The configuration: what is read, what is refused and with which words, what is printed. */
#include <fcntl.h>
#include <ftw.h>
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
#include "conf/listen.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/number.h"

#define OPTION_ROW(name, type, scope, standard, environment)                         \
	{                                                                            \
		name, type, scope, 0, INT64_C(1) << 40, standard, NULL, environment, \
		    "For the tests."                                                 \
	}

/* Two drivers with an option of the same name that are two options, as E2B and Daytona have. */
static const struct option red_options[] = {
	OPTION_ROW("api_key", OPTION_SECRET, OPTION_BOTH, NULL, "RWS_TEST_RED_KEY"),
	OPTION_ROW("template", OPTION_TEXT, OPTION_BOTH, "base", NULL),
	OPTION_ROW("sandbox_id", OPTION_TEXT, OPTION_LOGIN, NULL, NULL),
	{ .name = NULL },
};
static const struct option blue_options[] = {
	OPTION_ROW("api_key", OPTION_SECRET, OPTION_BOTH, NULL, "RWS_TEST_BLUE_KEY"),
	OPTION_ROW("start_timeout", OPTION_DURATION, OPTION_BOTH, "60s", NULL),
	{ .name = NULL },
};
static const struct conf_driver drivers_known[] = {
	{ "red", red_options },
	{ "blue", blue_options },
	{ NULL, NULL },
};

static char directory[64];
static char file[96];
static struct error err;

static int
make_directory(void **state)
{
	(void)state;
	(void)snprintf(directory, sizeof(directory), "/tmp/test_conf.XXXXXX");
	assert_non_null(mkdtemp(directory));
	(void)snprintf(file, sizeof(file), "%s/rwsd.conf", directory);
	memset(&err, 0, sizeof(err));
	return 0;
}

static int
remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status;
	(void)kind;
	(void)where;
	return remove(path);
}

static int
remove_directory(void **state)
{
	(void)state;
	return nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void
write_file(const char *path, const void *data, size_t size, mode_t mode)
{
	int fd;

	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(descriptor_write(fd, data, size, NULL), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

/* A path in the directory; valid until the fourth next call. */
static const char *
in_directory(const char *name)
{
	static char paths[4][128];
	static size_t next;
	char *path;

	path = paths[next++ % 4];
	(void)snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

/* Loads text with overrides, which may be NULL. */
static struct conf *
load_with(const char *text, const char *const *overrides)
{
	struct conf *conf;
	char **list;
	size_t i;

	write_file(file, text, strlen(text), 0600);
	list = memory_zeroed(1, sizeof(*list));
	for (i = 0; overrides != NULL && overrides[i] != NULL; i++)
		list = memory_list_add(list, i, overrides[i]);
	conf = conf_load(file, list, drivers_known, &err);
	memory_list_free(list);
	return conf;
}

static struct conf *
load(const char *text)
{
	struct conf *conf;

	conf = load_with(text, NULL);
	if (conf == NULL)
		fail_msg("%s", err.message);
	return conf;
}

/* The message without the directory, which differs from run to run. */
static const char *
message(void)
{
	size_t length;

	length = strlen(directory) + 1;
	if (strncmp(err.message, directory, strlen(directory)) == 0)
		return err.message + length;
	return err.message;
}

static void
defaults_hold_in_an_empty_file(void **state)
{
	const struct settings *global;
	struct conf *conf;

	(void)state;
	conf = load("");
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
	conf = load("timeout = 5s\nstart_timeout = 9s\nenv = A=1\nenv = B=2\n"
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
	conf = load("driver = red\napi_key = shared\n[login a]\nstart_timeout = 1s\ndriver = blue\n"
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
	conf = load("gateway = east\n[login a]\ndriver = red\n");
	assert_string_equal(settings_text(conf_login(conf, 0), "gateway"), "east");
	conf_free(conf);
}

static void
logins_are_found_by_name_in_file_order(void **state)
{
	struct conf *conf;

	(void)state;
	conf = load("[login b.b]\ndriver = red\n[  login \t a ]\ndriver = blue\n");
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
	conf = load("  # a comment\r\n\tenv =  A=1 # no comment \t\r\n"
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
	conf = load("env = A=1\naccept_env =\n[login a]\ndriver = red\nenv = \"\"\n");
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
	conf = load("listen = 0.0.0.0:22 [::1]:0\nlisten = 127.0.0.2:65535\n");
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
	conf = load("host_keys = keys\nstate = /abs\nauthorized_keys = a key file\n");
	assert_string_equal(settings_text(conf_global(conf), "host_keys"), in_directory("keys"));
	assert_string_equal(settings_text(conf_global(conf), "state"), "/abs");
	assert_string_equal(
	    settings_list(conf_global(conf), "authorized_keys")[0], in_directory("a key file"));
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
	assert_int_equal(chdir(directory), 0);
	write_file("-", "gateway = dash\nhost_keys = k\n", 29, 0600);
	conf = conf_load("-", NULL, drivers_known, &err);
	assert_int_equal(fchdir(here), 0);
	assert_int_equal(close(here), 0);
	assert_non_null(conf);
	assert_string_equal(settings_text(conf_global(conf), "gateway"), "dash");
	assert_string_equal(settings_text(conf_global(conf), "host_keys"), in_directory("k"));
	conf_free(conf);
}

static void
overrides_replace_what_the_file_says(void **state)
{
	static const char *const overrides[] = { "listen=127.0.0.1:0", "listen = 127.0.0.1:1",
		"max_channels=5", "max_channels=6", "a.b.timeout=3s", NULL };
	struct conf *conf;

	(void)state;
	conf = load_with("listen = 0.0.0.0:22\nmax_channels = 9\n[login a.b]\ndriver = red\n"
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
		assert_null(load_with("[login a]\ndriver = red\n", overrides));
		assert_string_equal(err.message, cases[i][1]);
	}
	overrides[0] = "b.timeout=1s";
	assert_null(load_with("[login a]\ndriver = red\n", overrides));
	assert_non_null(strstr(err.message, "has no [login b]"));
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
		    "rwsd.conf:1: log_level: \"loud\" is none of: error info debug" },
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
		assert_null(load_with(cases[i][0], NULL));
		assert_string_equal(message(), cases[i][1]);
	}
}

static void
nul_bytes_long_lines_and_large_files_are_refused(void **state)
{
	char *text;

	(void)state;
	write_file(file, "\n\ngateway = a\0b\n", 17, 0600);
	assert_null(conf_load(file, NULL, drivers_known, &err));
	assert_string_equal(message(), "rwsd.conf:3: there is a NUL byte");

	text = memory_allocate((1 << 20) + 1);
	memset(text, '#', (1 << 20) + 1);
	write_file(file, text, (1 << 16) + 1, 0600);
	assert_null(conf_load(file, NULL, drivers_known, &err));
	assert_string_equal(message(), "rwsd.conf:1: the line is over 65536 bytes");
	write_file(file, text, 1 << 16, 0600);
	conf_free(conf_load(file, NULL, drivers_known, &err));
	memset(text, '\n', (1 << 20) + 1);
	write_file(file, text, (1 << 20) + 1, 0600);
	assert_null(conf_load(file, NULL, drivers_known, &err));
	assert_int_equal(err.code, ERROR_TOO_LARGE);
	memory_free(text);
}

static void
a_missing_file_is_named(void **state)
{
	(void)state;
	assert_null(conf_load(in_directory("absent"), NULL, drivers_known, &err));
	assert_non_null(strstr(err.message, "/absent: No such file or directory"));
}

static void
secrets_come_from_files_too(void **state)
{
	struct conf *conf;

	(void)state;
	write_file(in_directory("token"), "s3cret\nrest\n", 12, 0600);
	conf = load("[login a]\ndriver = red\napi_key = file:token\n");
	assert_string_equal(settings_text(conf_login(conf, 0), "api_key"), "s3cret");
	assert_int_equal(chmod(in_directory("token"), 0604), 0);
	conf_free(conf);

	conf = load("[login a]\ndriver = red\nkey = x\napi_key = file:token\n");
	assert_int_equal(conf_check(conf, &err), -1);
	assert_non_null(strstr(err.message, "rwsd.conf:4: api_key: "));
	assert_non_null(strstr(err.message, "/token: everyone may read this secret (mode 604)"));
	conf_free(conf);

	assert_null(load_with("[login a]\ndriver = red\napi_key = file:none\n", NULL));
	assert_non_null(strstr(err.message, "rwsd.conf:3: api_key: open "));
}

/* Loads a configuration, its file having the mode, and returns what conf_check says. */
static int
check(const char *text, mode_t mode)
{
	struct conf *conf;
	int result;

	conf = load(text);
	assert_int_equal(chmod(file, mode), 0);
	memset(&err, 0, sizeof(err));
	result = conf_check(conf, &err);
	conf_free(conf);
	return result;
}

static void
check_wants_a_driver_and_a_key_for_each_login(void **state)
{
	(void)state;
	assert_int_equal(check("[login a]\ndriver = red\nkey = x\n", 0644), 0);
	assert_int_equal(check("key = x\n\n[login a]\n", 0644), -1);
	assert_string_equal(message(), "rwsd.conf:3: login a: no driver is named");
	assert_int_equal(check("[login a]\ndriver = red\n", 0644), -1);
	assert_string_equal(
	    message(), "rwsd.conf:1: login a: neither authorized_keys nor key says who may log in");
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
	write_file(in_directory("good"), "", 0, 0600);
	assert_int_equal(check(text, 0600), -1);
	assert_non_null(strstr(err.message, "rwsd.conf:4: authorized_keys: "));
	assert_non_null(strstr(err.message, "/bad: No such file or directory"));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_file(in_directory("bad"), "", 0, cases[i].mode);
		assert_int_equal(check(text, 0600), cases[i].result);
		if (cases[i].result != 0)
			assert_non_null(strstr(err.message, "/bad: group or others may write it"));
	}
	assert_int_equal(unlink(in_directory("bad")), 0);
	assert_int_equal(mkdir(in_directory("bad"), 0700), 0);
	assert_int_equal(check(text, 0600), -1);
	assert_non_null(strstr(err.message, "/bad: not a regular file"));
}

static void
check_refuses_directories_that_others_may_write(void **state)
{
	(void)state;
	assert_int_equal(check("state = s\nhost_keys = h\n", 0600), 0);
	assert_int_equal(mkdir(in_directory("s"), 0700), 0);
	assert_int_equal(check("state = s\nhost_keys = h\n", 0600), 0);
	assert_int_equal(chmod(in_directory("s"), 0770), 0);
	assert_int_equal(check("state = s\nhost_keys = h\n", 0600), -1);
	assert_non_null(strstr(err.message, "rwsd.conf:1: state: "));
	write_file(in_directory("h"), "", 0, 0600);
	assert_int_equal(chmod(in_directory("s"), 0755), 0);
	assert_int_equal(check("state = s\nhost_keys = h\n", 0600), -1);
	assert_non_null(strstr(err.message, "/h: not a directory"));
}

static void
check_refuses_secrets_that_everyone_may_read(void **state)
{
	(void)state;
	assert_int_equal(check("[login a]\ndriver = red\nkey = x\napi_key = s3cret\n", 0640), 0);
	assert_int_equal(check("[login a]\ndriver = red\nkey = x\napi_key = s3cret\n", 0644), -1);
	assert_non_null(strstr(err.message, "rwsd.conf:4: api_key: "));
	assert_null(strstr(err.message, "s3cret"));
	assert_int_equal(check("api_key = s3cret\n", 0644), -1);
	assert_non_null(strstr(err.message, "rwsd.conf:1: api_key: "));
	assert_int_equal(check("", 0646), -1);
	assert_non_null(strstr(err.message, "rwsd.conf: everyone may write it"));
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
	conf = load(
	    "listen = 0.0.0.0:1 [::]:2\nbanner = \" two\\nlines \"\nenv = A=\"\naccept_env =\n"
	    "template = \"\\\"q\\\"\"\nmax_file_bytes = 1536MiB\ntimeout = 90s\n"
	    "[login a]\ndriver = red\nkey = ssh-ed25519 AAAA a b\nroot = #x\nenv = B= \\n\n"
	    "[login b]\ndriver = blue\nmax_stream_bytes = 0\n");
	first = print(conf);
	conf_free(conf);
	conf = load(first);
	second = print(conf);
	assert_string_equal(first, second);
	assert_string_equal(settings_text(conf_global(conf), "banner"), " two\nlines ");
	assert_false(settings_has(conf_login(conf, 0), "max_stream_bytes"));
	assert_true(settings_has(conf_login(conf, 1), "max_stream_bytes"));
	assert_non_null(strstr(first, "\n#log_level = info\n"));
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
	conf = load("api_key = gl0bal\n[login a]\ndriver = red\napi_key = s3cret\n"
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
	conf = load_with(
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

/* How the page says what values an option takes: the beginning of its text. */
static const char *
described_type(const struct option *option, char *out, size_t size)
{
	static const char *const words[] = {
		[OPTION_TEXT] = "Text",
		[OPTION_PATH] = "Path.",
		[OPTION_BOOLEAN] = "Boolean.",
		[OPTION_LIST] = "List.",
		[OPTION_PAIRS] = "Pairs.",
		[OPTION_LINES] = "Lines.",
		[OPTION_PATHS] = "Paths.",
	};
	char low[NUMBER_TEXT_MAX], high[NUMBER_TEXT_MAX];

	switch (option->type) {
	case OPTION_NUMBER:
		(void)snprintf(
		    out, size, "Number, %ld to %ld.", (long)option->min, (long)option->max);
		return out;
	case OPTION_DURATION:
		number_format_duration(low, option->min);
		number_format_duration(high, option->max);
		break;
	case OPTION_SIZE:
		number_format_size(low, option->min);
		number_format_size(high, option->max);
		break;
	default:
		return words[option->type];
	}
	(void)snprintf(out, size, "%s, %s%s%s", option->type == OPTION_SIZE ? "Size" : "Duration",
	    option->min == 0 ? "at most" : low, option->min == 0 ? " " : " to ", high);
	return out;
}

/* Checks the part of the page on one option, text being what follows its heading. */
static void
check_entry(const struct option *option, char *text)
{
	char expected[128], word[32];
	const char *choices, *type;
	char *end;

	end = strstr(text, "\n.Pq default");
	assert_non_null(end);
	(void)snprintf(expected, sizeof(expected), "\n.Pq default : %s\n",
	    option->standard == NULL ? "none" : option->standard);
	if (strncmp(end, expected, strlen(expected)) != 0)
		fail_msg("rwsd.conf.5 has another default for %s", option->name);
	*end = '\0';
	if (option->type == OPTION_CHOICE) {
		choices = option->choices;
		for (; sscanf(choices, "%31s", word) == 1; choices += strcspn(choices, " ")) {
			if (strstr(text, word) == NULL)
				fail_msg(
				    "rwsd.conf.5 does not explain %s = %s", option->name, word);
			choices += strspn(choices, " ");
		}
	} else {
		type = described_type(option, expected, sizeof(expected));
		if (strncmp(text, type, strlen(type)) != 0)
			fail_msg("rwsd.conf.5 does not say \"%s\" of %s", type, option->name);
	}
	*end = '\n';
}

/*
 * The manual page and the table name the same options, each with its type, bounds and default. The
 * page has an option as ".It Ic NAME", then its type, and last its default.
 */
static void
manual_page_has_exactly_the_options_of_the_table(void **state)
{
	const struct option *option;
	char *page, *at, name[64], heading[80];
	size_t listed, rows;

	(void)state;
	page = descriptor_read_file(AT_FDCWD, "conf/rwsd.conf.5", 1 << 20, NULL, &err);
	if (page == NULL)
		fail_msg("%s (tests run at the top of the tree)", err.message);
	rows = 0;
	for (option = conf_options; option->name != NULL; option++, rows++) {
		(void)snprintf(heading, sizeof(heading), "\n.It Ic %s\n", option->name);
		at = strstr(page, heading);
		if (at == NULL)
			fail_msg("rwsd.conf.5 does not explain %s", option->name);
		else
			check_entry(option, at + strlen(heading));
	}
	listed = 0;
	for (at = page; (at = strstr(at, "\n.It Ic ")) != NULL; at++, listed++) {
		assert_int_equal(sscanf(at, "\n.It Ic %63s", name), 1);
		for (option = conf_options; option->name != NULL; option++)
			if (strcmp(option->name, name) == 0)
				break;
		if (option->name == NULL)
			fail_msg("rwsd.conf.5 explains %s, which is no option", name);
	}
	assert_int_equal(listed, rows);
	memory_free(page);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

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
		TEST(secrets_come_from_files_too),
		TEST(check_wants_a_driver_and_a_key_for_each_login),
		TEST(check_refuses_key_files_that_others_may_write),
		TEST(check_refuses_directories_that_others_may_write),
		TEST(check_refuses_secrets_that_everyone_may_read),
		TEST(print_loads_again_to_the_same),
		TEST(print_hides_secrets),
		TEST(origins_say_where_a_value_was_given),
		TEST(manual_page_has_exactly_the_options_of_the_table),
	};

	return cmocka_run_group_tests_name("conf", tests, NULL, NULL);
}
