/* SPDX-License-Identifier: ISC */
/*
 * What the files of the rws command line share. It speaks to the rws subsystem over the user's own
 * ssh, one request at a time, and blocks while it waits: it is a program for one person.
 */
#ifndef GATEWAY_CLI_H
#define GATEWAY_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/base/buffer.h"
#include "core/base/error.h"

struct json_object;
struct operation;
struct operation_field;

/* What was asked for on the command line. */
struct cli {
	const struct operation *operation;
	const char *destination;
	char **ssh_arguments; /* NULL-ended */
	size_t ssh_count;
	bool json;
	bool colours;
	struct json_object *parameters;
	/* words after the destination that are the command of exec; NULL-ended, not owned */
	char **command;
	const char *file; /* of read, write, export and import: "-" or NULL for stdin and stdout */
};

/* LOGIN@HOST, LOGIN@HOST:PORT or LOGIN@[HOST]:PORT, in its parts; the last two are new texts. */
struct cli_destination {
	int login; /* length in front of the @; 0 when there is none */
	char *host;
	char *port; /* NULL when it names none */
};

/*
 * cli_connection.c. A URI, and what else has no login in front of an @, such as the name of a block of
 * ssh_config(5), is all host.
 */
void cli_destination_parse(struct cli_destination *destination, const char *text);
void cli_destination_free(struct cli_destination *destination);

/* ssh and what it carries. */
struct cli_connection {
	pid_t ssh;
	int input, output; /* of ssh */
	struct buffer received;
	int64_t last_id;
};

/* Starts $RWS_SSH or ssh with ARGUMENTS -s DESTINATION rws. */
int cli_connect(struct cli_connection *connection, const struct cli *cli, struct error *err);

/* Sends a request; takes over params (may be NULL). Returns its id. */
int64_t cli_send(struct cli_connection *connection, const char *method, struct json_object *params);
void cli_send_cancel(struct cli_connection *connection, int64_t id);

/*
 * The next message, or NULL when it would have to wait; end says that none comes any more. Reads
 * once from ssh, so call it when poll says so.
 */
struct json_object *cli_receive(struct cli_connection *connection, bool *end, struct error *err);

/* A message that was received already, or NULL. */
struct json_object *cli_next(struct cli_connection *connection, struct error *err);

/* Ends ssh; returns its exit status. */
int cli_disconnect(struct cli_connection *connection);

/* cli_arguments.c: from words to parameters. -1 with what is wrong in err. */
int cli_parse(struct cli *cli, char **words, struct error *err);

/* cli_run.c: runs the operation; returns the exit status. */
int cli_run(const struct cli *cli);

/* Says an error on stderr; returns its exit status. */
int cli_fail(const struct cli *cli, const struct error *err);

/* cli_show.c: a result for a person. */
void cli_show(const struct cli *cli, struct json_object *result);

/* Objects as a table with a column for each field, and one field of an object as a line. */
void cli_show_table(
    const struct cli *cli, const struct operation_field *fields, struct json_object *list);
void cli_show_field(
    const struct cli *cli, const struct operation_field *field, struct json_object *object);

/*
 * A line "12.5 MiB of 40.0 MiB 31%" that is written over; total 0: unknown.
 * Nothing when stderr is no terminal.
 */
void cli_show_progress(uint64_t done, uint64_t total, bool last);

/* Text with what could steer a terminal made visible. */
void cli_put_text(FILE *file, const char *text, size_t size);

/* cli_help.c */
void cli_help(FILE *file);
void cli_help_operation(FILE *file, const struct operation *operation);
/*
 * The same of ssh-config and what else needs no gateway, or of a family of operations; -1 when it is
 * neither.
 */
int cli_help_other(FILE *file, const char *name);
/* The reference of rws(1) in mdoc. */
void cli_help_manual(FILE *file);
/* "max-output-bytes" for max_output_bytes. */
#define CLI_OPTION_MAX 64
const char *cli_option_name(char out[CLI_OPTION_MAX], const char *name);

/* cli_completion.c: prints the completion script of a shell; -1 when it is not known. */
int cli_completion(const char *shell);

/* cli_admin.c: rws admin with the words behind it; returns the exit status. json: as with --json. */
int cli_admin(char **words, bool json);
void cli_admin_help(FILE *file);

/* cli_local.c: what needs no connection. */
int cli_ssh_config(const char *destination);
int cli_doctor(void);

#endif
