/* SPDX-License-Identifier: ISC */
/*
 * The records' rules, with two gateways at one database: SQLite in a directory of the test's own, or
 * with RECORDS_DATABASE set to a URL (as tests/e2e/test_records.py does) PostgreSQL. Time passes by
 * changing what is recorded of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/record_list.h"
#include "gateway/records_database.h"
#include "gateway/records_store.h"

static const struct store_key key = { "agent", "", "" }, other = { "agent", "test", "" };
static const struct store_request use = { .driver = "e2b", .idle = 60000, .limit = 2 };
static const struct store_request reclaim = {
	.driver = "e2b", .reclaim = true, .idle = 60000, .limit = 2
};

/* Two gateways, each with its own connection. */
static struct {
	char directory[64];
	struct database *first, *second;
	struct store *one, *two;
} fixture;

static const char *
place(void)
{
	return getenv("RECORDS_DATABASE");
}

static void
change(const char *statement)
{
	struct error err;

	if (database_change(fixture.first, statement, NULL, 0, &err) < 0)
		fail_msg("%s: %s", statement, err.message);
}

static int
set_up(void **state)
{
	(void)state;
	(void)snprintf(fixture.directory, sizeof(fixture.directory), "/tmp/records-XXXXXX");
	if (mkdtemp(fixture.directory) == NULL || chdir(fixture.directory) != 0)
		return -1;
	fixture.first = database_open(place(), 0);
	fixture.second = database_open(place(), 0);
	fixture.one = store_new(fixture.first, "aaaa/1");
	fixture.two = store_new(fixture.second, "bbbb/1");
	change("DELETE FROM rwsd_workspaces");
	change("DELETE FROM rwsd_leases");
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	store_free(fixture.one);
	store_free(fixture.two);
	database_close(fixture.first);
	database_close(fixture.second);
	(void)unlink("records.db");
	(void)unlink("records.db-wal");
	(void)unlink("records.db-shm");
	return chdir("/") != 0 || rmdir(fixture.directory) != 0;
}

/* Claims, and checks the answer: which sandbox (NULL: make one), and whether in doubt. */
static void
expect_claim(struct store *store, const struct store_key *which,
    const struct store_request *request, const char *sandbox, bool doubtful)
{
	struct record_claimed claimed;
	struct error err = { 0 };
	int result;

	result = store_claim(store, which, request, &claimed, &err);
	if (result != 1)
		fail_msg("claim gives %d: %s", result, err.message);
	if (sandbox == NULL)
		assert_null(claimed.sandbox);
	else
		assert_string_equal(claimed.sandbox, sandbox);
	assert_int_equal(claimed.doubtful, doubtful);
	record_claimed_free(&claimed);
}

static void
expect_wait(struct store *store, const struct store_key *which)
{
	struct record_claimed claimed;
	struct error err;

	assert_int_equal(store_claim(store, which, &use, &claimed, &err), 0);
}

static void
tell_ready(struct store *store, const struct store_key *which, char *sandbox)
{
	struct record_ready ready = { sandbox, true };
	struct error err = { 0 };

	if (store_ready(store, which, &use, &ready, &err) != 0)
		fail_msg("ready: %s", err.message);
}

static bool
may_release(struct store *store, bool is_asked)
{
	struct error err = { 0 };
	bool granted;

	if (store_release(store, &key, is_asked, &granted, &err) != 0)
		fail_msg("release: %s", err.message);
	return granted;
}

/* Everything that was recorded happened so long ago that no lease and no idle time holds. */
static void
let_time_pass(void)
{
	change("UPDATE rwsd_workspaces SET used = 1, until = 1 WHERE until > 0");
	change("UPDATE rwsd_workspaces SET used = 1");
	change("UPDATE rwsd_leases SET until = 1");
}

static char first_id[] = "i1", second_id[] = "i2";

