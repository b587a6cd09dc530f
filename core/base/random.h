/* SPDX-License-Identifier: ISC */
/* Random numbers of the kernel; without any the process ends. */
#ifndef CORE_BASE_RANDOM_H
#define CORE_BASE_RANDOM_H

#include <stddef.h>

/* At most 256 bytes, which getrandom(2) gives at once or not at all. */
void random_bytes(void *out, size_t size);

/* A random number of size bytes, at most 64, as HEX_SIZE(size) characters of hexadecimal. */
void random_hex(char *out, size_t size);

#endif
