/* SPDX-License-Identifier: ISC */
/*
 * Every decoder of core/admin_protocol.h: the first byte is the message's type, the rest its
 * payload, as no descriptors come with these.
 */
/*
 * Every decoder of core/admin_protocol.h, as fuzz_protocol.c does it: the first byte is the message's
 * type, the rest its payload, and what is accepted must be the same bytes when encoded again.
 */
#include <stddef.h>
#include <stdint.h>

#include "core/admin_protocol.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "tests/fuzz/recode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
worker_act_free(struct worker_act *act)
{
	(void)act;
}

RECODE(admin_request)
RECODE(admin_status)
RECODE(admin_login)
RECODE(admin_workspace)
RECODE(admin_record)
RECODE(admin_session)
RECODE(admin_channel)
RECODE(admin_end)
RECODE(session_report)
RECODE(worker_report)
RECODE(worker_act)
RECODE(worker_done)

static int
recode_session_disconnect(struct message *message, struct message *again)
{
	char *reason;

	if (session_disconnect_decode(message, &reason, NULL) != 0)
		return -1;
	session_disconnect_encode(again, reason);
	memory_free(reason);
	return 0;
}

static int
recode_ask(struct message *message, struct message *again)
{
	if (admin_ask_decode(message, NULL) != 0)
		return -1;
	admin_ask_encode(again, message->type);
	return 0;
}

static recode_fn *const recoders[256] = {
	[MESSAGE_ADMIN_REQUEST] = recode_admin_request,
	[MESSAGE_ADMIN_STATUS] = recode_admin_status,
	[MESSAGE_ADMIN_LOGIN] = recode_admin_login,
	[MESSAGE_ADMIN_WORKSPACE] = recode_admin_workspace,
	[MESSAGE_ADMIN_RECORD] = recode_admin_record,
	[MESSAGE_ADMIN_SESSION] = recode_admin_session,
	[MESSAGE_ADMIN_CHANNEL] = recode_admin_channel,
	[MESSAGE_ADMIN_END] = recode_admin_end,
	[MESSAGE_SESSION_ASK] = recode_ask,
	[MESSAGE_SESSION_REPORT] = recode_session_report,
	[MESSAGE_SESSION_DISCONNECT] = recode_session_disconnect,
	[MESSAGE_WORKER_ASK] = recode_ask,
	[MESSAGE_WORKER_REPORT] = recode_worker_report,
	[MESSAGE_WORKER_ACT] = recode_worker_act,
	[MESSAGE_WORKER_DONE] = recode_worker_done,
};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0)
		recode_check(recoders[data[0]], data[0], -1, data + 1, size - 1);
	return 0;
}
