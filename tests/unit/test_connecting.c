/* SPDX-License-Identifier: ISC */
/*
 * A connect under way at a provider of the test's own: which step follows which, and what its end says
 * of a sandbox that may be there.
 */
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/driver.h"
#include "drivers/connecting.h"
#include "drivers/http.h"

/* Each step that is asked for is a word here, and so is the end. */
static char said[512];

static struct {
	struct loop *loop;
	struct connecting *place;
	const char *id, *page; /* what find finds */
	bool is_malformed;
	bool says_nothing; /* that nothing is there, and will be */
	struct error failure;
	bool goes_on; /* to another connect, at the end of the first */
} fixture;

static void
say(const char *word)
{
	size_t used = strlen(said);

	(void)snprintf(said + used, sizeof(said) - used, "%s%s", used == 0 ? "" : " ", word);
}

static void
list(struct connecting *connect, const char *page)
{
	(void)connect;
	say(page == NULL ? "list" : page);
}

static int
find(const struct driver_sandbox *sandbox, const struct http_answer *answer, char **id, char **page,
    struct error *err)
{
	(void)sandbox;
	(void)answer;
	if (fixture.is_malformed)
		return error_set(err, ERROR_INVALID, "this is no list");
	*id = fixture.id == NULL ? NULL : memory_text(fixture.id);
	*page = fixture.page == NULL ? NULL : memory_text(fixture.page);
	return 0;
}

static void
visit(struct connecting *connect)
{
	char word[64];

	(void)snprintf(word, sizeof(word), "visit:%.16s", connect->id);
	say(word);
}

static void
create(struct connecting *connect)
{
	(void)connect;
	say("create");
}

static const struct connecting_kind kind = {
	.provider = "test",
	.label = "label",
	.size = sizeof(struct connecting),
	.list = list,
	.find = find,
	.visit = visit,
	.create = create,
};

static void connected(
    void *argument, const struct driver_connected *found, const struct error *err);

static struct connecting *
begin(bool may_create)
{
	return connecting_new(&kind, &(struct connecting_setup){ .place = &fixture.place,
					 .loop = fixture.loop,
					 .may_create = may_create,
					 .done = connected });
}

static void
connected(void *argument, const struct driver_connected *found, const struct error *err)
{
	(void)argument;
	assert_null(fixture.place);
	say(err == NULL ? "connected" : "failed");
	if (err == NULL) {
		assert_string_equal(found->id, "i1");
		return;
	}
	fixture.failure = *err;
	fixture.says_nothing = found != NULL && found->nothing;
	if (fixture.goes_on)
		(void)begin(false);
}

static int
set_up(void **state)
{
	struct error err;

	(void)state;
	memset(&fixture, 0, sizeof(fixture));
	said[0] = '\0';
	fixture.loop = loop_new(&err);
	return fixture.loop == NULL;
}

static int
tear_down(void **state)
{
	(void)state;
	connecting_cancel(fixture.place);
	loop_free(fixture.loop);
	return 0;
}

static void
answer(struct connecting *connect)
{
	static const struct http_answer page = { .outcome = HTTP_DONE, .status = 200 };

	connecting_listed(connect, &page, NULL);
}

static void
run_until_said(const char *words)
{
	struct error err;

	while (strcmp(said, words) != 0)
		assert_int_equal(loop_dispatch(fixture.loop, 10000, &err), 0);
}

static void
what_is_known_is_visited_and_what_is_not_is_looked_for(void **state)
{
	struct connecting *connect = begin(true);

	(void)state;
	connecting_find(connect);
	assert_string_equal(said, "list");
	fixture.id = "i1";
	answer(connect);
	assert_string_equal(said, "list visit:i1");
	assert_true(connect->adopted);
	connecting_find(connect);
	assert_string_equal(said, "list visit:i1 visit:i1");
	connecting_succeed(connect, &(struct driver_connected){ .id = "i1" });
	assert_string_equal(said, "list visit:i1 visit:i1 connected");
}

static void
what_is_in_no_page_is_created(void **state)
{
	struct connecting *connect = begin(true);

	(void)state;
	connecting_find(connect);
	fixture.page = "second";
	answer(connect);
	fixture.page = NULL;
	answer(connect);
	assert_string_equal(said, "list second create");
}

