/* SPDX-License-Identifier: ISC */
/*
 * The states of a record:
 *
 *	creating   holder asked the provider for a sandbox, or is about to, until then
 *	ready      the sandbox is there, and runs as far as we know
 *	disposing  holder has it released, until then
 *	stopped    its files are there
 *	kept       it was left running, and will be
 *
 * creating is written before the provider is asked, so whoever finds it left behind knows that there
 * may be a sandbox that nobody wrote down: it looks for the label, and doubts for a while that it found all.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "gateway/records_database.h"
#include "gateway/records_row.h"
#include "gateway/records_store.h"

struct store *
store_new(struct database *database, const char *holder)
{
	struct store *store;

	store = memory_zeroed(1, sizeof(*store));
	store->database = database;
	store->holder = memory_text(holder);
	return store;
}

void
store_free(struct store *store)
{
	size_t i;

	if (store == NULL)
		return;
	for (i = 0; i < ORPHAN_KEYS; i++)
		memory_free(store->orphan[i]);
	memory_free(store->holder);
	memory_free(store);
}

/* A login that has stopped and forgotten sandboxes may have more of those. */
static int
check_limit(struct store *store, const struct store_key *key, int64_t limit, struct error *err)
{
	struct arguments arguments = { 0 };
	int64_t count;

	row_add_text(&arguments, key->login);
	row_add_text(&arguments, key->place);
	if (row_ask(store,
		"SELECT COUNT(*) FROM rwsd_workspaces WHERE login = $1 AND place = $2 AND state <> "
		"'stopped'",
		&arguments, &count, err) != 0)
		return -1;
	if (count < limit)
		return 0;
	return error_set(err, ERROR_DENIED,
	    "login %s has %lld sandbox%s, and may have no more at once (max_instances)", key->login,
	    (long long)count, count == 1 ? "" : "es");
}

static int
insert(struct store *store, const struct store_key *key, const struct store_request *request,
    const char *sandbox, bool created, struct error *err)
{
	struct arguments arguments = row_key(key);

	row_add_text(&arguments, request->driver);
	row_add_text(&arguments, sandbox);
	row_add_number(&arguments, created);
	row_add_text(&arguments, sandbox == NULL ? "creating" : "ready");
	row_add_number(&arguments, store->now);
	row_add_number(&arguments, request->idle);
	row_add_text(&arguments, store->holder);
	row_add_number(&arguments, sandbox == NULL ? store->now + STORE_LEASE : 0);
	return row_change(store,
		   "INSERT INTO rwsd_workspaces (login, instance, place, driver, sandbox, created, "
		   "state, made, used, idle, holder, until) "
		   "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10, $11)",
		   &arguments, err) < 0
		   ? -1
		   : 0;
}

/* The next one to know the sandbox of this workspace is us. A claim that is a use counts as one. */
static int
announce(struct store *store, const struct store_key *key, const struct store_request *request,
    int64_t doubt, struct error *err)
{
	struct arguments arguments = row_key(key);

	row_add_text(&arguments, request->driver);
	row_add_text(&arguments, store->holder);
	row_add_number(&arguments, store->now + STORE_LEASE);
	row_add_number(&arguments, store->now);
	row_add_number(&arguments, doubt);
	row_add_number(&arguments, request->idle);
	return row_change(store,
		   request->reclaim
		       ? "UPDATE rwsd_workspaces SET state = 'creating', sandbox = NULL, driver = $4, "
			 "holder = $5, until = $6, made = $7, doubt = $8, idle = $9 WHERE " ROW_KEY
		       : "UPDATE rwsd_workspaces SET state = 'creating', sandbox = NULL, driver = $4, "
			 "holder = $5, until = $6, made = $7, used = $7, doubt = $8, idle = $9 WHERE " ROW_KEY,
		   &arguments, err) < 0
		   ? -1
		   : 0;
}

/* It is known, and from now on used, or to be disposed of. */
static int
take_up(struct store *store, const struct store_key *key, const struct store_request *request,
    struct error *err)
{
	struct arguments arguments = row_key(key);

	row_add_number(&arguments, request->idle);
	if (!request->reclaim)
		row_add_number(&arguments, store->now);
	return row_change(store,
		   request->reclaim
		       ? "UPDATE rwsd_workspaces SET state = 'ready', until = 0, idle = $4 WHERE " ROW_KEY
		       : "UPDATE rwsd_workspaces SET state = 'ready', until = 0, idle = $4, used = $5 "
			 "WHERE " ROW_KEY,
		   &arguments, err) < 0
		   ? -1
		   : 0;
}

