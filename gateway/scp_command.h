/* SPDX-License-Identifier: ISC */
/* Is an exec string the far side of an scp, and what does it ask for? */
#ifndef GATEWAY_SCP_COMMAND_H
#define GATEWAY_SCP_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

/* A path as the client gave it, in the shell's words: pattern is NULL when it has none. */
struct scp_path {
	char *text;    /* with quotes taken away */
	char *pattern; /* the same for glob_match: what was quoted is taken as it is */
};

struct scp_command {
	bool sink; /* -t: files come to us; else -f */
	bool recursive, times, directory;
	struct scp_path *paths;
	size_t count;
};

/*
 * True for exactly "scp -t PATH" and "scp -f PATH..." with the options v, r, p, d, q and "--", in
 * words that a shell would leave as they are but for quotes and patterns. Everything else is for
 * the shell.
 */
bool scp_command_parse(const char *text, struct scp_command *command);
void scp_command_free(struct scp_command *command);

#endif
