/* SPDX-License-Identifier: ISC */
/*
 * The local driver's files, in the state directory of the workspace:
 *
 *	sandbox        the id of the sandbox there is, and a newline
 *	local-ID/      that sandbox: home/, tmp/ and var-tmp/ of it
 *	local-OTHER/   what is left of one that is being, or should have been, removed
 *
 * The file is what counts: it is replaced in one step before the first directory is made and
 * removed before the first one goes, so whatever moment we are killed at, the next connect finds a
 * sandbox it can complete or a tree it can remove.
 */
#ifndef DRIVERS_LOCAL_STORE_H
#define DRIVERS_LOCAL_STORE_H

#include <stdbool.h>

struct error;

/* "local-" and 12 digits. */
#define LOCAL_ID_SIZE 19

/*
 * Finds the sandbox of this state directory, or makes one. wanted is the id it must have, or NULL
 * for any. Returns a descriptor of its directory; id and *created say which it is.
 */
int local_store_open(int state, const char *wanted, bool may_create, char id[LOCAL_ID_SIZE],
    bool *created, struct error *err);

/* Forgets the sandbox; its tree is then left-over. */
int local_store_forget(int state, struct error *err);

/* The name of one tree that belongs to no sandbox: true when there is one. */
bool local_store_leftover(int state, const char *id, char name[LOCAL_ID_SIZE]);

#endif
