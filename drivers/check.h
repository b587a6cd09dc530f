/* SPDX-License-Identifier: ISC */
/*
 * Whether a driver's options make sense, without its code: what the checks of the kinds share. The
 * listener asks them for each login before it takes a configuration, the worker before it opens a sandbox.
 */
#ifndef DRIVERS_CHECK_H
#define DRIVERS_CHECK_H

#include <stdbool.h>
#include <stddef.h>

struct driver_kind;
struct error;
struct settings;

/* The check of the kind, with the option at fault in front of its reason. 0 or -1 (INVALID). */
int check_options(
    const struct driver_kind *kind, const struct settings *settings, struct error *err);

/* Is it 1 to max characters, all of them letters, digits, '-' and '_'? */
bool check_is_name(const char *text, size_t max);

/* Is it 1 to max characters, all of them visible? Such a text can be part of a header. */
bool check_is_token(const char *text, size_t max);

/*
 * The option api_key, of which a header is made: it is there, and no header more. variable is
 * that of the environment. These three are as driver_kind's check.
 */
int check_key(
    const struct settings *settings, const char *variable, const char **option, struct error *err);

/* An option that is not set, or the URL of a server. */
int check_url(
    const struct settings *settings, const char *name, const char **option, struct error *err);

/* The option ca_file: not set, or a file that can be read. */
int check_ca_file(const struct settings *settings, const char **option, struct error *err);

#endif
