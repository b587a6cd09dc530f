/* SPDX-License-Identifier: ISC */
/*
 * What an option is: a row of a const table with its type, bounds, default and help. The tables
 * stand in conf/ and, for a driver's own options, in the driver; parsing, checks, "-x" and the test
 * that compares the manual page all walk them. Settings are the values for the rows of one table
 * list.
 */
#ifndef CORE_BASE_OPTION_H
#define CORE_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct message;

enum option_type {
	OPTION_TEXT,     /* any text on one line */
	OPTION_SECRET,   /* as text; never printed, wiped when freed */
	OPTION_PATH,     /* absolute, or relative to the configuration file's directory */
	OPTION_BOOLEAN,  /* on, off (also yes, no, true, false) */
	OPTION_NUMBER,   /* min..max */
	OPTION_DURATION, /* milliseconds, min..max */
	OPTION_SIZE,     /* bytes, min..max */
	OPTION_CHOICE,   /* one word of choices */
	OPTION_LIST,     /* given once for each entry, or several words on a line */
	OPTION_PAIRS,    /* NAME=VALUE, given once for each entry */
	OPTION_LINES,    /* one text an entry, spaces and all; given once for each entry */
	OPTION_PATHS,    /* one path an entry; given once for each entry */
};

enum option_scope {
	OPTION_GLOBAL = 1, /* in the part before the first block */
	OPTION_LOGIN = 2,  /* in a [login] block */
	OPTION_BOTH = 3,   /* in a block; in the global part it is the default for all blocks */
};

struct option {
	const char *name; /* snake_case, as in the file */
	enum option_type type;
	enum option_scope scope;
	int64_t min, max;     /* for numbers, durations (ms) and sizes (bytes) */
	const char *standard; /* the default as it would be written, NULL for none */
	const char *choices;  /* words parted by spaces, for OPTION_CHOICE */
	/* The variable of rwsd's environment that stands in for a missing value, or NULL. */
	const char *environment;
	const char *help; /* one sentence */
};

/* Does it take any number of entries, rather than one value? */
bool option_is_list(const struct option *option);

struct settings;

/*
 * Empty settings for the rows of several tables. tables is a NULL-ended list of tables, each
 * ending with a row without a name; all are kept, not copied.
 */
struct settings *settings_new(const struct option *const *tables);
void settings_free(struct settings *settings); /* accepts NULL; wipes secrets */

/* The row with this name, or NULL. */
const struct option *settings_option(const struct settings *settings, const char *name);

/* Calls visit for each row in table order until it returns non-zero, and returns that. */
int settings_each(const struct settings *settings,
    int (*visit)(void *argument, const struct option *option), void *argument);

/*
 * Sets one option from its text: replaces a single value, adds to a list (the first entry takes the
 * place of the default; an empty text leaves the list without any). Says what is wrong in err
 * (without the option's name for a caller that has a line to point at).
 */
int settings_set(struct settings *settings, const char *name, const char *text, struct error *err);

/*
 * Takes over from base what is set there and not here. Only rows of a table that both were made
 * with count: two drivers' options of one name are two options.
 */
void settings_inherit(struct settings *settings, const struct settings *base);

/* Was a value set (true), or does the default hold (false)? */
bool settings_has(const struct settings *settings, const char *name);

/*
 * The values. Asking for a name that is in no table, or by the wrong type, ends the process: it
 * is a mistake in the program. Texts and lists belong to the settings; a text without value and
 * default is NULL, a list without is an empty NULL-ended list.
 */
const char *settings_text(const struct settings *settings, const char *name);
bool settings_boolean(const struct settings *settings, const char *name);
int64_t settings_number(const struct settings *settings, const char *name);
char *const *settings_list(const struct settings *settings, const char *name);

/* All that was set, to another process with the same tables. */
void settings_put(struct message *message, const struct settings *settings);
int settings_get(struct message *message, struct settings *settings, struct error *err);

/*
 * The value as it would be written in the file, entry by entry (index from 0), or NULL after the
 * last. Secrets read "********". The text is new; the caller frees it.
 */
char *settings_print(const struct settings *settings, const struct option *option, size_t index);

#endif
