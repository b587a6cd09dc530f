/* SPDX-License-Identifier: ISC */
/* The end of what is recorded: who may release a sandbox, and what nobody has any more. */
#include <string.h>

#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "gateway/records_database.h"
#include "gateway/records_row.h"
#include "gateway/records_store.h"

/* ms by which a use may be younger than the idle time and the sandbox idle all the same: clocks and trips. */
#define IDLE_SLACK 1000

/* Orphans that are told at once. */
#define ORPHANS_MAX 100

static int
count_others(struct store *store, const struct store_key *key, int64_t *count, struct error *err)
{
	struct arguments arguments = row_key(key);

	row_add_text(&arguments, store->holder);
	row_add_number(&arguments, store->now);
	return row_ask(store,
	    "SELECT COUNT(*) FROM rwsd_leases WHERE " ROW_KEY " AND holder <> $4 AND until > $5",
	    &arguments, count, err);
}

/* After an outage the leases of others have run out: they get the time to renew them. */
static bool
is_unsure(const struct store *store)
{
	return database_is_shared(store->database) &&
	       loop_now() - database_since(store->database) < STORE_LEASE;
}

/* Does nobody need a sandbox that is idle here? */
static int
judge_idle(struct store *store, const struct store_key *key, const struct database_result *found,
    bool *granted, struct error *err)
{
	int64_t others, used, idle;

	if (count_others(store, key, &others, err) != 0)
		return -1;
	used = database_result_number(found, 0, COLUMN_USED);
	idle = database_result_number(found, 0, COLUMN_IDLE);
	*granted = others == 0 && used + idle <= store->now + IDLE_SLACK;
	if (is_unsure(store))
		*granted = false;
	return 0;
}

static int
begin_disposal(struct store *store, const struct store_key *key, struct error *err)
{
	struct arguments arguments = row_key(key);

	row_add_text(&arguments, store->holder);
	row_add_number(&arguments, store->now + STORE_LEASE);
	return row_change(store,
		   "UPDATE rwsd_workspaces SET state = 'disposing', holder = $4, until = $5 WHERE " ROW_KEY,
		   &arguments, err) < 0
		   ? -1
		   : 0;
}

int
store_release(struct store *store, const struct store_key *key, bool is_asked, bool *granted,
    struct error *err)
{
	struct database_result found = { 0 };
	bool may = true;
	int result;

	*granted = false;
	if (row_begin(store, key->login, err) != 0)
		return -1;
	result = row_find(store, key, &found, err);
	if (result == 0 && found.rows > 0) {
		may = !row_is_held(store, &found);
		if (may && !is_asked)
			result = judge_idle(store, key, &found, &may, err);
		if (result == 0 && may)
			result = begin_disposal(store, key, err);
	}
	database_result_free(&found);
	/* Not before it is written. */
	if (database_end(store->database, result, err) != 0)
		return -1;
	*granted = may;
	return 0;
}

/* With the sandbox goes the record, unless there may be a second one: then it waits for another look. */
static int
forget(struct store *store, const struct store_key *key, struct error *err)
{
	struct arguments doubtful = row_key(key), certain = row_key(key);

	row_add_text(&doubtful, store->holder);
	row_add_number(&doubtful, store->now - STORE_DOUBT);
	row_add_number(&doubtful, store->now);
	row_add_number(&doubtful, STORE_DOUBT);
	certain.count = 5;
	memcpy(certain.values, doubtful.values, 5 * sizeof(certain.values[0]));
	if (row_change(store,
		"UPDATE rwsd_workspaces SET state = 'creating', sandbox = NULL, until = 0, "
		"used = $6, idle = $7 WHERE " ROW_KEY " AND holder = $4 AND doubt > $5",
		&doubtful, err) < 0)
		return -1;
	return row_change(store,
	    "DELETE FROM rwsd_workspaces WHERE " ROW_KEY " AND holder = $4 AND doubt <= $5",
	    &certain, err);
}

