/* SPDX-License-Identifier: ISC */
/*
 * No test waits for time to pass: a timer that is due is due at once, one that is not is far away.
 */
#include <poll.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"

#define FAR_AWAY 3600000

struct fixture {
	struct loop *loop;
	int near, far; /* two ends of a socket pair */
	struct loop_watch *watch, *other_watch;
	struct loop_timer *timer, *other_timer;
	unsigned events;
	int calls, other_calls;
};

static int
setup(void **state)
{
	static struct fixture fixture;
	int pair[2];

	fixture = (struct fixture){ 0 };
	fixture.loop = loop_new(NULL);
	assert_non_null(fixture.loop);
	assert_int_equal(descriptor_pair(pair, NULL), 0);
	fixture.near = pair[0];
	fixture.far = pair[1];
	*state = &fixture;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *fixture = *state;

	loop_unwatch(fixture->watch);
	loop_unwatch(fixture->other_watch);
	loop_timer_free(fixture->timer);
	loop_timer_free(fixture->other_timer);
	loop_free(fixture->loop);
	descriptor_close(&fixture->near);
	descriptor_close(&fixture->far);
	return 0;
}

static void
dispatch(struct fixture *fixture)
{
	assert_int_equal(loop_dispatch(fixture->loop, 0, NULL), 0);
}

static void
send_byte(struct fixture *fixture)
{
	assert_int_equal(descriptor_write(fixture->far, "x", 1, NULL), 0);
}

static void
note_events(void *argument, unsigned events)
{
	struct fixture *fixture = argument;

	fixture->events = events;
	fixture->calls++;
}

static void
a_watch_is_called_while_its_event_lasts(void **state)
{
	struct fixture *fixture = *state;
	char byte;

	fixture->watch = loop_watch(fixture->loop, fixture->near, LOOP_READ, note_events, fixture);
	dispatch(fixture);
	assert_int_equal(fixture->calls, 0);
	send_byte(fixture);
	dispatch(fixture);
	dispatch(fixture);
	assert_int_equal(fixture->calls, 2);
	assert_int_equal(fixture->events, LOOP_READ);
	assert_int_equal(read(fixture->near, &byte, 1), 1);
	dispatch(fixture);
	assert_int_equal(fixture->calls, 2);
}

static void
a_changed_watch_reports_the_new_events_only(void **state)
{
	struct fixture *fixture = *state;

	fixture->watch = loop_watch(fixture->loop, fixture->near, LOOP_READ, note_events, fixture);
	send_byte(fixture);
	loop_watch_change(fixture->watch, LOOP_WRITE);
	dispatch(fixture);
	assert_int_equal(fixture->events, LOOP_WRITE);
	loop_watch_change(fixture->watch, 0);
	dispatch(fixture);
	assert_int_equal(fixture->calls, 1);
	loop_watch_change(fixture->watch, LOOP_READ | LOOP_WRITE);
	dispatch(fixture);
	assert_int_equal(fixture->events, LOOP_READ | LOOP_WRITE);
}

static void
a_lost_other_end_is_reported_without_asking(void **state)
{
	struct fixture *fixture = *state;

	fixture->watch = loop_watch(fixture->loop, fixture->near, 0, note_events, fixture);
	descriptor_close(&fixture->far);
	dispatch(fixture);
	assert_int_equal(fixture->events, LOOP_HANGUP);
}

static void
unwatch_both(void *argument, unsigned events)
{
	struct fixture *fixture = argument;

	(void)events;
	fixture->calls++;
	loop_unwatch(fixture->watch);
	loop_unwatch(fixture->other_watch);
	fixture->watch = fixture->other_watch = NULL;
}

/* Both are ready in one round; the first to be called removes both. */
static void
a_watch_removed_in_a_callback_is_not_called_any_more(void **state)
{
	struct fixture *fixture = *state;

	fixture->watch = loop_watch(
	    fixture->loop, fixture->near, LOOP_WRITE, unwatch_both, fixture);
	fixture->other_watch = loop_watch(
	    fixture->loop, fixture->far, LOOP_WRITE, unwatch_both, fixture);
	dispatch(fixture);
	assert_int_equal(fixture->calls, 1);
	dispatch(fixture);
	assert_int_equal(fixture->calls, 1);
}

static void
a_descriptor_can_be_watched_again(void **state)
{
	struct fixture *fixture = *state;

	fixture->watch = loop_watch(fixture->loop, fixture->near, LOOP_WRITE, note_events, fixture);
	loop_unwatch(fixture->watch);
	fixture->watch = loop_watch(fixture->loop, fixture->near, LOOP_WRITE, note_events, fixture);
	dispatch(fixture);
	assert_int_equal(fixture->calls, 1);
}

static void
the_loops_own_descriptor_tells_that_there_is_work(void **state)
{
	struct fixture *fixture = *state;
	struct pollfd entry = { .fd = loop_fd(fixture->loop), .events = POLLIN };

	fixture->watch = loop_watch(fixture->loop, fixture->near, LOOP_READ, note_events, fixture);
	assert_int_equal(poll(&entry, 1, 0), 0);
	send_byte(fixture);
	assert_int_equal(poll(&entry, 1, 0), 1);
}

static void
note_expired(void *argument)
{
	struct fixture *fixture = argument;

	fixture->calls++;
}

