/* SPDX-License-Identifier: ISC */
/*
 * The words behind an operation as its parameters, as the table has them: --name VALUE or
 * --name=VALUE, --flag and --no-flag, and plain words for the parameters that the table lists as
 * such.
 */
#include <string.h>

#include <json-c/json.h>

#include "core/base/base64.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/base/utf8.h"
#include "gateway/cli.h"
#include "gateway/operation_table.h"
#include "gateway/rpc_json.h"

static void
put_list(struct json_object *parameters, const char *name, const char *value)
{
	struct json_object *list;

	if (!json_object_object_get_ex(parameters, name, &list)) {
		list = json_object_new_array();
		(void)json_object_object_add(parameters, name, list);
	}
	(void)json_object_array_add(list, json_object_new_string(value));
}

static int
put_pair(struct json_object *parameters, const char *name, const char *value, struct error *err)
{
	struct json_object *pairs;
	const char *equals;
	char *key;

	equals = strchr(value, '=');
	if (equals == NULL || equals == value)
		return error_set(err, ERROR_INVALID, "it must be NAME=VALUE");
	if (!json_object_object_get_ex(parameters, name, &pairs)) {
		pairs = json_object_new_object();
		(void)json_object_object_add(parameters, name, pairs);
	}
	key = memory_text_bounded(value, (size_t)(equals - value));
	rpc_json_put_text(pairs, key, equals + 1);
	memory_free(key);
	return 0;
}

static int
put_number(struct json_object *parameters, const struct operation_field *field, const char *value,
    struct error *err)
{
	int64_t number;
	int result;

	if (field->type == OPERATION_DURATION)
		result = number_parse_duration(value, &number, err);
	else if (field->type == OPERATION_SIZE)
		result = number_parse_size(value, &number, err);
	else
		result = number_parse(value, field->min, field->max, &number, err);
	if (result == 0)
		rpc_json_put_number(parameters, field->name, number);
	return result;
}

/*
 * Bounds and choices are for the gateway to check:
 * it says what is wrong in the same words to everybody.
 */
static int
put_value(struct json_object *parameters, const struct operation_field *field, const char *value,
    struct error *err)
{
	switch (field->type) {
	case OPERATION_NUMBER:
	case OPERATION_DURATION:
	case OPERATION_SIZE:
		return put_number(parameters, field, value, err);
	case OPERATION_LIST:
		put_list(parameters, field->name, value);
		return 0;
	case OPERATION_PAIRS:
		return put_pair(parameters, field->name, value, err);
	case OPERATION_PATH:
	case OPERATION_BYTES:
		rpc_json_put_bytes(parameters, field->name, value, strlen(value));
		return 0;
	default:
		if (!utf8_valid(value, strlen(value)))
			return error_set(err, ERROR_INVALID, "it is not UTF-8");
		rpc_json_put_text(parameters, field->name, value);
		return 0;
	}
}

/* The parameter of an option's name, which has dashes where the parameter has underscores. */
static const struct operation_field *
find_option(const struct operation *operation, const char *name, size_t length)
{
	const struct operation_field *field;
	char option[CLI_OPTION_MAX];

	for (field = operation->parameters; field->name != NULL; field++) {
		(void)cli_option_name(option, field->name);
		if (strlen(option) == length && strncmp(option, name, length) == 0)
			return field;
	}
	return NULL;
}

