/* SPDX-License-Identifier: ISC */
/*
 * The tables, version by version. A version that was released is never edited: what changes is the
 * next one. Gateways of one database are upgraded one after another, so a version may add what the one
 * before it can live with, and no more.
 */
#include <inttypes.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "gateway/records_database.h"

#define STEPS_MAX 4

/* Other programs may keep tables in the same database: ours have a name in common. */
static const char *const versions[][STEPS_MAX] = {
	/* 1 */
	{
	    /*
	     * A sandbox a row. place: the gateway it is bound to, or empty. state: see
	     * records_store.c. holder and until: who is about to make or to release it, and until
	     * when that holds; all times in ms since 1970.
	     */
	    "CREATE TABLE rwsd_workspaces (login TEXT NOT NULL, instance TEXT NOT NULL, "
	    "place TEXT NOT NULL, driver TEXT NOT NULL, sandbox TEXT, created BIGINT NOT NULL, "
	    "state TEXT NOT NULL, made BIGINT NOT NULL, used BIGINT NOT NULL, idle BIGINT NOT NULL, "
	    "holder TEXT NOT NULL, until BIGINT NOT NULL, PRIMARY KEY (login, instance, place))",
	    /* A gateway that has a worker for the sandbox has a row here, and renews it. */
	    "CREATE TABLE rwsd_leases (login TEXT NOT NULL, instance TEXT NOT NULL, "
	    "place TEXT NOT NULL, holder TEXT NOT NULL, until BIGINT NOT NULL, "
	    "PRIMARY KEY (login, instance, place, holder))",
	},
	/* 2: since when a second sandbox of the same label may exist; 0 for never */
	{ "ALTER TABLE rwsd_workspaces ADD COLUMN doubt BIGINT NOT NULL DEFAULT 0" },
};

#define NEWEST ((int64_t)(sizeof(versions) / sizeof(versions[0])))

static int
read_version(struct database *database, int64_t *version, struct error *err)
{
	struct database_result result = { 0 };

	if (database_query(
		database, "SELECT MAX(version) FROM rwsd_schema", NULL, 0, &result, err) != 0)
		return -1;
	*version = database_result_number(&result, 0, 0);
	database_result_free(&result);
	return 0;
}

static int
apply_version(struct database *database, int64_t version, struct error *err)
{
	struct database_value value = database_number(version);
	const char *const *steps = versions[version - 1];
	size_t i;

	for (i = 0; i < STEPS_MAX && steps[i] != NULL; i++)
		if (database_change(database, steps[i], NULL, 0, err) < 0)
			return error_wrap(err, "version %" PRId64, version);
	if (database_change(
		database, "INSERT INTO rwsd_schema (version) VALUES ($1)", &value, 1, err) < 0)
		return -1;
	log_info("records: the tables are of version %" PRId64 " now", version);
	return 0;
}

static int
check_version(int64_t version, struct error *err)
{
	if (version <= NEWEST)
		return 0;
	return error_set(err, ERROR_UNSUPPORTED,
	    "the tables are of version %" PRId64 "; this rwsd knows %" PRId64, version, NEWEST);
}

static int
migrate(struct database *database, int64_t last, struct error *err)
{
	int64_t version;

	if (database_change(database,
		"CREATE TABLE IF NOT EXISTS rwsd_schema (version BIGINT NOT NULL PRIMARY KEY)",
		NULL, 0, err) < 0 ||
	    read_version(database, &version, err) != 0)
		return -1;
	if (check_version(version, err) != 0)
		return -1;
	while (++version <= last)
		if (apply_version(database, version, err) != 0)
			return -1;
	return 0;
}

int
records_schema_migrate(struct database *database, int64_t last, struct error *err)
{
	int result;

	if (last == 0)
		last = NEWEST;
	/* Two gateways that start at once: the second finds the work done. */
	if (database_begin(database, "rwsd schema", err) != 0)
		return -1;
	result = migrate(database, last, err);
	if (database_end(database, result, err) != 0)
		return error_wrap(err, "bring the tables up to date");
	return 0;
}

int
records_schema_check(struct database *database, const char *find_tables, struct error *err)
{
	struct database_result found = { 0 };
	int64_t version;
	bool is_new;

	if (database_query(database, find_tables, NULL, 0, &found, err) != 0)
		return -1;
	is_new = database_result_number(&found, 0, 0) == 0;
	database_result_free(&found);
	if (is_new)
		return 0;
	if (read_version(database, &version, err) != 0)
		return -1;
	return check_version(version, err);
}
