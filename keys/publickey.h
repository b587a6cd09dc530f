/* SPDX-License-Identifier: ISC */
/*
 * Public keys in their wire form:
 * RFC 4253 section 6.6, RFC 5656, RFC 8709 and OpenSSH's PROTOCOL.u2f.
 */
#ifndef KEYS_PUBLICKEY_H
#define KEYS_PUBLICKEY_H

#include <stdbool.h>
#include <stddef.h>

struct error;

/* Largest blob that is looked at; an RSA key of 16384 bits takes 2.1 KB. */
#define PUBLICKEY_BLOB_MAX 8192

/* Is this the name of a key type that may log in ("ssh-ed25519")? */
bool publickey_algorithm_known(const char *name);

/*
 * Is blob one whole, well-formed key of the type name, an RSA key of 2048 to 16384 bits? Says
 * what is wrong in err. Whether a point is on its curve is left to the signature's check.
 */
int publickey_check(const char *name, const unsigned char *blob, size_t size, struct error *err);

/* "SHA256:" and the hash without padding, as ssh-keygen -l prints it; a new text. */
char *publickey_fingerprint(const unsigned char *blob, size_t size);

#endif
