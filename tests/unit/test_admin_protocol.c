/* SPDX-License-Identifier: ISC */
/*
 * Every message of core/admin_protocol.h: what was encoded comes out again, and no frame that is cut
 * short, has a byte too many or a value that there is not is taken for one. Each field of a sample has
 * a value of its own, so that two fields that changed places show.
 */
#include <stdbool.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/admin_protocol.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/message.h"

static char name[] = "sandbox", full[] = "sandbox+test", driver[] = "local", id[] = "local-1234";
static char policy[] = "attach", address[] = "2001:db8::1", key[] = "SHA256:abc", note[] = "a note";
static char version[] = "1.2.3", file[] = "/etc/rwsd/rwsd.conf", target[] = "17";
static char place[] = "0123456789abcdef";

struct sample {
	const char *name;
	uint8_t type;
	void (*encode)(struct message *message);
	/* Decodes, and on success checks every field and frees. */
	int (*decode)(struct message *message, struct error *err);
};

static void
encode_request(struct message *message)
{
	struct admin_request request = { ADMIN_DISCONNECT, target };

	admin_request_encode(message, &request);
}

static int
decode_request(struct message *message, struct error *err)
{
	struct admin_request request;

	if (admin_request_decode(message, &request, err) != 0)
		return -1;
	assert_int_equal(request.verb, ADMIN_DISCONNECT);
	assert_string_equal(request.target, "17");
	admin_request_free(&request);
	return 0;
}

static void
encode_status(struct message *message)
{
	struct admin_status status = { version, file, 1, 1LL << 40, true, 2, 3, 4, 5, 6, place };

	admin_status_encode(message, &status);
}

static int
decode_status(struct message *message, struct error *err)
{
	struct admin_status status;

	if (admin_status_decode(message, &status, err) != 0)
		return -1;
	assert_string_equal(status.version, "1.2.3");
	assert_string_equal(status.configuration, "/etc/rwsd/rwsd.conf");
	assert_int_equal(status.pid, 1);
	assert_true(status.since == 1LL << 40);
	assert_true(status.draining);
	assert_int_equal(status.sessions, 2);
	assert_int_equal(status.starting, 3);
	assert_int_equal(status.spares, 4);
	assert_int_equal(status.workers, 5);
	assert_int_equal(status.crashes, 6);
	assert_string_equal(status.place, "0123456789abcdef");
	admin_status_free(&status);
	return 0;
}

static void
encode_login(struct message *message)
{
	struct admin_login login = { name, driver, policy, 7, 8 };

	admin_login_encode(message, &login);
}

static int
decode_login(struct message *message, struct error *err)
{
	struct admin_login login;

	if (admin_login_decode(message, &login, err) != 0)
		return -1;
	assert_string_equal(login.name, "sandbox");
	assert_string_equal(login.driver, "local");
	assert_string_equal(login.instances, "attach");
	assert_int_equal(login.workspaces, 7);
	assert_int_equal(login.sessions, 8);
	admin_login_free(&login);
	return 0;
}

static const struct worker_report sample_report = { SANDBOX_RELEASING, id, 9, 1LL << 41 };

static void
assert_report(const struct worker_report *report)
{
	assert_int_equal(report->state, SANDBOX_RELEASING);
	assert_string_equal(report->sandbox_id, "local-1234");
	assert_int_equal(report->commands, 9);
	assert_true(report->last_used == 1LL << 41);
}

static void
encode_worker_report(struct message *message)
{
	worker_report_encode(message, &sample_report);
}

static int
decode_worker_report(struct message *message, struct error *err)
{
	struct worker_report report;

	if (worker_report_decode(message, &report, err) != 0)
		return -1;
	assert_report(&report);
	worker_report_free(&report);
	return 0;
}

static void
encode_workspace(struct message *message)
{
	struct admin_workspace workspace = { name, full, driver, 10, 11, 12, true, sample_report };

	admin_workspace_encode(message, &workspace);
}

static int
decode_workspace(struct message *message, struct error *err)
{
	struct admin_workspace workspace;

	if (admin_workspace_decode(message, &workspace, err) != 0)
		return -1;
	assert_string_equal(workspace.login, "sandbox");
	assert_string_equal(workspace.workspace, "sandbox+test");
	assert_string_equal(workspace.driver, "local");
	assert_int_equal(workspace.pid, 10);
	assert_int_equal(workspace.since, 11);
	assert_int_equal(workspace.sessions, 12);
	assert_true(workspace.answered);
	assert_report(&workspace.report);
	admin_workspace_free(&workspace);
	return 0;
}

