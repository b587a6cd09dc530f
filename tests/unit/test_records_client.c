/* SPDX-License-Identifier: ISC */
/* Workers of one workspace while the database comes and goes: what was told first is written first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "core/record_protocol.h"
#include "gateway/records_client.h"
#include "gateway/records_database.h"
#include "gateway/records_store.h"

static struct {
	char directory[64];
	struct loop *loop;
	struct database *database;
	struct clients clients;
	struct record_claimed claimed; /* the last answer */
	unsigned answers;
} fixture;

static void
client_gone(void)
{
}

static int
set_up(void **state)
{
	struct error err;

	(void)state;
	(void)snprintf(fixture.directory, sizeof(fixture.directory), "/tmp/records-XXXXXX");
	if (mkdtemp(fixture.directory) == NULL || chdir(fixture.directory) != 0)
		return -1;
	fixture.loop = loop_new(&err);
	fixture.database = database_open(NULL, 0);
	memset(&fixture.clients, 0, sizeof(fixture.clients));
	fixture.clients.loop = fixture.loop;
	fixture.clients.store = store_new(fixture.database, "aaaa/1");
	fixture.clients.place = "aaaa";
	fixture.clients.gone = client_gone;
	fixture.answers = 0;
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	clients_free(&fixture.clients);
	store_free(fixture.clients.store);
	database_close(fixture.database);
	record_claimed_free(&fixture.claimed);
	loop_free(fixture.loop);
	(void)unlink("records.db");
	(void)unlink("records.db-wal");
	(void)unlink("records.db-shm");
	return chdir("/") != 0 || rmdir(fixture.directory) != 0;
}

static int
take_claimed(void *argument, struct message *message, struct error *err)
{
	(void)argument;
	record_claimed_free(&fixture.claimed);
	fixture.answers++;
	return record_claimed_decode(message, &fixture.claimed, err);
}

static int
take_may_release(void *argument, struct message *message, struct error *err)
{
	bool granted;

	(void)argument;
	fixture.answers++;
	return record_flag_decode(message, &granted, err);
}

static const struct peer_rule rules[] = {
	{ MESSAGE_RECORD_CLAIMED, "RECORD_CLAIMED", 1, take_claimed },
	{ MESSAGE_RECORD_MAY_RELEASE, "RECORD_MAY_RELEASE", 1, take_may_release },
	{ 0, NULL, 0, NULL },
};

static void
records_closed(void *argument, const struct error *err)
{
	(void)argument;
	fail_msg("the worker's socket was closed: %s", err->message);
}

static const struct peer_events events = { rules, records_closed, NULL };

static struct peer *
open_worker(void)
{
	struct records_attach attach = { .idle = 60000, .limit = 16 };
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	attach.login = memory_text("agent");
	attach.instance = memory_text("");
	attach.driver = memory_text("e2b");
	attach.fd = pair[0];
	client_open(&fixture.clients, &attach);
	return peer_new(fixture.loop, pair[1], "worker", "records", &events, NULL);
}

static void
dispatch(int wait)
{
	struct error err;

	if (loop_dispatch(fixture.loop, wait, &err) != 0)
		fail_msg("%s", err.message);
}

/* Until there is one more answer. */
static void
ask(struct peer *worker, struct message *message)
{
	unsigned before = fixture.answers;

	peer_send(worker, message);
	while (fixture.answers == before)
		dispatch(-1);
}

static void
claim(struct peer *worker)
{
	struct record_claim claim = { 0 };
	struct message message;

	record_claim_encode(&message, &claim);
	ask(worker, &message);
}

/* What is told has no answer; what is asked after it is taken after it. */
static void
tell_all(struct peer *worker)
{
	static char id[] = "i1";
	struct record_ready ready = { id, true };
	struct message message;

	record_ready_encode(&message, &ready);
	peer_send(worker, &message);
	record_flag_encode(&message, MESSAGE_RECORD_RELEASE, true);
	ask(worker, &message);
}

static void
take_database_away(void)
{
	assert_int_equal(rename("records.db", "elsewhere"), 0);
	assert_int_equal(mkdir("records.db", 0700), 0);
}

/* And lets the time pass after which it is tried again. */
static void
bring_database_back(void)
{
	struct timespec pause = { .tv_sec = 1, .tv_nsec = 100000000 };

	assert_int_equal(rmdir("records.db"), 0);
	assert_int_equal(rename("elsewhere", "records.db"), 0);
	(void)nanosleep(&pause, NULL);
}

static void
what_was_told_while_the_database_was_away_comes_before_what_is_asked_next(void **state)
{
	struct peer *first, *second;
	struct message message;

	(void)state;
	first = open_worker();
	claim(first);
	tell_all(first);
	take_database_away();
	record_released_encode(&message, RECORD_DESTROYED);
	peer_send(first, &message);
	peer_free(first);
	second = open_worker();
	claim(second);
	assert_true(fixture.claimed.failed);
	assert_int_equal(fixture.claimed.failure.code, ERROR_UNAVAILABLE);
	bring_database_back();
	claim(second);
	assert_false(fixture.claimed.failed);
	/* Not the one that the first has destroyed; and its end ends nothing of the second's. */
	assert_null(fixture.claimed.sandbox);
	clients_flush(&fixture.clients);
	tell_all(second);
	claim(second);
	assert_string_equal(fixture.claimed.sandbox, "i1");
	peer_free(second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_told_while_the_database_was_away_comes_before_what_is_asked_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
