/* SPDX-License-Identifier: ISC */
/* The database, whichever it is: reached when it is needed, and again after it was away. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "gateway/records_database.h"

/* ms without another attempt at a database that did not answer: who asks meanwhile is told at once. */
#define AGAIN_WAIT 1000

struct database {
	const struct database_engine *engine;
	void *connection;
	bool reached;
	bool migrating;
	int64_t version;      /* of the tables, 0 for the newest */
	int64_t since;        /* loop_now */
	int64_t again;        /* loop_now; not before */
	struct error trouble; /* of the last attempt */
};

struct database_value
database_text(const char *text)
{
	return (struct database_value){ .text = text };
}

struct database_value
database_number(int64_t number)
{
	return (struct database_value){ .is_number = true, .number = number };
}

char **
database_result_add(struct database_result *result, size_t columns)
{
	char **row;

	result->columns = columns;
	result->rows++;
	result->values = memory_resize(
	    result->values, result->rows * columns, sizeof(*result->values));
	row = &result->values[(result->rows - 1) * columns];
	memset(row, 0, columns * sizeof(*row));
	return row;
}

const char *
database_result_text(const struct database_result *result, size_t row, size_t column)
{
	return row < result->rows && column < result->columns
		   ? result->values[row * result->columns + column]
		   : NULL;
}

int64_t
database_result_number(const struct database_result *result, size_t row, size_t column)
{
	const char *text;
	int64_t number;

	text = database_result_text(result, row, column);
	if (text == NULL || number_parse(text, INT64_MIN, INT64_MAX, &number, NULL) != 0)
		return 0;
	return number;
}

void
database_result_free(struct database_result *result)
{
	size_t i;

	for (i = 0; i < result->rows * result->columns; i++)
		memory_free(result->values[i]);
	memory_free(result->values);
	memset(result, 0, sizeof(*result));
}

struct database *
database_open(const char *place, int64_t version)
{
	struct database *database;

	database = memory_zeroed(1, sizeof(*database));
	database->engine = place == NULL ? &database_sqlite : &database_postgres;
	database->connection = database->engine->open(place);
	database->version = version;
	return database;
}

void
database_close(struct database *database)
{
	if (database == NULL)
		return;
	database->engine->close(database->connection);
	memory_free(database);
}

bool
database_is_shared(const struct database *database)
{
	return database->engine->is_shared;
}

int64_t
database_since(const struct database *database)
{
	return database->since;
}

/* Keeps what went wrong: for so many ms it is the answer to everything. */
static int
note_trouble(
    struct database *database, const struct error *reason, int64_t pause, struct error *err)
{
	if (database->trouble.code == ERROR_NONE)
		log_error("records: %s", reason->message);
	database->reached = false;
	database->trouble = *reason;
	database->again = loop_now() + pause;
	if (err != NULL)
		*err = *reason;
	return -1;
}

/* *fresh: this is another connection than before. */
static int
reach(struct database *database, bool *fresh, struct error *err)
{
	struct error reason;

	*fresh = false;
	if (database->migrating)
		return 0;
	if (database->trouble.code != ERROR_NONE && loop_now() < database->again) {
		if (err != NULL)
			*err = database->trouble;
		return -1;
	}
	if (database->engine->reach(database->connection, fresh, &reason) != 0)
		return note_trouble(database, &reason, AGAIN_WAIT, err);
	if (database->reached && !*fresh)
		return 0;
	database->migrating = true;
	database->reached = records_schema_migrate(database, database->version, &reason) == 0;
	database->migrating = false;
	if (!database->reached)
		return note_trouble(database, &reason, AGAIN_WAIT, err);
	if (database->trouble.code != ERROR_NONE)
		log_info("records: the database is there again");
	error_clear(&database->trouble);
	database->since = loop_now();
	return 0;
}

/* A statement that failed may have found the connection lost. */
static int
judge(struct database *database, int result, const struct error *reason, struct error *err)
{
	if (result == 0)
		return 0;
	if (reason->code == ERROR_UNAVAILABLE)
		return note_trouble(database, reason, 0, err);
	if (err != NULL)
		*err = *reason;
	return -1;
}

int
database_reach(struct database *database, struct error *err)
{
	bool fresh;

	return reach(database, &fresh, err);
}

int
database_check(struct database *database, struct error *err)
{
	bool fresh;
	int result;

	if (database->engine->reach(database->connection, &fresh, err) != 0)
		return -1;
	database->migrating = true;
	result = records_schema_check(database, database->engine->find_tables, err);
	database->migrating = false;
	return result;
}

int
database_begin(struct database *database, const char *lock, struct error *err)
{
	struct error reason;
	bool fresh;
	int result;

	if (reach(database, &fresh, err) != 0)
		return -1;
	result = database->engine->begin(database->connection, lock, &reason);
	if (result == 0 || reason.code != ERROR_UNAVAILABLE)
		return judge(database, result, &reason, err);
	/* A server that was started anew shows only now; nothing was asked of it yet, so it is asked again. */
	if (reach(database, &fresh, err) != 0)
		return -1;
	if (fresh)
		result = database->engine->begin(database->connection, lock, &reason);
	return judge(database, result, &reason, err);
}

int
database_query(struct database *database, const char *statement,
    const struct database_value *values, size_t count, struct database_result *result,
    struct error *err)
{
	struct error reason;
	size_t changed;
	bool fresh;
	int outcome;

	if (reach(database, &fresh, err) != 0)
		return -1;
	outcome = database->engine->run(
	    database->connection, statement, values, count, result, &changed, &reason);
	return judge(database, outcome, &reason, err);
}

int
database_change(struct database *database, const char *statement,
    const struct database_value *values, size_t count, struct error *err)
{
	struct error reason;
	size_t changed;
	bool fresh;
	int outcome;

	if (reach(database, &fresh, err) != 0)
		return -1;
	changed = 0;
	outcome = database->engine->run(
	    database->connection, statement, values, count, NULL, &changed, &reason);
	if (judge(database, outcome, &reason, err) != 0)
		return -1;
	return changed > INT32_MAX ? INT32_MAX : (int)changed;
}

int
database_end(struct database *database, int result, struct error *err)
{
	if (result == 0 && database_change(database, "COMMIT", NULL, 0, err) >= 0)
		return 0;
	/* What failed is in err already. */
	database->engine->abandon(database->connection);
	return -1;
}

int
database_now(struct database *database, int64_t *now, struct error *err)
{
	struct database_result result = { 0 };
	struct timespec time;

	if (!database->engine->is_shared) {
		(void)clock_gettime(CLOCK_REALTIME, &time);
		*now = (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
		return 0;
	}
	if (database_query(database,
		"SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)", NULL, 0,
		&result, err) != 0)
		return -1;
	*now = database_result_number(&result, 0, 0);
	database_result_free(&result);
	return 0;
}
