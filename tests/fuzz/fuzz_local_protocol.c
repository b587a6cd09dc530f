/* SPDX-License-Identifier: ISC */
/*
 * Decodes any bytes as each message between the local driver and its init;
 * the first byte is the type.
 */
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/message.h"
#include "drivers/local_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
decode_lists(struct message *message, struct error *err)
{
	struct local_start start;
	struct local_copy copy;

	if (message->type == LOCAL_START && local_start_decode(message, &start, err) == 0)
		local_start_free(&start);
	if (message->type == LOCAL_COPY && local_copy_decode(message, &copy, err) == 0)
		local_copy_free(&copy);
}

static void
decode_numbers(struct message *message, struct error *err)
{
	struct local_stream stream;
	struct local_started started;
	struct local_ended ended;
	struct local_signal signal;
	struct local_done done;
	uint32_t id;

	if (message->type == LOCAL_STREAM)
		(void)local_stream_decode(message, &stream, err);
	else if (message->type == LOCAL_STARTED)
		(void)local_started_decode(message, &started, err);
	else if (message->type == LOCAL_ENDED)
		(void)local_ended_decode(message, &ended, err);
	else if (message->type == LOCAL_SIGNAL)
		(void)local_signal_decode(message, &signal, err);
	else if (message->type == LOCAL_DONE)
		(void)local_done_decode(message, &done, err);
	else
		(void)local_id_decode(message, &id, err);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct message message;
	struct error err;

	if (size == 0)
		return 0;
	message_start(&message, data[0] % (LOCAL_CANCEL + 1));
	if (buffer_append(&message.payload, data + 1, size - 1) == 0) {
		if (message.type == LOCAL_START || message.type == LOCAL_COPY)
			decode_lists(&message, &err);
		else
			decode_numbers(&message, &err);
	}
	message_free(&message);
	return 0;
}
