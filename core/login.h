/* SPDX-License-Identifier: ISC */
/*
 * The name before the "@": NAME, NAME+INSTANCE or NAME=SANDBOX-ID. A NAME or INSTANCE is
 * [A-Za-z0-9._-]{1,64} and a SANDBOX-ID up to 128 printable ASCII characters without space, slash,
 * backslash or quote; "." and ".." are none of these, as all three end up in paths.
 */
#ifndef CORE_LOGIN_H
#define CORE_LOGIN_H

#include <stdbool.h>

#define LOGIN_NAME_LENGTH 64 /* LOGIN_NAME_MAX is limits.h's */
#define LOGIN_ID_LENGTH 128

struct login {
	char name[LOGIN_NAME_LENGTH + 1];
	char instance[LOGIN_NAME_LENGTH + 1]; /* empty for none */
	char id[LOGIN_ID_LENGTH + 1];         /* empty for none */
};

/* Is text a NAME (or an INSTANCE)? */
bool login_name_valid(const char *text);

/*
 * May it be the id of a sandbox? Of characters that are safe in a URL's path, on a terminal and in a
 * database, whoever names it: a client or a provider.
 */
bool login_id_valid(const char *text);

/* 0, or -1 when text is no login. */
int login_parse(const char *text, struct login *login);

#endif
