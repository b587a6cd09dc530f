/* SPDX-License-Identifier: ISC */
/*
 * The messages of core/record_list.h: what was encoded comes out again, and no frame that is cut short,
 * has a byte too many or claims more than a page may have is taken for one.
 */
#include <stdbool.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/record_list.h"

static char login[] = "agent", instance[] = "test", place[] = "0123456789abcdef", driver[] = "e2b";
static char sandbox[] = "i1234", user[] = "fedcba9876543210", none[] = "";

struct sample {
	const char *name;
	uint8_t type;
	void (*encode)(struct message *message);
	/* Decodes, and on success checks every field and frees. */
	int (*decode)(struct message *message, struct error *err);
};

static void
encode_state(struct message *message)
{
	struct records_state state = { .place = place };

	error_set(&state.failure, ERROR_INVALID, "newer");
	records_state_encode(message, &state);
}

static int
decode_state(struct message *message, struct error *err)
{
	struct records_state state;

	if (records_state_decode(message, &state, err) != 0)
		return -1;
	assert_int_equal(state.failure.code, ERROR_INVALID);
	assert_string_equal(state.failure.message, "newer");
	assert_string_equal(state.place, "0123456789abcdef");
	records_state_free(&state);
	return 0;
}

static void
encode_list(struct message *message)
{
	struct records_list list = { 7, login, instance, place };

	records_list_encode(message, &list);
}

static int
decode_list(struct message *message, struct error *err)
{
	struct records_list list;

	if (records_list_decode(message, &list, err) != 0)
		return -1;
	assert_int_equal(list.id, 7);
	assert_string_equal(list.login, "agent");
	assert_string_equal(list.instance, "test");
	assert_string_equal(list.place, "0123456789abcdef");
	records_list_free(&list);
	return 0;
}

static struct record_entry sample_entries[2] = {
	{ login, instance, none, driver, sandbox, user, RECORD_STATE_KEPT, true, 1LL << 40, 9 },
	{ login, none, place, driver, NULL, NULL, RECORD_STATE_CREATING, false, 10, 1LL << 41 },
};

static void
encode_page(struct message *message)
{
	struct records_page page = { .id = 8, .entries = sample_entries, .count = 2, .more = true };

	error_set(&page.failure, ERROR_UNAVAILABLE, "away");
	records_page_encode(message, &page);
}

static void
assert_text(const char *text, const char *expected)
{
	if (expected == NULL)
		assert_null(text);
	else
		assert_string_equal(text, expected);
}

static int
decode_page(struct message *message, struct error *err)
{
	const struct record_entry *entry, *expected;
	struct records_page page;
	uint32_t i;

	if (records_page_decode(message, &page, err) != 0)
		return -1;
	assert_int_equal(page.id, 8);
	assert_int_equal(page.failure.code, ERROR_UNAVAILABLE);
	assert_true(page.more);
	assert_int_equal(page.count, 2);
	for (i = 0; i < 2; i++) {
		entry = &page.entries[i];
		expected = &sample_entries[i];
		assert_string_equal(entry->login, expected->login);
		assert_string_equal(entry->instance, expected->instance);
		assert_string_equal(entry->place, expected->place);
		assert_string_equal(entry->driver, expected->driver);
		assert_text(entry->sandbox, expected->sandbox);
		assert_text(entry->user, expected->user);
		assert_int_equal(entry->state, expected->state);
		assert_int_equal(entry->created, expected->created);
		assert_true(entry->made == expected->made);
		assert_true(entry->used == expected->used);
	}
	records_page_free(&page);
	return 0;
}

static void
encode_forget(struct message *message)
{
	struct records_forget forget = { 11, login, instance };

	records_forget_encode(message, &forget);
}

static int
decode_forget(struct message *message, struct error *err)
{
	struct records_forget forget;

	if (records_forget_decode(message, &forget, err) != 0)
		return -1;
	assert_int_equal(forget.id, 11);
	assert_string_equal(forget.login, "agent");
	assert_string_equal(forget.instance, "test");
	records_forget_free(&forget);
	return 0;
}

static void
encode_forgotten(struct message *message)
{
	struct records_forgotten forgotten = { .id = 12, .sandbox = sandbox };

	error_set(&forgotten.failure, ERROR_BUSY, "in use");
	records_forgotten_encode(message, &forgotten);
}

static int
decode_forgotten(struct message *message, struct error *err)
{
	struct records_forgotten forgotten;

	if (records_forgotten_decode(message, &forgotten, err) != 0)
		return -1;
	assert_int_equal(forgotten.id, 12);
	assert_int_equal(forgotten.failure.code, ERROR_BUSY);
	assert_string_equal(forgotten.sandbox, "i1234");
	records_forgotten_free(&forgotten);
	return 0;
}