static void
encode_record(struct message *message)
{
	struct admin_record record = { name, full, driver, id, ADMIN_RECORD_NO_LOGIN, true, 27, 28,
		place, true };

	admin_record_encode(message, &record);
}

static int
decode_record(struct message *message, struct error *err)
{
	struct admin_record record;

	if (admin_record_decode(message, &record, err) != 0)
		return -1;
	assert_string_equal(record.login, "sandbox");
	assert_string_equal(record.workspace, "sandbox+test");
	assert_string_equal(record.driver, "local");
	assert_string_equal(record.sandbox_id, "local-1234");
	assert_int_equal(record.state, ADMIN_RECORD_NO_LOGIN);
	assert_true(record.created);
	assert_int_equal(record.since, 27);
	assert_int_equal(record.last_used, 28);
	assert_string_equal(record.gateway, "0123456789abcdef");
	assert_true(record.is_elsewhere);
	admin_record_free(&record);
	return 0;
}

static struct channel_report sample_channels[2] = {
	{ 1, CHANNEL_KIND_SHELL, true, 13, 1ULL << 50, 14 },
	{ 2, CHANNEL_KIND_SFTP, false, 15, 16, 1ULL << 51 },
};

static void
assert_channel(const struct channel_report *channel, const struct channel_report *expected)
{
	assert_int_equal(channel->number, expected->number);
	assert_int_equal(channel->kind, expected->kind);
	assert_int_equal(channel->pty, expected->pty);
	assert_int_equal(channel->since, expected->since);
	assert_true(channel->bytes_in == expected->bytes_in);
	assert_true(channel->bytes_out == expected->bytes_out);
}

static void
encode_session_report(struct message *message)
{
	struct session_report report = { 17, 18, sample_channels, 2 };

	session_report_encode(message, &report);
}

static int
decode_session_report(struct message *message, struct error *err)
{
	struct session_report report;

	if (session_report_decode(message, &report, err) != 0)
		return -1;
	assert_int_equal(report.bytes_in, 17);
	assert_int_equal(report.bytes_out, 18);
	assert_int_equal(report.channel_count, 2);
	assert_channel(&report.channels[0], &sample_channels[0]);
	assert_channel(&report.channels[1], &sample_channels[1]);
	session_report_free(&report);
	return 0;
}

static void
encode_session(struct message *message)
{
	struct admin_session session = { 1ULL << 33, 19, full, key, address, 65535, 20, true, 21,
		22, 23 };

	admin_session_encode(message, &session);
}

static int
decode_session(struct message *message, struct error *err)
{
	struct admin_session session;

	if (admin_session_decode(message, &session, err) != 0)
		return -1;
	assert_true(session.connection == 1ULL << 33);
	assert_int_equal(session.pid, 19);
	assert_string_equal(session.workspace, "sandbox+test");
	assert_string_equal(session.key, "SHA256:abc");
	assert_string_equal(session.address, "2001:db8::1");
	assert_int_equal(session.port, 65535);
	assert_int_equal(session.since, 20);
	assert_true(session.answered);
	assert_int_equal(session.bytes_in, 21);
	assert_int_equal(session.bytes_out, 22);
	assert_int_equal(session.channels, 23);
	admin_session_free(&session);
	return 0;
}

static void
encode_channel(struct message *message)
{
	struct admin_channel channel = { 24, full, true, sample_channels[0] };

	admin_channel_encode(message, &channel);
}

static int
decode_channel(struct message *message, struct error *err)
{
	struct admin_channel channel;

	if (admin_channel_decode(message, &channel, err) != 0)
		return -1;
	assert_int_equal(channel.connection, 24);
	assert_string_equal(channel.workspace, "sandbox+test");
	assert_true(channel.answered);
	assert_channel(&channel.channel, &sample_channels[0]);
	admin_channel_free(&channel);
	return 0;
}

static void
encode_end(struct message *message)
{
	struct admin_end end = { .sandbox_id = id, .note = note };

	error_set(&end.failure, ERROR_BUSY, "busy");
	admin_end_encode(message, &end);
}

