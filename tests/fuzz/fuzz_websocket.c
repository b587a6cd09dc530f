/* SPDX-License-Identifier: ISC */
/*
 * What a server sends: the head of its answer, or frames. Frames are decoded twice, whole and in
 * pieces of the size that the first byte says, which must give the same messages.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/base/error.h"
#include "drivers/websocket_frame.h"
#include "drivers/websocket_handshake.h"

#define MESSAGE_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* FNV-1a over all messages, and how it ended. */
static uint64_t
decode(const uint8_t *data, size_t size, size_t piece)
{
	struct websocket_decoder decoder;
	struct websocket_message message;
	uint64_t sum = 14695981039346656037U;
	struct error err;
	size_t taken, length, i;
	int result;

	websocket_decoder_init(&decoder, MESSAGE_MAX);
	result = 0;
	while (size > 0 && result >= 0) {
		length = piece < size ? piece : size;
		result = websocket_decode(&decoder, data, length, &taken, &message, &err);
		if (taken > length || (result == 0 && taken != length))
			abort();
		data += taken;
		size -= taken;
		if (result <= 0)
			continue;
		if (message.size > MESSAGE_MAX)
			abort();
		sum = (sum ^ (message.opcode + 16 * message.status)) * 1099511628211U;
		for (i = 0; i < message.size; i++)
			sum = (sum ^ message.data[i]) * 1099511628211U;
	}
	sum = (sum ^ (unsigned)decoder.status ^ (result < 0)) * 1099511628211U;
	websocket_decoder_free(&decoder);
	return sum;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct websocket_answer answer;
	struct error err;

	if (size == 0)
		return 0;
	if (websocket_read_answer(data, size, "dGhlIHNhbXBsZSBub25jZQ==", &answer, &err) == 1 &&
	    answer.head_size > size)
		abort();
	if (decode(data + 1, size - 1, size) !=
	    decode(data + 1, size - 1, (size_t)(data[0] & 7) + 1))
		abort();
	return 0;
}
