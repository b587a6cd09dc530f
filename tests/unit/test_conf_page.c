/* SPDX-License-Identifier: ISC */
/* rwsd.conf(5) beside the table of options. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conf/conf.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/driver.h"

/* How the page says what values an option takes: the beginning of its text. */
static const char *
described_type(const struct option *option, char *out, size_t size)
{
	static const char *const words[] = {
		[OPTION_TEXT] = "Text",
		[OPTION_SECRET] = "Secret.",
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
	const char *choices, *standard, *type;
	char *end;

	end = strstr(text, "\n.Pq default");
	assert_non_null(end);
	standard = option->standard == NULL ? "none" : option->standard;
	/* mdoc sets a bare full stop without a space, and behind the parenthesis. */
	(void)snprintf(expected, sizeof(expected), "\n.Pq default : %s%s\n",
	    *standard == '.' ? "\\&" : "", standard);
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

/* The entry on an option in a part of the page. */
static void
check_option(const struct option *option, char *part)
{
	char heading[80], *at;

	(void)snprintf(heading, sizeof(heading), "\n.It Ic %s\n", option->name);
	at = strstr(part, heading);
	if (at == NULL)
		fail_msg("rwsd.conf.5 does not explain %s", option->name);
	else
		check_entry(option, at + strlen(heading));
}

/* A part of the page explains the options of the table and no others. */
static void
check_part(const struct option *table, char *part)
{
	const struct option *option;
	size_t listed, rows;
	char name[64], *at;

	rows = 0;
	for (option = table; option->name != NULL; option++, rows++)
		check_option(option, part);
	listed = 0;
	for (at = part; (at = strstr(at, "\n.It Ic ")) != NULL; at++, listed++) {
		assert_int_equal(sscanf(at, "\n.It Ic %63s", name), 1);
		for (option = table; option->name != NULL; option++)
			if (strcmp(option->name, name) == 0)
				break;
		if (option->name == NULL)
			fail_msg("rwsd.conf.5 explains %s, which is no option here", name);
	}
	assert_int_equal(listed, rows);
}

/*
 * The manual page and the tables name the same options, each with its type, bounds and default. The
 * page has an option as ".It Ic NAME", then its type, and last its default; those of a driver in a
 * part of their own.
 */
static void
manual_page_has_exactly_the_options_of_the_tables(void **state)
{
	char *page, *parts[16] = { NULL }, heading[80];
	struct error err;
	size_t i;

	(void)state;
	page = descriptor_read_file(AT_FDCWD, "conf/rwsd.conf.5", 1 << 20, NULL, &err);
	if (page == NULL) {
		fail_msg("%s (tests run at the top of the tree)", err.message);
		return;
	}
	for (i = 0; driver_kinds[i] != NULL; i++) {
		(void)snprintf(heading, sizeof(heading), "\n.Ss Options of the %s driver\n",
		    driver_kinds[i]->name);
		parts[i] = strstr(page, heading);
		if (parts[i] == NULL) {
			fail_msg("rwsd.conf.5 does not explain driver %s", driver_kinds[i]->name);
			return;
		}
	}
	/* Cut apart only now, so that each part ends where the next begins. */
	for (i = 0; driver_kinds[i] != NULL; i++)
		*parts[i] = '\0';
	check_part(conf_options, page);
	for (i = 0; driver_kinds[i] != NULL; i++)
		check_part(driver_kinds[i]->options, parts[i] + 1);
	memory_free(page);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(manual_page_has_exactly_the_options_of_the_tables),
	};

	return cmocka_run_group_tests_name("conf page", tests, NULL, NULL);
}
