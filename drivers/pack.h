/* SPDX-License-Identifier: ISC */
/* An archive of one file, as Vercel takes it: tar, compressed by gzip, in memory. */
#ifndef DRIVERS_PACK_H
#define DRIVERS_PACK_H

#include <stddef.h>
#include <stdint.h>

struct buffer;
struct error;
struct pack;

/* A file of so many bytes, mode 0600, at an absolute path. NULL with err when there is none to be
 * had. */
struct pack *pack_new(const char *path, size_t size, struct error *err);
void pack_free(struct pack *pack); /* accepts NULL */

/* The next of its bytes, no more than were announced. */
int pack_put(struct pack *pack, const void *data, size_t size, struct error *err);

/* All were put: the archive, which belongs to pack; NULL with err when it could not be made. */
const struct buffer *pack_finish(struct pack *pack, struct error *err);

#endif