static void
the_first_to_come_makes_it_and_the_second_waits_for_it(void **state)
{
	(void)state;
	expect_claim(fixture.one, &key, &use, NULL, false);
	expect_wait(fixture.two, &key);
	tell_ready(fixture.one, &key, first_id);
	expect_claim(fixture.two, &key, &use, "i1", false);
	/* Another workspace of the same login is another sandbox. */
	expect_claim(fixture.two, &other, &use, NULL, false);
}

static void
what_a_vanished_gateway_was_making_is_taken_over_in_doubt(void **state)
{
	struct error err;

	(void)state;
	expect_claim(fixture.one, &key, &use, NULL, false);
	let_time_pass();
	expect_claim(fixture.two, &key, &use, NULL, true);
	tell_ready(fixture.two, &key, second_id);
	/* The doubt outlives whoever has it. */
	expect_claim(fixture.two, &key, &use, "i2", true);
	assert_int_equal(store_settle(fixture.two, &key, &err), 0);
	expect_claim(fixture.two, &key, &use, "i2", false);
}

static void
who_was_taken_for_gone_is_told_that_another_one_was_made(void **state)
{
	struct record_ready ready = { first_id, true };
	struct error err;

	(void)state;
	expect_claim(fixture.one, &key, &use, NULL, false);
	let_time_pass();
	expect_claim(fixture.two, &key, &use, NULL, true);
	assert_int_equal(store_ready(fixture.one, &key, &use, &ready, &err), -1);
	assert_int_equal(err.code, ERROR_EXISTS);
	tell_ready(fixture.two, &key, second_id);
	assert_int_equal(store_ready(fixture.one, &key, &use, &ready, &err), -1);
	assert_int_equal(err.code, ERROR_EXISTS);
	expect_claim(fixture.one, &key, &use, "i2", true);
}

static void
what_a_worker_leaves_is_anybodys_at_once(void **state)
{
	struct error err;

	(void)state;
	expect_claim(fixture.one, &key, &use, NULL, false);
	assert_int_equal(store_leave(fixture.one, &key, &err), 0);
	expect_claim(fixture.two, &key, &use, NULL, true);
}

static void
a_renewed_lease_keeps_others_from_taking_over(void **state)
{
	struct error err;

	(void)state;
	expect_claim(fixture.one, &key, &use, NULL, false);
	change("UPDATE rwsd_workspaces SET until = 1");
	assert_int_equal(store_renew(fixture.one, &key, true, &err), 0);
	expect_wait(fixture.two, &key);
}

static void
earlier_runs_of_the_same_gateway_hold_nobody_up(void **state)
{
	struct store *next;
	struct error err;

	(void)state;
	expect_claim(fixture.one, &key, &use, NULL, false);
	next = store_new(fixture.first, "aaaa/2");
	expect_wait(next, &key);
	assert_int_equal(store_forget_runs(next, "bbbb", &err), 0);
	expect_wait(next, &key);
	assert_int_equal(store_forget_runs(next, "aaaa", &err), 0);
	expect_claim(next, &key, &use, NULL, true);
	store_free(next);
}

static void
a_sandbox_that_is_gone_is_made_again_once(void **state)
{
	struct store_request lost = use;

	(void)state;
	lost.lost = "i1";
	expect_claim(fixture.one, &key, &use, NULL, false);
	tell_ready(fixture.one, &key, first_id);
	expect_claim(fixture.one, &key, &lost, NULL, false);
	tell_ready(fixture.one, &key, second_id);
	/* The other one finds out later, and is told of the new one. */
	expect_claim(fixture.two, &key, &lost, "i2", false);
}

static void
an_idle_sandbox_is_released_unless_another_gateway_has_or_had_it(void **state)
{
	struct error err;

	(void)state;
	expect_claim(fixture.one, &key, &use, NULL, false);
	tell_ready(fixture.one, &key, first_id);
	expect_claim(fixture.two, &key, &use, "i1", false);
	change("UPDATE rwsd_workspaces SET used = 1");
	assert_false(may_release(fixture.one, false));
	assert_int_equal(store_renew(fixture.two, &key, true, &err), 0);
	assert_int_equal(store_leave(fixture.two, &key, &err), 0);
	/* Nobody has it, but it was in use a moment ago. */
	assert_false(may_release(fixture.one, false));
	change("UPDATE rwsd_workspaces SET used = 1");
	/* After a new connection to a shared database nobody knows what others use. */
	assert_int_equal(may_release(fixture.one, false), place() == NULL);
}

