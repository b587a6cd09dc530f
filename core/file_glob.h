/* SPDX-License-Identifier: ISC */
/* Patterns for paths, as listings and excludes have them. */
#ifndef CORE_FILE_GLOB_H
#define CORE_FILE_GLOB_H

#include <stdbool.h>

/*
 * Does the relative path match? "*" and "?" stand for what is within one part of the path, "[a-z]"
 * for one byte, "{a,b}" for either, and a part "**" for any number of parts, none included. A
 * leading "." is like any other byte. A backslash takes the next byte as it is.
 */
bool glob_match(const char *glob, const char *path);

/* A new text: the last part of the pattern, which the last part of every match matches. */
char *glob_last(const char *glob);

#endif
