/* SPDX-License-Identifier: ISC */
/* Who is told, in which order, and that nobody is told who no longer waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "core/base/error.h"
#include "core/workspace_waiter.h"

struct person {
	char letter;
	struct person *cancels;
	bool waits_again;
	struct workspace_waiter *waiter;
};

static struct waiters waiters;
static char told[32];

static void
ready(void *argument, const struct error *err)
{
	struct person *person = argument;

	told[strlen(told)] = err == NULL ? person->letter : '!';
	person->waiter = NULL;
	if (person->cancels != NULL) {
		workspace_waiter_cancel(person->cancels->waiter);
		person->cancels->waiter = NULL;
	}
	if (person->waits_again)
		person->waiter = waiters_add(&waiters, ready, NULL, person);
	person->waits_again = false;
}

static void
tell_all(const struct error *err)
{
	waiters_begin(&waiters);
	while (waiters_tell(&waiters, err))
		continue;
	waiters_end(&waiters);
}

static void
add(struct person *people, size_t count)
{
	size_t i;

	memset(told, 0, sizeof(told));
	for (i = 0; i < count; i++)
		people[i].waiter = waiters_add(&waiters, ready, NULL, &people[i]);
}

static void
all_are_told_once_in_their_order(void **state)
{
	struct person people[] = { { .letter = 'a' }, { .letter = 'b' }, { .letter = 'c' } };

	(void)state;
	add(people, 3);
	tell_all(NULL);
	tell_all(NULL);
	assert_string_equal(told, "abc");
}

static void
whoever_is_told_may_cancel_those_behind(void **state)
{
	struct person people[] = { { .letter = 'a' }, { .letter = 'b' }, { .letter = 'c' } };

	(void)state;
	people[0].cancels = &people[1];
	add(people, 3);
	tell_all(NULL);
	assert_string_equal(told, "ac");
}

static void
whoever_waits_again_is_told_the_next_time(void **state)
{
	struct person people[] = { { .letter = 'a', .waits_again = true }, { .letter = 'b' } };

	(void)state;
	add(people, 2);
	tell_all(NULL);
	assert_string_equal(told, "ab");
	tell_all(NULL);
	assert_string_equal(told, "aba");
}

static void
those_who_were_not_told_come_before_whoever_came_meanwhile(void **state)
{
	struct person people[] = { { .letter = 'a', .waits_again = true }, { .letter = 'b' } };

	(void)state;
	add(people, 2);
	waiters_begin(&waiters);
	assert_true(waiters_tell(&waiters, NULL));
	waiters_end(&waiters);
	tell_all(NULL);
	assert_string_equal(told, "aba");
}

static void
an_error_told_meanwhile_reaches_those_whose_turn_it_was(void **state)
{
	struct person people[] = { { .letter = 'a' }, { .letter = 'b' }, { .letter = 'c' } };
	struct error err;

	(void)state;
	error_set(&err, ERROR_UNAVAILABLE, "released");
	add(people, 3);
	waiters_begin(&waiters);
	assert_true(waiters_tell(&waiters, NULL));
	tell_all(&err);
	assert_false(waiters_tell(&waiters, NULL));
	waiters_end(&waiters);
	assert_string_equal(told, "a!!");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_told_once_in_their_order),
		cmocka_unit_test(whoever_is_told_may_cancel_those_behind),
		cmocka_unit_test(whoever_waits_again_is_told_the_next_time),
		cmocka_unit_test(those_who_were_not_told_come_before_whoever_came_meanwhile),
		cmocka_unit_test(an_error_told_meanwhile_reaches_those_whose_turn_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