static void
a_sandbox_that_is_released_is_waited_for_and_then_gone(void **state)
{
	struct error err;

	(void)state;
	expect_claim(fixture.one, &key, &use, NULL, false);
	tell_ready(fixture.one, &key, first_id);
	expect_claim(fixture.two, &key, &use, "i1", false);
	/* Who asks for it gets it even though others have it. */
	assert_true(may_release(fixture.one, true));
	expect_wait(fixture.two, &key);
	assert_false(may_release(fixture.two, true));
	assert_int_equal(store_released(fixture.one, &key, RECORD_DESTROYED, &err), 0);
	expect_claim(fixture.two, &key, &use, NULL, false);
}

static void
a_release_that_failed_or_was_cut_off_leaves_the_sandbox_known(void **state)
{
	struct error err;

	(void)state;
	expect_claim(fixture.one, &key, &use, NULL, false);
	tell_ready(fixture.one, &key, first_id);
	assert_true(may_release(fixture.one, true));
	assert_int_equal(store_released(fixture.one, &key, RECORD_UNKNOWN, &err), 0);
	expect_claim(fixture.two, &key, &use, "i1", false);
	assert_true(may_release(fixture.one, true));
	let_time_pass();
	expect_claim(fixture.two, &key, &use, "i1", false);
}

static void
a_login_has_no_more_sandboxes_than_it_may(void **state)
{
	static const struct store_key third = { "agent", "third", "" },
				      foreign = { "guest", "", "" };
	struct record_claimed claimed;
	struct error err;
	bool granted;

	(void)state;
	expect_claim(fixture.one, &key, &use, NULL, false);
	tell_ready(fixture.one, &key, first_id);
	expect_claim(fixture.one, &other, &use, NULL, false);
	assert_int_equal(store_claim(fixture.two, &third, &use, &claimed, &err), -1);
	assert_int_equal(err.code, ERROR_DENIED);
	assert_string_equal(err.message,
	    "login agent has 2 sandboxes, and may have no more at once (max_instances)");
	expect_claim(fixture.two, &foreign, &use, NULL, false);
	/* A stopped one does not count. */
	assert_int_equal(store_release(fixture.one, &key, true, &granted, &err), 0);
	assert_int_equal(store_released(fixture.one, &key, RECORD_STOPPED, &err), 0);
	expect_claim(fixture.two, &third, &use, NULL, false);
	expect_claim(fixture.one, &key, &use, "i1", false);
}

static int64_t
read_number(struct database *database, const char *statement)
{
	struct database_result result = { 0 };
	struct error err = { 0 };
	int64_t number;

	if (database_query(database, statement, NULL, 0, &result, &err) != 0)
		fail_msg("%s: %s", statement, err.message);
	number = database_result_number(&result, 0, 0);
	database_result_free(&result);
	return number;
}

static void
one_sandbox_is_not_called_sandboxes(void **state)
{
	struct store_request one = use;
	struct record_claimed claimed;
	struct error err;

	(void)state;
	one.limit = 1;
	expect_claim(fixture.one, &key, &one, NULL, false);
	assert_int_equal(store_claim(fixture.one, &other, &one, &claimed, &err), -1);
	assert_string_equal(
	    err.message, "login agent has 1 sandbox, and may have no more at once (max_instances)");
}

