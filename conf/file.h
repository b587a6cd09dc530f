/* SPDX-License-Identifier: ISC */
/* The configuration file as it is written: blocks of names and texts, each with its line. */
#ifndef CONF_FILE_H
#define CONF_FILE_H

#include <stddef.h>

struct error;

#define CONF_FILE_SIZE_MAX (1024U * 1024U)
#define CONF_LINE_MAX (64U * 1024U)
#define CONF_LOGINS_MAX 4096U

struct conf_entry {
	char *name;
	char *text;
	unsigned line; /* 0: given by -o */
};

struct conf_block {
	char *name; /* NULL: the global part */
	unsigned line;
	struct conf_entry *entries;
	size_t count;
};

struct conf_file {
	char *path;
	struct conf_block *blocks; /* the first is the global part, which is always there */
	size_t count;
};

/* Reads the file at path; file needs no initialisation and must be freed, also after a failure. */
int conf_file_read(struct conf_file *file, const char *path, struct error *err);

/* Puts NAME=VALUE or LOGIN.NAME=VALUE in place of what the file said. */
int conf_file_override(struct conf_file *file, const char *override, struct error *err);

/* Wipes the values, which may be secrets; accepts a zeroed file. */
void conf_file_free(struct conf_file *file);

/* Fills err with "FILE:LINE: NAME: " (or "-o NAME: ") before reason; returns -1. */
int conf_file_blame(const struct conf_file *file, const struct conf_entry *entry,
    const char *reason, struct error *err);

/*
 * The value as it has to be written: in quotes when it would be read differently without.
 * A new text.
 */
char *conf_file_quote(const char *text);

#endif
