/* SPDX-License-Identifier: ISC */
/* Statements about one record. */
#include <string.h>

#include "core/base/error.h"
#include "gateway/records_row.h"
#include "gateway/records_store.h"

int
row_begin(struct store *store, const char *lock, struct error *err)
{
	if (database_begin(store->database, lock, err) != 0)
		return -1;
	if (database_now(store->database, &store->now, err) == 0)
		return 0;
	return database_end(store->database, -1, err);
}

struct arguments
row_key(const struct store_key *key)
{
	struct arguments arguments = { .count = 3 };

	arguments.values[0] = database_text(key->login);
	arguments.values[1] = database_text(key->instance);
	arguments.values[2] = database_text(key->place);
	return arguments;
}

void
row_add_text(struct arguments *arguments, const char *text)
{
	arguments->values[arguments->count++] = database_text(text);
}

void
row_add_number(struct arguments *arguments, int64_t number)
{
	arguments->values[arguments->count++] = database_number(number);
}

int
row_change(struct store *store, const char *statement, const struct arguments *arguments,
    struct error *err)
{
	return database_change(
	    store->database, statement, arguments->values, arguments->count, err);
}

int
row_ask(struct store *store, const char *statement, const struct arguments *arguments,
    int64_t *number, struct error *err)
{
	struct database_result result = { 0 };

	if (database_query(
		store->database, statement, arguments->values, arguments->count, &result, err) != 0)
		return -1;
	*number = database_result_number(&result, 0, 0);
	database_result_free(&result);
	return 0;
}

int
row_find(struct store *store, const struct store_key *key, struct database_result *found,
    struct error *err)
{
	struct arguments arguments = row_key(key);

	return database_query(store->database,
	    "SELECT sandbox, created, state, used, idle, holder, until, doubt "
	    "FROM rwsd_workspaces WHERE " ROW_KEY,
	    arguments.values, arguments.count, found, err);
}

bool
row_is_state(const struct database_result *found, const char *state)
{
	return strcmp(database_result_text(found, 0, COLUMN_STATE), state) == 0;
}

bool
row_is_held(const struct store *store, const struct database_result *found)
{
	return database_result_number(found, 0, COLUMN_UNTIL) > store->now &&
	       strcmp(database_result_text(found, 0, COLUMN_HOLDER), store->holder) != 0;
}

int
row_put_lease(struct store *store, const struct store_key *key, struct error *err)
{
	struct arguments arguments = row_key(key);

	row_add_text(&arguments, store->holder);
	row_add_number(&arguments, store->now + STORE_LEASE);
	return row_change(store,
		   "INSERT INTO rwsd_leases (login, instance, place, holder, until) "
		   "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (login, instance, place, holder) "
		   "DO UPDATE SET until = excluded.until",
		   &arguments, err) < 0
		   ? -1
		   : 0;
}

int
row_drop_lease(struct store *store, const struct store_key *key, struct error *err)
{
	struct arguments arguments = row_key(key);

	row_add_text(&arguments, store->holder);
	return row_change(store, "DELETE FROM rwsd_leases WHERE " ROW_KEY " AND holder = $4",
		   &arguments, err) < 0
		   ? -1
		   : 0;
}
