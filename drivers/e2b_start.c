/* SPDX-License-Identifier: ISC */
/*
 * The message that starts a command. JSON is UTF-8, arguments and variables are bytes: a command
 * with others in it goes through core/scripts/bytes.sh, word by word in base64.
 */
#include <stdbool.h>
#include <string.h>

#include "core/base/base64.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/utf8.h"
#include "core/driver.h"
#include "core/json.h"
#include "core/scripts.h"
#include "drivers/connect.h"
#include "drivers/e2b_start.h"

/* envd keeps 16 bits of a window's size. */
#define SIZE_MAX_CELLS 65535U

static bool
is_text(const char *bytes)
{
	return bytes == NULL || utf8_valid(bytes, strlen(bytes));
}

static bool
are_texts(char *const *list)
{
	for (; list != NULL && *list != NULL; list++)
		if (!is_text(*list))
			return false;
	return true;
}

/* Appends each in base64; returns the new count. */
static size_t
add_encoded(char ***words, size_t count, const char *bytes)
{
	char *encoded;

	encoded = base64_text(bytes, strlen(bytes));
	*words = memory_list_add(*words, count, encoded);
	memory_free(encoded);
	return count + 1;
}

/* argv for the same command made of nothing but text; a new list. */
static char **
encode_words(const struct driver_command *command)
{
	char **words, **argv;
	size_t i, count;

	words = memory_zeroed(1, sizeof(*words));
	count = add_encoded(&words, 0, "env");
	if (command->directory != NULL) {
		count = add_encoded(&words, count, "-C");
		count = add_encoded(&words, count, command->directory);
	}
	for (i = 0; command->environment != NULL && command->environment[i] != NULL; i++)
		count = add_encoded(&words, count, command->environment[i]);
	for (i = 0; command->argv[i] != NULL; i++)
		count = add_encoded(&words, count, command->argv[i]);
	argv = script_argv("bytes", words);
	memory_list_free(words);
	return argv;
}

static struct json_object *
make_variables(const struct driver_command *command, bool is_plain)
{
	struct json_object *variables;
	char *const *entry;
	char *name;

	variables = json_object_new_object();
	json_add_text(variables, "TERM", command->pty ? command->term : NULL);
	for (entry = command->environment; is_plain && entry != NULL && *entry != NULL; entry++) {
		if (strchr(*entry, '=') == NULL)
			continue;
		name = memory_text_bounded(*entry, strcspn(*entry, "="));
		json_add_text(variables, name, *entry + strlen(name) + 1);
		memory_free(name);
	}
	return variables;
}

static struct json_object *
make_size(const struct driver_command *command)
{
	struct json_object *size, *pty;

	size = json_object_new_object();
	json_object_object_add(size, "cols",
	    json_object_new_int64(
		command->columns > SIZE_MAX_CELLS ? SIZE_MAX_CELLS : command->columns));
	json_object_object_add(size, "rows",
	    json_object_new_int64(command->rows > SIZE_MAX_CELLS ? SIZE_MAX_CELLS : command->rows));
	pty = json_object_new_object();
	json_object_object_add(pty, "size", size);
	return pty;
}

static struct json_object *
make_process(const struct driver_command *command)
{
	struct json_object *process, *arguments;
	char **argv;
	size_t i;
	bool is_plain;

	is_plain = are_texts(command->argv) && are_texts(command->environment) &&
		   is_text(command->directory);
	argv = is_plain ? memory_list(command->argv) : encode_words(command);
	process = json_object_new_object();
	arguments = json_object_new_array();
	json_add_text(process, "cmd", argv[0]);
	for (i = 1; argv[i] != NULL; i++)
		json_object_array_add(arguments, json_object_new_string(argv[i]));
	json_object_object_add(process, "args", arguments);
	json_object_object_add(process, "envs", make_variables(command, is_plain));
	if (is_plain)
		json_add_text(process, "cwd", command->directory);
	memory_list_free(argv);
	return process;
}

struct json_object *
e2b_start_body(const struct driver_command *command, const char *tag, struct error *err)
{
	struct json_object *body;

	body = json_object_new_object();
	json_object_object_add(body, "process", make_process(command));
	json_add_text(body, "tag", tag);
	/* Left out, it would be a pipe that nobody ever closes. */
	if (command->pty)
		json_object_object_add(body, "pty", make_size(command));
	else
		json_object_object_add(body, "stdin", json_object_new_boolean(command->want_stdin));
	if (strlen(json_print(body)) > CONNECT_PAYLOAD_MAX) {
		json_object_put(body);
		error_set(err, ERROR_TOO_LARGE,
		    "the command and its environment are over %zu bytes", CONNECT_PAYLOAD_MAX);
		return NULL;
	}
	return body;
}
