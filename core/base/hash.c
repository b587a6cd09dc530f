/* SPDX-License-Identifier: ISC */
/* Digests by way of OpenSSL's EVP, which a machine in FIPS mode may refuse to compute. */
#include <openssl/evp.h>

#include "core/base/hash.h"
#include "core/base/log.h"

void
hash_sha1(unsigned char out[HASH_SHA1_SIZE], const void *data, size_t size)
{
	if (EVP_Digest(data, size, out, NULL, EVP_sha1(), NULL) != 1)
		log_fatal("SHA-1 cannot be computed");
}
