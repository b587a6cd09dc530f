/* SPDX-License-Identifier: ISC */
/*
 * The configuration: an INI file, its options and what is in effect for the gateway and each login.
 * rwsd.conf(5) is its manual.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stddef.h>
#include <stdio.h>

#include "core/base/option.h"

struct conf;
struct error;
struct settings;

/*
 * Every option that is not a driver's own, ending with a row without a name. A process that gets a
 * login's settings in a message makes them with settings_new from this table and its driver's.
 */
extern const struct option conf_options[];

/*
 * A driver as far as the configuration knows it: this page needs no driver's code, so the processes
 * that only read the configuration link none.
 */
struct conf_driver {
	const char *name;             /* in the file: driver = NAME */
	const struct option *options; /* its own, ending with a row without a name */
	/* NULL, or as struct driver_kind has it in core/driver.h. */
	int (*check)(const struct settings *settings, const char **option, struct error *err);
};

/*
 * Reads the file and applies the overrides of -o: a NULL-ended list (or NULL) of NAME=VALUE for the
 * global part and LOGIN.NAME=VALUE for a block that the file has. An override takes the place of
 * what the file says; given again for a list it adds to it.
 *
 * known are the drivers there are, ending with one without a name; kept. A block may use
 * conf_options and the options of its own driver; a driver's option in the global part is a default
 * for the blocks of all drivers that have it.
 *
 * The caller frees the result. NULL on failure, with "FILE:LINE: NAME: reason" in err.
 */
struct conf *conf_load(
    const char *path, char *const *overrides, const struct conf_driver *known, struct error *err);
void conf_free(struct conf *conf); /* accepts NULL; wipes secrets */

/*
 * Is there all that it takes to start? Every login needs a driver that takes its options, and a key,
 * and the files that the configuration names need safe permissions. Looks only, makes nothing.
 * Returns 0, or -1 with the first thing that is wrong, again with file and line.
 */
int conf_check(const struct conf *conf, struct error *err);

/*
 * Prints what is in effect in the syntax of the file: what was set (in the file, by -o, by the
 * environment, by the global part for a block) as a line, what holds by default as a comment.
 * Loads again to the same, but for secrets, which read "********".
 */
void conf_print(const struct conf *conf, FILE *file);

/* The values; all belong to conf. Those of the global part have the rows of conf_options only. */
const struct settings *conf_global(const struct conf *conf);

/* The blocks in the order of the file: index is below the count. */
size_t conf_login_count(const struct conf *conf);
const char *conf_login_name(const struct conf *conf, size_t index);

/*
 * In effect for the block: its values over those of the global part, over environment variables,
 * over defaults. Its rows are conf_options and the driver's. settings_has says whether a value was
 * given at any of these places.
 */
const struct settings *conf_login(const struct conf *conf, size_t index);

/* The index of the block with this name, or -1. */
int conf_login_find(const struct conf *conf, const char *name);

/*
 * Where a value comes from: "FILE:LINE", "-o", the name of an environment variable, or FILE alone
 * for a default. For entry number entry of a list, counted from 0. The text is new.
 */
char *conf_login_origin(const struct conf *conf, size_t index, const char *option, size_t entry);

/* The same for the global part; for the first entry of a list. */
char *conf_global_origin(const struct conf *conf, const char *option);

#endif
