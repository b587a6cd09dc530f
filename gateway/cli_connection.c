/* SPDX-License-Identifier: ISC */
/* The user's ssh as a child, with pipes to its standard input and output. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <json-c/json.h>

#include "core/base/descriptor.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "gateway/cli.h"
#include "gateway/rpc.h"
#include "gateway/rpc_json.h"

#define READ_SIZE 65536
#define STATUS_NO_PROGRAM 127

/* The port at the end of HOST:PORT or [HOST]:PORT, or NULL: an address of IPv6 has colons of its own. */
static const char *
find_port(const char *host)
{
	const char *colon = strrchr(host, ':');

	if (colon == NULL || colon == host || colon[1] == '\0' ||
	    colon[1 + strspn(colon + 1, "0123456789")] != '\0' ||
	    (strchr(host, ':') != colon && (*host != '[' || colon[-1] != ']')))
		return NULL;
	return colon + 1;
}

void
cli_destination_parse(struct cli_destination *destination, const char *text)
{
	const char *at, *host, *port;
	size_t length;

	memset(destination, 0, sizeof(*destination));
	at = strncmp(text, "ssh://", 6) == 0 ? NULL : strrchr(text, '@');
	/* What is taken off here could bare a dash, and ssh would take it for an option. */
	if (at == NULL || at == text) {
		destination->host = memory_text(text);
		return;
	}
	destination->login = (int)(at - text);
	host = at + 1;
	port = find_port(host);
	if (port != NULL)
		destination->port = memory_text(port);
	length = port == NULL ? strlen(host) : (size_t)(port - host) - 1;
	if (length > 2 && host[0] == '[' && host[length - 1] == ']')
		destination->host = memory_text_bounded(host + 1, length - 2);
	else
		destination->host = memory_text_bounded(host, length);
}

void
cli_destination_free(struct cli_destination *destination)
{
	memory_free(destination->host);
	memory_free(destination->port);
}

/* PROGRAM ARGUMENTS... [-p PORT] -s DESTINATION rws, whose first byte is no dash; new. */
static char **
make_argv(const struct cli *cli)
{
	struct cli_destination destination;
	const char *program;
	char **argv, *target;
	size_t i, count;

	program = getenv("RWS_SSH");
	if (program == NULL || *program == '\0')
		program = "ssh";
	count = 0;
	argv = memory_zeroed(1, sizeof(*argv));
	argv = memory_list_add(argv, count++, program);
	for (i = 0; i < cli->ssh_count; i++)
		argv = memory_list_add(argv, count++, cli->ssh_arguments[i]);
	cli_destination_parse(&destination, cli->destination);
	if (destination.port != NULL) {
		argv = memory_list_add(argv, count++, "-p");
		argv = memory_list_add(argv, count++, destination.port);
	}
	target = destination.login == 0 ? memory_text(destination.host)
					: memory_text_format("%.*s@%s", destination.login,
					      cli->destination, destination.host);
	argv = memory_list_add(argv, count++, "-s");
	argv = memory_list_add(argv, count++, target);
	argv = memory_list_add(argv, count, "rws");
	memory_free(target);
	cli_destination_free(&destination);
	return argv;
}

static void
run_ssh(char **argv, int input, int output)
{
	static const char complaint[] = "rws: cannot start ssh\n";

	if (dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0) {
		(void)signal(SIGPIPE, SIG_DFL);
		(void)signal(SIGINT, SIG_IGN); /* it is for us to say what is to be stopped */
		(void)execvp(argv[0], argv);
	}
	if (write(STDERR_FILENO, complaint, sizeof(complaint) - 1) < 0)
		_exit(STATUS_NO_PROGRAM);
	_exit(STATUS_NO_PROGRAM);
}

int
cli_connect(struct cli_connection *connection, const struct cli *cli, struct error *err)
{
	int in[2], out[2];
	char **argv;

	memset(connection, 0, sizeof(*connection));
	if (descriptor_pipe(in, err) != 0)
		return -1;
	if (descriptor_pipe(out, err) != 0) {
		descriptor_close(&in[0]);
		descriptor_close(&in[1]);
		return -1;
	}
	argv = make_argv(cli);
	connection->ssh = fork();
	if (connection->ssh == 0)
		run_ssh(argv, in[0], out[1]);
	memory_list_free(argv);
	descriptor_close(&in[0]);
	descriptor_close(&out[1]);
	connection->input = in[1];
	connection->output = out[0];
	buffer_init(&connection->received, (size_t)RPC_LINE_MAX * 2);
	if (connection->ssh < 0)
		return error_system(err, errno, "fork");
	return 0;
}

static void
send_object(struct cli_connection *connection, struct json_object *object)
{
	const char *text;
	size_t length;

	text = json_object_to_json_string_length(
	    object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length);
	/* That ssh is gone shows when its output ends. */
	if (descriptor_write(connection->input, text, length, NULL) == 0)
		(void)descriptor_write(connection->input, "\n", 1, NULL);
	json_object_put(object);
}

static struct json_object *
new_request(const char *method, struct json_object *params)
{
	struct json_object *object;

	object = json_object_new_object();
	rpc_json_put_text(object, "jsonrpc", "2.0");
	rpc_json_put_text(object, "method", method);
	if (params != NULL)
		(void)json_object_object_add(object, "params", params);
	return object;
}

int64_t
cli_send(struct cli_connection *connection, const char *method, struct json_object *params)
{
	struct json_object *object;

	object = new_request(method, params);
	rpc_json_put_number(object, "id", ++connection->last_id);
	send_object(connection, object);
	return connection->last_id;
}

void
cli_send_cancel(struct cli_connection *connection, int64_t id)
{
	struct json_object *params;

	params = json_object_new_object();
	rpc_json_put_number(params, "id", id);
	send_object(connection, new_request("$/cancelRequest", params));
}

struct json_object *
cli_next(struct cli_connection *connection, struct error *err)
{
	struct json_object *message;
	unsigned char *data, *end;

	if (connection->received.length == 0)
		return NULL;
	data = buffer_data(&connection->received);
	end = memchr(data, '\n', connection->received.length);
	if (end == NULL)
		return NULL;
	message = json_parse((char *)data, (size_t)(end - data), err);
	if (message == NULL)
		error_wrap(err, "the gateway's answer");
	buffer_consume(&connection->received, (size_t)(end - data) + 1);
	return message;
}

struct json_object *
cli_receive(struct cli_connection *connection, bool *end, struct error *err)
{
	unsigned char *place;
	ssize_t got;

	*end = false;
	place = buffer_reserve(&connection->received, READ_SIZE);
	got = place == NULL ? 0 : read(connection->output, place, READ_SIZE);
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return NULL;
	if (got <= 0) {
		*end = true;
		return NULL;
	}
	buffer_extend(&connection->received, (size_t)got);
	return cli_next(connection, err);
}

int
cli_disconnect(struct cli_connection *connection)
{
	int status;

	descriptor_close(&connection->input);
	descriptor_close(&connection->output);
	buffer_free(&connection->received);
	if (connection->ssh <= 0)
		return 0;
	while (waitpid(connection->ssh, &status, 0) < 0)
		if (errno != EINTR)
			return 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_NO_PROGRAM;
}
