/* SPDX-License-Identifier: ISC */
/*
 * An archive of one file, as Vercel takes it: tar, compressed by gzip, in memory. Nobody has said
 * that it takes anything else than regular files (sheet, section 12), so it is never given more.
 */
#ifndef DRIVERS_VERCEL_TAR_H
#define DRIVERS_VERCEL_TAR_H

#include <stddef.h>
#include <stdint.h>

struct buffer;
struct error;
struct vercel_tar;

/* A file of so many bytes, mode 0600, at an absolute path. NULL with err when there is none to be
 * had. */
struct vercel_tar *vercel_tar_new(const char *path, size_t size, struct error *err);
void vercel_tar_free(struct vercel_tar *tar); /* accepts NULL */

/* The next of its bytes, no more than were announced. */
int vercel_tar_put(struct vercel_tar *tar, const void *data, size_t size, struct error *err);

/* All were put: the archive, which belongs to tar; NULL with err when it could not be made. */
const struct buffer *vercel_tar_finish(struct vercel_tar *tar, struct error *err);

#endif
