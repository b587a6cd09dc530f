/* SPDX-License-Identifier: ISC */
/*
 * What is recorded of sandboxes, and who may make or release one now. Each call is one transaction,
 * alone among all gateways for its login, and leaves nothing half done when we are killed within it.
 */
#ifndef GATEWAY_RECORDS_STORE_H
#define GATEWAY_RECORDS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/record_protocol.h"

struct database;
struct error;
struct records_page;
struct store;

/*
 * ms; a gateway that does not renew its leases is taken for gone after this time: then others make
 * what it was making, and dispose of what it used. Renewed three times as often.
 */
#define STORE_LEASE 30000
#define STORE_RENEWAL (STORE_LEASE / 3)

/*
 * ms for a create, whose worker was killed, to come true or not. While a record is that young in its
 * doubt it is not forgotten: it says that there may be a sandbox of this label.
 */
#define STORE_DOUBT 60000

/* Which workspace. All texts are kept. */
struct store_key {
	const char *login;
	const char *instance;
	const char *place; /* the gateway that it is bound to; empty for one that all can reach */
};

/*
 * holder names this run of this gateway. database is kept, and stays the caller's. The store trusts no
 * absence of leases for STORE_LEASE after a (re)connection: other gateways need the time to say what they use.
 */
struct store *store_new(struct database *database, const char *holder);
void store_free(struct store *store); /* accepts NULL */

/*
 * Forgets the leases of earlier runs of this gateway, whose holders begin with the same prefix. For a
 * caller who knows that none of their processes is left.
 */
int store_forget_runs(struct store *store, const char *prefix, struct error *err);

struct store_request {
	const char *driver;
	const char *lost; /* see struct record_claim */
	bool reclaim;
	int64_t idle, limit; /* see struct records_attach */
};

/*
 * Asks for the workspace's sandbox. Returns 1 with an answer, whose texts the caller frees; 0 when
 * another gateway is about to make or release it: ask again; -1 with err, which is DENIED when the
 * login has its limit of sandboxes.
 */
int store_claim(struct store *store, const struct store_key *key,
    const struct store_request *request, struct record_claimed *answer, struct error *err);

/*
 * The sandbox that was made, or found, for a claim. EXISTS when meanwhile another gateway took us for
 * gone and made one of its own.
 */
int store_ready(struct store *store, const struct store_key *key,
    const struct store_request *request, const struct record_ready *ready, struct error *err);

/* Its second sandbox, should there have been one, is gone. */
int store_settle(struct store *store, const struct store_key *key, struct error *err);

/* We still have a worker for it; is_used: with a session. */
int store_renew(struct store *store, const struct store_key *key, bool is_used, struct error *err);

/*
 * May the sandbox be released? Because it is idle: unless another gateway has it, or has used it
 * within the idle time. Because somebody asks for it: unless another gateway is about to.
 */
int store_release(struct store *store, const struct store_key *key, bool is_asked, bool *granted,
    struct error *err);
int store_released(struct store *store, const struct store_key *key, enum record_outcome outcome,
    struct error *err);

/* The worker is gone: what it was about to do may be done by another one at once. */
int store_leave(struct store *store, const struct store_key *key, struct error *err);

/*
 * Calls visit for sandboxes that nobody has and that have been idle for their time, at most a hundred, and the
 * next call for those after them: what cannot be disposed of does not hide the rest. place is ours.
 */
typedef void store_visit_fn(void *argument, const char *login, const char *instance);
int store_each_orphan(struct store *store, const char *place, store_visit_fn *visit, void *argument,
    struct error *err);

/*
 * records_list.c: the records after this one, of all gateways. page is zeroed before, and the caller's to
 * free after.
 */
int store_list(struct store *store, const struct store_key *after, struct records_page *page,
    struct error *err);

/*
 * records_list.c: removes what is recorded of a workspace, at this place and for all, unless another
 * gateway has it (BUSY). *sandbox: the id that was recorded, a new text, or NULL.
 */
int store_forget(
    struct store *store, const struct store_key *key, char **sandbox, struct error *err);

#endif
