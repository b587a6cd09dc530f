/* SPDX-License-Identifier: ISC */
/*
 * rws admin: cli_admin.c has the command line and the socket, cli_admin_rows.c makes JSON of the
 * messages, cli_admin_workspaces.c of those about workspaces, and tables are made of that in turn.
 */
#ifndef GATEWAY_CLI_ADMIN_H
#define GATEWAY_CLI_ADMIN_H

#include <stdbool.h>

#include "core/admin_protocol.h"
#include "core/base/peer.h"

struct error;
struct json_object;
struct message;
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
	struct json_object *rows;  /* a list */
	struct json_object *index; /* the rows of workspaces of this gateway, by driver and name */
	struct admin_end end;
	bool ended; /* end is there */
};

/* Takes the messages of an answer, which is the argument. */
extern const struct peer_events cli_admin_events;

/* Of a session or worker that said nothing. */
#define CLI_ADMIN_NO_ANSWER "no answer"

/* A member for a text that is there. */
void cli_admin_put_optional(struct json_object *row, const char *name, const char *text);

/* cli_admin_workspaces.c: a workspace that has a worker and a record has one row. */
int cli_admin_take_workspace(void *argument, struct message *message, struct error *err);
int cli_admin_take_record(void *argument, struct message *message, struct error *err);

/* Programs read worker 0 for none, people a dash. */
void cli_admin_show_dashes(struct json_object *rows);

/* The rows in the order of their numbers and names: they come in any. */
void cli_admin_sort(struct json_object *rows);

#endif
