/* SPDX-License-Identifier: ISC */
/*
 * Every decoder of core/record_protocol.h and core/record_list.h: the first byte is the message's type,
 * the second says whether a descriptor comes with it, the rest is the payload. What a decoder accepts
 * must survive being encoded again: the bytes of our own messages have one form only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/message.h"
#include "core/record_list.h"
#include "core/record_protocol.h"
#include "tests/fuzz/recode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

RECODE(records_configure)
RECODE(records_attach)
RECODE(records_orphan)
RECODE(record_claim)
RECODE(record_claimed)
RECODE(record_ready)
RECODE(records_state)
RECODE(records_list)
RECODE(records_page)
RECODE(records_forget)
RECODE(records_forgotten)

static int
recode_worker_records(struct message *message, struct message *again)
{
	int fd;

	if (worker_records_decode(message, &fd, NULL) != 0)
		return -1;
	worker_records_encode(again, fd);
	return 0;
}

static int
recode_flag(struct message *message, struct message *again)
{
	bool flag;

	if (record_flag_decode(message, &flag, NULL) != 0)
		return -1;
	record_flag_encode(again, message->type, flag);
	return 0;
}

static int
recode_released(struct message *message, struct message *again)
{
	enum record_outcome outcome;

	if (record_released_decode(message, &outcome, NULL) != 0)
		return -1;
	record_released_encode(again, outcome);
	return 0;
}

static recode_fn *const recoders[256] = {
	[MESSAGE_RECORDS_CONFIGURE] = recode_records_configure,
	[MESSAGE_RECORDS_ATTACH] = recode_records_attach,
	[MESSAGE_RECORDS_ORPHAN] = recode_records_orphan,
	[MESSAGE_WORKER_RECORDS] = recode_worker_records,
	[MESSAGE_RECORD_CLAIM] = recode_record_claim,
	[MESSAGE_RECORD_CLAIMED] = recode_record_claimed,
	[MESSAGE_RECORD_READY] = recode_record_ready,
	[MESSAGE_RECORD_USED] = recode_flag,
	[MESSAGE_RECORD_RELEASE] = recode_flag,
	[MESSAGE_RECORD_MAY_RELEASE] = recode_flag,
	[MESSAGE_RECORD_RELEASED] = recode_released,
	[MESSAGE_RECORDS_STATE] = recode_records_state,
	[MESSAGE_RECORDS_LIST] = recode_records_list,
	[MESSAGE_RECORDS_PAGE] = recode_records_page,
	[MESSAGE_RECORDS_FORGET] = recode_records_forget,
	[MESSAGE_RECORDS_FORGOTTEN] = recode_records_forgotten,
};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	recode_check_input(recoders, data, size);
	return 0;
}
