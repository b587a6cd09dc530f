/* SPDX-License-Identifier: ISC */
/* Paths as texts: what can be said of one without looking at any file. */
#ifndef CORE_FILE_PATH_H
#define CORE_FILE_PATH_H

#include <stdbool.h>
#include <stddef.h>

struct error;

/*
 * The absolute form of path, taken from root when it is relative: without empty parts, "." and
 * "..", which are taken away as text, and above "/" there is nothing. A new text, or NULL with
 * INVALID: an empty path, or one that is too long.
 */
char *path_normalize(const char *root, const char *path, struct error *err);

/* Is path the directory, or below it? Both absolute and normal. */
bool path_is_within(const char *directory, const char *path);

/* Where the last part of a normal absolute path starts. */
const char *path_last(const char *path);

/* A new text: directory and name with one slash between them. */
char *path_join(const char *directory, const char *name);

/* A new text: the path without its last part; of "/" it is "/". */
char *path_parent(const char *path);

#endif
