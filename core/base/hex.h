/* SPDX-License-Identifier: ISC */
/* Hexadecimal in small letters, two digits a byte. */
#ifndef CORE_BASE_HEX_H
#define CORE_BASE_HEX_H

#include <stddef.h>

/* The characters that size bytes take, with a terminator. */
#define HEX_SIZE(size) (2 * (size) + 1)

/* Writes HEX_SIZE(size) characters. */
void hex_encode(char *out, const void *data, size_t size);

/*
 * The size bytes that the first 2 * size characters of text stand for; -1 when one of them is no
 * such digit, which the terminator is not either.
 */
int hex_decode(unsigned char *out, size_t size, const char *text);

/* How many bytes the digits at the start of text stand for. */
size_t hex_length(const char *text);

#endif
