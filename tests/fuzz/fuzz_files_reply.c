/* SPDX-License-Identifier: ISC */
/*
 * What the files script says, and the records of its listings; read whole and byte by byte alike.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/files_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum {
	unsigned lines;
	uint64_t bytes;
};

static int
take_line(void *argument, const struct files_reply_line *line, struct error *err)
{
	struct sum *sum = argument;

	(void)err;
	sum->lines += 1 + line->number;
	if (line->kind == FILES_REPLY_FAIL && line->failure.code == ERROR_NONE)
		__builtin_trap();
	return 0;
}

static int
take_data(
    void *argument, uint32_t number, const unsigned char *data, size_t size, struct error *err)
{
	struct sum *sum = argument;
	size_t i;

	(void)number;
	(void)err;
	for (i = 0; i < size; i++)
		sum->bytes += data[i] + 1U;
	return 0;
}

static const struct files_reply_events events = { take_line, take_data };

static int
read_in(const uint8_t *data, size_t size, size_t step, struct sum *sum)
{
	struct files_reply_reader reader;
	size_t part;
	int result = 0;

	memset(sum, 0, sizeof(*sum));
	files_reply_init(&reader);
	for (; size > 0 && result == 0; data += part, size -= part) {
		part = step < size ? step : size;
		result = files_reply_feed(&reader, data, part, &events, sum, NULL);
	}
	files_reply_free(&reader);
	return result;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct file_entry entry;
	struct sum whole, parts;
	char *text;

	if (read_in(data, size, size, &whole) != read_in(data, size, 1, &parts) ||
	    whole.lines != parts.lines || whole.bytes != parts.bytes)
		__builtin_trap();
	text = memory_text_bounded(data, size);
	if (files_reply_entry(text, &entry, NULL) == 0 && (entry.path != text || *text == '\0'))
		__builtin_trap();
	memory_free(text);
	return 0;
}
