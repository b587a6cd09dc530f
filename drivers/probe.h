/* SPDX-License-Identifier: ISC */
/* The first command in a sandbox proves that commands can run, and tells where it is and as whom. */
#ifndef DRIVERS_PROBE_H
#define DRIVERS_PROBE_H

struct driver_result;
struct error;

/*
 * What it prints: a directory and a user, a line each. Replaces the texts at directory and user;
 * -1, with both as they were, when it says something else.
 */
int probe_read(
    const struct driver_result *result, char **directory, char **user, struct error *err);

#endif