static void
a_list_without_an_end_is_not_read_for_ever(void **state)
{
	struct connecting *connect = begin(true);
	unsigned pages;

	(void)state;
	connecting_find(connect);
	fixture.page = "p";
	for (pages = 1; strstr(said, "create") == NULL; pages++) {
		assert_true(pages <= 100);
		answer(connect);
	}
	/* Read once more it has as many pages again. */
	said[0] = '\0';
	connecting_list(connect);
	answer(connect);
	assert_string_equal(said, "list p");
}

static void
what_may_not_be_created_is_not_there(void **state)
{
	struct connecting *connect = begin(false);

	(void)state;
	connecting_find(connect);
	answer(connect);
	assert_string_equal(said, "list failed");
	assert_int_equal(fixture.failure.code, ERROR_NOT_FOUND);
	assert_string_equal(fixture.failure.message, "there is no sandbox with this label");
	assert_true(fixture.says_nothing);
}

static void
a_list_that_fails_has_made_nothing(void **state)
{
	static const struct http_answer none = { .outcome = HTTP_UNKNOWN };
	struct connecting *connect;
	struct error reason;

	(void)state;
	error_set(&reason, ERROR_UNAVAILABLE, "away");
	connect = begin(true);
	connecting_find(connect);
	connecting_listed(connect, &none, &reason);
	assert_string_equal(fixture.failure.message, "list sandboxes: away");
	assert_true(fixture.says_nothing);
	fixture.is_malformed = true;
	connect = begin(true);
	connecting_find(connect);
	answer(connect);
	assert_string_equal(fixture.failure.message, "this is no list");
	assert_true(fixture.says_nothing);
	assert_string_equal(said, "list failed list failed");
}

static void
what_was_aimed_at_may_be_there_after_a_failure(void **state)
{
	struct connecting *connect = begin(true);

	(void)state;
	connecting_aim(connect, "i1");
	/* Its own id may be what it is aimed at once more. */
	connecting_aim(connect, connect->id);
	connecting_find(connect);
	assert_string_equal(said, "visit:i1");
	error_set(&connect->failure, ERROR_UNAVAILABLE, "no answer");
	connecting_fail(connect, &connect->failure, "look");
	assert_string_equal(fixture.failure.message, "look: no answer");
	assert_false(fixture.says_nothing);
}

static void
a_deadline_tells_the_last_failure_or_else_the_state(void **state)
{
	struct connecting *connect;

	(void)state;
	connect = begin(true);
	connecting_note_state(connect, "pending");
	connecting_start_deadline(connect, 1);
	run_until_said("failed");
	assert_int_equal(fixture.failure.code, ERROR_TIMEOUT);
	assert_non_null(strstr(fixture.failure.message, "it is pending"));
	said[0] = '\0';
	connect = begin(true);
	error_set(&connect->failure, ERROR_DENIED, "not you");
	connecting_start_deadline(connect, 1);
	run_until_said("failed");
	assert_int_equal(fixture.failure.code, ERROR_DENIED);
	assert_non_null(strstr(fixture.failure.message, "not you"));
}

static void
what_waits_to_be_tried_again_ends_with_the_connect(void **state)
{
	struct connecting *connect = begin(true);

	(void)state;
	connecting_begin_later(connect, create, 0);
	run_until_said("create");
	connecting_begin_later(connect, create, 0);
	connecting_start_deadline(connect, 0);
	connecting_cancel(connect);
	connect = begin(true);
	connecting_begin_later(connect, connecting_list, 0);
	run_until_said("create list");
}

static void
whoever_is_told_of_the_end_may_begin_anew(void **state)
{
	struct connecting *connect = begin(false);

	(void)state;
	fixture.goes_on = true;
	connecting_create(connect);
	assert_string_equal(said, "failed");
	assert_non_null(fixture.place);
	connecting_find(fixture.place);
	assert_string_equal(said, "failed list");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_known_is_visited_and_what_is_not_is_looked_for),
		TEST(what_is_in_no_page_is_created),
		TEST(a_list_without_an_end_is_not_read_for_ever),
		TEST(what_may_not_be_created_is_not_there),
		TEST(a_list_that_fails_has_made_nothing),
		TEST(what_was_aimed_at_may_be_there_after_a_failure),
		TEST(a_deadline_tells_the_last_failure_or_else_the_state),
		TEST(what_waits_to_be_tried_again_ends_with_the_connect),
		TEST(whoever_is_told_of_the_end_may_begin_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
