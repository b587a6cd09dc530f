/* SPDX-License-Identifier: ISC */
/*
 * Encode and decode of what sessions and workers tell the listener for rws admin, and of what it has
 * them do. Channels are here as well: they come in a session's report and go on one by one. So are
 * records.
 */
#include <string.h>

#include "core/admin_protocol.h"
#include "core/base/memory.h"
#include "core/base/message.h"

static void
put_channel(struct message *message, const struct channel_report *channel)
{
	message_put_u32(message, channel->number);
	message_put_u8(message, (uint8_t)channel->kind);
	message_put_bool(message, channel->pty);
	message_put_i64(message, channel->since);
	message_put_u64(message, channel->bytes_in);
	message_put_u64(message, channel->bytes_out);
}

static void
get_channel(struct message *message, struct channel_report *channel)
{
	uint8_t kind;

	channel->number = message_get_u32(message);
	kind = message_get_u8(message);
	channel->kind = kind < CHANNEL_KINDS ? (enum channel_kind)kind : CHANNEL_KIND_NONE;
	channel->pty = message_get_bool(message);
	channel->since = message_get_i64(message);
	channel->bytes_in = message_get_u64(message);
	channel->bytes_out = message_get_u64(message);
	if (kind >= CHANNEL_KINDS)
		message->failed = true;
}

void
session_report_encode(struct message *message, const struct session_report *report)
{
	uint32_t i;

	message_start(message, MESSAGE_SESSION_REPORT);
	message_put_u64(message, report->bytes_in);
	message_put_u64(message, report->bytes_out);
	message_put_u32(message, report->channel_count);
	for (i = 0; i < report->channel_count; i++)
		put_channel(message, &report->channels[i]);
}

int
session_report_decode(struct message *message, struct session_report *report, struct error *err)
{
	uint32_t i;

	memset(report, 0, sizeof(*report));
	report->bytes_in = message_get_u64(message);
	report->bytes_out = message_get_u64(message);
	report->channel_count = message_get_u32(message);
	if (report->channel_count > SESSION_CHANNELS_MAX) {
		message->failed = true;
		report->channel_count = 0;
	}
	report->channels = memory_zeroed(report->channel_count, sizeof(*report->channels));
	for (i = 0; i < report->channel_count && !message->failed; i++)
		get_channel(message, &report->channels[i]);
	if (message_end(message, err) == 0)
		return 0;
	session_report_free(report);
	return -1;
}

void
session_report_free(struct session_report *report)
{
	memory_free(report->channels);
	memset(report, 0, sizeof(*report));
}

void
admin_channel_encode(struct message *message, const struct admin_channel *channel)
{
	message_start(message, MESSAGE_ADMIN_CHANNEL);
	message_put_u64(message, channel->connection);
	message_put_text(message, channel->workspace);
	message_put_bool(message, channel->answered);
	put_channel(message, &channel->channel);
}

int
admin_channel_decode(struct message *message, struct admin_channel *channel, struct error *err)
{
	memset(channel, 0, sizeof(*channel));
	channel->connection = message_get_u64(message);
	channel->workspace = message_get_text(message);
	channel->answered = message_get_bool(message);
	get_channel(message, &channel->channel);
	message_require(message, channel->workspace);
	if (message_end(message, err) == 0)
		return 0;
	admin_channel_free(channel);
	return -1;
}

void
admin_channel_free(struct admin_channel *channel)
{
	memory_free(channel->workspace);
	memset(channel, 0, sizeof(*channel));
}

void
admin_record_encode(struct message *message, const struct admin_record *record)
{
	message_start(message, MESSAGE_ADMIN_RECORD);
	message_put_text(message, record->login);
	message_put_text(message, record->workspace);
	message_put_text(message, record->driver);
	message_put_text(message, record->sandbox_id);
	message_put_u8(message, (uint8_t)record->state);
	message_put_bool(message, record->created);
	message_put_i64(message, record->since);
	message_put_i64(message, record->last_used);
	message_put_text(message, record->gateway);
	message_put_bool(message, record->is_elsewhere);
}

int
admin_record_decode(struct message *message, struct admin_record *record, struct error *err)
{
	uint8_t state;

	memset(record, 0, sizeof(*record));
	record->login = message_get_text(message);
	record->workspace = message_get_text(message);
	record->driver = message_get_text(message);
	record->sandbox_id = message_get_text(message);
	state = message_get_u8(message);
	if (state >= ADMIN_RECORD_STATES)
		message->failed = true;
	else
		record->state = (enum admin_record_state)state;
	record->created = message_get_bool(message);
	record->since = message_get_i64(message);
	record->last_used = message_get_i64(message);
	record->gateway = message_get_text(message);
	record->is_elsewhere = message_get_bool(message);
	message_require(message, record->login);
	message_require(message, record->workspace);
	message_require(message, record->driver);
	if (message_end(message, err) == 0)
		return 0;
	admin_record_free(record);
	return -1;
}

void
admin_record_free(struct admin_record *record)
{
	memory_free(record->login);
	memory_free(record->workspace);
	memory_free(record->driver);
	memory_free(record->sandbox_id);
	memory_free(record->gateway);
	memset(record, 0, sizeof(*record));
}

void
worker_act_encode(struct message *message, const struct worker_act *act)
{
	message_start(message, MESSAGE_WORKER_ACT);
	message_put_u32(message, act->id);
	message_put_u8(message, (uint8_t)act->verb);
}

int
worker_act_decode(struct message *message, struct worker_act *act, struct error *err)
{
	uint8_t verb;

	memset(act, 0, sizeof(*act));
	act->id = message_get_u32(message);
	verb = message_get_u8(message);
	if (verb == ADMIN_START || verb == ADMIN_STOP || verb == ADMIN_DESTROY)
		act->verb = (enum admin_verb)verb;
	else
		message->failed = true;
	return message_end(message, err);
}

void
worker_done_encode(struct message *message, const struct worker_done *done)
{
	message_start(message, MESSAGE_WORKER_DONE);
	message_put_u32(message, done->id);
	message_put_error(message, &done->failure);
	message_put_text(message, done->sandbox_id);
}

int
worker_done_decode(struct message *message, struct worker_done *done, struct error *err)
{
	memset(done, 0, sizeof(*done));
	done->id = message_get_u32(message);
	message_get_error(message, &done->failure);
	done->sandbox_id = message_get_text(message);
	if (done->sandbox_id != NULL && strlen(done->sandbox_id) > ADMIN_TEXT_MAX)
		message->failed = true;
	if (message_end(message, err) == 0)
		return 0;
	worker_done_free(done);
	return -1;
}

void
worker_done_free(struct worker_done *done)
{
	memory_free(done->sandbox_id);
	memset(done, 0, sizeof(*done));
}

void
session_disconnect_encode(struct message *message, const char *reason)
{
	message_start(message, MESSAGE_SESSION_DISCONNECT);
	message_put_text(message, reason);
}

int
session_disconnect_decode(struct message *message, char **reason, struct error *err)
{
	*reason = message_get_text(message);
	message_require(message, *reason);
	if (message_end(message, err) == 0)
		return 0;
	memory_free(*reason);
	*reason = NULL;
	return -1;
}

void
admin_ask_encode(struct message *message, uint8_t type)
{
	message_start(message, type);
}

int
admin_ask_decode(struct message *message, struct error *err)
{
	return message_end(message, err);
}
