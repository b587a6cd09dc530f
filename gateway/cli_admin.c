/* SPDX-License-Identifier: ISC */
/*
 * rws admin: asks a gateway on this machine over its socket, one request a connection. The messages
 * are the processes' own; tables and JSON are made here, so that the gateway need not.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/number.h"
#include "core/login.h"
#include "gateway/cli.h"
#include "gateway/cli_admin.h"
#include "gateway/operation_table.h"
#include "gateway/rpc_json.h"

#define STANDARD_SOCKET "/var/lib/rwsd/admin.sock"
/* ms until the gateway itself would have given up, and more. */
#define LIST_WAIT 30000
#define ACT_WAIT 330000
#define WATCH_STANDARD 2000
#define WATCH_MIN 100
#define WATCH_MAX (3600 * 1000)
#define STATUS_FAILED 1

struct admin_words {
	const struct cli_admin_command *command;
	const char *target;
	const char *socket;
	bool json;
	bool help;
	int64_t watch; /* ms, 0: once */
};

void
cli_admin_help(FILE *file)
{
	const struct cli_admin_command *command;
	char usage[64];

	(void)fputs("usage: rws admin [-s SOCKET] [--json] [--watch[=TIME]] COMMAND\n\n"
		    "For root and the gateway's own user, on the gateway's own machine.\n\n",
	    file);
	for (command = cli_admin_commands; command->name != NULL; command++) {
		(void)snprintf(usage, sizeof(usage), "%s%s%s", command->name,
		    command->target == NULL ? "" : " ",
		    command->target == NULL ? "" : command->target);
		(void)fprintf(file, "  %-22s %s\n", usage, command->help);
	}
	(void)fputs(
	    "\n  -s SOCKET              The gateway's admin_socket; " STANDARD_SOCKET
	    " without it\n"
	    "  --json                 Print JSON, one line an answer\n"
	    "  --watch[=TIME]         Ask again and again, every two seconds without TIME\n",
	    file);
}

static int
take_command(struct admin_words *words, const char *word, struct error *err)
{
	const struct cli_admin_command *command;

	if (words->command != NULL) {
		if (words->command->target == NULL || words->target != NULL)
			return error_set(err, ERROR_INVALID, "admin %s takes no word \"%s\"",
			    words->command->name, word);
		words->target = word;
		return 0;
	}
	for (command = cli_admin_commands; command->name != NULL; command++)
		if (strcmp(command->name, word) == 0)
			words->command = command;
	if (words->command == NULL)
		return error_set(err, ERROR_INVALID, "admin has no command %s", word);
	return 0;
}

static int
take_watch(struct admin_words *words, const char *text, struct error *err)
{
	words->watch = WATCH_STANDARD;
	if (*text == '\0')
		return 0;
	if (number_parse_duration(text + 1, &words->watch, err) != 0)
		return error_wrap(err, "--watch");
	if (words->watch < WATCH_MIN || words->watch > WATCH_MAX)
		return error_set(err, ERROR_INVALID, "--watch must be 100ms to 1h");
	return 0;
}

/* One word, or two when it is -s. */
static int
take_word(struct admin_words *words, char ***at, struct error *err)
{
	static const char watch[] = "--watch";
	const char *word = *(*at)++;

	if (strcmp(word, "--json") == 0)
		words->json = true;
	else if (strcmp(word, "--help") == 0)
		words->help = true;
	else if (strncmp(word, watch, sizeof(watch) - 1) == 0 &&
		 strchr("=", word[sizeof(watch) - 1]) != NULL)
		return take_watch(words, word + sizeof(watch) - 1, err);
	else if (strcmp(word, "-s") == 0 && **at != NULL)
		words->socket = *(*at)++;
	else if (*word == '-')
		return error_set(err, ERROR_INVALID, "admin has no option %s%s", word,
		    strcmp(word, "-s") == 0 ? " without a path" : "");
	else
		return take_command(words, word, err);
	return 0;
}

