/* SPDX-License-Identifier: ISC */
/* The environment of a command. */
#ifndef CORE_COMMAND_ENVIRONMENT_H
#define CORE_COMMAND_ENVIRONMENT_H

#include <stdbool.h>

struct workspace;

/*
 * The login's variables, more (which may be NULL), and what every command gets: later ones win. A new
 * list. Only a command that is not internal carries RWS_SANDBOX_ID: by it core/scripts/files.sh knows that
 * the workspace is busy, whichever gateway has started the command.
 */
char **command_environment(const struct workspace *workspace, char *const *more, bool is_internal);

#endif
