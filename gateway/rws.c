/* SPDX-License-Identifier: ISC */
/*
 * rws, the command line of a workspace: which operation, at which gateway. Everything else it knows
 * of operations stands in the table.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "core/base/memory.h"
#include "gateway/cli.h"
#include "gateway/operation_table.h"
#include "gateway/version.h"

/*
 * The operation that the first words name, and how many words that takes; NULL when there is none.
 */
static const struct operation *
find_operation(char **words, int *count)
{
	const struct operation *operation;
	char *name;

	if (words[0] == NULL)
		return NULL;
	*count = 1;
	operation = operation_find(words[0]);
	if (operation == NULL && words[1] != NULL) {
		*count = 2;
		name = memory_text_format("%s.%s", words[0], words[1]);
		operation = operation_find(name);
		memory_free(name);
	}
	return operation == NULL || (operation->flags & OPERATION_PLAIN) != 0 ? NULL : operation;
}

/* Is it the first word of operations of two, such as "snapshot"? */
static bool
is_group(const char *word)
{
	const struct operation *operation;
	size_t length = strlen(word);

	for (operation = operation_table; operation->name != NULL; operation++)
		if (strncmp(operation->name, word, length) == 0 && operation->name[length] == '.')
			return true;
	return false;
}

/* operation is the one that was used wrongly, or NULL. */
static int
usage(const struct operation *operation, struct error *err)
{
	const char *dot;
	int status;

	status = cli_fail(NULL, err);
	dot = operation == NULL ? NULL : strchr(operation->name, '.');
	if (operation == NULL)
		(void)fputs("Try: rws help\n", stderr);
	else if (dot == NULL)
		(void)fprintf(stderr, "Try: rws help %s\n", operation->name);
	else
		(void)fprintf(stderr, "Try: rws help %.*s %s\n", (int)(dot - operation->name),
		    operation->name, dot + 1);
	return status;
}

static int
help(char **words)
{
	const struct operation *operation;
	struct error err;
	int count;

	if (words[0] == NULL) {
		cli_help(stdout);
		return 0;
	}
	if (strcmp(words[0], "admin") == 0) {
		cli_admin_help(stdout);
		return 0;
	}
	if (strcmp(words[0], "manual") == 0) {
		cli_help_manual(stdout);
		return 0;
	}
	operation = find_operation(words, &count);
	if (operation == NULL && cli_help_other(stdout, words[0]) == 0)
		return 0;
	if (operation == NULL) {
		error_set(&err, ERROR_INVALID, "there is no operation %s", words[0]);
		return usage(NULL, &err);
	}
	cli_help_operation(stdout, operation);
	return 0;
}

/* Options in front of everything else. */
static int
take_options(struct cli *cli, char ***words, struct error *err)
{
	for (;; ++*words) {
		if (**words == NULL) {
			return error_set(err, ERROR_INVALID, "which operation?");
		} else if (strcmp(**words, "--json") == 0) {
			cli->json = true;
		} else if (strcmp(**words, "-S") == 0 && (*words)[1] != NULL) {
			cli->ssh_arguments = memory_list_add(
			    cli->ssh_arguments, cli->ssh_count++, *++*words);
		} else {
			return 0;
		}
	}
}

/* What needs no login at a gateway: its exit status, or -1 when it is something else. */
static int
run_local(const struct cli *cli, char **words)
{
	struct error err;

	if (strcmp(words[0], "help") == 0 || strcmp(words[0], "--help") == 0 ||
	    strcmp(words[0], "-h") == 0)
		return help(words + 1);
	if (strcmp(words[0], "--version") == 0)
		return printf("rws %s\n", RWSD_VERSION) < 0;
	if (strcmp(words[0], "admin") == 0)
		return cli_admin(words + 1, cli->json);
	if (words[1] != NULL && strcmp(words[1], "--help") == 0 &&
	    cli_help_other(stdout, words[0]) == 0)
		return 0;
	if (strcmp(words[0], "doctor") == 0)
		return cli_doctor();
	if (strcmp(words[0], "ssh-config") == 0)
		/* Arguments for ssh would be left out of the block. */
		return cli_ssh_config(
		    words[1] == NULL || words[2] != NULL || cli->ssh_count > 0 ? "" : words[1]);
	if (strcmp(words[0], "completion") != 0)
		return -1;
	if (words[1] != NULL && cli_completion(words[1]) == 0)
		return 0;
	error_set(&err, ERROR_INVALID, "completion is there for bash, zsh and fish");
	return usage(NULL, &err);
}

/* OPERATION LOGIN@GATEWAY, or the other way round. */
static int
take_target(struct cli *cli, char ***words, struct error *err)
{
	const char *first = **words, *wrong;
	int count;

	if (first == NULL)
		return error_set(err, ERROR_INVALID, "which operation?");
	cli->operation = find_operation(*words, &count);
	if (cli->operation != NULL) {
		*words += count;
		cli->destination = **words;
	} else {
		cli->destination = first;
		cli->operation = find_operation(*words + 1, &count);
		wrong = strchr(first, '@') == NULL || (*words)[1] == NULL ? first : (*words)[1];
		if (cli->operation == NULL && is_group(wrong))
			return error_set(err, ERROR_INVALID,
			    "which %s operation? rws help %s lists them", wrong, wrong);
		if (cli->operation == NULL)
			return error_set(err, ERROR_INVALID, "there is no operation %s", wrong);
		*words += count;
	}
	if (cli->destination == NULL || *cli->destination == '-')
		return error_set(err, ERROR_INVALID, "at which gateway? LOGIN@GATEWAY is missing");
	++*words;
	return 0;
}

static bool
wants_help(const struct cli *cli, char **words)
{
	return cli->operation != NULL && words[0] != NULL && strcmp(words[0], "--help") == 0;
}

int
main(int argc, char **argv)
{
	struct cli cli = { 0 };
	char **words = argv + 1;
	struct error err;
	int status;

	(void)setlocale(LC_TIME, "");
	if (argc < 2) {
		cli_help(stderr);
		return error_kind(ERROR_INVALID)->exit_status;
	}
	cli.colours = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
	cli.ssh_arguments = memory_zeroed(1, sizeof(*cli.ssh_arguments));
	cli.parameters = json_object_new_object();
	if (take_options(&cli, &words, &err) != 0) {
		status = usage(cli.operation, &err);
		goto out;
	}
	status = run_local(&cli, words);
	if (status >= 0)
		goto out;
	if (take_target(&cli, &words, &err) != 0) {
		status = wants_help(&cli, words) ? (cli_help_operation(stdout, cli.operation), 0)
						 : usage(cli.operation, &err);
	} else if (wants_help(&cli, words)) {
		cli_help_operation(stdout, cli.operation);
		status = 0;
	} else if (cli_parse(&cli, words, &err) != 0) {
		status = usage(cli.operation, &err);
	} else {
		status = cli_run(&cli);
	}
out:
	json_object_put(cli.parameters);
	memory_list_free(cli.ssh_arguments);
	return status;
}
