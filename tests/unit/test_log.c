/* SPDX-License-Identifier: ISC */
/* The log writes to standard error, which each test swaps for a pipe while it logs. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/descriptor.h"
#include "core/base/log.h"

static int saved_stderr = -1;
static int reader = -1;

static int
capture(void **state)
{
	int pipe[2];

	(void)state;
	assert_int_equal(descriptor_pipe(pipe, NULL), 0);
	saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	assert_int_equal(dup2(pipe[1], STDERR_FILENO), STDERR_FILENO);
	descriptor_close(&pipe[1]);
	reader = pipe[0];
	log_open("test", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	log_set_context(0, NULL);
	return 0;
}

/* Gives standard error back and returns what was logged. */
static const char *
logged(void)
{
	static char text[32768];
	size_t used = 0;
	ssize_t got;

	assert_int_equal(dup2(saved_stderr, STDERR_FILENO), STDERR_FILENO);
	while ((got = read(reader, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)got;
	text[used] = '\0';
	return text;
}

static int
release(void **state)
{
	(void)state;
	(void)dup2(saved_stderr, STDERR_FILENO);
	descriptor_close(&saved_stderr);
	descriptor_close(&reader);
	log_open("test", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	return 0;
}

static void
a_line_names_time_level_process_and_text(void **state)
{
	char expected[80];
	const char *line;

	(void)state;
	log_info("listening on %s:%d", "127.0.0.1", 22);
	line = logged();
	(void)snprintf(expected, sizeof(expected), "Z info test[%ld] listening on 127.0.0.1:22\n",
	    (long)getpid());
	assert_int_equal(strlen(line), strlen("2026-01-01T00:00:00.000") + strlen(expected));
	assert_string_equal(line + strlen("2026-01-01T00:00:00.000"), expected);
}

static void
a_line_names_connection_and_login(void **state)
{
	(void)state;
	log_set_context(41, "sandbox+a");
	log_info("x");
	assert_non_null(strstr(logged(), "] c=41 s=sandbox+a x\n"));
}

static void
lines_under_the_level_are_left_out(void **state)
{
	(void)state;
	log_debug("not this");
	log_error("this");
	log_set_level(LOG_LEVEL_ERROR);
	log_info("nor this");
	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("and that");
	assert_null(strstr(logged(), "not this"));
	assert_int_equal(log_level(), LOG_LEVEL_DEBUG);
}

/* What a client says must not look like a line of ours. */
static void
no_text_can_forge_a_line(void **state)
{
	const char *lines;

	(void)state;
	log_set_context(1, "a\n2026-01-01T00:00:00.000Z info login accepted");
	log_info("user %s", "b\n2026-01-01T00:00:00.000Z info forged\r\x1b[2J");
	lines = logged();
	assert_ptr_equal(strchr(lines, '\n'), lines + strlen(lines) - 1);
	assert_null(strchr(lines, '\r'));
	assert_null(strchr(lines, '\x1b'));
	assert_non_null(strstr(lines, "b\\n2026"));
	assert_non_null(strstr(lines, "\\x0d\\x1b[2J"));
}

static void
a_long_text_gives_one_line_that_is_marked_as_cut(void **state)
{
	char text[9000];
	const char *line;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_info("%s", text);
	line = logged();
	assert_true(strlen(line) < 4096);
	assert_string_equal(line + strlen(line) - 5, "x...\n");
}

static void
json_lines_are_json_whatever_the_text(void **state)
{
	const char *line;

	(void)state;
	log_open("test", LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	log_set_context(7, "a\"b");
	log_info("%s", "say \"x\" \\ \n \x01 \xff \xc3\xa9");
	line = logged();
	assert_non_null(strstr(line, "\"level\":\"info\",\"process\":\"test\","));
	assert_non_null(strstr(line, "\"connection\":7,\"login\":\"a\\\"b\","));
	assert_non_null(
	    strstr(line, "\"text\":\"say \\\"x\\\" \\\\ \\n \\u0001 \\u00ff \xc3\xa9\"}\n"));
}

/* A cut inside an escape would leave a broken string behind. */
static void
a_long_json_line_is_still_whole(void **state)
{
	char text[4000];
	const char *line;

	(void)state;
	log_open("test", LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	memset(text, '\x01', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_info("%s", text);
	line = logged();
	assert_true(strlen(line) < 4096);
	assert_string_equal(line + strlen(line) - strlen("\\u0001\"}\n"), "\\u0001\"}\n");
}

/* U+009B is a control character too: terminals take it as the start of an escape sequence. */
static void
escape_covers_the_control_characters_of_unicode(void **state)
{
	char out[64];

	(void)state;
	(void)log_escape(out, sizeof(out),
	    "a\xc2\x9b"
	    "31m\xc2\x80\xc2\x9f",
	    false);
	assert_string_equal(out, "a\\xc2\\x9b31m\\xc2\\x80\\xc2\\x9f");
	(void)log_escape(out, sizeof(out), "\xc2\xa0\xc3\x9b\xe2\x82\xac", false);
	assert_string_equal(out, "\xc2\xa0\xc3\x9b\xe2\x82\xac");
}

static void
escape_never_writes_past_its_space(void **state)
{
	char out[16];
	size_t size;

	(void)state;
	for (size = 8; size <= sizeof(out); size++) {
		memset(out, '#', sizeof(out));
		assert_true(log_escape(out, size, "\x01\x02\xff\n\\\"abc", true) < size);
		assert_int_equal(out[strlen(out)], '\0');
		if (size < sizeof(out))
			assert_int_equal(out[size], '#');
	}
}

static void
fatal_logs_and_exits_with_70(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	pid = fork();
	if (pid == 0)
		log_fatal("the end of %d", 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 70);
	assert_non_null(strstr(logged(), " error test["));
}

#define LOG_TEST(function) cmocka_unit_test_setup_teardown(function, capture, release)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LOG_TEST(a_line_names_time_level_process_and_text),
		LOG_TEST(a_line_names_connection_and_login),
		LOG_TEST(lines_under_the_level_are_left_out),
		LOG_TEST(no_text_can_forge_a_line),
		LOG_TEST(a_long_text_gives_one_line_that_is_marked_as_cut),
		LOG_TEST(json_lines_are_json_whatever_the_text),
		LOG_TEST(a_long_json_line_is_still_whole),
		LOG_TEST(escape_covers_the_control_characters_of_unicode),
		LOG_TEST(escape_never_writes_past_its_space),
		LOG_TEST(fatal_logs_and_exits_with_70),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
