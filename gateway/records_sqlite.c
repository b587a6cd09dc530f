/* SPDX-License-Identifier: ISC */
/*
 * Records in a file of the state directory: the door to SQLite. The records process works in that
 * directory and may not see the way to it, so names stay relative: a VFS of our own, which is the
 * standard one but for that.
 */
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "gateway/records_database.h"

#define FILE_NAME DATABASE_FILE
#define VFS_NAME "rwsd"

struct sqlite_connection {
	sqlite3 *handle;
};

static int
keep_name(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
	(void)vfs;
	if (snprintf(out, (size_t)size, "%s", name) >= size)
		return SQLITE_CANTOPEN;
	return SQLITE_OK;
}

static int
register_vfs(void)
{
	static sqlite3_vfs vfs;
	const sqlite3_vfs *standard;

	if (sqlite3_vfs_find(VFS_NAME) != NULL)
		return 0;
	standard = sqlite3_vfs_find(NULL);
	if (standard == NULL)
		return -1;
	vfs = *standard;
	vfs.zName = VFS_NAME;
	vfs.xFullPathname = keep_name;
	return sqlite3_vfs_register(&vfs, 0) == SQLITE_OK ? 0 : -1;
}

static int
fail(const struct sqlite_connection *connection, const char *what, struct error *err)
{
	const char *reason;

	reason = connection->handle == NULL ? "no memory" : sqlite3_errmsg(connection->handle);
	return error_set(err, ERROR_UNAVAILABLE, "%s: %s: %s", FILE_NAME, what, reason);
}

/* Is what went wrong a matter of the moment? Else somebody has to see to the file, or to its rights. */
static bool
may_pass(sqlite3 *handle)
{
	switch (handle == NULL ? SQLITE_NOMEM : sqlite3_errcode(handle) & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_NOMEM:
	case SQLITE_IOERR:
	case SQLITE_FULL:
		return true;
	default:
		return false;
	}
}

/* A statement that failed: a value that breaks a rule of the tables is not the database's trouble. */
static int
refuse(const struct sqlite_connection *connection, int result, struct error *err)
{
	struct error reason;

	fail(connection, "run", &reason);
	if (result == SQLITE_CONSTRAINT || result == SQLITE_MISMATCH || result == SQLITE_TOOBIG)
		reason.code = ERROR_INVALID;
	if (err != NULL)
		*err = reason;
	return -1;
}

static void
drop(struct sqlite_connection *connection)
{
	(void)sqlite3_close_v2(connection->handle);
	connection->handle = NULL;
}

static void *
sqlite_open(const char *place)
{
	(void)place;
	return memory_zeroed(1, sizeof(struct sqlite_connection));
}

static void
sqlite_close(void *argument)
{
	struct sqlite_connection *connection = argument;

	drop(connection);
	memory_free(connection);
}

/* Is the file that is open no more the one of that name? What is written to it nobody would ever read. */
static bool
has_moved(const struct sqlite_connection *connection)
{
	int moved = 0;

	return sqlite3_get_autocommit(connection->handle) != 0 &&
	       sqlite3_file_control(connection->handle, NULL, SQLITE_FCNTL_HAS_MOVED, &moved) ==
		   SQLITE_OK &&
	       moved != 0;
}

static int
sqlite_reach(void *argument, bool *fresh, struct error *err)
{
	struct sqlite_connection *connection = argument;

	*fresh = false;
	if (connection->handle != NULL && has_moved(connection)) {
		log_error("records: %s was removed or replaced while it was in use", FILE_NAME);
		drop(connection);
	}
	if (connection->handle != NULL)
		return 0;
	if (register_vfs() != 0)
		return fail(connection, "register", err);
	/* WAL: an update is one write and one fsync, and a process killed within it has changed nothing. */
	if (sqlite3_open_v2(FILE_NAME, &connection->handle,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, VFS_NAME) == SQLITE_OK &&
	    sqlite3_busy_timeout(connection->handle, DATABASE_WAIT) == SQLITE_OK &&
	    sqlite3_exec(connection->handle, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) ==
		SQLITE_OK) {
		*fresh = true;
		return 0;
	}
	fail(connection, "open", err);
	if (!may_pass(connection->handle))
		err->code = ERROR_UNSUPPORTED;
	drop(connection);
	return -1;
}

static int
bind_values(
    sqlite3_stmt *statement, const struct database_value *values, size_t count, struct error *err)
{
	char name[32];
	size_t i;
	int place, result;

	for (i = 0; i < count; i++) {
		/* To SQLite "$1" is a name: it counts places by their first appearance. */
		(void)snprintf(name, sizeof(name), "$%zu", i + 1);
		place = sqlite3_bind_parameter_index(statement, name);
		if (place == 0)
			continue;
		if (values[i].is_number)
			result = sqlite3_bind_int64(statement, place, values[i].number);
		else if (values[i].text == NULL)
			result = sqlite3_bind_null(statement, place);
		else
			result = sqlite3_bind_text(
			    statement, place, values[i].text, -1, SQLITE_STATIC);
		if (result != SQLITE_OK)
			return error_set(err, ERROR_UNAVAILABLE, "%s: bind: %s", FILE_NAME,
			    sqlite3_errstr(result));
	}
	return 0;
}

static void
take_row(sqlite3_stmt *statement, struct database_result *result)
{
	const unsigned char *text;
	char **row;
	int i, columns;

	columns = sqlite3_column_count(statement);
	row = database_result_add(result, (size_t)columns);
	for (i = 0; i < columns; i++) {
		text = sqlite3_column_text(statement, i);
		if (text != NULL)
			row[i] = memory_text_bounded(
			    text, (size_t)sqlite3_column_bytes(statement, i));
	}
}

static int
sqlite_run(void *argument, const char *text, const struct database_value *values, size_t count,
    struct database_result *result, size_t *changed, struct error *err)
{
	struct sqlite_connection *connection = argument;
	sqlite3_stmt *statement;
	int step, outcome;

	statement = NULL;
	if (sqlite3_prepare_v2(connection->handle, text, -1, &statement, NULL) != SQLITE_OK)
		return fail(connection, "prepare", err);
	outcome = bind_values(statement, values, count, err);
	if (outcome != 0)
		goto out;
	while ((step = sqlite3_step(statement)) == SQLITE_ROW)
		if (result != NULL)
			take_row(statement, result);
	*changed = (size_t)sqlite3_changes(connection->handle);
	if (step != SQLITE_DONE)
		outcome = refuse(connection, step, err);
out:
	(void)sqlite3_finalize(statement);
	return outcome;
}

static void
sqlite_abandon(void *argument)
{
	struct sqlite_connection *connection = argument;

	/* Most failures have rolled back by themselves. */
	if (connection->handle == NULL || sqlite3_get_autocommit(connection->handle) != 0)
		return;
	if (sqlite3_exec(connection->handle, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
		drop(connection);
}

/* One writer at a time is all that SQLite has: any lock is the whole file's. */
static int
sqlite_begin(void *argument, const char *lock, struct error *err)
{
	size_t changed;

	(void)lock;
	return sqlite_run(argument, "BEGIN IMMEDIATE", NULL, 0, NULL, &changed, err);
}

const struct database_engine database_sqlite = {
	.open = sqlite_open,
	.close = sqlite_close,
	.reach = sqlite_reach,
	.begin = sqlite_begin,
	.run = sqlite_run,
	.abandon = sqlite_abandon,
	.is_shared = false,
	.find_tables = "SELECT COUNT(*) FROM sqlite_master WHERE name = 'rwsd_schema'",
};
