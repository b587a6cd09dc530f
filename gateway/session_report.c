/* SPDX-License-Identifier: ISC */
/*
 * What the operator wants of a session: how much it has moved on which channels, and its end. Of a
 * channel only its kind is told: a command line or an environment may hold secrets.
 */
#include <string.h>

#include "core/admin_protocol.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "gateway/channel.h"
#include "gateway/session_state.h"

static void
describe_channel(const struct channel *channel, struct channel_report *report)
{
	report->number = channel->number;
	report->kind = channel->kind;
	report->pty = channel->pty;
	report->since = channel->since;
	report->bytes_in = channel->bytes_in;
	report->bytes_out = channel->bytes_out;
}

int
session_take_ask(void *argument, struct message *message, struct error *err)
{
	struct session *session = argument;
	struct session_report report = { 0 };
	const struct channel *channel;
	struct message answer;

	if (admin_ask_decode(message, err) != 0)
		return -1;
	report.bytes_in = session->counter.in_bytes;
	report.bytes_out = session->counter.out_bytes;
	report.channels = memory_zeroed(session->channel_count, sizeof(*report.channels));
	for (channel = session->channels; channel != NULL; channel = channel->next)
		if (report.channel_count < SESSION_CHANNELS_MAX)
			describe_channel(channel, &report.channels[report.channel_count++]);
	session_report_encode(&answer, &report);
	session_report_free(&report);
	peer_send(session->listener, &answer);
	return 0;
}

int
session_take_disconnect(void *argument, struct message *message, struct error *err)
{
	char *reason;

	if (session_disconnect_decode(message, &reason, err) != 0)
		return -1;
	log_info("disconnected by the operator");
	session_disconnect(argument, "%s", reason);
	memory_free(reason);
	return 0;
}