static void
a_create_that_failed_takes_up_a_place_only_while_it_is_in_doubt(void **state)
{
	struct store_request one = use;
	struct record_claimed claimed;
	struct error err;

	(void)state;
	one.limit = 1;
	one.idle = INT64_C(3600000);
	expect_claim(fixture.one, &key, &one, NULL, false);
	/* It certainly came to nothing. */
	assert_int_equal(store_released(fixture.one, &key, RECORD_DESTROYED, &err), 0);
	expect_claim(fixture.one, &other, &one, NULL, false);
	/* It may have come true: whoever looks does so after a minute, not after the idle time. */
	assert_int_equal(store_released(fixture.one, &other, RECORD_UNKNOWN, &err), 0);
	assert_int_equal(store_claim(fixture.one, &key, &one, &claimed, &err), -1);
	assert_int_equal(err.code, ERROR_DENIED);
	assert_int_equal(
	    read_number(fixture.first, "SELECT idle FROM rwsd_workspaces"), STORE_DOUBT);
}

static void
a_sandbox_of_one_machine_is_another_one_elsewhere(void **state)
{
	static const struct store_key here = { "agent", "", "aaaa" },
				      there = { "agent", "", "bbbb" };

	(void)state;
	expect_claim(fixture.one, &here, &use, NULL, false);
	tell_ready(fixture.one, &here, first_id);
	expect_claim(fixture.two, &there, &use, NULL, false);
}

static void
count_orphan(void *argument, const char *login, const char *instance)
{
	unsigned *count = argument;

	assert_string_equal(login, "agent");
	assert_string_equal(instance, "");
	(*count)++;
}

static unsigned
count_orphans(void)
{
	struct error err = { 0 };
	unsigned count;

	count = 0;
	if (store_each_orphan(fixture.two, "bbbb", count_orphan, &count, &err) != 0)
		fail_msg("orphans: %s", err.message);
	return count;
}

static void
what_a_vanished_gateway_used_is_found_once_it_is_idle(void **state)
{
	(void)state;
	/* Found at once only where nobody else can be: see the store's comment. */
	if (place() != NULL) {
		expect_claim(fixture.one, &key, &use, NULL, false);
		let_time_pass();
		assert_int_equal(count_orphans(), 0);
		return;
	}
	expect_claim(fixture.one, &key, &use, NULL, false);
	tell_ready(fixture.one, &key, first_id);
	assert_int_equal(count_orphans(), 0);
	change("UPDATE rwsd_leases SET until = 1");
	assert_int_equal(count_orphans(), 0);
	let_time_pass();
	assert_int_equal(count_orphans(), 1);
	/* Whoever disposes of it does not use it: it stays idle. */
	expect_claim(fixture.two, &key, &reclaim, "i1", false);
	assert_int_equal(count_orphans(), 0);
	assert_true(may_release(fixture.two, false));
}

static void
count_any(void *argument, const char *login, const char *instance)
{
	unsigned *counts = argument;

	(void)instance;
	counts[strcmp(login, "zoe") == 0 ? 1 : 0]++;
}

static void
what_nobody_can_dispose_of_does_not_hide_the_rest(void **state)
{
	char statement[400];
	unsigned counts[2] = { 0, 0 }, i;
	struct error err = { 0 };

	(void)state;
	if (place() != NULL)
		return; /* nothing is found for half a minute: see above */
	for (i = 0; i < 101; i++) {
		(void)snprintf(statement, sizeof(statement),
		    "INSERT INTO rwsd_workspaces (login, instance, place, driver, sandbox, "
		    "created, state, made, used, idle, holder, until, doubt) VALUES ('%s', '%u', "
		    "'', 'e2b', 'i%u', 1, 'ready', 1, 1, 1, '', 0, 0)",
		    i < 100 ? "former" : "zoe", i, i);
		change(statement);
	}
	assert_int_equal(store_each_orphan(fixture.one, "aaaa", count_any, counts, &err), 0);
	assert_int_equal(counts[0] + counts[1], 100);
	assert_int_equal(store_each_orphan(fixture.one, "aaaa", count_any, counts, &err), 0);
	assert_int_equal(counts[1], 1);
	/* And from the start again. */
	assert_int_equal(store_each_orphan(fixture.one, "aaaa", count_any, counts, &err), 0);
	assert_int_equal(counts[0], 200);
}

