/* SPDX-License-Identifier: ISC */
/* An authorized_keys file, read again whenever it has changed. */
#ifndef KEYS_KEYFILE_H
#define KEYS_KEYFILE_H

struct authorized_keys;
struct keyfile;

#define KEYFILE_SIZE_MAX (1024U * 1024U)

/* Remembers the path; the file is not looked at before its keys are asked for. */
struct keyfile *keyfile_new(const char *path);
void keyfile_free(struct keyfile *file); /* accepts NULL */
const char *keyfile_path(const struct keyfile *file);

/*
 * The keys in the file now, which stay valid until the next call. A file that cannot be read, is
 * not a regular file, may be written by group or others, or is over KEYFILE_SIZE_MAX has no keys;
 * that is logged once for each change.
 */
const struct authorized_keys *keyfile_keys(struct keyfile *file);

#endif
