/* SPDX-License-Identifier: ISC */
/* Hexadecimal, strict in what it takes: what we read was written by md5sum and its like. */
#include <string.h>

#include "core/base/hex.h"

static const char digits[] = "0123456789abcdef";

void
hex_encode(char *out, const void *data, size_t size)
{
	const unsigned char *in;

	for (in = data; size > 0; in++, size--) {
		*out++ = digits[*in >> 4];
		*out++ = digits[*in & 15];
	}
	*out = '\0';
}

/* The value of a digit, or -1. */
static int
decode_digit(char digit)
{
	const char *found;

	found = digit == '\0' ? NULL : strchr(digits, digit);
	return found == NULL ? -1 : (int)(found - digits);
}

int
hex_decode(unsigned char *out, size_t size, const char *text)
{
	int high, low;

	for (; size > 0; size--, text += 2) {
		high = decode_digit(text[0]);
		low = high < 0 ? -1 : decode_digit(text[1]);
		if (low < 0)
			return -1;
		*out++ = (unsigned char)(high << 4 | low);
	}
	return 0;
}

size_t
hex_length(const char *text)
{
	return strspn(text, digits) / 2;
}