static void
a_record_in_doubt_is_kept_until_the_doubt_is_old(void **state)
{
	struct error err;

	(void)state;
	expect_claim(fixture.one, &key, &use, NULL, false);
	assert_int_equal(store_leave(fixture.one, &key, &err), 0);
	expect_claim(fixture.two, &key, &use, NULL, true);
	tell_ready(fixture.two, &key, second_id);
	assert_true(may_release(fixture.two, true));
	assert_int_equal(store_released(fixture.two, &key, RECORD_DESTROYED, &err), 0);
	/* What the first one asked for may come true yet: whoever comes next looks for it. */
	expect_claim(fixture.two, &key, &reclaim, NULL, true);
	change("UPDATE rwsd_workspaces SET doubt = 1");
	expect_claim(fixture.two, &key, &reclaim, NULL, true);
	assert_int_equal(store_released(fixture.two, &key, RECORD_DESTROYED, &err), 0);
	expect_claim(fixture.one, &key, &use, NULL, false);
}

static void
reclaiming_what_is_gone_makes_nothing(void **state)
{
	struct record_claimed claimed;
	struct error err;

	(void)state;
	assert_int_equal(store_claim(fixture.one, &key, &reclaim, &claimed, &err), -1);
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	expect_claim(fixture.one, &key, &use, NULL, false);
}

/* Reads everything page by page, and counts; the last entry of each page, and of all, is the caller's. */
static unsigned
count_all(struct store *store, struct records_page *last)
{
	struct store_key after = { "", "", "" };
	struct records_page before = { 0 };
	struct error err = { 0 };
	unsigned count;

	for (count = 0;; count += last->count) {
		memset(last, 0, sizeof(*last));
		if (store_list(store, &after, last, &err) != 0)
			fail_msg("list: %s", err.message);
		assert_true(last->count <= RECORDS_PAGE_MAX);
		records_page_free(&before);
		if (!last->more)
			return count + last->count;
		after.login = last->entries[last->count - 1].login;
		after.instance = last->entries[last->count - 1].instance;
		after.place = last->entries[last->count - 1].place;
		before = *last;
	}
}

static void
all_records_are_listed_page_by_page(void **state)
{
	char statement[400];
	struct records_page page;
	unsigned i;

	(void)state;
	assert_int_equal(count_all(fixture.one, &page), 0);
	records_page_free(&page);
	for (i = 0; i < 2 * RECORDS_PAGE_MAX; i++) {
		(void)snprintf(statement, sizeof(statement),
		    "INSERT INTO rwsd_workspaces (login, instance, place, driver, sandbox, "
		    "created, state, made, used, idle, holder, until, doubt) VALUES ('l%u', '%u', "
		    "'%s', 'e2b', 'i%u', 1, 'ready', 5, 6, 7, '', 0, 0)",
		    i / 50, i, i % 2 == 0 ? "" : "cccc", i);
		change(statement);
	}
	assert_int_equal(count_all(fixture.one, &page), 2 * RECORDS_PAGE_MAX);
	assert_int_equal(page.count, RECORDS_PAGE_MAX);
	records_page_free(&page);
}

static void
a_listed_record_says_all_and_which_other_gateway_has_it(void **state)
{
	struct records_page page;
	const struct record_entry *entry;

	(void)state;
	expect_claim(fixture.one, &key, &use, NULL, false);
	assert_int_equal(count_all(fixture.one, &page), 1);
	assert_int_equal(page.entries[0].state, RECORD_STATE_CREATING);
	assert_null(page.entries[0].sandbox);
	records_page_free(&page);
	tell_ready(fixture.one, &key, first_id);
	assert_int_equal(count_all(fixture.one, &page), 1);
	entry = &page.entries[0];
	assert_string_equal(entry->login, "agent");
	assert_string_equal(entry->instance, "");
	assert_string_equal(entry->place, "");
	assert_string_equal(entry->driver, "e2b");
	assert_string_equal(entry->sandbox, "i1");
	assert_int_equal(entry->state, RECORD_STATE_READY);
	assert_true(entry->created);
	assert_true(entry->made > 0 && entry->used >= entry->made);
	/* Who asks knows of its own. */
	assert_null(entry->user);
	records_page_free(&page);
	assert_int_equal(count_all(fixture.two, &page), 1);
	assert_string_equal(page.entries[0].user, "aaaa");
	records_page_free(&page);
	let_time_pass();
	assert_int_equal(count_all(fixture.two, &page), 1);
	assert_null(page.entries[0].user);
	records_page_free(&page);
}

