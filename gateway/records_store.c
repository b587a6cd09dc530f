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
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "gateway/records_database.h"
#include "gateway/records_store.h"

/* ms by which a use may be younger than the idle time and the sandbox idle all the same: clocks and trips. */
#define IDLE_SLACK 1000

struct store {
	struct database *database;
	char *holder;
	int64_t now; /* of the transaction */
};

enum column {
	COLUMN_SANDBOX,
	COLUMN_CREATED,
	COLUMN_STATE,
	COLUMN_USED,
	COLUMN_IDLE,
	COLUMN_HOLDER,
	COLUMN_UNTIL,
	COLUMN_DOUBT,
};

#define ARGUMENTS_MAX 12

/* What a statement is given: $1, $2, $3 are always the key. */
struct arguments {
	struct database_value values[ARGUMENTS_MAX];
	size_t count;
};

#define KEY "login = $1 AND instance = $2 AND place = $3"

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
	if (store == NULL)
		return;
	memory_free(store->holder);
	memory_free(store);
}

static int
begin(struct store *store, const char *lock, struct error *err)
{
	if (database_begin(store->database, lock, err) != 0)
		return -1;
	if (database_now(store->database, &store->now, err) == 0)
		return 0;
	return database_end(store->database, -1, err);
}

static struct arguments
with_key(const struct store_key *key)
{
	struct arguments arguments = { .count = 3 };

	arguments.values[0] = database_text(key->login);
	arguments.values[1] = database_text(key->instance);
	arguments.values[2] = database_text(key->place);
	return arguments;
}

static void
add_text(struct arguments *arguments, const char *text)
{
	arguments->values[arguments->count++] = database_text(text);
}

static void
add_number(struct arguments *arguments, int64_t number)
{
	arguments->values[arguments->count++] = database_number(number);
}

static int
change(struct store *store, const char *statement, const struct arguments *arguments,
    struct error *err)
{
	return database_change(
	    store->database, statement, arguments->values, arguments->count, err);
}

/* A number that one statement asks for. */
static int
ask(struct store *store, const char *statement, const struct arguments *arguments, int64_t *number,
    struct error *err)
{
	struct database_result result = { 0 };

	if (database_query(
		store->database, statement, arguments->values, arguments->count, &result, err) != 0)
		return -1;
	*number = database_result_number(&result, 0, 0);
	database_result_free(&result);
	return 0;
}

static int
find(struct store *store, const struct store_key *key, struct database_result *found,
    struct error *err)
{
	struct arguments arguments = with_key(key);

	return database_query(store->database,
	    "SELECT sandbox, created, state, used, idle, holder, until, doubt "
	    "FROM rwsd_workspaces WHERE " KEY,
	    arguments.values, arguments.count, found, err);
}

static bool
is_state(const struct database_result *found, const char *state)
{
	return strcmp(database_result_text(found, 0, COLUMN_STATE), state) == 0;
}

/* Is another gateway, which is there, about to do something with the sandbox? */
static bool
is_held(const struct store *store, const struct database_result *found)
{
	return database_result_number(found, 0, COLUMN_UNTIL) > store->now &&
	       strcmp(database_result_text(found, 0, COLUMN_HOLDER), store->holder) != 0;
}

/* Makes or renews our lease. */
static int
put_lease(struct store *store, const struct store_key *key, struct error *err)
{
	struct arguments arguments = with_key(key);

	add_text(&arguments, store->holder);
	add_number(&arguments, store->now + STORE_LEASE);
	return change(store,
		   "INSERT INTO rwsd_leases (login, instance, place, holder, until) "
		   "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (login, instance, place, holder) "
		   "DO UPDATE SET until = excluded.until",
		   &arguments, err) < 0
		   ? -1
		   : 0;
}

