/* SPDX-License-Identifier: ISC */
/*
 * The messages of core/record_protocol.h: what was encoded comes out again, and no frame that is cut
 * short or has a byte too many is taken for one.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/login.h"
#include "core/record_protocol.h"

struct sample {
	const char *name;
	void (*encode)(struct message *message);
	/* Decodes, and on success checks every field and frees. */
	int (*decode)(struct message *message, struct error *err);
	bool has_descriptor;
};

static char login[] = "agent", instance[] = "test", driver[] = "e2b", sandbox[] = "i1234";
static char database[] = "postgresql://u:p@h/d", run[] = "0011223344556677";

static int
open_descriptor(void)
{
	int fd;

	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void
encode_configure(struct message *message)
{
	struct records_configure configure = { database, run, true, open_descriptor() };

	records_configure_encode(message, &configure);
}

static int
decode_configure(struct message *message, struct error *err)
{
	struct records_configure configure;

	if (records_configure_decode(message, &configure, err) != 0)
		return -1;
	assert_string_equal(configure.database, "postgresql://u:p@h/d");
	assert_string_equal(configure.run, "0011223344556677");
	assert_true(configure.check);
	assert_int_equal(close(configure.directory), 0);
	records_configure_free(&configure);
	return 0;
}

static void
encode_attach(struct message *message)
{
	struct records_attach attach = { login, instance, driver, true, 1800000, 16,
		open_descriptor() };

	records_attach_encode(message, &attach);
}

static int
decode_attach(struct message *message, struct error *err)
{
	struct records_attach attach;

	if (records_attach_decode(message, &attach, err) != 0)
		return -1;
	assert_string_equal(attach.login, "agent");
	assert_string_equal(attach.instance, "test");
	assert_string_equal(attach.driver, "e2b");
	assert_true(attach.here);
	assert_int_equal(attach.idle, 1800000);
	assert_int_equal(attach.limit, 16);
	assert_int_equal(close(attach.fd), 0);
	records_attach_free(&attach);
	return 0;
}

static void
encode_orphan(struct message *message)
{
	struct records_orphan orphan = { login, instance };

	records_orphan_encode(message, &orphan);
}

static int
decode_orphan(struct message *message, struct error *err)
{
	struct records_orphan orphan;

	if (records_orphan_decode(message, &orphan, err) != 0)
		return -1;
	assert_string_equal(orphan.login, "agent");
	assert_string_equal(orphan.instance, "test");
	records_orphan_free(&orphan);
	return 0;
}

static void
encode_worker_records(struct message *message)
{
	worker_records_encode(message, open_descriptor());
}

static int
decode_worker_records(struct message *message, struct error *err)
{
	int fd;

	if (worker_records_decode(message, &fd, err) != 0)
		return -1;
	assert_int_equal(close(fd), 0);
	return 0;
}

static void
encode_claim(struct message *message)
{
	struct record_claim claim = { sandbox, true };

	record_claim_encode(message, &claim);
}

static int
decode_claim(struct message *message, struct error *err)
{
	struct record_claim claim;

	if (record_claim_decode(message, &claim, err) != 0)
		return -1;
	assert_string_equal(claim.lost, "i1234");
	assert_true(claim.reclaim);
	record_claim_free(&claim);
	return 0;
}

static void
encode_claimed(struct message *message)
{
	struct record_claimed claimed = {
		.failed = true, .sandbox = sandbox, .doubtful = true, .is_shared = true
	};

	error_set(&claimed.failure, ERROR_DENIED, "too many");
	record_claimed_encode(message, &claimed);
}

static int
decode_claimed(struct message *message, struct error *err)
{
	struct record_claimed claimed;

	if (record_claimed_decode(message, &claimed, err) != 0)
		return -1;
	assert_true(claimed.failed);
	assert_int_equal(claimed.failure.code, ERROR_DENIED);
	assert_string_equal(claimed.failure.message, "too many");
	assert_string_equal(claimed.sandbox, "i1234");
	assert_false(claimed.created);
	assert_true(claimed.doubtful);
	assert_true(claimed.is_shared);
	record_claimed_free(&claimed);
	return 0;
}

static void
encode_ready(struct message *message)
{
	struct record_ready ready = { sandbox, true };

	record_ready_encode(message, &ready);
}

static int
decode_ready(struct message *message, struct error *err)
{
	struct record_ready ready;

	if (record_ready_decode(message, &ready, err) != 0)
		return -1;
	assert_string_equal(ready.sandbox, "i1234");
	assert_true(ready.created);
	record_ready_free(&ready);
	return 0;
}

static void
encode_flag(struct message *message)
{
	record_flag_encode(message, MESSAGE_RECORD_MAY_RELEASE, true);
}

static int
decode_flag(struct message *message, struct error *err)
{
	bool flag;

	if (record_flag_decode(message, &flag, err) != 0)
		return -1;
	assert_true(flag);
	return 0;
}

static void
encode_released(struct message *message)
{
	record_released_encode(message, RECORD_KEPT);
}

static int
decode_released(struct message *message, struct error *err)
{
	enum record_outcome outcome;

	if (record_released_decode(message, &outcome, err) != 0)
		return -1;
	assert_int_equal(outcome, RECORD_KEPT);
	return 0;
}

static const struct sample samples[] = {
	{ "records_configure", encode_configure, decode_configure, true },
	{ "records_attach", encode_attach, decode_attach, true },
	{ "records_orphan", encode_orphan, decode_orphan, false },
	{ "worker_records", encode_worker_records, decode_worker_records, true },
	{ "record_claim", encode_claim, decode_claim, false },
	{ "record_claimed", encode_claimed, decode_claimed, false },
	{ "record_ready", encode_ready, decode_ready, false },
	{ "record_flag", encode_flag, decode_flag, false },
	{ "record_released", encode_released, decode_released, false },
	{ NULL, NULL, NULL, false },
};

/* The lowest free descriptor: it moves when one was leaked. */
static int
next_descriptor(void)
{
	int fd;

	fd = open_descriptor();
	assert_int_equal(close(fd), 0);
	return fd;
}

static void
every_message_decodes_to_what_was_encoded(void **state)
{
	const struct sample *sample;
	struct message message;
	struct error err = { 0 };
	int before;

	(void)state;
	before = next_descriptor();
	for (sample = samples; sample->name != NULL; sample++) {
		sample->encode(&message);
		if (sample->decode(&message, &err) != 0)
			fail_msg("%s: %s", sample->name, err.message);
		message_free(&message);
	}
	assert_int_equal(next_descriptor(), before);
}

static void
decode_rejects_a_message_cut_at_any_byte(void **state)
{
	const struct sample *sample;
	struct message message;
	struct error err;
	size_t cut, whole;
	int before;

	(void)state;
	before = next_descriptor();
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
			assert_int_equal(next_descriptor(), before);
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

static void
messages_that_need_a_descriptor_are_refused_without_one(void **state)
{
	const struct sample *sample;
	struct message message;
	struct error err;

	(void)state;
	for (sample = samples; sample->name != NULL; sample++) {
		if (!sample->has_descriptor)
			continue;
		sample->encode(&message);
		assert_int_equal(close(message_take_fd(&message)), 0);
		assert_int_equal(sample->decode(&message, &err), -1);
		message_free(&message);
	}
}

static void
an_outcome_that_there_is_not_is_refused(void **state)
{
	enum record_outcome outcome;
	struct message message;
	struct error err;

	(void)state;
	message_start(&message, MESSAGE_RECORD_RELEASED);
	message_put_u8(&message, RECORD_OUTCOMES);
	assert_int_equal(record_released_decode(&message, &outcome, &err), -1);
	message_free(&message);
}

/*
 * What a worker says that is not itself any more: longer than an answer may be, or nothing a database
 * takes. And what a database says that somebody else has written to.
 */
static void
a_sandbox_that_has_no_id_is_refused(void **state)
{
	static char long_id[LOGIN_ID_LENGTH + 2];
	const char *const bad[] = { long_id, "", "..", "a/b", "a b", "a\n", "\xff", "\xc3\xa9" };
	struct record_claimed claimed = { 0 };
	struct record_ready ready;
	struct message message;
	struct error err;
	size_t i;

	(void)state;
	memset(long_id, 'x', LOGIN_ID_LENGTH + 1);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		message_start(&message, MESSAGE_RECORD_READY);
		message_put_text(&message, bad[i]);
		message_put_bool(&message, true);
		if (record_ready_decode(&message, &ready, &err) == 0)
			fail_msg("%s is taken for an id", bad[i]);
		assert_int_equal(err.code, ERROR_INVALID);
		message_free(&message);
		claimed.sandbox = memory_text(bad[i]);
		record_claimed_encode(&message, &claimed);
		record_claimed_free(&claimed);
		if (record_claimed_decode(&message, &claimed, &err) == 0)
			fail_msg("%s is taken for an id of the records", bad[i]);
		message_free(&message);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_decodes_to_what_was_encoded),
		cmocka_unit_test(decode_rejects_a_message_cut_at_any_byte),
		cmocka_unit_test(decode_rejects_trailing_bytes),
		cmocka_unit_test(messages_that_need_a_descriptor_are_refused_without_one),
		cmocka_unit_test(an_outcome_that_there_is_not_is_refused),
		cmocka_unit_test(a_sandbox_that_has_no_id_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
