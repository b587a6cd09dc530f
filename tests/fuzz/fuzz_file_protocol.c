/* SPDX-License-Identifier: ISC */
/*
 * The decoders of core/file_protocol.h: the first byte is the message's type, the second says
 * whether a descriptor comes with it. What is accepted must survive being encoded again.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/message.h"
#include "core/file_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
recode(struct message *message, struct message *again)
{
	struct file_request request;
	struct file_reply reply;
	struct file_serve serve;
	struct error failure;
	uint32_t id;
	int result = -1;

	if (message->type == MESSAGE_FILE_REQUEST &&
	    file_request_decode(message, &id, &request, NULL) == 0) {
		file_request_encode(again, id, &request);
		file_request_free(&request);
		result = 0;
	} else if (message->type == MESSAGE_FILE_REPLY &&
		   file_reply_decode(message, &id, &reply, &failure, NULL) == 0) {
		file_reply_encode(again, id, &reply, &failure);
		file_reply_free(&reply);
		result = 0;
	} else if (message->type == MESSAGE_FILE_CANCEL &&
		   file_cancel_decode(message, &id, NULL) == 0) {
		file_cancel_encode(again, id);
		result = 0;
	} else if (message->type == MESSAGE_FILE_SERVE &&
		   file_serve_decode(message, &serve, NULL) == 0) {
		file_serve_encode(again, &serve);
		file_serve_free(&serve);
		result = 0;
	}
	return result;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct message message, again;

	if (size < 2 || size - 2 > MESSAGE_PAYLOAD_MAX)
		return 0;
	message_start(&message, data[0]);
	(void)buffer_append(&message.payload, data + 2, size - 2);
	if ((data[1] & 1) != 0)
		message.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (recode(&message, &again) == 0) {
		if (again.payload.length != size - 2 ||
		    memcmp(buffer_data(&again.payload), data + 2, size - 2) != 0)
			__builtin_trap();
		message_free(&again);
	}
	message_free(&message);
	return 0;
}