/* With what is recorded, within the transaction; as store_claim. */
static int
claim_found(struct store *store, const struct store_key *key, const struct store_request *request,
    const struct database_result *found, struct record_claimed *answer, struct error *err)
{
	const char *sandbox;
	int64_t doubt;

	if (row_is_held(store, found))
		return 0;
	sandbox = database_result_text(found, 0, COLUMN_SANDBOX);
	doubt = database_result_number(found, 0, COLUMN_DOUBT);
	if (row_is_state(found, "creating") || sandbox == NULL) {
		/* Left behind by somebody who was killed, or who gave up; looking again begins no new doubt. */
		if (doubt == 0 || !request->reclaim)
			doubt = store->now;
		sandbox = NULL;
	} else if (request->lost != NULL && strcmp(request->lost, sandbox) == 0) {
		sandbox = NULL;
	}
	answer->doubtful = doubt != 0;
	answer->created = database_result_number(found, 0, COLUMN_CREATED) != 0;
	if (sandbox == NULL) {
		if (announce(store, key, request, doubt, err) != 0)
			return -1;
	} else {
		if (take_up(store, key, request, err) != 0)
			return -1;
		answer->sandbox = memory_text(sandbox);
	}
	return row_put_lease(store, key, err) == 0 ? 1 : -1;
}

static int
claim_new(struct store *store, const struct store_key *key, const struct store_request *request,
    struct error *err)
{
	/* Somebody else has disposed of it meanwhile. */
	if (request->reclaim)
		return error_set(err, ERROR_NOT_FOUND, "there is no such sandbox any more");
	if (check_limit(store, key, request->limit, err) != 0 ||
	    insert(store, key, request, NULL, false, err) != 0 ||
	    row_put_lease(store, key, err) != 0)
		return -1;
	return 1;
}

int
store_claim(struct store *store, const struct store_key *key, const struct store_request *request,
    struct record_claimed *answer, struct error *err)
{
	struct database_result found = { 0 };
	int result;

	memset(answer, 0, sizeof(*answer));
	answer->is_shared = database_is_shared(store->database) && key->place[0] == '\0';
	if (row_begin(store, key->login, err) != 0)
		return -1;
	result = row_find(store, key, &found, err);
	if (result == 0)
		result = found.rows == 0 ? claim_new(store, key, request, err)
					 : claim_found(store, key, request, &found, answer, err);
	database_result_free(&found);
	if (database_end(store->database, result < 0 ? -1 : 0, err) == 0)
		return result;
	record_claimed_free(answer);
	return -1;
}

static int
write_ready(struct store *store, const struct store_key *key, const struct record_ready *ready,
    struct error *err)
{
	struct arguments arguments = row_key(key);

	row_add_text(&arguments, ready->sandbox);
	row_add_number(&arguments, ready->created);
	return row_change(store,
		   "UPDATE rwsd_workspaces SET sandbox = $4, created = $5, state = 'ready', until = 0 "
		   "WHERE " ROW_KEY,
		   &arguments, err) < 0
		   ? -1
		   : 0;
}

int
store_ready(struct store *store, const struct store_key *key, const struct store_request *request,
    const struct record_ready *ready, struct error *err)
{
	struct database_result found = { 0 };
	const char *sandbox;
	int result;

	if (row_begin(store, key->login, err) != 0)
		return -1;
	result = row_find(store, key, &found, err);
	if (result == 0 && found.rows == 0) {
		result = insert(store, key, request, ready->sandbox, ready->created, err);
	} else if (result == 0) {
		sandbox = database_result_text(&found, 0, COLUMN_SANDBOX);
		if (row_is_held(store, &found) ||
		    (sandbox != NULL && strcmp(sandbox, ready->sandbox) != 0 &&
			!row_is_state(&found, "creating")))
			result = error_set(err, ERROR_EXISTS,
			    "another gateway has made sandbox %s of the same workspace",
			    sandbox == NULL ? "(unknown)" : sandbox);
		else
			result = write_ready(store, key, ready, err);
	}
	if (result == 0)
		result = row_put_lease(store, key, err);
	database_result_free(&found);
	return database_end(store->database, result, err);
}

int
store_settle(struct store *store, const struct store_key *key, struct error *err)
{
	struct arguments arguments = row_key(key);
	int result;

	if (row_begin(store, key->login, err) != 0)
		return -1;
	result = row_change(
	    store, "UPDATE rwsd_workspaces SET doubt = 0 WHERE " ROW_KEY, &arguments, err);
	return database_end(store->database, result < 0 ? -1 : 0, err);
}

int
store_renew(struct store *store, const struct store_key *key, bool is_used, struct error *err)
{
	struct arguments used = row_key(key), held = row_key(key);
	int result;

	if (row_begin(store, key->login, err) != 0)
		return -1;
	row_add_number(&used, store->now);
	row_add_text(&held, store->holder);
	row_add_number(&held, store->now + STORE_LEASE);
	result = row_put_lease(store, key, err);
	if (result == 0 && is_used)
		result = row_change(
		    store, "UPDATE rwsd_workspaces SET used = $4 WHERE " ROW_KEY, &used, err);
	if (result >= 0)
		result = row_change(store,
		    "UPDATE rwsd_workspaces SET until = $5 WHERE " ROW_KEY
		    " AND holder = $4 AND until > 0 AND state IN ('creating', 'disposing')",
		    &held, err);
	return database_end(store->database, result < 0 ? -1 : 0, err);
}
