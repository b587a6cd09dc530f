/* SPDX-License-Identifier: ISC */
/* Small things every process does with descriptors. */
#ifndef CORE_BASE_DESCRIPTOR_H
#define CORE_BASE_DESCRIPTOR_H

#include <stddef.h>
#include <sys/types.h>

struct error;
struct stat;

/* Closes *fd unless it is -1, and makes it -1. */
void descriptor_close(int *fd);

/* Another descriptor, close-on-exec, of the same file; without any left the process ends. */
int descriptor_duplicate(int fd);

/* As fstat(2), by a call that names no path: which a process without files may make. */
int descriptor_stat(int fd, struct stat *status);

/* Makes reads and writes of it return at once (O_NONBLOCK). */
int descriptor_nonblock(int fd, struct error *err);

/* A connected pair of stream sockets, close-on-exec. */
int descriptor_pair(int pair[2], struct error *err);

/* A pipe, close-on-exec; ends[0] is read, ends[1] is written. */
int descriptor_pipe(int ends[2], struct error *err);

/* All bytes or -1; for blocking descriptors. */
int descriptor_write(int fd, const void *data, size_t size, struct error *err);

/*
 * Reads until size bytes are there or the file ends; *got says how many. For blocking descriptors.
 */
int descriptor_read(int fd, void *data, size_t size, size_t *got, struct error *err);

/*
 * The whole of a regular file of at most max bytes as a new terminated text; NULL on failure. path
 * is taken from directory, as openat(2) has it; size may be NULL.
 */
char *descriptor_read_file(
    int directory, const char *path, size_t max, size_t *size, struct error *err);

#endif
