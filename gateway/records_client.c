/* SPDX-License-Identifier: ISC */
/*
 * What a worker asks is answered at once, or after another gateway has finished what it is at. What a
 * worker tells is kept until it is written, and outlives the worker: the database may be away for a
 * while.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "core/record_protocol.h"
#include "gateway/records_client.h"
#include "gateway/records_store.h"

/* ms between two looks at whether another gateway is done, and until the worker is told that it waits. */
#define LOOK_PERIOD 200
#define LOOKS_A_WORD 10

/* What is yet to be written, in this order. */
enum pending {
	PENDING_READY = 1,
	PENDING_SETTLED = 2,
	PENDING_RELEASED = 4,
	PENDING_LEAVE = 8,
};

struct client {
	struct client *next;
	struct clients *clients;
	struct peer *peer; /* NULL once the worker is gone */
	struct records_attach attach;
	struct store_key key;
	bool is_holder; /* it has made a claim: its lease is renewed */
	bool is_used;

	bool claiming;
	struct record_claim claim;
	struct loop_timer *look;
	unsigned looks;

	unsigned pending;
	struct record_ready ready;
	enum record_outcome outcome;
};

/* What the rules do not allow, and what is not there, is no failure of ours. */
static void
log_failure(const struct client *client, const char *what, const struct error *err)
{
	const char *instance = client->key.instance;
	const char *sign = instance[0] == '\0' || instance[0] == '=' ? "" : "+";

	if (err->code == ERROR_DENIED || err->code == ERROR_NOT_FOUND)
		log_info("%s of %s%s%s: %s", what, client->key.login, sign, instance, err->message);
	else
		log_error(
		    "%s of %s%s%s: %s", what, client->key.login, sign, instance, err->message);
}

static struct store_request
make_request(const struct client *client)
{
	struct store_request request = { 0 };

	request.driver = client->attach.driver;
	request.lost = client->claim.lost;
	request.reclaim = client->claim.reclaim;
	request.idle = client->attach.idle;
	request.limit = client->attach.limit;
	return request;
}

static void
answer_claim(struct client *client, struct record_claimed *claimed)
{
	struct message message;

	client->claiming = false;
	loop_timer_stop(client->look);
	record_claim_free(&client->claim);
	record_claimed_encode(&message, claimed);
	peer_send(client->peer, &message);
	record_claimed_free(claimed);
}

static void
refuse_claim(struct client *client, const struct error *err)
{
	struct record_claimed claimed = { .failed = true, .failure = *err };

	/* Where the database is, and what ails it, is for the log. */
	if (err->code != ERROR_DENIED && err->code != ERROR_NOT_FOUND)
		error_set(&claimed.failure, ERROR_UNAVAILABLE,
		    "the gateway's records cannot be reached; try again later");
	log_failure(client, "claim", err);
	answer_claim(client, &claimed);
}

static void
tell_waiting(struct client *client)
{
	struct message message;

	message_start(&message, MESSAGE_RECORD_WAITING);
	peer_send(client->peer, &message);
}

/* Writes one thing; what is wrong with the thing itself is logged, and counts as written. */
static int
write_one(struct client *client, enum pending what, struct error *err)
{
	struct store_request request = make_request(client);
	struct store *store = client->clients->store;

	if (what == PENDING_READY)
		return store_ready(store, &client->key, &request, &client->ready, err);
	if (what == PENDING_SETTLED)
		return store_settle(store, &client->key, err);
	if (what == PENDING_RELEASED)
		return store_released(store, &client->key, client->outcome, err);
	return store_leave(store, &client->key, err);
}

/* 0 when everything is written. What cannot be written now is kept, whatever is wrong with the database. */
static int
flush(struct client *client, struct error *err)
{
	unsigned what;

	for (what = PENDING_READY; what <= PENDING_LEAVE; what <<= 1) {
		if ((client->pending & what) == 0)
			continue;
		if (write_one(client, (enum pending)what, err) != 0) {
			if (err->code != ERROR_EXISTS && err->code != ERROR_INVALID)
				return -1;
			log_failure(client, "record", err);
		}
		client->pending &= ~what;
	}
	return 0;
}

/* What workers of the same workspace have told, those that are gone included, comes before what one asks. */
static int
flush_workspace(const struct client *client, struct error *err)
{
	struct client *other;

	for (other = client->clients->first; other != NULL; other = other->next)
		if (strcmp(other->key.login, client->key.login) == 0 &&
		    strcmp(other->key.instance, client->key.instance) == 0 &&
		    flush(other, err) != 0)
			return -1;
	return 0;
}

static void
look(void *argument)
{
	struct client *client = argument;
	struct store_request request = make_request(client);
	struct record_claimed claimed;
	struct error err;
	int result;

	result = flush_workspace(client, &err);
	if (result == 0)
		result = store_claim(
		    client->clients->store, &client->key, &request, &claimed, &err);
	if (result < 0) {
		refuse_claim(client, &err);
	} else if (result > 0) {
		client->is_holder = true;
		answer_claim(client, &claimed);
	} else {
		record_claimed_free(&claimed);
		if (client->looks++ % LOOKS_A_WORD == 0)
			tell_waiting(client);
		loop_timer_start(client->look, LOOK_PERIOD);
	}
}

static int
take_claim(void *argument, struct message *message, struct error *err)
{
	struct client *client = argument;
	struct record_claim claim;

	if (record_claim_decode(message, &claim, err) != 0)
		return -1;
	/* A second one takes the place of the first: the worker gave that up. */
	record_claim_free(&client->claim);
	client->claim = claim;
	client->claiming = true;
	client->looks = 0;
	look(client);
	return 0;
}

