/* SPDX-License-Identifier: ISC */
/*
 * rws admin: cli_admin.c has the command line and the socket, cli_admin_rows.c makes JSON of the
 * messages, of which tables are made in turn.
 */
#ifndef GATEWAY_CLI_ADMIN_H
#define GATEWAY_CLI_ADMIN_H

#include <stdbool.h>

#include "core/admin_protocol.h"
#include "core/base/peer.h"

struct json_object;
struct operation_field;

/* One subcommand. */
struct cli_admin_command {
	const char *name;
	enum admin_verb verb;
	const char *target;                   /* what its word is called, or NULL */
	const char *list;                     /* name of the list in JSON, NULL for none */
	const struct operation_field *fields; /* of a row; NULL for none */
	const char *state;                    /* of the sandbox afterwards, or NULL */
	const char *help;
};

/* Ends with one without a name. */
extern const struct cli_admin_command cli_admin_commands[];

/* What the gateway said. */
struct cli_admin_answer {
	struct json_object *rows; /* a list */
	struct admin_end end;
	bool ended; /* end is there */
};

/* Takes the messages of an answer, which is the argument. */
extern const struct peer_events cli_admin_events;

/* The rows in the order of their numbers and names: they come in any. */
void cli_admin_sort(struct json_object *rows);

#endif
