/* SPDX-License-Identifier: ISC */
/*
 * Records in PostgreSQL: the door to libpq. Its calls that wait have no deadline of their own, and a
 * server that is stopped, or behind a network that swallows packets, would keep us for ever; so the
 * waiting is done here.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "gateway/records_database.h"

#define VALUES_MAX 16
#define NUMBER_SIZE 24

struct postgres_connection {
	char *place; /* may hold a password: it is never shown */
	PGconn *handle;
};

/* The first line of what libpq says, which names hosts and users but no password. */
static int
fail(const struct postgres_connection *connection, const char *what, struct error *err)
{
	const char *reason;

	reason = connection->handle == NULL ? "no memory" : PQerrorMessage(connection->handle);
	return error_set(err, ERROR_UNAVAILABLE, "postgresql: %s: %.*s", what,
	    (int)strcspn(reason, "\n"), reason);
}

static void
drop(struct postgres_connection *connection)
{
	PQfinish(connection->handle);
	connection->handle = NULL;
}

/* Waits until the socket is ready for events. */
static int
wait_socket(
    const struct postgres_connection *connection, short events, int64_t deadline, struct error *err)
{
	struct pollfd wait = { .fd = PQsocket(connection->handle), .events = events };
	int64_t left;
	int result;

	do {
		left = deadline - loop_now();
		result = left <= 0 ? 0 : poll(&wait, 1, (int)left);
	} while (result < 0 && errno == EINTR);
	if (result < 0)
		return error_system(err, errno, "postgresql: poll");
	if (result == 0)
		return error_set(err, ERROR_UNAVAILABLE, "postgresql: no answer within %d s",
		    DATABASE_WAIT / 1000);
	return 0;
}

static void *
postgres_open(const char *place)
{
	struct postgres_connection *connection;

	connection = memory_zeroed(1, sizeof(*connection));
	connection->place = memory_text(place);
	return connection;
}

static void
postgres_close(void *argument)
{
	struct postgres_connection *connection = argument;

	drop(connection);
	memory_text_wipe(connection->place);
	memory_free(connection);
}

static int
finish_connect(struct postgres_connection *connection, struct error *err)
{
	PostgresPollingStatusType status;
	int64_t deadline;

	deadline = loop_now() + DATABASE_WAIT;
	/* As if it had just said that it wants to write: see PQconnectPoll. */
	status = PGRES_POLLING_WRITING;
	while (status == PGRES_POLLING_READING || status == PGRES_POLLING_WRITING) {
		if (wait_socket(connection, status == PGRES_POLLING_READING ? POLLIN : POLLOUT,
			deadline, err) != 0)
			return -1;
		status = PQconnectPoll(connection->handle);
	}
	if (status != PGRES_POLLING_OK)
		return fail(connection, "connect", err);
	return 0;
}

/* The answer to the one statement that was sent, or NULL. The caller clears it. */
static PGresult *
take_answer(struct postgres_connection *connection, struct error *err)
{
	PGresult *answer, *last;
	int64_t deadline;

	deadline = loop_now() + DATABASE_WAIT;
	last = NULL;
	for (;;) {
		while (PQflush(connection->handle) == 1)
			if (wait_socket(connection, POLLOUT, deadline, err) != 0)
				goto lost;
		while (PQisBusy(connection->handle) == 1) {
			if (wait_socket(connection, POLLIN, deadline, err) != 0)
				goto lost;
			if (PQconsumeInput(connection->handle) != 1) {
				fail(connection, "read", err);
				goto lost;
			}
		}
		answer = PQgetResult(connection->handle);
		if (answer == NULL)
			break;
		PQclear(last);
		last = answer;
	}
	if (last == NULL)
		fail(connection, "no answer", err);
	return last;
lost:
	PQclear(last);
	drop(connection);
	return NULL;
}

static int
send_statement(struct postgres_connection *connection, const char *text,
    const struct database_value *values, size_t count, struct error *err)
{
	char numbers[VALUES_MAX][NUMBER_SIZE];
	const char *texts[VALUES_MAX];
	size_t i;

	if (count > VALUES_MAX)
		return error_set(err, ERROR_INVALID, "postgresql: too many values");
	for (i = 0; i < count; i++) {
		texts[i] = values[i].text;
		if (!values[i].is_number)
			continue;
		(void)snprintf(numbers[i], NUMBER_SIZE, "%" PRId64, values[i].number);
		texts[i] = numbers[i];
	}
	if (PQsendQueryParams(connection->handle, text, (int)count, NULL, texts, NULL, NULL, 0) !=
	    1)
		return fail(connection, "send", err);
	return 0;
}

static void
take_rows(const PGresult *answer, struct database_result *result)
{
	char **row;
	int i, j;

	for (i = 0; i < PQntuples(answer); i++) {
		row = database_result_add(result, (size_t)PQnfields(answer));
		for (j = 0; j < PQnfields(answer); j++)
			if (PQgetisnull(answer, i, j) == 0)
				row[j] = memory_text(PQgetvalue(answer, i, j));
	}
}

/*
 * A statement that the server refused. Values that it does not take today it does not take tomorrow
 * either: classes 22 and 23 of its codes (appendix A of its manual) are the values' fault and not the
 * database's, and must not look to everybody else as if that were away.
 */
static int
refuse(const struct postgres_connection *connection, const PGresult *answer, struct error *err)
{
	struct error reason;
	const char *code;

	fail(connection, "run", &reason);
	code = PQresultErrorField(answer, PG_DIAG_SQLSTATE);
	if (code != NULL && (strncmp(code, "22", 2) == 0 || strncmp(code, "23", 2) == 0))
		reason.code = ERROR_INVALID;
	if (err != NULL)
		*err = reason;
	return -1;
}