static int
take_ready(void *argument, struct message *message, struct error *err)
{
	struct client *client = argument;
	struct record_ready ready;

	if (record_ready_decode(message, &ready, err) != 0)
		return -1;
	record_ready_free(&client->ready);
	client->ready = ready;
	client->is_holder = true;
	client->pending |= PENDING_READY;
	(void)flush(client, err);
	return 0;
}

static int
take_settled(void *argument, struct message *message, struct error *err)
{
	struct client *client = argument;

	if (message_end(message, err) != 0)
		return -1;
	client->pending |= PENDING_SETTLED;
	(void)flush(client, err);
	return 0;
}

static void
renew(struct client *client, bool is_used)
{
	struct error err;

	if (client->is_holder &&
	    store_renew(client->clients->store, &client->key, is_used, &err) != 0)
		log_debug("renewal: %s", err.message);
}

static int
take_used(void *argument, struct message *message, struct error *err)
{
	struct client *client = argument;
	bool was_used = client->is_used;

	if (record_flag_decode(message, &client->is_used, err) != 0)
		return -1;
	/* Of the last session the end is what counts. */
	if (was_used || client->is_used)
		renew(client, true);
	return 0;
}

static int
take_release(void *argument, struct message *message, struct error *err)
{
	struct client *client = argument;
	struct message answer;
	struct error reason;
	bool is_asked, granted;

	if (record_flag_decode(message, &is_asked, err) != 0)
		return -1;
	/* What is not known to be unused is not released. */
	granted = false;
	if (flush_workspace(client, &reason) != 0 ||
	    store_release(client->clients->store, &client->key, is_asked, &granted, &reason) != 0)
		log_failure(client, "release", &reason);
	record_flag_encode(&answer, MESSAGE_RECORD_MAY_RELEASE, granted);
	peer_send(client->peer, &answer);
	return 0;
}

static int
take_released(void *argument, struct message *message, struct error *err)
{
	struct client *client = argument;

	if (record_released_decode(message, &client->outcome, err) != 0)
		return -1;
	client->pending |= PENDING_RELEASED;
	(void)flush(client, err);
	return 0;
}

static const struct peer_rule rules[] = {
	{ MESSAGE_RECORD_CLAIM, "RECORD_CLAIM", 1, take_claim },
	{ MESSAGE_RECORD_READY, "RECORD_READY", 1, take_ready },
	{ MESSAGE_RECORD_USED, "RECORD_USED", 1, take_used },
	{ MESSAGE_RECORD_SETTLED, "RECORD_SETTLED", 1, take_settled },
	{ MESSAGE_RECORD_RELEASE, "RECORD_RELEASE", 1, take_release },
	{ MESSAGE_RECORD_RELEASED, "RECORD_RELEASED", 1, take_released },
	{ MESSAGE_RECORD_CLAIMED, "RECORD_CLAIMED", 0, NULL },
	{ MESSAGE_RECORD_WAITING, "RECORD_WAITING", 0, NULL },
	{ MESSAGE_RECORD_MAY_RELEASE, "RECORD_MAY_RELEASE", 0, NULL },
	{ 0, NULL, 0, NULL },
};

static void
free_client(struct client *client)
{
	struct client **place;

	for (place = &client->clients->first; *place != client; place = &(*place)->next)
		continue;
	*place = client->next;
	peer_free(client->peer);
	loop_timer_free(client->look);
	record_claim_free(&client->claim);
	record_ready_free(&client->ready);
	records_attach_free(&client->attach);
	memory_free(client);
}

static void
worker_closed(void *argument, const struct error *err)
{
	struct client *client = argument;
	struct clients *clients = client->clients;
	struct error reason;

	if (err->code == ERROR_INVALID)
		log_error("worker of %s: %s", client->key.login, err->message);
	peer_free(client->peer);
	client->peer = NULL;
	client->claiming = false;
	loop_timer_stop(client->look);
	if (client->is_holder)
		client->pending |= PENDING_LEAVE;
	client->is_holder = false;
	if (flush(client, &reason) == 0)
		free_client(client);
	clients->gone();
}

static const struct peer_events events = { rules, worker_closed, NULL };

void
client_open(struct clients *clients, struct records_attach *attach)
{
	struct client *client, **last;

	client = memory_zeroed(1, sizeof(*client));
	client->clients = clients;
	client->attach = *attach;
	client->key.login = attach->login;
	client->key.instance = attach->instance;
	client->key.place = attach->here ? clients->place : "";
	client->look = loop_timer_new(clients->loop, look, client);
	client->peer = peer_new(clients->loop, attach->fd, "records", "worker", &events, client);
	/* In the order in which they came: so is written what they tell. */
	for (last = &clients->first; *last != NULL; last = &(*last)->next)
		continue;
	*last = client;
}

void
clients_flush(struct clients *clients)
{
	struct client *client, *next;
	struct error err;

	for (client = clients->first; client != NULL; client = next) {
		next = client->next;
		if (flush(client, &err) == 0 && client->peer == NULL)
			free_client(client);
	}
}

void
clients_renew(struct clients *clients)
{
	struct client *client;

	for (client = clients->first; client != NULL; client = client->next)
		renew(client, client->is_used);
}

bool
clients_alive(const struct clients *clients)
{
	const struct client *client;

	for (client = clients->first; client != NULL; client = client->next)
		if (client->peer != NULL)
			return true;
	return false;
}

void
clients_free(struct clients *clients)
{
	while (clients->first != NULL)
		free_client(clients->first);
}
