/* SPDX-License-Identifier: ISC */
/*
 * How the listener reads all that is recorded, and has a record removed, as messages in the manner of
 * core/record_protocol.h:
 *
 *	records  -> listener      RECORDS_STATE, the answer to RECORDS_CONFIGURE
 *	listener -> records       RECORDS_LIST, answered by RECORDS_PAGE; RECORDS_FORGET, answered by
 *	                          RECORDS_FORGOTTEN
 *
 * There may be thousands of records: each page is one short question to the database, and the next one
 * is not asked for before its reader has made room.
 */
#ifndef CORE_RECORD_LIST_H
#define CORE_RECORD_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

struct message;

enum record_list_message {
	MESSAGE_RECORDS_STATE = 160,
	MESSAGE_RECORDS_LIST,
	MESSAGE_RECORDS_PAGE,
	MESSAGE_RECORDS_FORGET,
	MESSAGE_RECORDS_FORGOTTEN,
};

/* Entries of a page, and bytes of each text in one: a page fits into a message with room to spare. */
#define RECORDS_PAGE_MAX 64
#define RECORDS_TEXT_MAX 2048

/*
 * Can the database be used? failure is of code NONE when it can, UNAVAILABLE when it does not answer now,
 * and of another code when somebody has to see to it.
 */
struct records_state {
	struct error failure;
	/* Names this gateway in the records, for ever; NULL when it has no place yet. */
	char *place;
};
void records_state_encode(struct message *message, const struct records_state *state);
int records_state_decode(struct message *message, struct records_state *state, struct error *err);
void records_state_free(struct records_state *state);

/* The first page of what comes after this record, which need not be there; all texts empty: from the start. */
struct records_list {
	uint32_t id; /* names the answer */
	char *login, *instance, *place;
};
void records_list_encode(struct message *message, const struct records_list *list);
int records_list_decode(struct message *message, struct records_list *list, struct error *err);
void records_list_free(struct records_list *list);

enum record_state {
	RECORD_STATE_CREATING,  /* asked for; no sandbox is known yet */
	RECORD_STATE_READY,     /* it was there when last heard of */
	RECORD_STATE_DISPOSING, /* a gateway stops or destroys it */
	RECORD_STATE_STOPPED,
	RECORD_STATE_KEPT, /* left running, and nobody's to dispose of */
	RECORD_STATES,
};

struct record_entry {
	char *login;
	char *instance; /* as in struct records_attach */
	char *place;    /* the gateway whose machine it is on; empty when all can reach it */
	char *driver;
	char *sandbox; /* NULL while none is known */
	char *user;    /* the place of another gateway that has it now, or NULL */
	enum record_state state;
	bool created;       /* else it was attached to */
	int64_t made, used; /* ms of the epoch */
};

struct records_page {
	uint32_t id;
	struct error failure; /* NONE, or why there are no entries */
	struct record_entry *entries;
	uint32_t count; /* at most RECORDS_PAGE_MAX */
	bool more;
};
void records_page_encode(struct message *message, const struct records_page *page);
int records_page_decode(struct message *message, struct records_page *page, struct error *err);
void records_page_free(struct records_page *page);

/* Forget what is recorded of this workspace; its sandbox, if there is one, stays as it is. */
struct records_forget {
	uint32_t id;
	char *login, *instance;
};
void records_forget_encode(struct message *message, const struct records_forget *forget);
int records_forget_decode(
    struct message *message, struct records_forget *forget, struct error *err);
void records_forget_free(struct records_forget *forget);

struct records_forgotten {
	uint32_t id;
	struct error failure; /* NONE when it is forgotten */
	char *sandbox;        /* that was on record, or NULL */
};
void records_forgotten_encode(struct message *message, const struct records_forgotten *forgotten);
int records_forgotten_decode(
    struct message *message, struct records_forgotten *forgotten, struct error *err);
void records_forgotten_free(struct records_forgotten *forgotten);

#endif