static void
a_record_is_forgotten_unless_another_gateway_has_it(void **state)
{
	struct error err;
	char *sandbox;

	(void)state;
	assert_int_equal(store_forget(fixture.one, &key, &sandbox, &err), -1);
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	expect_claim(fixture.one, &key, &use, NULL, false);
	expect_claim(fixture.one, &other, &use, NULL, false);
	tell_ready(fixture.one, &key, first_id);
	assert_int_equal(store_forget(fixture.two, &key, &sandbox, &err), -1);
	assert_int_equal(err.code, ERROR_BUSY);
	assert_null(sandbox);
	assert_int_equal(store_leave(fixture.one, &key, &err), 0);
	assert_int_equal(store_forget(fixture.two, &key, &sandbox, &err), 0);
	assert_string_equal(sandbox, "i1");
	memory_free(sandbox);
	/* The other one of the login is still there, and being made. */
	assert_int_equal(store_forget(fixture.two, &other, &sandbox, &err), -1);
	assert_int_equal(err.code, ERROR_BUSY);
	expect_claim(fixture.two, &key, &use, NULL, false);
}

static void
what_is_on_the_machine_of_another_gateway_is_not_forgotten_here(void **state)
{
	static const struct store_key there = { "agent", "", "bbbb" },
				      here = { "agent", "", "aaaa" };
	struct error err;
	char *sandbox;

	(void)state;
	expect_claim(fixture.two, &there, &use, NULL, false);
	assert_int_equal(store_leave(fixture.two, &there, &err), 0);
	assert_int_equal(store_forget(fixture.one, &here, &sandbox, &err), -1);
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	expect_claim(fixture.two, &there, &use, NULL, true);
}

static void
tables_of_version_1_are_brought_up_to_date_with_what_is_in_them(void **state)
{
	struct database *old, *new;
	struct error err = { 0 };

	(void)state;
	change("DROP TABLE rwsd_workspaces");
	change("DROP TABLE rwsd_leases");
	change("DROP TABLE rwsd_schema");
	old = database_open(place(), 1);
	if (database_change(old,
		"INSERT INTO rwsd_workspaces (login, instance, place, driver, sandbox, created, "
		"state, made, used, idle, holder, until) "
		"VALUES ('agent', '', '', 'e2b', 'i1', 1, 'ready', 1, 1, 60000, '', 0)",
		NULL, 0, &err) != 1)
		fail_msg("insert: %s", err.message);
	assert_int_equal(read_number(old, "SELECT MAX(version) FROM rwsd_schema"), 1);
	database_close(old);
	new = database_open(place(), 0);
	assert_true(read_number(new, "SELECT MAX(version) FROM rwsd_schema") >= 2);
	assert_int_equal(read_number(new, "SELECT doubt FROM rwsd_workspaces"), 0);
	database_close(new);
	expect_claim(fixture.one, &key, &use, "i1", false);
}

static void
tables_of_a_newer_program_are_left_alone(void **state)
{
	struct database_result result = { 0 };
	struct database *old;
	struct error err;

	(void)state;
	change("INSERT INTO rwsd_schema (version) VALUES (1000)");
	old = database_open(place(), 0);
	assert_int_equal(
	    database_query(old, "SELECT login FROM rwsd_workspaces", NULL, 0, &result, &err), -1);
	assert_int_equal(err.code, ERROR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "version 1000"));
	database_close(old);
	change("DELETE FROM rwsd_schema WHERE version = 1000");
}