/* "--name", "--no-name", "--name=VALUE" or "--name VALUE"; moves on behind it. */
static int
take_option(struct cli *cli, char ***words, struct error *err)
{
	const struct operation_field *field;
	const char *word = **words + 2, *value;
	size_t length;
	bool off;

	++*words;
	length = strcspn(word, "=");
	value = word[length] == '=' ? word + length + 1 : NULL;
	field = find_option(cli->operation, word, length);
	off = field == NULL && strncmp(word, "no-", 3) == 0;
	if (off)
		field = find_option(cli->operation, word + 3, length - 3);
	if (field == NULL || (off && field->type != OPERATION_BOOLEAN))
		return error_set(err, ERROR_INVALID, "%s has no option --%.*s",
		    cli->operation->name, (int)length, word);
	if (field->type == OPERATION_BOOLEAN) {
		if (value != NULL)
			return error_set(
			    err, ERROR_INVALID, "--%.*s takes no value", (int)length, word);
		rpc_json_put_boolean(cli->parameters, field->name, !off);
		return 0;
	}
	if (value == NULL)
		value = *(*words)++;
	if (value == NULL)
		return error_set(err, ERROR_INVALID, "--%.*s needs a value", (int)length, word);
	if (put_value(cli->parameters, field, value, err) != 0)
		return error_wrap(err, "--%.*s", (int)length, word);
	return 0;
}

/* The name of plain word number index in the table, or NULL. */
static const struct operation_field *
word_field(const struct operation *operation, unsigned index)
{
	const struct operation_field *field;
	const char *at = operation->words;
	char *name;

	for (; index > 0 && *at != '\0'; index--) {
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
	if (*at == '\0')
		return NULL;
	name = memory_text_bounded(at, strcspn(at, " "));
	field = operation_field_find(operation->parameters, name);
	memory_free(name);
	return field;
}

/* Is it an exec that has not been told yet what to run? */
static bool
wants_command(const struct cli *cli)
{
	return strcmp(cli->operation->name, "exec") == 0 &&
	       !rpc_json_has(cli->parameters, "command") && !rpc_json_has(cli->parameters, "argv");
}

/* One word is a line for the shell, several are a program with its arguments. */
static void
take_command(struct cli *cli, char **words)
{
	cli->command = words;
	if (words[1] == NULL) {
		rpc_json_put_text(cli->parameters, "command", words[0]);
		return;
	}
	for (; *words != NULL; words++)
		put_list(cli->parameters, "argv", *words);
}

static void
add_ssh_argument(struct cli *cli, const char *argument)
{
	cli->ssh_arguments = memory_list_add(cli->ssh_arguments, cli->ssh_count++, argument);
}

/* An option of rws itself: 1, or 0 when it is none, -1 when it is wrong. */
static int
take_own(struct cli *cli, char ***words, struct error *err)
{
	const char *word = **words;

	if (strcmp(word, "--json") == 0) {
		cli->json = true;
		++*words;
		return 1;
	}
	if (strcmp(word, "-S") != 0)
		return 0;
	if ((*words)[1] == NULL)
		return error_set(err, ERROR_INVALID, "-S needs an argument for ssh");
	add_ssh_argument(cli, (*words)[1]);
	*words += 2;
	return 1;
}

static int
take_word(struct cli *cli, unsigned *index, const char *word, struct error *err)
{
	const struct operation_field *field;

	field = word_field(cli->operation, (*index)++);
	if (field == NULL)
		return error_set(
		    err, ERROR_INVALID, "%s takes no word \"%s\"", cli->operation->name, word);
	if (put_value(cli->parameters, field, word, err) != 0)
		return error_wrap(err, "%s", field->name);
	return 0;
}

int
cli_parse(struct cli *cli, char **words, struct error *err)
{
	unsigned index;
	int own;

	index = 0;
	while (*words != NULL) {
		own = take_own(cli, &words, err);
		if (own < 0)
			return -1;
		if (own > 0)
			continue;
		if (strcmp(*words, "--") == 0 && wants_command(cli) && words[1] != NULL) {
			take_command(cli, words + 1);
			return 0;
		}
		if (strcmp(*words, "--") == 0) {
			for (words++; *words != NULL; words++)
				add_ssh_argument(cli, *words);
		} else if (strncmp(*words, "--", 2) == 0) {
			if (take_option(cli, &words, err) != 0)
				return -1;
		} else if (strcmp(cli->operation->name, "exec") == 0) {
			take_command(cli, words);
			return 0;
		} else if (take_word(cli, &index, *words++, err) != 0) {
			return -1;
		}
	}
	return 0;
}
