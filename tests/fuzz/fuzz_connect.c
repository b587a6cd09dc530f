/* SPDX-License-Identifier: ISC */
/*
 * A stream of envelopes with events of a process in them, as E2B's envd sends them, and the
 * explanations of refusals. What is taken of the stream must not depend on how it is cut up.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "drivers/connect.h"
#include "drivers/e2b_event.h"
#include "drivers/http_answer.h"

/* What a stream came to: enough to compare two readings of it. */
struct reading {
	size_t frames, events, bytes;
	size_t status;
};

static void
take_frame(const struct connect_frame *frame, struct reading *reading)
{
	struct e2b_event event;
	struct error err;

	reading->frames++;
	if (frame->is_end) {
		reading->status = connect_decode_end(frame, &err) == 0 ? 1 : 2;
		return;
	}
	if (e2b_event_decode(frame->payload, frame->size, &event, &err) != 0)
		return;
	reading->events++;
	reading->bytes += event.size;
	if (event.kind == E2B_EVENT_END && !event.ended.signaled &&
	    (event.ended.status & ~255) != 0)
		__builtin_trap();
	e2b_event_free(&event);
}

static struct reading
read_stream(const uint8_t *data, size_t size, size_t step)
{
	struct reading reading = { 0 };
	struct connect_frame frame;
	struct buffer buffer;
	struct error err;
	size_t needed, piece;
	int result = 0;

	buffer_init(&buffer, SIZE_MAX);
	for (; size > 0 && result >= 0; data += piece, size -= piece) {
		piece = size < step ? size : step;
		(void)buffer_append(&buffer, data, piece);
		while ((result = connect_decode(
			    buffer_data(&buffer), buffer.length, &frame, &needed, &err)) > 0) {
			take_frame(&frame, &reading);
			buffer_consume(&buffer, CONNECT_HEADER_SIZE + frame.size);
		}
	}
	buffer_free(&buffer);
	return reading;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reading whole, pieces;
	struct error err;
	const char *at;

	if (size < 1)
		return 0;
	whole = read_stream(data + 1, size - 1, size);
	pieces = read_stream(data + 1, size - 1, (size_t)data[0] + 1);
	if (memcmp(&whole, &pieces, sizeof(whole)) != 0)
		__builtin_trap();
	(void)http_answer_explain(502, data + 1, size - 1, &err);
	for (at = err.message; *at != '\0'; at++)
		if ((unsigned char)*at < ' ' || *at == 127)
			__builtin_trap();
	return 0;
}
