/* SPDX-License-Identifier: ISC */
/* What vercel_connect.c and vercel_remake.c share of a connect under way. */
#ifndef DRIVERS_VERCEL_CONNECT_H
#define DRIVERS_VERCEL_CONNECT_H

#include <stdbool.h>

#include "drivers/connecting.h"

/* ms for a request that answers when a session runs, or has ended. */
#define VERCEL_SLOW_TIMEOUT 120000
/* ms between two looks. */
#define VERCEL_LOOK_DELAY 500

struct vercel_connect {
	struct connecting common; /* first: it is one; what it aims at are names */
	bool may_remake;          /* what is of no use any more, without telling */
	bool is_named;            /* by the option: whoever made it, it is the one */
	unsigned creates, probes;
};

/* Fails with a code and a text of ours about the name. */
void vercel_connect_fail(struct connecting *connect, enum error_code code, const char *text);

/*
 * vercel_remake.c: what connect aims at is said to have no snapshot to be resumed from. Goes on
 * with a new one in its place if that is so and it is ours to be deleted; once in a connect.
 */
void vercel_remake(struct connecting *connect);

#endif