int
store_released(struct store *store, const struct store_key *key, enum record_outcome outcome,
    struct error *err)
{
	static const char *const statements[RECORD_OUTCOMES] = {
		[RECORD_STOPPED] =
		    "UPDATE rwsd_workspaces SET state = 'stopped', until = 0 WHERE " ROW_KEY
		    " AND holder = $4",
		[RECORD_KEPT] =
		    "UPDATE rwsd_workspaces SET state = 'kept', until = 0 WHERE " ROW_KEY
		    " AND holder = $4",
		/*
		 * Anybody's to try again, but not before it would be idle again: the provider may be
		 * away. What may never have been made takes up a place of its login's, and is looked
		 * for as soon as the doubt is old.
		 */
		[RECORD_UNKNOWN] =
		    "UPDATE rwsd_workspaces SET until = 0, used = $5, idle = CASE WHEN state = "
		    "'creating' AND idle > $6 THEN $6 ELSE idle END WHERE " ROW_KEY
		    " AND holder = $4",
	};
	struct arguments arguments = row_key(key);
	int result;

	if (row_begin(store, key->login, err) != 0)
		return -1;
	row_add_text(&arguments, store->holder);
	if (outcome == RECORD_UNKNOWN) {
		row_add_number(&arguments, store->now);
		row_add_number(&arguments, STORE_DOUBT);
	}
	result = outcome == RECORD_DESTROYED
		     ? forget(store, key, err)
		     : row_change(store, statements[outcome], &arguments, err);
	return database_end(store->database, result < 0 ? -1 : 0, err);
}

int
store_leave(struct store *store, const struct store_key *key, struct error *err)
{
	struct arguments arguments = row_key(key);
	int result;

	if (row_begin(store, key->login, err) != 0)
		return -1;
	row_add_text(&arguments, store->holder);
	result = row_change(store,
	    "UPDATE rwsd_workspaces SET until = 0 WHERE " ROW_KEY " AND holder = $4", &arguments,
	    err);
	if (result >= 0)
		result = row_drop_lease(store, key, err);
	return database_end(store->database, result < 0 ? -1 : 0, err);
}

int
store_forget_runs(struct store *store, const char *prefix, struct error *err)
{
	struct arguments arguments = { 0 };
	int result;

	if (row_begin(store, prefix, err) != 0)
		return -1;
	row_add_text(&arguments, prefix);
	row_add_text(&arguments, store->holder);
	result = row_change(store,
	    "DELETE FROM rwsd_leases WHERE substr(holder, 1, length($1)) = $1 AND holder <> $2",
	    &arguments, err);
	if (result >= 0)
		result = row_change(store,
		    "UPDATE rwsd_workspaces SET until = 0 "
		    "WHERE substr(holder, 1, length($1)) = $1 AND holder <> $2",
		    &arguments, err);
	return database_end(store->database, result < 0 ? -1 : 0, err);
}

/* Where the next look goes on, or begins anew. */
static void
keep_place(struct store *store, const struct database_result *found)
{
	size_t column, last = found->rows - 1;

	for (column = 0; column < ORPHAN_KEYS; column++) {
		memory_free(store->orphan[column]);
		store->orphan[column] = found->rows < ORPHANS_MAX
					    ? NULL
					    : memory_text(
						  database_result_text(found, last, column));
	}
}

int
store_each_orphan(struct store *store, const char *place, store_visit_fn *visit, void *argument,
    struct error *err)
{
	struct database_result found = { 0 };
	struct arguments arguments = { 0 };
	size_t row, column;

	if (database_now(store->database, &store->now, err) != 0)
		return -1;
	if (is_unsure(store))
		return 0;
	row_add_number(&arguments, store->now);
	row_add_text(&arguments, place);
	for (column = 0; column < ORPHAN_KEYS; column++)
		row_add_text(
		    &arguments, store->orphan[column] == NULL ? "" : store->orphan[column]);
	row_add_number(&arguments, ORPHANS_MAX);
	if (database_query(store->database,
		"SELECT w.login, w.instance, w.place FROM rwsd_workspaces w "
		"WHERE w.state IN ('creating', 'ready', 'disposing') AND w.until < $1 "
		"AND w.used < $1 - w.idle AND w.place IN ('', $2) AND NOT EXISTS "
		"(SELECT 1 FROM rwsd_leases l WHERE l.login = w.login AND l.instance = w.instance "
		"AND l.place = w.place AND l.until > $1) "
		"AND (w.login, w.instance, w.place) > ($3, $4, $5) "
		"ORDER BY w.login, w.instance, w.place LIMIT $6",
		arguments.values, arguments.count, &found, err) != 0)
		return -1;
	for (row = 0; row < found.rows; row++)
		visit(argument, database_result_text(&found, row, 0),
		    database_result_text(&found, row, 1));
	keep_place(store, &found);
	database_result_free(&found);
	return 0;
}