/* What can be no session or workspace is wrong usage, and not worth a question. */
static int
check_target(const struct admin_words *words, struct error *err)
{
	struct login login;
	int64_t number;

	if (words->command->verb == ADMIN_DISCONNECT &&
	    number_parse(words->target, 1, INT64_MAX, &number, NULL) != 0)
		return error_set(err, ERROR_INVALID, "%s is no number of a session", words->target);
	if (words->command->state != NULL && login_parse(words->target, &login) != 0)
		return error_set(err, ERROR_INVALID, "%s is no name of a workspace", words->target);
	return 0;
}

static int
parse_words(struct admin_words *words, char **at, struct error *err)
{
	while (*at != NULL)
		if (take_word(words, &at, err) != 0)
			return -1;
	if (words->help)
		return 0;
	if (words->command == NULL) {
		error_set(err, ERROR_INVALID, "which command?");
		return -1;
	}
	if (words->command->target != NULL && words->target == NULL)
		return error_set(err, ERROR_INVALID, "admin %s needs a %s", words->command->name,
		    words->command->target);
	if (words->watch > 0 && words->command->fields == NULL)
		return error_set(
		    err, ERROR_INVALID, "admin %s cannot be watched", words->command->name);
	return words->target == NULL ? 0 : check_target(words, err);
}

static int
open_socket(const char *path, struct error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(err, ERROR_INVALID, "%s: the path is longer than %zu bytes", path,
		    sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_system(err, errno, "socket");
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
		error_system(err, errno, "no gateway can be reached on %s", path);
		(void)close(fd);
		return -1;
	}
	return fd;
}

/* The whole of an answer; a refusal is one too. */
static int
receive(int fd, enum admin_verb verb, struct cli_admin_answer *answer, struct error *err)
{
	struct loop *loop;
	struct peer *peer;
	int result;

	loop = loop_new(err);
	if (loop == NULL) {
		(void)close(fd);
		return -1;
	}
	peer = peer_new(loop, fd, "rws", "the gateway", &cli_admin_events, answer);
	result = 0;
	while (!answer->ended && result == 0)
		result = peer_wait(peer, admin_verb_has_target(verb) ? ACT_WAIT : LIST_WAIT, err);
	peer_free(peer);
	loop_free(loop);
	return result;
}

static int
ask(const struct admin_words *words, struct cli_admin_answer *answer, struct error *err)
{
	struct admin_request request = { .verb = words->command->verb };
	struct message message;
	int fd;

	fd = open_socket(words->socket, err);
	if (fd < 0)
		return -1;
	request.target = words->target == NULL ? NULL : memory_text(words->target);
	admin_request_encode(&message, &request);
	admin_request_free(&request);
	/* Who is refused may be so before it has asked: the answer says why. */
	(void)message_send(fd, &message, NULL);
	if (receive(fd, words->command->verb, answer, err) != 0)
		return -1;
	if (answer->end.failure.code == ERROR_NONE)
		return 0;
	*err = answer->end.failure;
	return -1;
}

/* What was done, for programs. */
static struct json_object *
describe_act(const struct admin_words *words, const struct admin_end *end)
{
	struct json_object *object;

	object = json_object_new_object();
	if (words->target != NULL)
		rpc_json_put_text(
		    object, words->command->state == NULL ? "session" : "workspace", words->target);
	if (end->sandbox_id != NULL)
		rpc_json_put_bytes(object, "sandbox_id", end->sandbox_id, strlen(end->sandbox_id));
	if (words->command->state != NULL)
		rpc_json_put_text(object, "state", words->command->state);
	if (end->note != NULL)
		rpc_json_put_text(object, "note", end->note);
	return object;
}

