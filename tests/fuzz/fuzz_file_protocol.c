/* SPDX-License-Identifier: ISC */
/* Every decoder of core/file_protocol.h. */
/*
 * The decoders of core/file_protocol.h: the first byte is the message's type, the second says
 * whether a descriptor comes with it. What is accepted must survive being encoded again.
 */
#include <stddef.h>
#include <stdint.h>

#include "core/base/message.h"
#include "core/file_protocol.h"
#include "tests/fuzz/recode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

RECODE(file_serve)

static int
recode_request(struct message *message, struct message *again)
{
	struct file_request request;
	uint32_t id;

	if (file_request_decode(message, &id, &request, NULL) != 0)
		return -1;
	file_request_encode(again, id, &request);
	file_request_free(&request);
	return 0;
}

static int
recode_reply(struct message *message, struct message *again)
{
	struct file_reply reply;
	struct error failure;
	uint32_t id;

	if (file_reply_decode(message, &id, &reply, &failure, NULL) != 0)
		return -1;
	file_reply_encode(again, id, &reply, &failure);
	file_reply_free(&reply);
	return 0;
}

static int
recode_cancel(struct message *message, struct message *again)
{
	uint32_t id;

	if (file_cancel_decode(message, &id, NULL) != 0)
		return -1;
	file_cancel_encode(again, id);
	return 0;
}

static recode_fn *const recoders[256] = {
	[MESSAGE_FILE_REQUEST] = recode_request,
	[MESSAGE_FILE_REPLY] = recode_reply,
	[MESSAGE_FILE_CANCEL] = recode_cancel,
	[MESSAGE_FILE_SERVE] = recode_file_serve,
};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	recode_check_input(recoders, data, size);
	return 0;
}
