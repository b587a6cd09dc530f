/* SPDX-License-Identifier: ISC */
/*
 * The gateway's own keys, ssh_host_ed25519_key and ssh_host_rsa_key of one directory, in OpenSSH's
 * format. Sessions get them as open descriptors and never see the directory.
 */
#ifndef KEYS_HOSTKEY_H
#define KEYS_HOSTKEY_H

#include <stddef.h>

struct error;

/* How many there are: ed25519 first, then rsa. */
#define HOSTKEY_COUNT 2

/*
 * For a process that is one of many: called before libssh or OpenSSL is used in any other way.
 * OpenSSL then leaves out its table of error texts, which takes 50 KiB and which no session ever
 * reads.
 */
void hostkey_save_memory(void);

/*
 * Makes the directory at path (0700) and the keys (0600) where they are missing, and logs each
 * key's fingerprint. A key appears whole or not at all, and of two gateways that start at once one
 * makes it and both use it. Fails when a key is not a regular file of ours or root's, is readable
 * or writable by others, or cannot be used.
 */
int hostkey_ensure(const char *path, struct error *err);

/*
 * Opens the keys for reading, with the same checks, as close-on-exec descriptors that the caller
 * closes. All are -1 on failure.
 */
int hostkey_open(const char *path, int keys[HOSTKEY_COUNT], struct error *err);

/*
 * The text of a key from its descriptor, for ssh_pki_import_privkey_base64; free it with
 * memory_text_wipe. Reads from offset 0 without moving the descriptor, which many sessions share.
 */
char *hostkey_read(int key, struct error *err);

#endif