static size_t
count_changed(PGresult *answer)
{
	return (size_t)strtoul(PQcmdTuples(answer), NULL, 10);
}

static int
postgres_run(void *argument, const char *text, const struct database_value *values, size_t count,
    struct database_result *result, size_t *changed, struct error *err)
{
	struct postgres_connection *connection = argument;
	ExecStatusType status;
	PGresult *answer;
	int outcome;

	if (connection->handle == NULL)
		return error_set(err, ERROR_UNAVAILABLE, "postgresql: the connection is lost");
	if (send_statement(connection, text, values, count, err) != 0)
		return -1;
	answer = take_answer(connection, err);
	if (answer == NULL)
		return -1;
	status = PQresultStatus(answer);
	outcome = 0;
	if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
		*changed = count_changed(answer);
		if (result != NULL)
			take_rows(answer, result);
	} else {
		outcome = refuse(connection, answer, err);
	}
	PQclear(answer);
	return outcome;
}

/*
 * A gateway whose machine is gone within a transaction must not keep the others from its rows until TCP
 * notices. Set here and not in the URL's options, which connection poolers refuse.
 */
static int
set_limits(struct postgres_connection *connection, struct error *err)
{
	static const char *const limits[] = { "SET statement_timeout = 4000",
		"SET idle_in_transaction_session_timeout = 10000",
		"SET client_min_messages = warning" };
	size_t i, changed;

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (postgres_run(connection, limits[i], NULL, 0, NULL, &changed, err) != 0)
			return -1;
	return 0;
}

/* A list of numbers, one for each host. */
static bool
is_port(const char *text)
{
	return text[strspn(text, "0123456789,")] == '\0';
}

/*
 * Is the URL one? What libpq says of it quotes it, and so may show the password: of that only what stands
 * before the quotation is passed on. A password with a "/" or "@" in it comes out as a port.
 */
static int
check_place(const struct postgres_connection *connection, struct error *err)
{
	const PQconninfoOption *option;
	PQconninfoOption *options;
	char *complaint;
	int result;

	complaint = NULL;
	options = PQconninfoParse(connection->place, &complaint);
	if (options == NULL) {
		error_set(err, ERROR_UNSUPPORTED, "the URL cannot be read: %.*s",
		    complaint == NULL ? 0 : (int)strcspn(complaint, ":\"\n"),
		    complaint == NULL ? "" : complaint);
		PQfreemem(complaint);
		return -1;
	}
	result = 0;
	for (option = options; option->keyword != NULL; option++)
		if (strcmp(option->keyword, "port") == 0 && option->val != NULL &&
		    !is_port(option->val))
			result = error_set(err, ERROR_UNSUPPORTED,
			    "the URL cannot be read: what stands in the port's place is no number (in "
			    "a password, a \"/\" is written %%2F, a \"@\" %%40)");
	PQconninfoFree(options);
	return result;
}

/* What a server has to remark would else go to the log as it comes, lines and escapes included. */
static void
take_notice(void *argument, const char *text)
{
	(void)argument;
	log_debug("postgresql: %s", text);
}

static int
connect_server(struct postgres_connection *connection, struct error *err)
{
	static const char *const names[] = { "dbname", "application_name", NULL };
	const char *values[] = { connection->place, "rwsd", NULL };

	if (check_place(connection, err) != 0)
		return -1;
	connection->handle = PQconnectStartParams(names, values, 1);
	if (connection->handle == NULL || PQstatus(connection->handle) == CONNECTION_BAD)
		return fail(connection, "connect", err);
	(void)PQsetNoticeProcessor(connection->handle, take_notice, NULL);
	if (finish_connect(connection, err) != 0)
		return -1;
	if (PQsetnonblocking(connection->handle, 1) != 0)
		return fail(connection, "set non-blocking", err);
	return set_limits(connection, err);
}

static int
postgres_reach(void *argument, bool *fresh, struct error *err)
{
	struct postgres_connection *connection = argument;

	*fresh = false;
	if (connection->handle != NULL && PQstatus(connection->handle) == CONNECTION_OK)
		return 0;
	drop(connection);
	*fresh = true;
	if (connect_server(connection, err) == 0)
		return 0;
	drop(connection);
	return -1;
}

static void
postgres_abandon(void *argument)
{
	struct postgres_connection *connection = argument;
	size_t changed;

	if (connection->handle == NULL || PQtransactionStatus(connection->handle) == PQTRANS_IDLE)
		return;
	if (postgres_run(connection, "ROLLBACK", NULL, 0, NULL, &changed, NULL) != 0)
		drop(connection);
}

/* An advisory lock: there is no row yet that the first one to come could lock. */
static int
postgres_begin(void *argument, const char *lock, struct error *err)
{
	struct database_value value = database_text(lock);
	size_t changed;

	if (postgres_run(argument, "BEGIN", NULL, 0, NULL, &changed, err) == 0 &&
	    postgres_run(argument, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", &value,
		1, NULL, &changed, err) == 0)
		return 0;
	postgres_abandon(argument);
	return -1;
}

const struct database_engine database_postgres = {
	.open = postgres_open,
	.close = postgres_close,
	.reach = postgres_reach,
	.begin = postgres_begin,
	.run = postgres_run,
	.abandon = postgres_abandon,
	.is_shared = true,
	.find_tables = "SELECT COUNT(*) FROM pg_catalog.pg_class "
		       "WHERE relname = 'rwsd_schema' AND pg_catalog.pg_table_is_visible(oid)",
};