static int
decode_end(struct message *message, struct error *err)
{
	struct admin_end end;

	if (admin_end_decode(message, &end, err) != 0)
		return -1;
	assert_int_equal(end.failure.code, ERROR_BUSY);
	assert_string_equal(end.failure.message, "busy");
	assert_string_equal(end.sandbox_id, "local-1234");
	assert_string_equal(end.note, "a note");
	admin_end_free(&end);
	return 0;
}

static void
encode_act(struct message *message)
{
	struct worker_act act = { 25, ADMIN_STOP };

	worker_act_encode(message, &act);
}

static int
decode_act(struct message *message, struct error *err)
{
	struct worker_act act;

	if (worker_act_decode(message, &act, err) != 0)
		return -1;
	assert_int_equal(act.id, 25);
	assert_int_equal(act.verb, ADMIN_STOP);
	return 0;
}

static void
encode_done(struct message *message)
{
	struct worker_done done = { .id = 26, .sandbox_id = id };

	error_set(&done.failure, ERROR_DENIED, "never");
	worker_done_encode(message, &done);
}

static int
decode_done(struct message *message, struct error *err)
{
	struct worker_done done;

	if (worker_done_decode(message, &done, err) != 0)
		return -1;
	assert_int_equal(done.id, 26);
	assert_int_equal(done.failure.code, ERROR_DENIED);
	assert_string_equal(done.failure.message, "never");
	assert_string_equal(done.sandbox_id, "local-1234");
	worker_done_free(&done);
	return 0;
}

static void
encode_disconnect(struct message *message)
{
	session_disconnect_encode(message, "why");
}

static int
decode_disconnect(struct message *message, struct error *err)
{
	char *reason;

	if (session_disconnect_decode(message, &reason, err) != 0)
		return -1;
	assert_string_equal(reason, "why");
	memory_free(reason);
	return 0;
}

static void
encode_ask(struct message *message)
{
	admin_ask_encode(message, MESSAGE_WORKER_ASK);
}

static const struct sample samples[] = {
	{ "ADMIN_REQUEST", MESSAGE_ADMIN_REQUEST, encode_request, decode_request },
	{ "ADMIN_STATUS", MESSAGE_ADMIN_STATUS, encode_status, decode_status },
	{ "ADMIN_LOGIN", MESSAGE_ADMIN_LOGIN, encode_login, decode_login },
	{ "ADMIN_WORKSPACE", MESSAGE_ADMIN_WORKSPACE, encode_workspace, decode_workspace },
	{ "ADMIN_RECORD", MESSAGE_ADMIN_RECORD, encode_record, decode_record },
	{ "ADMIN_SESSION", MESSAGE_ADMIN_SESSION, encode_session, decode_session },
	{ "ADMIN_CHANNEL", MESSAGE_ADMIN_CHANNEL, encode_channel, decode_channel },
	{ "ADMIN_END", MESSAGE_ADMIN_END, encode_end, decode_end },
	{ "SESSION_REPORT", MESSAGE_SESSION_REPORT, encode_session_report, decode_session_report },
	{ "SESSION_DISCONNECT", MESSAGE_SESSION_DISCONNECT, encode_disconnect, decode_disconnect },
	{ "WORKER_REPORT", MESSAGE_WORKER_REPORT, encode_worker_report, decode_worker_report },
	{ "WORKER_ACT", MESSAGE_WORKER_ACT, encode_act, decode_act },
	{ "WORKER_DONE", MESSAGE_WORKER_DONE, encode_done, decode_done },
	{ "WORKER_ASK", MESSAGE_WORKER_ASK, encode_ask, admin_ask_decode },
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
	struct error err = { 0 };

	(void)state;
	for (sample = samples; sample->name != NULL; sample++) {
		sample->encode(&message);
		message_put_u8(&message, 0);
		if (sample->decode(&message, &err) == 0)
			fail_msg("%s takes a byte too many", sample->name);
		message_free(&message);
	}
}

static int
decode_request_of(uint8_t verb, const char *text)
{
	struct admin_request request;
	struct message message;
	int result;

	message_start(&message, MESSAGE_ADMIN_REQUEST);
	message_put_u8(&message, verb);
	message_put_text(&message, text);
	result = admin_request_decode(&message, &request, NULL);
	if (result == 0)
		admin_request_free(&request);
	message_free(&message);
	return result;
}

