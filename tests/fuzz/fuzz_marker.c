/* SPDX-License-Identifier: ISC */
/*
 * The marker decoder against any bytes, in pieces of any size: the same input gives the same output
 * and the same end however it is cut.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/marker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char token[MARKER_TOKEN_SIZE] = "00112233445566778899aabbccddeeff";

static int
decode(struct marker *marker, struct buffer *output, const uint8_t *data, size_t size, size_t piece)
{
	struct error err;
	size_t length;

	marker_init(marker, token, false);
	for (; size > 0; data += length, size -= length) {
		length = size < piece ? size : piece;
		if (marker_decode(marker, data, length, output, &err) != 0)
			return -1;
	}
	return marker_finish(marker, output, &err);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct marker whole, pieces;
	struct buffer first, second;
	int result;

	if (size < 1)
		return 0;
	buffer_init(&first, size + 256);
	buffer_init(&second, size + 256);
	result = decode(&whole, &first, data + 1, size - 1, size);
	if (decode(&pieces, &second, data + 1, size - 1, 1 + (data[0] & 31)) != result)
		abort();
	if (result == 0 && (first.length != second.length || whole.stage != pieces.stage ||
			       (first.length > 0 && memcmp(buffer_data(&first),
							buffer_data(&second), first.length) != 0)))
		abort();
	buffer_free(&first);
	buffer_free(&second);
	return 0;
}