static const struct sample samples[] = {
	{ "RECORDS_STATE", MESSAGE_RECORDS_STATE, encode_state, decode_state },
	{ "RECORDS_LIST", MESSAGE_RECORDS_LIST, encode_list, decode_list },
	{ "RECORDS_PAGE", MESSAGE_RECORDS_PAGE, encode_page, decode_page },
	{ "RECORDS_FORGET", MESSAGE_RECORDS_FORGET, encode_forget, decode_forget },
	{ "RECORDS_FORGOTTEN", MESSAGE_RECORDS_FORGOTTEN, encode_forgotten, decode_forgotten },
	{ NULL, 0, NULL, NULL },
};

static void
every_message_decodes_to_what_was_encoded(void **state)
{
	const struct sample *sample;
	struct message message;
	struct error err = { 0 };

	(void)state;
	for (sample = samples; sample->name != NULL; sample++) {
		sample->encode(&message);
		assert_int_equal(message.type, sample->type);
		if (sample->decode(&message, &err) != 0)
			fail_msg("%s: %s", sample->name, err.message);
		message_free(&message);
	}
}

static void
decode_rejects_a_message_cut_at_any_byte(void **state)
{
	const struct sample *sample;
	struct message message;
	struct error err = { 0 };
	size_t cut, whole;

	(void)state;
	for (sample = samples; sample->name != NULL; sample++) {
		sample->encode(&message);
		whole = message.payload.length;
		message_free(&message);
		for (cut = 0; cut < whole; cut++) {
			sample->encode(&message);
			message.payload.length = cut;
			if (sample->decode(&message, &err) == 0)
				fail_msg(
				    "%s: %zu of %zu bytes are enough", sample->name, cut, whole);
			assert_int_equal(err.code, ERROR_INVALID);
			message_free(&message);
		}
	}
}

static void
decode_rejects_trailing_bytes(void **state)
{
	const struct sample *sample;
	struct message message;
	struct error err;

	(void)state;
	for (sample = samples; sample->name != NULL; sample++) {
		sample->encode(&message);
		message_put_u8(&message, 0);
		if (sample->decode(&message, &err) == 0)
			fail_msg("%s takes a byte too many", sample->name);
		message_free(&message);
	}
}

/* The start of a page with so many entries to come. */
static int
decode_page_of(uint32_t count, bool more)
{
	struct error no_error = { 0 };
	struct records_page page;
	struct message message;
	int result;

	message_start(&message, MESSAGE_RECORDS_PAGE);
	message_put_u32(&message, 1);
	message_put_error(&message, &no_error);
	message_put_bool(&message, more);
	message_put_u32(&message, count);
	result = records_page_decode(&message, &page, NULL);
	if (result == 0)
		records_page_free(&page);
	message_free(&message);
	return result;
}

static void
a_page_has_a_limited_number_of_entries(void **state)
{
	(void)state;
	assert_int_equal(decode_page_of(0, false), 0);
	assert_int_equal(decode_page_of(RECORDS_PAGE_MAX + 1, false), -1);
	assert_int_equal(decode_page_of(UINT32_MAX, false), -1);
}

/* Else its reader would ask for the same page for ever. */
static void
an_empty_page_has_none_after_it(void **state)
{
	(void)state;
	assert_int_equal(decode_page_of(0, true), -1);
}

static void
a_full_page_with_the_longest_texts_is_a_message(void **state)
{
	struct record_entry entries[RECORDS_PAGE_MAX];
	struct records_page page = { .entries = entries, .count = RECORDS_PAGE_MAX }, back;
	struct message message;
	char *text;
	size_t i;

	(void)state;
	text = memory_zeroed(1, RECORDS_TEXT_MAX + 2);
	memset(text, 'x', RECORDS_TEXT_MAX);
	for (i = 0; i < RECORDS_PAGE_MAX; i++)
		entries[i] = (struct record_entry){ text, text, text, text, text, text,
			RECORD_STATE_READY, true, 1, 1 };
	records_page_encode(&message, &page);
	assert_int_equal(records_page_decode(&message, &back, NULL), 0);
	records_page_free(&back);
	message_free(&message);
	text[RECORDS_TEXT_MAX] = 'x';
	records_page_encode(&message, &page);
	assert_int_equal(records_page_decode(&message, &back, NULL), -1);
	message_free(&message);
	memory_free(text);
}

static void
a_state_that_there_is_not_is_refused(void **state)
{
	struct record_entry entry = sample_entries[0];
	struct records_page page = { .entries = &entry, .count = 1 }, back;
	struct message message;

	(void)state;
	entry.state = (enum record_state)RECORD_STATES;
	records_page_encode(&message, &page);
	assert_int_equal(records_page_decode(&message, &back, NULL), -1);
	message_free(&message);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_decodes_to_what_was_encoded),
		cmocka_unit_test(decode_rejects_a_message_cut_at_any_byte),
		cmocka_unit_test(decode_rejects_trailing_bytes),
		cmocka_unit_test(a_page_has_a_limited_number_of_entries),
		cmocka_unit_test(an_empty_page_has_none_after_it),
		cmocka_unit_test(a_full_page_with_the_longest_texts_is_a_message),
		cmocka_unit_test(a_state_that_there_is_not_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
