/* SPDX-License-Identifier: ISC */
/* What the files of conf/ share and nobody else sees. */
#ifndef CONF_PRIVATE_H
#define CONF_PRIVATE_H

#include "conf/file.h"

struct conf_driver;
struct option;
struct settings;

/* A driver's options as the global part gives them. */
struct conf_defaults {
	const struct conf_driver *driver;
	struct settings *settings;
};

struct conf_login {
	const struct conf_block *block;
	const struct conf_driver *driver;
	struct settings *settings;
};

struct conf {
	struct conf_file file;
	char *directory; /* of the file, absolute: relative paths start here */
	struct settings *global;
	struct conf_defaults *defaults; /* one a driver */
	size_t defaults_count;
	struct conf_login *logins; /* one a block, in order */
	size_t logins_count;
};

/*
 * Does text make sense as a value of the option, beyond its type? Looks at the options whose values
 * have a form of their own (listen, env).
 */
int conf_value_check(const struct option *option, const char *text, struct error *err);

/*
 * The absolute path when the text of a secret says "file:PATH", and NULL when it is the secret. The
 * caller frees it.
 */
char *conf_secret_path(const struct conf *conf, const char *text);

/* Of the names added, the one that is most like what was written. */
struct conf_nearest {
	const char *written;
	const char *name; /* NULL for none that is close */
	size_t distance;
};
void conf_nearest_init(struct conf_nearest *nearest, const char *written);
void conf_nearest_add(struct conf_nearest *nearest, const char *name);

/* The entry-th line of a block that gives the option, or its last; NULL for none. */
const struct conf_entry *conf_block_find(
    const struct conf_block *block, const char *option, size_t entry);

/* The same of a login's block, or else of the global part. */
const struct conf_entry *conf_entry_find(
    const struct conf *conf, size_t login, const char *option, size_t entry);

#endif
