/* SPDX-License-Identifier: ISC */
/* UTF-8 as RFC 3629 defines it: no surrogates, no overlong forms, nothing over U+10FFFF. */
#ifndef CORE_BASE_UTF8_H
#define CORE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the valid sequence at the start of data, 0 when there is none. */
size_t utf8_sequence(const char *data, size_t size);

bool utf8_valid(const char *data, size_t size);

#endif