static void
note_other_expired(void *argument)
{
	struct fixture *fixture = argument;

	/* Timers run in the order in which they are due. */
	assert_int_equal(fixture->calls, 1);
	fixture->other_calls++;
}

static void
timers_run_once_in_order_when_due(void **state)
{
	struct fixture *fixture = *state;

	fixture->timer = loop_timer_new(fixture->loop, note_expired, fixture);
	fixture->other_timer = loop_timer_new(fixture->loop, note_other_expired, fixture);
	assert_false(loop_timer_running(fixture->timer));
	loop_timer_start(fixture->other_timer, 0);
	loop_timer_start(fixture->timer, -5);
	loop_timer_start(fixture->other_timer, 0);
	assert_true(loop_timer_running(fixture->timer));
	dispatch(fixture);
	dispatch(fixture);
	assert_int_equal(fixture->calls, 1);
	assert_int_equal(fixture->other_calls, 1);
	assert_false(loop_timer_running(fixture->timer));
}

static void
a_stopped_or_restarted_timer_does_not_run(void **state)
{
	struct fixture *fixture = *state;

	fixture->timer = loop_timer_new(fixture->loop, note_expired, fixture);
	loop_timer_start(fixture->timer, 0);
	loop_timer_stop(fixture->timer);
	dispatch(fixture);
	loop_timer_start(fixture->timer, 0);
	loop_timer_start(fixture->timer, FAR_AWAY);
	dispatch(fixture);
	assert_int_equal(fixture->calls, 0);
}

static void
start_again(void *argument)
{
	struct fixture *fixture = argument;

	fixture->calls++;
	loop_timer_start(fixture->timer, 0);
}

/* Else a timer that restarts itself would keep all descriptors waiting. */
static void
a_timer_that_restarts_itself_runs_once_a_round(void **state)
{
	struct fixture *fixture = *state;

	fixture->timer = loop_timer_new(fixture->loop, start_again, fixture);
	loop_timer_start(fixture->timer, 0);
	dispatch(fixture);
	assert_int_equal(fixture->calls, 1);
	dispatch(fixture);
	assert_int_equal(fixture->calls, 2);
}

static void
free_both(void *argument)
{
	struct fixture *fixture = argument;

	fixture->calls++;
	loop_timer_free(fixture->timer);
	loop_timer_free(fixture->other_timer);
	fixture->timer = fixture->other_timer = NULL;
}

static void
a_timer_may_free_itself_and_others(void **state)
{
	struct fixture *fixture = *state;

	fixture->timer = loop_timer_new(fixture->loop, free_both, fixture);
	fixture->other_timer = loop_timer_new(fixture->loop, free_both, fixture);
	loop_timer_start(fixture->timer, 0);
	loop_timer_start(fixture->other_timer, 0);
	dispatch(fixture);
	assert_int_equal(fixture->calls, 1);
}

static void
the_timeout_is_that_of_the_nearest_timer(void **state)
{
	struct fixture *fixture = *state;
	int timeout;

	assert_int_equal(loop_timeout(fixture->loop, -1), -1);
	assert_int_equal(loop_timeout(fixture->loop, 5), 5);
	fixture->timer = loop_timer_new(fixture->loop, note_expired, fixture);
	fixture->other_timer = loop_timer_new(fixture->loop, note_expired, fixture);
	loop_timer_start(fixture->timer, FAR_AWAY);
	assert_int_equal(loop_timeout(fixture->loop, 5), 5);
	timeout = loop_timeout(fixture->loop, -1);
	assert_true(timeout >= 1 && timeout <= FAR_AWAY);
	loop_timer_start(fixture->other_timer, INT64_MAX / 2);
	timeout = loop_timeout(fixture->loop, -1);
	assert_true(timeout >= 1 && timeout <= FAR_AWAY);
	loop_timer_start(fixture->timer, 0);
	assert_int_equal(loop_timeout(fixture->loop, -1), 0);
}

static void
stop_from_timer(void *argument)
{
	struct fixture *fixture = argument;

	loop_stop(fixture->loop);
}

static void
run_ends_when_stopped(void **state)
{
	struct fixture *fixture = *state;

	fixture->timer = loop_timer_new(fixture->loop, stop_from_timer, fixture);
	loop_timer_start(fixture->timer, 0);
	assert_int_equal(loop_run(fixture->loop, NULL), 0);
}

#define LOOP_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LOOP_TEST(a_watch_is_called_while_its_event_lasts),
		LOOP_TEST(a_changed_watch_reports_the_new_events_only),
		LOOP_TEST(a_lost_other_end_is_reported_without_asking),
		LOOP_TEST(a_watch_removed_in_a_callback_is_not_called_any_more),
		LOOP_TEST(a_descriptor_can_be_watched_again),
		LOOP_TEST(the_loops_own_descriptor_tells_that_there_is_work),
		LOOP_TEST(timers_run_once_in_order_when_due),
		LOOP_TEST(a_stopped_or_restarted_timer_does_not_run),
		LOOP_TEST(a_timer_that_restarts_itself_runs_once_a_round),
		LOOP_TEST(a_timer_may_free_itself_and_others),
		LOOP_TEST(the_timeout_is_that_of_the_nearest_timer),
		LOOP_TEST(run_ends_when_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
