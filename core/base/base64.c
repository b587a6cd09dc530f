/* SPDX-License-Identifier: ISC */
/* Base64, strict in what it takes: a key or a file has exactly one encoding. */
#include "core/base/base64.h"
#include "core/base/memory.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
base64_encode(char *out, const void *data, size_t size)
{
	const unsigned char *in;
	unsigned group;

	for (in = data; size >= 3; in += 3, size -= 3) {
		group = (unsigned)in[0] << 16 | (unsigned)in[1] << 8 | in[2];
		*out++ = alphabet[group >> 18];
		*out++ = alphabet[group >> 12 & 63];
		*out++ = alphabet[group >> 6 & 63];
		*out++ = alphabet[group & 63];
	}
	if (size > 0) {
		group = (unsigned)in[0] << 16 | (size == 2 ? (unsigned)in[1] << 8 : 0);
		*out++ = alphabet[group >> 18];
		*out++ = alphabet[group >> 12 & 63];
		*out++ = size == 2 ? alphabet[group >> 6 & 63] : '=';
		*out++ = '=';
	}
	*out = '\0';
}

char *
base64_text(const void *data, size_t size)
{
	char *text;

	text = memory_allocate(BASE64_SIZE(size) + 1);
	base64_encode(text, data, size);
	return text;
}

/* The six bits that a character stands for, or -1. */
static int
decode_character(char character)
{
	if (character >= 'A' && character <= 'Z')
		return character - 'A';
	if (character >= 'a' && character <= 'z')
		return character - 'a' + 26;
	if (character >= '0' && character <= '9')
		return character - '0' + 52;
	if (character == '+')
		return 62;
	return character == '/' ? 63 : -1;
}

/*
 * Decodes four characters of which the last padding ones are "="; -1 when they are no such group.
 */
static int
decode_group(unsigned char *out, const char *text, size_t padding)
{
	unsigned group;
	size_t i;
	int bits;

	group = 0;
	for (i = 0; i < 4; i++) {
		bits = i < 4 - padding ? decode_character(text[i]) : 0;
		if (bits < 0)
			return -1;
		group = group << 6 | (unsigned)bits;
	}
	if ((padding == 1 && (group & 0xff) != 0) || (padding == 2 && (group & 0xffff) != 0))
		return -1;
	for (i = 0; i < 3 - padding; i++)
		out[i] = (unsigned char)(group >> (16 - 8 * i));
	return 0;
}

int
base64_decode(unsigned char *out, size_t *size, const char *text, size_t length)
{
	size_t at, padding;

	*size = 0;
	if (length % 4 != 0)
		return -1;
	for (at = 0; at < length; at += 4) {
		padding = 0;
		if (at + 4 == length && text[at + 3] == '=')
			padding = text[at + 2] == '=' ? 2 : 1;
		if (decode_group(out + *size, text + at, padding) != 0)
			return -1;
		*size += 3 - padding;
	}
	return 0;
}
