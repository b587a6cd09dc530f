/* SPDX-License-Identifier: ISC */
/*
 * What the records need of a database, and the two there are. The statements are the same for both:
 * placeholders are $1, $2, ..., numbers are BIGINT, and what differs stays behind this interface.
 *
 * Calls block, each for DATABASE_WAIT at most: the records process has nothing else to do. A call
 * that fails with UNAVAILABLE found the database away; the next one tries to reach it again. INVALID is
 * what the database will never take.
 */
#ifndef GATEWAY_RECORDS_DATABASE_H
#define GATEWAY_RECORDS_DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct database;
struct error;

/* ms */
#define DATABASE_WAIT 5000

/* SQLite's, in the current directory. */
#define DATABASE_FILE "records.db"

/* A parameter: text, NULL included, or a number. */
struct database_value {
	bool is_number;
	int64_t number;
	const char *text;
};
struct database_value database_text(const char *text);
struct database_value database_number(int64_t number);

/* The rows of an answer, each value a text of its own or NULL. */
struct database_result {
	char **values;
	size_t rows, columns;
};
const char *database_result_text(const struct database_result *result, size_t row, size_t column);
int64_t database_result_number(const struct database_result *result, size_t row, size_t column);
void database_result_free(struct database_result *result); /* accepts a zeroed one */

/* For the engines: makes room for one more row of that many columns, and returns its first value's place. */
char **database_result_add(struct database_result *result, size_t columns);

struct database_engine {
	/* Makes the object; connects nothing yet. */
	void *(*open)(const char *place);
	void (*close)(void *connection);
	/*
	 * Reaches the database. *fresh: this is another connection than before. INVALID when it will
	 * not be reached before somebody has seen to it.
	 */
	int (*reach)(void *connection, bool *fresh, struct error *err);
	/*
	 * Begins a transaction in which nobody else, of any gateway, is who took the same lock. It
	 * ends with the statement COMMIT or ROLLBACK.
	 */
	int (*begin)(void *connection, const char *lock, struct error *err);
	/* Runs one statement; result may be NULL. *changed: how many rows were written. */
	int (*run)(void *connection, const char *statement, const struct database_value *values,
	    size_t count, struct database_result *result, size_t *changed, struct error *err);
	/*
	 * Ends a transaction in which something failed: nothing of it stays, or else the connection
	 * does not, so that what comes next is never part of it.
	 */
	void (*abandon)(void *connection);
	bool is_shared; /* other gateways may use the same database */
	/* A statement that counts tables of the name rwsd_schema. */
	const char *find_tables;
};

extern const struct database_engine database_sqlite, database_postgres;

/*
 * place is a postgresql:// or postgres:// URL, or NULL for the file records.db in the current
 * directory. version is that of the tables, 0 for the newest: tests make old ones. Never NULL: what
 * is wrong shows in the first call.
 */
struct database *database_open(const char *place, int64_t version);
void database_close(struct database *database); /* accepts NULL */

bool database_is_shared(const struct database *database);

/* Reaches it now, the tables brought up to date; INVALID as for an engine's reach. */
int database_reach(struct database *database, struct error *err);
/* The same, but with the tables as they are, if there are any: whether they could be brought up to date. */
int database_check(struct database *database, struct error *err);

/* The database's own clock, in ms since 1970: the one that all gateways agree about. */
int database_now(struct database *database, int64_t *now, struct error *err);

/* When the connection that serves now was made, by loop_now; leases of before may have run out unseen. */
int64_t database_since(const struct database *database);

int database_begin(struct database *database, const char *lock, struct error *err);
/* Commits when result is 0, else rolls back; returns result, or -1 when the commit failed. */
int database_end(struct database *database, int result, struct error *err);
int database_query(struct database *database, const char *statement,
    const struct database_value *values, size_t count, struct database_result *result,
    struct error *err);
/* Returns how many rows were written, or -1. */
int database_change(struct database *database, const char *statement,
    const struct database_value *values, size_t count, struct error *err);

/*
 * records_schema.c: brings the tables to version last, or with 0 to the newest that this program knows.
 * Called for each new connection. INVALID for a database that is newer than that.
 */
int records_schema_migrate(struct database *database, int64_t last, struct error *err);
/* records_schema.c: INVALID as above; changes nothing. */
int records_schema_check(struct database *database, const char *find_tables, struct error *err);

#endif
