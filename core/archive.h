/* SPDX-License-Identifier: ISC */
/*
 * A tar stream from outside is read entry by entry, checked, and written anew, so that what reaches
 * the sandbox was made by us: nothing of it depends on how some other tar reads odd headers.
 *
 * Refused: absolute names and "..", names below .rws, links whose target could lie outside the
 * root, entries below a symlink, devices, pipes and sockets, and more bytes than the limit.
 */
#ifndef CORE_ARCHIVE_H
#define CORE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct archive_copy;
struct buffer;
struct error;
struct loop;

struct archive_events {
	/* The copy as it comes; returns how much was taken. The rest comes after archive_resume. */
	size_t (*output)(void *argument, const unsigned char *data, size_t size);
	void (*hungry)(void *argument); /* there is room for input again */
	/*
	 * Once and last, after all of output was taken, or with the fault (INVALID, TOO_LARGE).
	 * entries is as in core/scripts/snapshot.sh, parents that the stream did not name included.
	 */
	void (*done)(void *argument, const struct buffer *entries, uint64_t files, uint64_t bytes,
	    const struct error *err);
};

/* max_bytes: of all files together. NULL with err when there is no thread to be had. */
struct archive_copy *archive_copy_new(struct loop *loop, uint64_t max_bytes,
    const struct archive_events *events, void *argument, struct error *err);

/* Returns how many bytes were taken. */
size_t archive_copy_input(struct archive_copy *copy, const void *data, size_t size);
void archive_copy_end(struct archive_copy *copy);
void archive_copy_resume(struct archive_copy *copy);

/* Ends it at once, without a word; accepts NULL. Not from within its callbacks. */
void archive_copy_free(struct archive_copy *copy);

/* archive_check.c: the names of a stream, one after another. */

struct archive_names;

/* A set without names; not for two archives. */
struct archive_names *archive_names_new(void);
void archive_names_free(struct archive_names *names); /* accepts NULL */

/*
 * Checks a name and gives it as "./a/b"; a new text. "." itself gives "./".
 * NULL when it is refused.
 */
char *archive_name(const char *name, struct error *err);

/*
 * Adds an entry: type is find's ('f', 'd', 'l'), target a symlink's, or NULL. link is the name of a
 * hard link's other end, or NULL. -1 when it is refused.
 */
int archive_names_add(struct archive_names *names, const char *name, char type, const char *target,
    const char *link, struct error *err);

/* When all are there: is one below a symlink? Lists the entries. -1 when it is refused. */
int archive_names_finish(struct archive_names *names, struct buffer *entries, struct error *err);

#endif
