/* SPDX-License-Identifier: ISC */
/* Base64 as in RFC 4648 section 4: padded, on one line, and decoded strictly. */
#ifndef CORE_BASE_BASE64_H
#define CORE_BASE_BASE64_H

#include <stddef.h>

/* The characters that size bytes take, without a terminator. */
#define BASE64_SIZE(size) (((size) + 2) / 3 * 4)

/* Writes BASE64_SIZE(size) characters and a terminator. */
void base64_encode(char *out, const void *data, size_t size);

/* As base64_encode, to a new text. */
char *base64_text(const void *data, size_t size);

/*
 * Decodes length characters into out, which has room for length / 4 * 3 bytes, and says in *size
 * how many came out. Returns -1 for anything that an encoder would not have written: other
 * characters (white space among them), missing padding, or bits left over that are not zero.
 */
int base64_decode(unsigned char *out, size_t *size, const char *text, size_t length);

#endif
