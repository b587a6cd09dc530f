/* SPDX-License-Identifier: ISC */
/* Digests. This is the door to OpenSSL of all that is not in keys/. */
#ifndef CORE_BASE_HASH_H
#define CORE_BASE_HASH_H

#include <stddef.h>

#define HASH_SHA1_SIZE 20

/* SHA-1 (FIPS 180-4), where a protocol asks for it: it proves nothing about who wrote data. */
void hash_sha1(unsigned char out[HASH_SHA1_SIZE], const void *data, size_t size);

#endif
