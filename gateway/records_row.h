/* SPDX-License-Identifier: ISC */
/* What the files of the store share: statements about one record, and what it says. */
#ifndef GATEWAY_RECORDS_ROW_H
#define GATEWAY_RECORDS_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/records_database.h"

struct error;
struct store_key;

#define ORPHAN_KEYS 3 /* login, instance, place */

struct store {
	struct database *database;
	char *holder;
	int64_t now; /* of the transaction */
	/* The key of the orphan that was told last; NULL to begin with the first. */
	char *orphan[ORPHAN_KEYS];
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

/* The condition of a statement about one record. */
#define ROW_KEY "login = $1 AND instance = $2 AND place = $3"

/* Begins a transaction that is alone for this lock, at store->now. */
int row_begin(struct store *store, const char *lock, struct error *err);

/* Arguments that begin with the key. All texts are kept, not copied. */
struct arguments row_key(const struct store_key *key);
void row_add_text(struct arguments *arguments, const char *text);
void row_add_number(struct arguments *arguments, int64_t number);

/* Returns how many rows were written, or -1. */
int row_change(struct store *store, const char *statement, const struct arguments *arguments,
    struct error *err);
/* A number that one statement asks for. */
int row_ask(struct store *store, const char *statement, const struct arguments *arguments,
    int64_t *number, struct error *err);

/* The record, in columns as in enum column, or no row. */
int row_find(struct store *store, const struct store_key *key, struct database_result *found,
    struct error *err);
bool row_is_state(const struct database_result *found, const char *state);
/* Is another gateway, which is there, about to do something with the sandbox? */
bool row_is_held(const struct store *store, const struct database_result *found);

/* Our lease: made or renewed, and given back. */
int row_put_lease(struct store *store, const struct store_key *key, struct error *err);
int row_drop_lease(struct store *store, const struct store_key *key, struct error *err);

#endif
