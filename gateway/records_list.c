/* SPDX-License-Identifier: ISC */
/* What an operator asks of the store: all that is recorded, a page at a time, and a record to be forgotten. */
#include <string.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/record_list.h"
#include "gateway/records_database.h"
#include "gateway/records_row.h"
#include "gateway/records_store.h"

/*
 * The order is that of the primary key, so that a page costs what is on it. One more row than fits says
 * that there is more. Texts are cut where a message would be too long: to characters, of 4 bytes at most.
 */
#define LIST_STATEMENT                                                                     \
	"SELECT login, instance, place, substr(driver, 1, 64), substr(sandbox, 1, 512), "  \
	"state, created, made, used, "                                                     \
	"(SELECT MAX(substr(l.holder, 1, 64)) FROM rwsd_leases l WHERE l.login = w.login " \
	"AND l.instance = w.instance AND l.place = w.place AND l.until > $4 "              \
	"AND substr(l.holder, 1, length($5)) <> $5) "                                      \
	"FROM rwsd_workspaces w WHERE (login, instance, place) > ($1, $2, $3) "            \
	"AND length(login) <= 64 AND length(instance) <= 256 AND length(place) <= 64 "     \
	"ORDER BY login, instance, place LIMIT 65"
_Static_assert(RECORDS_PAGE_MAX == 64, "LIMIT is one more than a page has");

enum list_column {
	LIST_LOGIN,
	LIST_INSTANCE,
	LIST_PLACE,
	LIST_DRIVER,
	LIST_SANDBOX,
	LIST_STATE,
	LIST_CREATED,
	LIST_MADE,
	LIST_USED,
	LIST_HOLDER,
};

static const char *const states[RECORD_STATES] = {
	[RECORD_STATE_CREATING] = "creating",
	[RECORD_STATE_READY] = "ready",
	[RECORD_STATE_DISPOSING] = "disposing",
	[RECORD_STATE_STOPPED] = "stopped",
	[RECORD_STATE_KEPT] = "kept",
};

static enum record_state
parse_state(const char *text)
{
	unsigned i;

	for (i = 0; i < RECORD_STATES; i++)
		if (text != NULL && strcmp(states[i], text) == 0)
			return (enum record_state)i;
	/* Of a program that knows more states than we do. */
	return RECORD_STATE_READY;
}

static char *
copy_text(const struct database_result *found, size_t row, enum list_column column)
{
	const char *text;

	text = database_result_text(found, row, column);
	return text == NULL ? NULL : memory_text(text);
}

static void
take_entry(const struct database_result *found, size_t row, struct record_entry *entry)
{
	const char *holder;

	entry->login = copy_text(found, row, LIST_LOGIN);
	entry->instance = copy_text(found, row, LIST_INSTANCE);
	entry->place = copy_text(found, row, LIST_PLACE);
	entry->driver = copy_text(found, row, LIST_DRIVER);
	entry->sandbox = copy_text(found, row, LIST_SANDBOX);
	entry->state = parse_state(database_result_text(found, row, LIST_STATE));
	entry->created = database_result_number(found, row, LIST_CREATED) != 0;
	entry->made = database_result_number(found, row, LIST_MADE);
	entry->used = database_result_number(found, row, LIST_USED);
	/* PLACE/RUN: who asks wants to know which gateway it is, and not since when. */
	holder = database_result_text(found, row, LIST_HOLDER);
	if (holder != NULL)
		entry->user = memory_text_bounded(holder, strcspn(holder, "/"));
}

int
store_list(struct store *store, const struct store_key *after, struct records_page *page,
    struct error *err)
{
	struct arguments arguments = row_key(after);
	struct database_result found = { 0 };
	char *prefix;
	int result;

	if (database_now(store->database, &store->now, err) != 0)
		return -1;
	prefix = memory_text_bounded(store->holder, strcspn(store->holder, "/") + 1);
	row_add_number(&arguments, store->now);
	row_add_text(&arguments, prefix);
	result = database_query(
	    store->database, LIST_STATEMENT, arguments.values, arguments.count, &found, err);
	memory_free(prefix);
	if (result != 0)
		return -1;
	page->more = found.rows > RECORDS_PAGE_MAX;
	page->entries = memory_zeroed(RECORDS_PAGE_MAX, sizeof(*page->entries));
	while (page->count < RECORDS_PAGE_MAX && page->count < found.rows) {
		take_entry(&found, page->count, &page->entries[page->count]);
		page->count++;
	}
	database_result_free(&found);
	return 0;
}

/* Does another gateway have it, or is one about to make or release it? */
static int
check_unused(struct store *store, const struct store_key *key, struct error *err)
{
	struct arguments arguments = row_key(key);
	int64_t count;

	row_add_text(&arguments, store->holder);
	row_add_number(&arguments, store->now);
	if (row_ask(store,
		"SELECT (SELECT COUNT(*) FROM rwsd_leases WHERE login = $1 AND instance = $2 "
		"AND place IN ('', $3) AND holder <> $4 AND until > $5) + "
		"(SELECT COUNT(*) FROM rwsd_workspaces WHERE login = $1 AND instance = $2 "
		"AND place IN ('', $3) AND holder <> $4 AND until > $5)",
		&arguments, &count, err) != 0)
		return -1;
	if (count == 0)
		return 0;
	return error_set(err, ERROR_BUSY, "another gateway is using the workspace");
}

/* Within the transaction; *sandbox is a new text, or NULL. */
static int
forget_found(struct store *store, const struct store_key *key, char **sandbox, struct error *err)
{
	struct arguments arguments = row_key(key);
	struct database_result found = { 0 };
	int result;

	if (database_query(store->database,
		"SELECT MAX(sandbox) FROM rwsd_workspaces WHERE login = $1 AND instance = $2 "
		"AND place IN ('', $3) HAVING COUNT(*) > 0",
		arguments.values, arguments.count, &found, err) != 0)
		return -1;
	if (found.rows == 0)
		result = error_set(err, ERROR_NOT_FOUND, "nothing is recorded of this workspace");
	else
		result = check_unused(store, key, err);
	if (result == 0)
		result = row_change(store,
		    "DELETE FROM rwsd_workspaces WHERE login = $1 AND instance = $2 "
		    "AND place IN ('', $3)",
		    &arguments, err);
	if (result >= 0 && database_result_text(&found, 0, 0) != NULL)
		*sandbox = memory_text(database_result_text(&found, 0, 0));
	database_result_free(&found);
	return result < 0 ? -1 : 0;
}

int
store_forget(struct store *store, const struct store_key *key, char **sandbox, struct error *err)
{
	int result;

	*sandbox = NULL;
	if (row_begin(store, key->login, err) != 0)
		return -1;
	result = database_end(store->database, forget_found(store, key, sandbox, err), err);
	if (result != 0) {
		memory_free(*sandbox);
		*sandbox = NULL;
	}
	return result;
}
