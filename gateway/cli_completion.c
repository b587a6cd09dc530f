/* SPDX-License-Identifier: ISC */
/*
 * Completion scripts, made of the table:
 * operations first, then the options of the one that was typed.
 */
#include <stdio.h>
#include <string.h>

#include "gateway/cli.h"
#include "gateway/cli_admin.h"
#include "gateway/operation_table.h"

static void
put_options(const struct operation *operation)
{
	const struct operation_field *field;
	char option[CLI_OPTION_MAX];

	for (field = operation->parameters; field->name != NULL; field++)
		(void)printf(" --%s", cli_option_name(option, field->name));
	(void)printf(" --json");
}

static bool
is_listed(const struct operation *operation)
{
	return (operation->flags & OPERATION_PLAIN) == 0;
}

/* The first words, each once: "snapshot" stands for all of snapshot.*. */
static void
put_first_words(void)
{
	const struct operation *operation;
	size_t length, before;

	before = 0;
	for (operation = operation_table; operation->name != NULL; operation++) {
		if (!is_listed(operation))
			continue;
		length = strcspn(operation->name, ".");
		if (operation == operation_table || before != length ||
		    strncmp(operation[-1].name, operation->name, length) != 0)
			(void)printf(" %.*s", (int)length, operation->name);
		before = length;
	}
	(void)printf(" admin ssh-config doctor completion help");
}

static void
put_second_words(const char *group)
{
	const struct operation *operation;
	size_t length = strlen(group);

	for (operation = operation_table; operation->name != NULL; operation++)
		if (strncmp(operation->name, group, length) == 0 && operation->name[length] == '.')
			(void)printf(" %s", operation->name + length + 1);
}

static void
put_admin_words(void)
{
	const struct cli_admin_command *command;

	for (command = cli_admin_commands; command->name != NULL; command++)
		(void)printf(" %s", command->name);
}

static void
print_bash(void)
{
	const struct operation *operation;
	char name[OPERATION_NAME_MAX];

	(void)fputs(
	    "# Made by rws completion bash.\n_rws() {\n"
	    "\tlocal word=${COMP_WORDS[COMP_CWORD]} name=${COMP_WORDS[1]}\n"
	    "\tcase $name in\n\tsnapshot | sandbox) name=\"$name ${COMP_WORDS[2]}\" ;;\n\tesac\n"
	    "\tif [ \"$COMP_CWORD\" = 1 ]; then\n\t\tCOMPREPLY=($(compgen -W '",
	    stdout);
	put_first_words();
	(void)fputs("' -- \"$word\"))\n\t\treturn\n\tfi\n\tcase $name:$COMP_CWORD in\n", stdout);
	(void)fputs("\t'snapshot '*:2) COMPREPLY=($(compgen -W '", stdout);
	put_second_words("snapshot");
	(void)fputs("' -- \"$word\")) ;;\n\t'sandbox '*:2) COMPREPLY=($(compgen -W '", stdout);
	put_second_words("sandbox");
	(void)fputs("' -- \"$word\")) ;;\n\tadmin:*) COMPREPLY=($(compgen -W '", stdout);
	put_admin_words();
	(void)fputs(" --json --watch -s' -- \"$word\")) ;;\n", stdout);
	for (operation = operation_table; operation->name != NULL; operation++) {
		if (!is_listed(operation))
			continue;
		(void)printf(
		    "\t'%s':*) COMPREPLY=($(compgen -W '", operation_name(name, operation, ' '));
		put_options(operation);
		(void)fputs("' -- \"$word\")) ;;\n", stdout);
	}
	(void)fputs("\tesac\n}\ncomplete -o default -F _rws rws\n", stdout);
}

static void
print_zsh(void)
{
	(void)fputs(
	    "#compdef rws\n# Made by rws completion zsh.\nautoload -U +X bashcompinit && bashcompinit\n",
	    stdout);
	print_bash();
}

/* Text within single quotes of fish. */
static void
put_quoted(const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'' || *text == '\\')
			(void)fputc('\\', stdout);
		(void)fputc(*text, stdout);
	}
}

static void
print_fish_operation(const struct operation *operation)
{
	const struct operation_field *field;
	char option[CLI_OPTION_MAX];
	const char *second;

	second = strchr(operation->name, '.');
	if (second == NULL)
		(void)printf(
		    "complete -c rws -n __fish_use_subcommand -a %s -d '", operation->name);
	else
		(void)printf("complete -c rws -n '__fish_seen_subcommand_from %.*s' -a %s -d '",
		    (int)(second - operation->name), operation->name, second + 1);
	put_quoted(operation->title);
	(void)fputs("'\n", stdout);
	for (field = operation->parameters; field->name != NULL; field++) {
		(void)printf("complete -c rws -n '__fish_seen_subcommand_from %s' -l %s -d '",
		    second == NULL ? operation->name : second + 1,
		    cli_option_name(option, field->name));
		put_quoted(field->help);
		(void)fputs("'\n", stdout);
	}
}

static void
print_fish(void)
{
	const struct operation *operation;

	(void)fputs(
	    "# Made by rws completion fish.\n"
	    "complete -c rws -n __fish_use_subcommand -f -a 'snapshot sandbox admin ssh-config "
	    "doctor completion help'\n"
	    "complete -c rws -n '__fish_seen_subcommand_from admin' -f -a '",
	    stdout);
	put_admin_words();
	(void)fputs("'\n", stdout);
	for (operation = operation_table; operation->name != NULL; operation++)
		if (is_listed(operation))
			print_fish_operation(operation);
}

int
cli_completion(const char *shell)
{
	if (strcmp(shell, "bash") == 0)
		print_bash();
	else if (strcmp(shell, "zsh") == 0)
		print_zsh();
	else if (strcmp(shell, "fish") == 0)
		print_fish();
	else
		return -1;
	return 0;
}
