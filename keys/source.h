/* SPDX-License-Identifier: ISC */
/*
 * from="...": which addresses a key may be used from. A list of patterns parted by commas: an
 * address, ADDRESS/BITS, or an address with the wildcards * and ?; with "!" in front it forbids
 * what it matches. Names of hosts match nothing, as this gateway looks no names up.
 */
#ifndef KEYS_SOURCE_H
#define KEYS_SOURCE_H

#include <stdbool.h>

struct error;

/* Is the list well formed? */
int source_check(const char *patterns, struct error *err);

/*
 * Does a pattern match the numeric address, and none that forbids? IPv4 in IPv6 (::ffff:) is IPv4.
 */
bool source_match(const char *patterns, const char *address);

#endif
