/* SPDX-License-Identifier: ISC */
/*
 * Directories that were made a moment ago through this far end. A new file in one of them can be
 * begun without asking: for a tree of small files that is copied, asking would be every second
 * trip. Anywhere else it is asked first, since some clients look at nothing but the answer to their
 * OPEN.
 */
#ifndef CORE_FILES_FRESH_H
#define CORE_FILES_FRESH_H

#include <stdbool.h>

struct file_request;
struct files_fresh;

struct files_fresh *files_fresh_new(void);
void files_fresh_free(struct files_fresh *fresh); /* accepts NULL */

/* The directory was made. */
void files_fresh_add(struct files_fresh *fresh, const char *path);

/*
 * A request with normal paths is sent:
 * one that moves names about makes all directories known no longer.
 */
void files_fresh_watch(struct files_fresh *fresh, const struct file_request *request);

/* May this EDIT be answered without asking? */
bool files_fresh_allows(const struct files_fresh *fresh, const struct file_request *request);

#endif
