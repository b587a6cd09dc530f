/* SPDX-License-Identifier: ISC */
/* UTF-8 checks, after the table of well-formed sequences in RFC 3629 section 4. */
#include <stdint.h>

#include "core/base/utf8.h"

struct form {
	unsigned char first_low, first_high;
	unsigned char second_low, second_high;
	unsigned char length;
};

static const struct form forms[] = {
	{ 0x00, 0x7f, 0x00, 0x00, 1 },
	{ 0xc2, 0xdf, 0x80, 0xbf, 2 },
	{ 0xe0, 0xe0, 0xa0, 0xbf, 3 },
	{ 0xe1, 0xec, 0x80, 0xbf, 3 },
	{ 0xed, 0xed, 0x80, 0x9f, 3 },
	{ 0xee, 0xef, 0x80, 0xbf, 3 },
	{ 0xf0, 0xf0, 0x90, 0xbf, 4 },
	{ 0xf1, 0xf3, 0x80, 0xbf, 4 },
	{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
};

static bool
form_matches(const struct form *form, const unsigned char *bytes, size_t size)
{
	size_t i;

	if (bytes[0] < form->first_low || bytes[0] > form->first_high || size < form->length)
		return false;
	if (form->length > 1 && (bytes[1] < form->second_low || bytes[1] > form->second_high))
		return false;
	for (i = 2; i < form->length; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return false;
	return true;
}

size_t
utf8_sequence(const char *data, size_t size)
{
	size_t i;

	if (size == 0)
		return 0;
	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (form_matches(&forms[i], (const unsigned char *)data, size))
			return forms[i].length;
	return 0;
}

bool
utf8_valid(const char *data, size_t size)
{
	size_t length;

	while (size > 0) {
		length = utf8_sequence(data, size);
		if (length == 0)
			return false;
		data += length;
		size -= length;
	}
	return true;
}
