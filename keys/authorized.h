/* SPDX-License-Identifier: ISC */
/*
 * authorized_keys: AUTHORIZED_KEYS FILE FORMAT of sshd(8), less what this gateway has no use for.
 */
#ifndef KEYS_AUTHORIZED_H
#define KEYS_AUTHORIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

/* One line: a key and what its owner may do. All memory is its own. */
struct authorized_key {
	char *algorithm;     /* "ssh-ed25519" */
	unsigned char *blob; /* checked by publickey_check */
	size_t blob_size;
	unsigned line;      /* from 1; 0 when the key stands alone */
	char *from;         /* checked by source_check; NULL: from anywhere */
	int64_t expiry;     /* seconds since 1970 from which on it is refused, 0 for never */
	char *command;      /* in place of what the client asks for, or NULL */
	char **environment; /* NAME=VALUE, NULL-ended, never NULL; each name once */
	bool no_pty;
};

struct authorized_keys {
	struct authorized_key *keys;
	size_t count;
};

/*
 * Parses a line without its newline. Returns 1 with key filled, 0 when there is no key on it (blank
 * or a comment), or -1 with what is wrong in err; an option that is not known refuses the line, as
 * it may be meant to forbid something.
 */
int authorized_parse_line(const char *line, struct authorized_key *key, struct error *err);
void authorized_key_free(struct authorized_key *key); /* accepts a zeroed key */

/*
 * Parses a file's text of size bytes into keys, which need no initialisation. A line that is
 * refused is logged as NAME:LINE and left out; the others count.
 */
void authorized_parse(
    struct authorized_keys *keys, const char *name, const char *text, size_t size);
void authorized_keys_free(struct authorized_keys *keys); /* accepts a zeroed set */

/*
 * May this key be used from address (numeric) at the time now (seconds since 1970)? -1 with the
 * reason in err when not.
 */
int authorized_admit(
    const struct authorized_key *key, const char *address, int64_t now, struct error *err);

#endif
