/* SPDX-License-Identifier: ISC */
/* What a command is told from outside: when it is sent, in which order, and what is dropped. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/driver.h"
#include "core/marker.h"
#include "core/news.h"

struct driver_operation {
	bool is_under_way;
};

static struct {
	struct loop *loop;
	struct news *news;
	struct marker marker;
	struct driver_operation operation;
	driver_result_fn *done;
	void *argument;
	char said[256]; /* the arguments of the script that was run last */
	unsigned runs, cancels;
} fixture;

static struct driver_operation *
run(struct driver_sandbox *sandbox, char *const *argv, const void *input, size_t input_size,
    size_t max_output, driver_result_fn *done, void *argument)
{
	size_t used = 0;

	(void)sandbox;
	(void)input;
	(void)input_size;
	(void)max_output;
	fixture.said[0] = '\0';
	/* sh -c TEXT NAME, and then the arguments. */
	for (argv += 3; *argv != NULL; argv++) {
		(void)snprintf(fixture.said + used, sizeof(fixture.said) - used, "%s%s",
		    used == 0 ? "" : " ", *argv);
		used = strlen(fixture.said);
	}
	fixture.runs++;
	fixture.done = done;
	fixture.argument = argument;
	fixture.operation.is_under_way = true;
	return &fixture.operation;
}

static void
cancel(struct driver_operation *operation)
{
	assert_true(operation->is_under_way);
	operation->is_under_way = false;
	fixture.cancels++;
}

static const struct driver fake = { .run = run, .cancel = cancel };

static int
set_up(void **state)
{
	struct error err;

	(void)state;
	memset(&fixture, 0, sizeof(fixture));
	fixture.loop = loop_new(&err);
	if (fixture.loop == NULL)
		return -1;
	fixture.news = news_new(fixture.loop, &fake, NULL, &fixture.marker);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	news_free(fixture.news);
	loop_free(fixture.loop);
	return 0;
}

static void
know_group(void)
{
	fixture.marker.pid = 42;
	fixture.marker.start_time = 7;
}

/* Lets the loop do what it has to do at once. */
static void
settle(void)
{
	struct error err;

	assert_int_equal(loop_dispatch(fixture.loop, 0, &err), 0);
}

static void
finish(const struct error *reason)
{
	fixture.operation.is_under_way = false;
	fixture.done(fixture.argument, NULL, reason);
}

static void
nothing_is_sent_before_the_group_is_known(void **state)
{
	(void)state;
	news_add_signal(fixture.news, SIGTERM);
	news_set_size(fixture.news, 80, 24);
	settle();
	assert_int_equal(fixture.runs, 0);
	know_group();
	news_send(fixture.news);
	assert_int_equal(fixture.runs, 1);
	assert_string_equal(fixture.said, "signal 42 7 TERM");
}

static void
signals_of_one_moment_go_together_and_in_order(void **state)
{
	(void)state;
	know_group();
	news_add_signal(fixture.news, SIGHUP);
	news_add_signal(fixture.news, SIGCONT);
	assert_int_equal(fixture.runs, 0);
	settle();
	assert_int_equal(fixture.runs, 1);
	assert_string_equal(fixture.said, "signal 42 7 HUP CONT");
}

static void
one_is_under_way_at_a_time_and_a_failure_stops_none_after_it(void **state)
{
	struct error away;

	(void)state;
	know_group();
	news_add_signal(fixture.news, SIGINT);
	settle();
	news_set_size(fixture.news, 80, 24);
	news_set_size(fixture.news, 132, 43);
	news_add_signal(fixture.news, SIGTERM);
	settle();
	assert_string_equal(fixture.said, "signal 42 7 INT");
	error_set(&away, ERROR_UNAVAILABLE, "away");
	finish(&away);
	assert_string_equal(fixture.said, "signal 42 7 TERM");
	/* Of the sizes only the last one counts. */
	finish(NULL);
	assert_string_equal(fixture.said, "resize 42 7 43 132");
	finish(NULL);
	assert_int_equal(fixture.runs, 3);
}

static void
there_is_an_end_to_what_can_wait(void **state)
{
	unsigned i, words = 0;
	const char *at;

	(void)state;
	know_group();
	news_add_signal(fixture.news, 0);
	settle();
	assert_int_equal(fixture.runs, 0);
	for (i = 0; i < 100; i++)
		news_add_signal(fixture.news, SIGUSR1);
	settle();
	for (at = fixture.said; (at = strstr(at, "USR1")) != NULL; at++)
		words++;
	assert_in_range(words, 1, 99);
	finish(NULL);
	assert_int_equal(fixture.runs, 1);
}

static void
what_is_under_way_ends_with_it_but_for_the_last_signal(void **state)
{
	(void)state;
	know_group();
	news_add_signal(fixture.news, SIGTERM);
	settle();
	news_free(fixture.news);
	assert_int_equal(fixture.cancels, 1);
	fixture.news = news_new(fixture.loop, &fake, NULL, &fixture.marker);
	news_send_last(fixture.news, SIGKILL);
	assert_string_equal(fixture.said, "signal 42 7 KILL");
	news_free(fixture.news);
	fixture.news = NULL;
	assert_int_equal(fixture.cancels, 1);
	finish(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_sent_before_the_group_is_known),
		TEST(signals_of_one_moment_go_together_and_in_order),
		TEST(one_is_under_way_at_a_time_and_a_failure_stops_none_after_it),
		TEST(there_is_an_end_to_what_can_wait),
		TEST(what_is_under_way_ends_with_it_but_for_the_last_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
