/* SPDX-License-Identifier: ISC */
/*
 * A connect under way, as the providers over HTTP have it: what is known by its id is visited,
 * otherwise the list is looked through for what has our label, and if there is none a sandbox is
 * created. At last a first command proves that commands can run. What is asked for at each step,
 * and what an answer means, is each provider's own.
 */
#ifndef DRIVERS_CONNECTING_H
#define DRIVERS_CONNECTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/driver.h"

struct connecting;
struct http_answer;
struct http_request;
struct loop;
struct loop_timer;

typedef void connecting_step_fn(struct connecting *connect);

/* What a provider does differently. */
struct connecting_kind {
	const char *provider; /* for messages, and so is what it calls our label */
	const char *label;
	size_t size; /* of the kind's own, which begins with a struct connecting */

	/*
	 * Asks for a page of the list of what has our label, for connecting_listed; page NULL: the
	 * first one.
	 */
	void (*list)(struct connecting *connect, const char *page);

	/*
	 * The id of the sandbox of ours to prefer in a page, and the next page, as new texts; NULL
	 * for none. 0, or -1 when it is no list.
	 */
	int (*find)(const struct driver_sandbox *sandbox, const struct http_answer *answer,
	    char **id, char **page, struct error *err);

	/* Goes to the sandbox with the id that connect aims at. */
	connecting_step_fn *visit;

	/* Asks for a new sandbox. */
	connecting_step_fn *create;
};

/* Its members are for the kind, but for those at the end. */
struct connecting {
	struct driver_sandbox *sandbox;
	bool may_create;
	char *id;      /* to visit, or a name; NULL until one is known */
	bool adopted;  /* id is from the list: it may be gone meanwhile */
	bool in_doubt; /* a create was sent, and it is not known whether it worked */
	bool created, started;
	bool may_exist;                 /* what was found, or what a create may have made */
	struct http_request *request;   /* NULL when there is none under way */
	struct driver_operation *probe; /* the first command, likewise */
	char *word;                     /* the sandbox's state that was seen last, or NULL */
	struct error failure;           /* of the last attempt at what is tried again */

	const struct connecting_kind *kind;
	struct connecting **place;
	driver_connected_fn *done;
	void *argument;
	unsigned pages;
	struct loop_timer *again, *deadline;
	connecting_step_fn *step; /* what again begins */
	int64_t limit;            /* ms */
};

struct connecting_setup {
	struct driver_sandbox *sandbox;
	/* Where the sandbox keeps it: NULL before, and again at its end. */
	struct connecting **place;
	struct loop *loop;
	bool may_create;
	driver_connected_fn *done;
	void *argument;
};

/* Begins nothing yet; what is the kind's own is zero. */
struct connecting *connecting_new(
    const struct connecting_kind *kind, const struct connecting_setup *setup);

/* Gives up, without a word to the caller of connect; accepts NULL. */
void connecting_cancel(struct connecting *connect);

/* Fails with what is known by then, unless it is over within limit (ms). */
void connecting_start_deadline(struct connecting *connect, int64_t limit);

/* Begins step after delay (ms). */
void connecting_begin_later(struct connecting *connect, connecting_step_fn *step, int64_t delay);

/* What to visit from now on. */
void connecting_aim(struct connecting *connect, const char *id);

/* The sandbox's state, in the provider's word for it. */
void connecting_note_state(struct connecting *connect, const char *word);

/* Looks through the list from its first page on; find does so when there is nothing to visit. */
void connecting_list(struct connecting *connect);
void connecting_find(struct connecting *connect);

/* Creates a sandbox, or fails when it may not. */
void connecting_create(struct connecting *connect);

/* The http_done_fn of list: goes on to what is in the page, to the next one, or to a create. */
void connecting_listed(
    void *argument, const struct http_answer *answer, const struct error *reason);

/* Ends it, and tells the caller. what, which may be NULL, is the context of err. */
void connecting_succeed(struct connecting *connect, const struct driver_connected *connected);
void connecting_fail(struct connecting *connect, const struct error *err, const char *what);

#endif
