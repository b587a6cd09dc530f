/* SPDX-License-Identifier: ISC */
/* The scripts that run in a sandbox: files of core/scripts, embedded by core/embed.sh. */
#ifndef CORE_SCRIPTS_H
#define CORE_SCRIPTS_H

/*
 * The text of core/scripts/NAME.sh; new, the caller frees it. A name that is no file there is a
 * mistake in the program and ends the process.
 */
char *script_text(const char *name);

/*
 * An argv that runs the script: sh -c TEXT NAME ARGUMENTS..., where arguments is NULL-ended. They
 * reach the script as $1 and so on: no shell text is ever made of them. New; free it with
 * memory_list_free.
 */
char **script_argv(const char *name, char *const *arguments);

#endif