static int
drop_lease(struct store *store, const struct store_key *key, struct error *err)
{
	struct arguments arguments = with_key(key);

	add_text(&arguments, store->holder);
	return change(store, "DELETE FROM rwsd_leases WHERE " KEY " AND holder = $4", &arguments,
		   err) < 0
		   ? -1
		   : 0;
}

/* A login that has stopped and forgotten sandboxes may have more of those. */
static int
check_limit(struct store *store, const struct store_key *key, int64_t limit, struct error *err)
{
	struct arguments arguments = { 0 };
	int64_t count;

	add_text(&arguments, key->login);
	add_text(&arguments, key->place);
	if (ask(store,
		"SELECT COUNT(*) FROM rwsd_workspaces WHERE login = $1 AND place = $2 AND state <> "
		"'stopped'",
		&arguments, &count, err) != 0)
		return -1;
	if (count < limit)
		return 0;
	return error_set(err, ERROR_DENIED,
	    "login %s has %lld sandboxes, and may have no more at once (max_instances)", key->login,
	    (long long)count);
}

static int
insert(struct store *store, const struct store_key *key, const struct store_request *request,
    const char *sandbox, bool created, struct error *err)
{
	struct arguments arguments = with_key(key);

	add_text(&arguments, request->driver);
	add_text(&arguments, sandbox);
	add_number(&arguments, created);
	add_text(&arguments, sandbox == NULL ? "creating" : "ready");
	add_number(&arguments, store->now);
	add_number(&arguments, request->idle);
	add_text(&arguments, store->holder);
	add_number(&arguments, sandbox == NULL ? store->now + STORE_LEASE : 0);
	return change(store,
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
	struct arguments arguments = with_key(key);

	add_text(&arguments, request->driver);
	add_text(&arguments, store->holder);
	add_number(&arguments, store->now + STORE_LEASE);
	add_number(&arguments, store->now);
	add_number(&arguments, doubt);
	add_number(&arguments, request->idle);
	return change(store,
		   request->reclaim
		       ? "UPDATE rwsd_workspaces SET state = 'creating', sandbox = NULL, driver = $4, "
			 "holder = $5, until = $6, made = $7, doubt = $8, idle = $9 WHERE " KEY
		       : "UPDATE rwsd_workspaces SET state = 'creating', sandbox = NULL, driver = $4, "
			 "holder = $5, until = $6, made = $7, used = $7, doubt = $8, idle = $9 WHERE " KEY,
		   &arguments, err) < 0
		   ? -1
		   : 0;
}

/* It is known, and from now on used, or to be disposed of. */
static int
take_up(struct store *store, const struct store_key *key, const struct store_request *request,
    struct error *err)
{
	struct arguments arguments = with_key(key);

	add_number(&arguments, request->idle);
	if (!request->reclaim)
		add_number(&arguments, store->now);
	return change(store,
		   request->reclaim
		       ? "UPDATE rwsd_workspaces SET state = 'ready', until = 0, idle = $4 WHERE " KEY
		       : "UPDATE rwsd_workspaces SET state = 'ready', until = 0, idle = $4, used = $5 "
			 "WHERE " KEY,
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

	if (is_held(store, found))
		return 0;
	sandbox = database_result_text(found, 0, COLUMN_SANDBOX);
	doubt = database_result_number(found, 0, COLUMN_DOUBT);
	if (is_state(found, "creating") || sandbox == NULL) {
		/* Left behind by somebody who was killed, or who gave up. */
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
	return put_lease(store, key, err) == 0 ? 1 : -1;
}

static int
claim_new(struct store *store, const struct store_key *key, const struct store_request *request,
    struct error *err)
{
	/* Somebody else has disposed of it meanwhile. */
	if (request->reclaim)
		return error_set(err, ERROR_NOT_FOUND, "there is no such sandbox any more");
	if (check_limit(store, key, request->limit, err) != 0 ||
	    insert(store, key, request, NULL, false, err) != 0 || put_lease(store, key, err) != 0)
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
	if (begin(store, key->login, err) != 0)
		return -1;
	result = find(store, key, &found, err);
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
	struct arguments arguments = with_key(key);

	add_text(&arguments, ready->sandbox);
	add_number(&arguments, ready->created);
	return change(store,
		   "UPDATE rwsd_workspaces SET sandbox = $4, created = $5, state = 'ready', until = 0 "
		   "WHERE " KEY,
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

	if (begin(store, key->login, err) != 0)
		return -1;
	result = find(store, key, &found, err);
	if (result == 0 && found.rows == 0) {
		result = insert(store, key, request, ready->sandbox, ready->created, err);
	} else if (result == 0) {
		sandbox = database_result_text(&found, 0, COLUMN_SANDBOX);
		if (is_held(store, &found) ||
		    (sandbox != NULL && strcmp(sandbox, ready->sandbox) != 0 &&
			!is_state(&found, "creating")))
			result = error_set(err, ERROR_EXISTS,
			    "another gateway has made sandbox %s of the same workspace",
			    sandbox == NULL ? "(unknown)" : sandbox);
		else
			result = write_ready(store, key, ready, err);
	}
	if (result == 0)
		result = put_lease(store, key, err);
	database_result_free(&found);
	return database_end(store->database, result, err);
}

int
store_settle(struct store *store, const struct store_key *key, struct error *err)
{
	struct arguments arguments = with_key(key);
	int result;

	if (begin(store, key->login, err) != 0)
		return -1;
	result = change(store, "UPDATE rwsd_workspaces SET doubt = 0 WHERE " KEY, &arguments, err);
	return database_end(store->database, result < 0 ? -1 : 0, err);
}

int
store_renew(struct store *store, const struct store_key *key, bool is_used, struct error *err)
{
	struct arguments used = with_key(key), held = with_key(key);
	int result;

	if (begin(store, key->login, err) != 0)
		return -1;
	add_number(&used, store->now);
	add_text(&held, store->holder);
	add_number(&held, store->now + STORE_LEASE);
	result = put_lease(store, key, err);
	if (result == 0 && is_used)
		result = change(
		    store, "UPDATE rwsd_workspaces SET used = $4 WHERE " KEY, &used, err);
	if (result >= 0)
		result = change(store,
		    "UPDATE rwsd_workspaces SET until = $5 WHERE " KEY
		    " AND holder = $4 AND until > 0 AND state IN ('creating', 'disposing')",
		    &held, err);
	return database_end(store->database, result < 0 ? -1 : 0, err);
}

static int
count_others(struct store *store, const struct store_key *key, int64_t *count, struct error *err)
{
	struct arguments arguments = with_key(key);

	add_text(&arguments, store->holder);
	add_number(&arguments, store->now);
	return ask(store,
	    "SELECT COUNT(*) FROM rwsd_leases WHERE " KEY " AND holder <> $4 AND until > $5",
	    &arguments, count, err);
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
	/* After an outage the leases of others have run out: they get the time to renew them. */
	if (database_is_shared(store->database) &&
	    loop_now() - database_since(store->database) < STORE_LEASE)
		*granted = false;
	return 0;
}

static int
begin_disposal(struct store *store, const struct store_key *key, struct error *err)
{
	struct arguments arguments = with_key(key);

	add_text(&arguments, store->holder);
	add_number(&arguments, store->now + STORE_LEASE);
	return change(store,
		   "UPDATE rwsd_workspaces SET state = 'disposing', holder = $4, until = $5 WHERE " KEY,
		   &arguments, err) < 0
		   ? -1
		   : 0;
}

int
store_release(struct store *store, const struct store_key *key, bool is_asked, bool *granted,
    struct error *err)
{
	struct database_result found = { 0 };
	int result;

	*granted = true;
	if (begin(store, key->login, err) != 0)
		return -1;
	result = find(store, key, &found, err);
	if (result == 0 && found.rows > 0) {
		*granted = !is_held(store, &found);
		if (*granted && !is_asked)
			result = judge_idle(store, key, &found, granted, err);
		if (result == 0 && *granted)
			result = begin_disposal(store, key, err);
	}
	database_result_free(&found);
	return database_end(store->database, result, err);
}

int
store_released(struct store *store, const struct store_key *key, enum record_outcome outcome,
    struct error *err)
{
	static const char *const statements[RECORD_OUTCOMES] = {
		[RECORD_DESTROYED] = "DELETE FROM rwsd_workspaces WHERE " KEY " AND holder = $4",
		[RECORD_STOPPED] =
		    "UPDATE rwsd_workspaces SET state = 'stopped', until = 0 WHERE " KEY
		    " AND holder = $4",
		[RECORD_KEPT] = "UPDATE rwsd_workspaces SET state = 'kept', until = 0 WHERE " KEY
				" AND holder = $4",
		/* Still disposing, and anybody's to try again. */
		[RECORD_UNKNOWN] = "UPDATE rwsd_workspaces SET until = 0 WHERE " KEY
				   " AND holder = $4",
	};
	struct arguments arguments = with_key(key);
	int result;

	if (begin(store, key->login, err) != 0)
		return -1;
	add_text(&arguments, store->holder);
	result = change(store, statements[outcome], &arguments, err);
	return database_end(store->database, result < 0 ? -1 : 0, err);
}

int
store_leave(struct store *store, const struct store_key *key, struct error *err)
{
	struct arguments arguments = with_key(key);
	int result;

	if (begin(store, key->login, err) != 0)
		return -1;
	add_text(&arguments, store->holder);
	result = change(store, "UPDATE rwsd_workspaces SET until = 0 WHERE " KEY " AND holder = $4",
	    &arguments, err);
	if (result >= 0)
		result = drop_lease(store, key, err);
	return database_end(store->database, result < 0 ? -1 : 0, err);
}

int
store_forget_runs(struct store *store, const char *prefix, struct error *err)
{
	struct arguments arguments = { 0 };
	int result;

	if (begin(store, prefix, err) != 0)
		return -1;
	add_text(&arguments, prefix);
	add_text(&arguments, store->holder);
	result = change(store,
	    "DELETE FROM rwsd_leases WHERE substr(holder, 1, length($1)) = $1 AND holder <> $2",
	    &arguments, err);
	if (result >= 0)
		result = change(store,
		    "UPDATE rwsd_workspaces SET until = 0 "
		    "WHERE substr(holder, 1, length($1)) = $1 AND holder <> $2",
		    &arguments, err);
	return database_end(store->database, result < 0 ? -1 : 0, err);
}

int
store_each_orphan(struct store *store, const char *place, store_visit_fn *visit, void *argument,
    struct error *err)
{
	struct database_result found = { 0 };
	struct arguments arguments = { 0 };
	size_t row;

	if (database_is_shared(store->database) &&
	    loop_now() - database_since(store->database) < STORE_LEASE)
		return 0;
	if (database_now(store->database, &store->now, err) != 0)
		return -1;
	add_number(&arguments, store->now);
	add_text(&arguments, place);
	if (database_query(store->database,
		"SELECT w.login, w.instance FROM rwsd_workspaces w "
		"WHERE w.state IN ('creating', 'ready', 'disposing') AND w.until < $1 "
		"AND w.used < $1 - w.idle AND w.place IN ('', $2) AND NOT EXISTS "
		"(SELECT 1 FROM rwsd_leases l WHERE l.login = w.login AND l.instance = w.instance "
		"AND l.place = w.place AND l.until > $1) LIMIT 100",
		arguments.values, arguments.count, &found, err) != 0)
		return -1;
	for (row = 0; row < found.rows; row++)
		visit(argument, database_result_text(&found, row, 0),
		    database_result_text(&found, row, 1));
	database_result_free(&found);
	return 0;
}