static void
what_is_recorded_is_no_statement(void **state)
{
	static char sharp[] = "'; DROP TABLE rwsd_workspaces; --\"$1";
	struct store_key odd = { sharp, sharp, "" };

	(void)state;
	expect_claim(fixture.one, &odd, &use, NULL, false);
	tell_ready(fixture.one, &odd, sharp);
	expect_claim(fixture.two, &odd, &use, sharp, false);
}

static void
what_fails_in_a_transaction_is_undone_and_holds_nobody_up(void **state)
{
	struct error err;

	(void)state;
	expect_claim(fixture.one, &key, &use, NULL, false);
	assert_int_equal(database_begin(fixture.first, "agent", &err), 0);
	change("UPDATE rwsd_workspaces SET sandbox = 'i9', state = 'ready', until = 0");
	assert_int_equal(database_change(fixture.first,
			     "INSERT INTO rwsd_schema (version) VALUES (1)", NULL, 0, &err),
	    -1);
	/* It is not the database that is at fault: nobody takes it for away. */
	assert_int_equal(err.code, ERROR_INVALID);
	assert_int_equal(database_end(fixture.first, -1, NULL), -1);
	tell_ready(fixture.one, &key, first_id);
	expect_claim(fixture.two, &key, &use, "i1", false);
}

static void
what_a_database_does_not_take_harms_no_other_login(void **state)
{
	static char none[] = "\xff\xfe";
	struct record_ready ready = { none, true };
	struct error err;

	(void)state;
	expect_claim(fixture.one, &key, &use, NULL, false);
	/* SQLite takes it. */
	if (store_ready(fixture.one, &key, &use, &ready, &err) != 0)
		assert_int_equal(err.code, ERROR_INVALID);
	expect_claim(fixture.one, &other, &use, NULL, false);
	tell_ready(fixture.one, &other, second_id);
	expect_claim(fixture.two, &other, &use, "i2", false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_to_come_makes_it_and_the_second_waits_for_it),
		TEST(what_a_vanished_gateway_was_making_is_taken_over_in_doubt),
		TEST(who_was_taken_for_gone_is_told_that_another_one_was_made),
		TEST(what_a_worker_leaves_is_anybodys_at_once),
		TEST(a_renewed_lease_keeps_others_from_taking_over),
		TEST(earlier_runs_of_the_same_gateway_hold_nobody_up),
		TEST(a_sandbox_that_is_gone_is_made_again_once),
		TEST(an_idle_sandbox_is_released_unless_another_gateway_has_or_had_it),
		TEST(a_sandbox_that_is_released_is_waited_for_and_then_gone),
		TEST(a_release_that_failed_or_was_cut_off_leaves_the_sandbox_known),
		TEST(a_login_has_no_more_sandboxes_than_it_may),
		TEST(one_sandbox_is_not_called_sandboxes),
		TEST(a_create_that_failed_takes_up_a_place_only_while_it_is_in_doubt),
		TEST(a_sandbox_of_one_machine_is_another_one_elsewhere),
		TEST(what_a_vanished_gateway_used_is_found_once_it_is_idle),
		TEST(what_nobody_can_dispose_of_does_not_hide_the_rest),
		TEST(a_record_in_doubt_is_kept_until_the_doubt_is_old),
		TEST(reclaiming_what_is_gone_makes_nothing),
		TEST(all_records_are_listed_page_by_page),
		TEST(a_listed_record_says_all_and_which_other_gateway_has_it),
		TEST(a_record_is_forgotten_unless_another_gateway_has_it),
		TEST(what_is_on_the_machine_of_another_gateway_is_not_forgotten_here),
		TEST(tables_of_version_1_are_brought_up_to_date_with_what_is_in_them),
		TEST(tables_of_a_newer_program_are_left_alone),
		TEST(what_is_recorded_is_no_statement),
		TEST(what_fails_in_a_transaction_is_undone_and_holds_nobody_up),
		TEST(what_a_database_does_not_take_harms_no_other_login),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