static void
print_json(const struct admin_words *words, const struct cli_admin_answer *answer)
{
	struct json_object *object;

	if (words->command->fields == NULL) {
		object = describe_act(words, &answer->end);
	} else if (words->command->list == NULL) {
		object = json_object_get(json_object_array_get_idx(answer->rows, 0));
	} else {
		object = json_object_new_object();
		(void)json_object_object_add(
		    object, words->command->list, json_object_get(answer->rows));
		if (answer->end.note != NULL)
			rpc_json_put_text(object, "note", answer->end.note);
	}
	(void)puts(json_object_to_json_string_ext(
	    object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(object);
}

static void
print_act(const struct admin_words *words, const struct admin_end *end)
{
	if (end->note != NULL) {
		cli_put_text(stdout, end->note, strlen(end->note));
	} else {
		cli_put_text(stdout, words->target, strlen(words->target));
		(void)printf(": %s", words->command->state);
		if (end->sandbox_id != NULL) {
			(void)fputs(", sandbox ", stdout);
			cli_put_text(stdout, end->sandbox_id, strlen(end->sandbox_id));
		}
	}
	(void)fputc('\n', stdout);
}

static void
print_people(const struct admin_words *words, const struct cli_admin_answer *answer)
{
	struct cli cli = { .colours = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL };
	const struct operation_field *field;

	if (words->watch > 0 && isatty(STDOUT_FILENO))
		(void)fputs("\033[H\033[J", stdout);
	if (words->command->fields == NULL) {
		print_act(words, &answer->end);
	} else if (words->command->list == NULL) {
		for (field = words->command->fields; field->name != NULL; field++)
			cli_show_field(&cli, field, json_object_array_get_idx(answer->rows, 0));
	} else if (json_object_array_length(answer->rows) == 0) {
		(void)printf("no %s\n", words->command->list);
	} else {
		if (words->command->verb == ADMIN_WORKSPACES)
			cli_admin_show_dashes(answer->rows);
		cli_show_table(&cli, words->command->fields, answer->rows);
	}
	if (words->command->fields != NULL && answer->end.note != NULL) {
		(void)fflush(stdout);
		(void)fputs("rws: ", stderr);
		cli_put_text(stderr, answer->end.note, strlen(answer->end.note));
		(void)fputc('\n', stderr);
	}
	if (words->watch > 0 && !isatty(STDOUT_FILENO))
		(void)fputc('\n', stdout);
}

static int
run(const struct admin_words *words, struct error *err)
{
	struct cli_admin_answer answer = { 0 };
	int result;

	answer.rows = json_object_new_array();
	answer.index = json_object_new_object();
	result = ask(words, &answer, err);
	if (result == 0) {
		if (words->command->verb != ADMIN_LOGINS)
			cli_admin_sort(answer.rows);
		if (words->json)
			print_json(words, &answer);
		else
			print_people(words, &answer);
		if (fflush(stdout) != 0)
			result = error_system(err, errno, "write to stdout");
	}
	json_object_put(answer.index);
	json_object_put(answer.rows);
	admin_end_free(&answer.end);
	return result;
}

static void
rest(int64_t milliseconds)
{
	struct timespec time = { .tv_sec = (time_t)(milliseconds / 1000),
		.tv_nsec = (long)(milliseconds % 1000) * 1000000 };

	(void)nanosleep(&time, NULL);
}

int
cli_admin(char **at, bool json)
{
	struct admin_words words = { .socket = STANDARD_SOCKET, .json = json };
	struct error err;
	int status;

	if (parse_words(&words, at, &err) != 0) {
		status = cli_fail(NULL, &err);
		(void)fputs("Try: rws admin --help\n", stderr);
		return status;
	}
	if (words.help) {
		cli_admin_help(stdout);
		return 0;
	}
	for (;;) {
		if (run(&words, &err) != 0) {
			(void)cli_fail(NULL, &err);
			return STATUS_FAILED;
		}
		if (words.watch == 0)
			return 0;
		rest(words.watch);
	}
}
