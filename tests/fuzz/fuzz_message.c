/* SPDX-License-Identifier: ISC */
/*
 * Bytes from the other process, through the frame reader of a peer and every get of a message: the
 * first input byte says how much of the rest is sent at a time.
 */
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The payload's first byte of each round chooses the get: any order of gets must be safe. */
static int
take_any(void *argument, struct message *message, struct error *err)
{
	size_t got;

	(void)argument;
	while (!message->failed && message->payload.length > 0) {
		switch (message_get_u8(message) % 9) {
		case 0:
			(void)message_get_u32(message);
			break;
		case 1:
			(void)message_get_u64(message);
			break;
		case 2:
			(void)message_get_i64(message);
			break;
		case 3:
			(void)message_get_bool(message);
			break;
		case 4:
			(void)message_get_bytes(message, &got);
			break;
		case 5:
			memory_free(message_get_text(message));
			break;
		case 6:
			memory_list_free(message_get_list(message));
			break;
		case 7:
			message_get_error(message, err);
			break;
		default:
			(void)message_get_u8(message);
		}
	}
	return message_end(message, err);
}

static void
note_closed(void *argument, const struct error *err)
{
	int *closed = argument;

	(void)err;
	*closed = 1;
}

static const struct peer_rule rules[] = {
	{ 1, "ONE", 1, take_any },
	{ 2, "TWO", 2, take_any },
	{ 0, NULL, 0, NULL },
};
static const struct peer_events events = { rules, note_closed, NULL };

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct loop *loop;
	struct peer *peer;
	size_t step, piece;
	int pair[2], closed = 0;

	if (size < 1)
		return 0;
	step = (size_t)data[0] + 1;
	data++;
	size--;
	log_open("fuzz", LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	loop = loop_new(NULL);
	if (loop == NULL || descriptor_pair(pair, NULL) != 0)
		__builtin_trap();
	peer = peer_new(loop, pair[0], "near", "far", &events, &closed);
	for (; size > 0 && closed == 0; data += piece, size -= piece) {
		piece = size < step ? size : step;
		if (descriptor_write(pair[1], data, piece, NULL) != 0)
			break;
		(void)loop_dispatch(loop, 0, NULL);
	}
	peer_free(peer);
	(void)close(pair[1]);
	loop_free(loop);
	return 0;
}
