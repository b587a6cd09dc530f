/* SPDX-License-Identifier: ISC */
/* Private keys as OpenSSH writes them (its file PROTOCOL.key), without a passphrase. */
#ifndef KEYS_PRIVATEKEY_H
#define KEYS_PRIVATEKEY_H

struct error;

enum privatekey_type {
	PRIVATEKEY_ED25519,
	PRIVATEKEY_RSA, /* of 3072 bits */
};

/* A new key as the text of a file, to be freed with memory_text_wipe; NULL on failure. */
char *privatekey_generate(enum privatekey_type type, const char *comment, struct error *err);

#endif