static void
a_request_names_its_target_when_it_has_one_and_only_then(void **state)
{
	unsigned verb;
	bool has;

	(void)state;
	for (verb = 0; verb < ADMIN_VERBS; verb++) {
		has = admin_verb_has_target((enum admin_verb)verb);
		assert_int_equal(decode_request_of((uint8_t)verb, "x"), has ? 0 : -1);
		assert_int_equal(decode_request_of((uint8_t)verb, NULL), has ? -1 : 0);
	}
	assert_int_equal(decode_request_of(ADMIN_VERBS, NULL), -1);
	assert_int_equal(decode_request_of(ADMIN_VERBS, "x"), -1);
	assert_int_equal(decode_request_of(255, "x"), -1);
}

static void
a_target_is_of_limited_length(void **state)
{
	char text[ADMIN_TEXT_MAX + 2];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[ADMIN_TEXT_MAX + 1] = '\0';
	assert_int_equal(decode_request_of(ADMIN_STOP, text), -1);
	text[ADMIN_TEXT_MAX] = '\0';
	assert_int_equal(decode_request_of(ADMIN_STOP, text), 0);
}

static void
only_acts_on_sandboxes_reach_a_worker(void **state)
{
	struct worker_act act;
	struct message message;
	uint8_t verb;
	bool good;

	(void)state;
	for (verb = 0; verb < 255; verb++) {
		message_start(&message, MESSAGE_WORKER_ACT);
		message_put_u32(&message, 1);
		message_put_u8(&message, verb);
		good = verb == ADMIN_START || verb == ADMIN_STOP || verb == ADMIN_DESTROY;
		assert_int_equal(worker_act_decode(&message, &act, NULL), good ? 0 : -1);
		message_free(&message);
	}
}

/* The memory for what a session claims to have is bounded before it is taken. */
static void
a_session_has_a_limited_number_of_channels(void **state)
{
	struct session_report report;
	struct message message;

	(void)state;
	message_start(&message, MESSAGE_SESSION_REPORT);
	message_put_u64(&message, 0);
	message_put_u64(&message, 0);
	message_put_u32(&message, UINT32_MAX);
	assert_int_equal(session_report_decode(&message, &report, NULL), -1);
	message_free(&message);
}

static void
kinds_and_states_that_there_are_not_are_refused(void **state)
{
	struct admin_channel channel = { 1, full, true,
		{ .kind = (enum channel_kind)CHANNEL_KINDS } };
	struct worker_report report = { .state = (enum sandbox_state)SANDBOX_STATES };
	struct admin_record record = { .login = name,
		.workspace = full,
		.driver = driver,
		.state = (enum admin_record_state)ADMIN_RECORD_STATES };
	struct message message;

	(void)state;
	admin_channel_encode(&message, &channel);
	assert_int_equal(admin_channel_decode(&message, &channel, NULL), -1);
	message_free(&message);
	worker_report_encode(&message, &report);
	assert_int_equal(worker_report_decode(&message, &report, NULL), -1);
	message_free(&message);
	admin_record_encode(&message, &record);
	assert_int_equal(admin_record_decode(&message, &record, NULL), -1);
	message_free(&message);
}

static void
what_is_not_known_is_not_there(void **state)
{
	struct admin_session session = { .address = address };
	struct admin_session back;
	struct admin_end end = { 0 }, ended;
	struct message message;

	(void)state;
	admin_session_encode(&message, &session);
	assert_int_equal(admin_session_decode(&message, &back, NULL), 0);
	assert_null(back.workspace);
	assert_null(back.key);
	assert_false(back.answered);
	admin_session_free(&back);
	message_free(&message);
	admin_end_encode(&message, &end);
	assert_int_equal(admin_end_decode(&message, &ended, NULL), 0);
	assert_int_equal(ended.failure.code, ERROR_NONE);
	assert_null(ended.sandbox_id);
	assert_null(ended.note);
	admin_end_free(&ended);
	message_free(&message);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_decodes_to_what_was_encoded),
		cmocka_unit_test(decode_rejects_a_message_cut_at_any_byte),
		cmocka_unit_test(decode_rejects_trailing_bytes),
		cmocka_unit_test(a_request_names_its_target_when_it_has_one_and_only_then),
		cmocka_unit_test(a_target_is_of_limited_length),
		cmocka_unit_test(only_acts_on_sandboxes_reach_a_worker),
		cmocka_unit_test(a_session_has_a_limited_number_of_channels),
		cmocka_unit_test(kinds_and_states_that_there_are_not_are_refused),
		cmocka_unit_test(what_is_not_known_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
