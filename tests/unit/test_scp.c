/* SPDX-License-Identifier: ISC */
/* Which exec strings are ours, and the lines of the protocol. */
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "gateway/scp_command.h"
#include "gateway/scp_line.h"

static void
parse_takes_exactly_what_scp_clients_send(void **state)
{
	static const struct {
		const char *text, *path, *pattern;
		bool sink, recursive, times, directory;
	} cases[] = {
		{ "scp -t x", "x", NULL, true, false, false, false },
		{ "scp -v -r -p -d -t -- x", "x", NULL, true, true, true, true },
		{ "scp -rpf x", "x", NULL, false, true, true, false },
		{ "scp -q -f  /a/b ", "/a/b", NULL, false, false, false, false },
		{ "scp -t 'a b'", "a b", NULL, true, false, false, false },
		{ "scp -t \"a'b\"", "a'b", NULL, true, false, false, false },
		{ "scp -t a\\ b", "a b", NULL, true, false, false, false },
		{ "scp -t ~", ".", NULL, true, false, false, false },
		{ "scp -t ~/x", "x", NULL, true, false, false, false },
		{ "scp -t '~'", "~", NULL, true, false, false, false },
		{ "scp -f *.c", "*.c", "*.c", false, false, false, false },
		{ "scp -f '*'.[ch]", "*.[ch]", "\\*.[ch]", false, false, false, false },
		{ "scp -f '*.c'", "*.c", NULL, false, false, false, false },
		{ "scp -f -- -x", "-x", NULL, false, false, false, false },
		{ "scp -f ''", ".", NULL, false, false, false, false },
	};
	struct scp_command command;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(scp_command_parse(cases[i].text, &command));
		assert_int_equal(command.count, 1);
		assert_string_equal(command.paths[0].text, cases[i].path);
		if (cases[i].pattern == NULL)
			assert_null(command.paths[0].pattern);
		else
			assert_string_equal(command.paths[0].pattern, cases[i].pattern);
		assert_int_equal(command.sink, cases[i].sink);
		assert_int_equal(command.recursive, cases[i].recursive);
		assert_int_equal(command.times, cases[i].times);
		assert_int_equal(command.directory, cases[i].directory);
		scp_command_free(&command);
	}
	assert_true(scp_command_parse("scp -f a 'b c' d", &command));
	assert_int_equal(command.count, 3);
	scp_command_free(&command);
}

static void
parse_leaves_everything_else_to_a_shell(void **state)
{
	static const char *const texts[] = { "scp", "scp ", "scp x y", "scp -t", "scp -t a b",
		"scp -f", "scp -tf x", "scp -t -t x", "scp -t x; rm y", "scp -t x && y",
		"scp -t $HOME", "scp -t `x`", "scp -t \"$x\"", "scp -t x > y", "scp -t x | y",
		"scp -t x & y", "scp -t (x)", "scp -t x\ny", "scp -t ~bob/x", "scp -t 'x",
		"scp -t \"x", "scp -t x\\", "scp -P 22 -t x", "scp --help", "scpx -t y",
		"/usr/bin/scp -t x", "echo scp -t x", " scp -t x", "scp -t {a,b}", "scp -t x #" };
	struct scp_command command;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (scp_command_parse(texts[i], &command))
			fail_msg("%s", texts[i]);
}

static void
lines_are_read(void **state)
{
	struct scp_line line;

	(void)state;
	assert_int_equal(scp_line_parse("C4755 123456789012 a name", &line, NULL), 0);
	assert_int_equal(line.type, 'C');
	assert_int_equal(line.mode, 04755);
	assert_int_equal(line.size, 123456789012);
	assert_string_equal(line.name, "a name");
	scp_line_free(&line);
	assert_int_equal(scp_line_parse("D0755 0 d", &line, NULL), 0);
	assert_int_equal(line.type, 'D');
	scp_line_free(&line);
	assert_int_equal(scp_line_parse("T1183828267 0 1183828268 5", &line, NULL), 0);
	assert_int_equal(line.modified, 1183828267);
	assert_int_equal(line.accessed, 1183828268);
	assert_int_equal(scp_line_parse("E", &line, NULL), 0);
}

static void
lines_that_are_none_are_refused(void **state)
{
	static const char *const texts[] = { "", "X", "C", "C0644", "C0644 1", "C0644 1 ",
		"C0644 1 a/b", "C0644 1 ..", "C0644 1 .", "C0648 1 a", "C644 1 a", "C0644 -1 a",
		"C0644 1x a", "C0644 99999999999999999999 a", "D0755 0 /", "E ", "T1 0 2",
		"T1 0 2 0 ", "T-1 0 2 0", "Tx 0 2 0", "T1 0 2 0 3" };
	struct scp_line line;
	struct error err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (scp_line_parse(texts[i], &line, &err) == 0)
			fail_msg("%s", texts[i]);
		assert_int_equal(err.code, ERROR_INVALID);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_takes_exactly_what_scp_clients_send),
		cmocka_unit_test(parse_leaves_everything_else_to_a_shell),
		cmocka_unit_test(lines_are_read),
		cmocka_unit_test(lines_that_are_none_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
