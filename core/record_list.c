/* SPDX-License-Identifier: ISC */
/* Encode and decode of the messages about all records. A decoder that fails has freed what it made. */
#include <string.h>

#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/record_list.h"

/* A text that must be there and of a length that fits. */
static char *
get_name(struct message *message)
{
	char *text;

	text = message_get_text(message);
	message_require(message, text);
	if (text != NULL && strlen(text) > RECORDS_TEXT_MAX)
		message->failed = true;
	return text;
}

/* A text that need not be there. */
static char *
get_optional(struct message *message)
{
	char *text;

	text = message_get_text(message);
	if (text != NULL && strlen(text) > RECORDS_TEXT_MAX)
		message->failed = true;
	return text;
}

void
records_state_encode(struct message *message, const struct records_state *state)
{
	message_start(message, MESSAGE_RECORDS_STATE);
	message_put_error(message, &state->failure);
	message_put_text(message, state->place);
}

int
records_state_decode(struct message *message, struct records_state *state, struct error *err)
{
	memset(state, 0, sizeof(*state));
	message_get_error(message, &state->failure);
	state->place = get_optional(message);
	if (message_end(message, err) == 0)
		return 0;
	records_state_free(state);
	return -1;
}

void
records_state_free(struct records_state *state)
{
	memory_free(state->place);
	memset(state, 0, sizeof(*state));
}

void
records_list_encode(struct message *message, const struct records_list *list)
{
	message_start(message, MESSAGE_RECORDS_LIST);
	message_put_u32(message, list->id);
	message_put_text(message, list->login);
	message_put_text(message, list->instance);
	message_put_text(message, list->place);
}

int
records_list_decode(struct message *message, struct records_list *list, struct error *err)
{
	memset(list, 0, sizeof(*list));
	list->id = message_get_u32(message);
	list->login = get_name(message);
	list->instance = get_name(message);
	list->place = get_name(message);
	if (message_end(message, err) == 0)
		return 0;
	records_list_free(list);
	return -1;
}

void
records_list_free(struct records_list *list)
{
	memory_free(list->login);
	memory_free(list->instance);
	memory_free(list->place);
	memset(list, 0, sizeof(*list));
}

static void
put_entry(struct message *message, const struct record_entry *entry)
{
	message_put_text(message, entry->login);
	message_put_text(message, entry->instance);
	message_put_text(message, entry->place);
	message_put_text(message, entry->driver);
	message_put_text(message, entry->sandbox);
	message_put_text(message, entry->user);
	message_put_u8(message, (uint8_t)entry->state);
	message_put_bool(message, entry->created);
	message_put_i64(message, entry->made);
	message_put_i64(message, entry->used);
}

static void
get_entry(struct message *message, struct record_entry *entry)
{
	uint8_t state;

	entry->login = get_name(message);
	entry->instance = get_name(message);
	entry->place = get_name(message);
	entry->driver = get_name(message);
	entry->sandbox = get_optional(message);
	entry->user = get_optional(message);
	state = message_get_u8(message);
	if (state >= RECORD_STATES)
		message->failed = true;
	else
		entry->state = (enum record_state)state;
	entry->created = message_get_bool(message);
	entry->made = message_get_i64(message);
	entry->used = message_get_i64(message);
}

void
records_page_encode(struct message *message, const struct records_page *page)
{
	uint32_t i;

	message_start(message, MESSAGE_RECORDS_PAGE);
	message_put_u32(message, page->id);
	message_put_error(message, &page->failure);
	message_put_bool(message, page->more);
	message_put_u32(message, page->count);
	for (i = 0; i < page->count; i++)
		put_entry(message, &page->entries[i]);
}

int
records_page_decode(struct message *message, struct records_page *page, struct error *err)
{
	uint32_t count;

	memset(page, 0, sizeof(*page));
	page->id = message_get_u32(message);
	message_get_error(message, &page->failure);
	page->more = message_get_bool(message);
	count = message_get_u32(message);
	if (count > RECORDS_PAGE_MAX || (page->more && count == 0)) {
		message->failed = true;
		count = 0;
	}
	page->entries = memory_zeroed(count, sizeof(*page->entries));
	while (page->count < count && !message->failed)
		get_entry(message, &page->entries[page->count++]);
	if (message_end(message, err) == 0)
		return 0;
	records_page_free(page);
	return -1;
}

void
records_page_free(struct records_page *page)
{
	struct record_entry *entry;

	while (page->count > 0) {
		entry = &page->entries[--page->count];
		memory_free(entry->login);
		memory_free(entry->instance);
		memory_free(entry->place);
		memory_free(entry->driver);
		memory_free(entry->sandbox);
		memory_free(entry->user);
	}
	memory_free(page->entries);
	memset(page, 0, sizeof(*page));
}

void
records_forget_encode(struct message *message, const struct records_forget *forget)
{
	message_start(message, MESSAGE_RECORDS_FORGET);
	message_put_u32(message, forget->id);
	message_put_text(message, forget->login);
	message_put_text(message, forget->instance);
}

int
records_forget_decode(struct message *message, struct records_forget *forget, struct error *err)
{
	memset(forget, 0, sizeof(*forget));
	forget->id = message_get_u32(message);
	forget->login = get_name(message);
	forget->instance = get_name(message);
	if (message_end(message, err) == 0)
		return 0;
	records_forget_free(forget);
	return -1;
}

void
records_forget_free(struct records_forget *forget)
{
	memory_free(forget->login);
	memory_free(forget->instance);
	memset(forget, 0, sizeof(*forget));
}

void
records_forgotten_encode(struct message *message, const struct records_forgotten *forgotten)
{
	message_start(message, MESSAGE_RECORDS_FORGOTTEN);
	message_put_u32(message, forgotten->id);
	message_put_error(message, &forgotten->failure);
	message_put_text(message, forgotten->sandbox);
}

int
records_forgotten_decode(
    struct message *message, struct records_forgotten *forgotten, struct error *err)
{
	memset(forgotten, 0, sizeof(*forgotten));
	forgotten->id = message_get_u32(message);
	message_get_error(message, &forgotten->failure);
	forgotten->sandbox = get_optional(message);
	if (message_end(message, err) == 0)
		return 0;
	records_forgotten_free(forgotten);
	return -1;
}

void
records_forgotten_free(struct records_forgotten *forgotten)
{
	memory_free(forgotten->sandbox);
	memset(forgotten, 0, sizeof(*forgotten));
}
