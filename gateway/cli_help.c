/* SPDX-License-Identifier: ISC */
/* Help texts, made of the table. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "gateway/cli.h"
#include "gateway/operation_table.h"

#define WIDTH 78

const char *
cli_option_name(char out[CLI_OPTION_MAX], const char *name)
{
	size_t i;

	for (i = 0; i < CLI_OPTION_MAX - 1 && name[i] != '\0'; i++)
		out[i] = name[i] == '_' ? '-' : name[i];
	out[i] = '\0';
	return out;
}

static void
put_title(FILE *file, const struct operation *operation)
{
	char name[OPERATION_NAME_MAX];

	(void)fprintf(file, "  %-18s %s\n", operation_name(name, operation, ' '), operation->title);
}

void
cli_help(FILE *file)
{
	const struct operation *operation;

	(void)fputs(
	    "usage: rws OPERATION LOGIN@GATEWAY[:PORT] [OPTION...] [WORD...] [-- SSH-ARGUMENT...]\n"
	    "       rws LOGIN@GATEWAY[:PORT] OPERATION ...\n"
	    "       rws ssh-config LOGIN@GATEWAY[:PORT] | rws doctor | rws completion bash|zsh|fish\n"
	    "       rws admin [OPTION...] COMMAND\n"
	    "       rws help [OPERATION]\n\n",
	    file);
	for (operation = operation_table; operation->name != NULL; operation++)
		if ((operation->flags & OPERATION_PLAIN) == 0)
			put_title(file, operation);
	(void)fputs("\n  --json             Print the result as JSON\n"
		    "  -S ARGUMENT        Pass one argument on to ssh; may be given again\n",
	    file);
}

/* Words of text in lines of at most WIDTH, each after so many spaces. */
static void
put_wrapped(FILE *file, const char *text, int indent)
{
	int column, length;

	column = 0;
	while (*text != '\0') {
		length = (int)strcspn(text, " ");
		if (column == 0 || column + 1 + length > WIDTH) {
			(void)fprintf(file, "%s%*s", column == 0 ? "" : "\n", indent, "");
			column = indent;
		} else {
			(void)fputc(' ', file);
			column++;
		}
		(void)fwrite(text, 1, (size_t)length, file);
		column += length;
		text += length;
		text += strspn(text, " ");
	}
	(void)fputc('\n', file);
}

static const char *
value_name(enum operation_type type)
{
	switch (type) {
	case OPERATION_BOOLEAN:
		return "";
	case OPERATION_NUMBER:
		return " NUMBER";
	case OPERATION_DURATION:
		return " TIME";
	case OPERATION_SIZE:
		return " SIZE";
	case OPERATION_PAIRS:
		return " NAME=VALUE";
	case OPERATION_PATH:
		return " PATH";
	default:
		return " TEXT";
	}
}

/* Is the parameter one of the plain words? */
static bool
is_word(const struct operation *operation, const char *name)
{
	const char *at;
	size_t length;

	for (at = operation->words; *at != '\0'; at += length + (at[length] == ' ')) {
		length = strcspn(at, " ");
		if (strlen(name) == length && strncmp(at, name, length) == 0)
			return true;
	}
	return false;
}

void
cli_help_operation(FILE *file, const struct operation *operation)
{
	const struct operation_field *field;
	char name[OPERATION_NAME_MAX], option[CLI_OPTION_MAX], words[OPERATION_NAME_MAX];
	size_t i;

	for (i = 0; i < sizeof(words) - 1 && operation->words[i] != '\0'; i++)
		words[i] = (char)toupper((unsigned char)operation->words[i]);
	words[i] = '\0';
	(void)fprintf(file, "usage: rws %s LOGIN@GATEWAY [OPTION...]%s%s%s\n\n",
	    operation_name(name, operation, ' '), *words == '\0' ? "" : " ", words,
	    strcmp(operation->name, "exec") == 0 ? " [ARGUMENT...]" : "");
	put_wrapped(file, operation->help, 0);
	for (field = operation->parameters; field->name != NULL; field++) {
		(void)fprintf(file, "\n  %s%s%s\n", is_word(operation, field->name) ? "" : "--",
		    cli_option_name(option, field->name), value_name(field->type));
		put_wrapped(file, field->help, 6);
		if (field->choices != NULL)
			(void)fprintf(file, "      One of: %s\n", field->choices);
		if (field->standard != NULL)
			(void)fprintf(file, "      Default: %s\n", field->standard);
	}
}

int
cli_help_other(FILE *file, const char *name)
{
	static const struct {
		const char *name, *usage, *text;
	} others[] = {
		{ "ssh-config", " LOGIN@GATEWAY[:PORT]",
		    "Prints a block for ssh_config(5) with which connections are kept alive and "
		    "shared. LOGIN.GATEWAY then stands for the login, the gateway and the port." },
		{ "doctor", "", "Checks what is installed on this machine." },
		{ "completion", " bash|zsh|fish", "Prints a completion script for a shell." },
		{ "help", " [OPERATION]", "Says how an operation is used." },
	};
	const struct operation *operation;
	size_t i, length;
	int result;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(others[i].name, name) == 0) {
			(void)fprintf(file, "usage: rws %s%s\n\n", name, others[i].usage);
			put_wrapped(file, others[i].text, 0);
			return 0;
		}
	result = -1;
	length = strlen(name);
	for (operation = operation_table; operation->name != NULL; operation++)
		if (strncmp(operation->name, name, length) == 0 && operation->name[length] == '.') {
			put_title(file, operation);
			result = 0;
		}
	return result;
}

/*
 * Text for mdoc:
 * a line that begins with a dot or a quote would be a request, a backslash an escape.
 */
static void
put_mdoc(FILE *file, const char *text)
{
	if (*text == '.' || *text == '\'')
		(void)fputs("\\&", file);
	for (; *text != '\0'; text++) {
		if (*text == '\\')
			(void)fputs("\\e", file);
		/* A sentence begins on a line of its own. */
		else if (text[0] == '.' && text[1] == ' ')
			(void)fputs(".\n", file), text++;
		else
			(void)fputc(*text, file);
	}
	(void)fputc('\n', file);
}

static void
put_manual_parameter(
    FILE *file, const struct operation *operation, const struct operation_field *field)
{
	char option[CLI_OPTION_MAX];
	const char *value = value_name(field->type);

	(void)cli_option_name(option, field->name);
	if (is_word(operation, field->name))
		(void)fprintf(file, ".It Ar %s\n", option);
	else if (*value == '\0')
		(void)fprintf(file, ".It Fl Fl %s\n", option);
	else
		(void)fprintf(file, ".It Fl Fl %s Ar%s\n", option, value);
	put_mdoc(file, field->help);
	if (field->choices != NULL)
		(void)fprintf(file, "One of: %s.\n", field->choices);
	if (field->standard != NULL) {
		(void)fputs("Default: ", file);
		put_mdoc(file, field->standard);
	}
}

void
cli_help_manual(FILE *file)
{
	const struct operation *operation;
	const struct operation_field *field;
	char name[OPERATION_NAME_MAX];

	for (operation = operation_table; operation->name != NULL; operation++) {
		if ((operation->flags & OPERATION_PLAIN) != 0)
			continue;
		(void)fprintf(file, ".Ss %s\n", operation_name(name, operation, ' '));
		put_mdoc(file, operation->help);
		if (operation->parameters->name == NULL)
			continue;
		(void)fputs(".Bl -tag -width Ds\n", file);
		for (field = operation->parameters; field->name != NULL; field++)
			put_manual_parameter(file, operation, field);
		(void)fputs(".El\n", file);
	}
}
