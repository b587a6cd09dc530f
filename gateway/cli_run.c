/* SPDX-License-Identifier: ISC */
/*
 * One operation from its request to its answer, and what flows meanwhile: output in notifications,
 * input in requests of which only a few may be unanswered.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "core/base/base64.h"
#include "core/base/descriptor.h"
#include "core/base/memory.h"
#include "gateway/cli.h"
#include "gateway/operation_table.h"
#include "gateway/rpc.h"
#include "gateway/rpc_json.h"

#define PIECE_SIZE 49152U
#define UNANSWERED_MAX 8
#define STATUS_INTERRUPTED 130
#define SSH_FAILED 255
/* The content of write is one parameter in one line. */
#define CONTENT_MAX ((size_t)RPC_LINE_MAX / 4 * 3 - 4096)

struct run {
	const struct cli *cli;
	struct cli_connection connection;
	int64_t id;          /* of the request */
	bool feeding;        /* stdin goes to the request */
	unsigned unanswered; /* input requests */
	uint64_t moved, total;
	bool cancelled;
	struct json_object *answer;
};

static volatile sig_atomic_t interrupted;

static void
take_interrupt(int number)
{
	(void)number;
	interrupted++;
}

static bool
is(const struct cli *cli, const char *name)
{
	return strcmp(cli->operation->name, name) == 0;
}

int
cli_fail(const struct cli *cli, const struct error *err)
{
	const struct error_kind *kind = error_kind(err->code);
	bool colours = cli != NULL && cli->colours;

	(void)fprintf(stderr, "%srws: %s:%s ", colours ? "\033[31m" : "", kind->name,
	    colours ? "\033[m" : "");
	cli_put_text(stderr, err->message, strlen(err->message));
	(void)fputc('\n', stderr);
	return kind->exit_status;
}

/* The next bytes of stdin, or its end, to the request. */
static void
feed(struct run *run)
{
	static char data[PIECE_SIZE];
	struct json_object *params;
	ssize_t got;

	got = read(STDIN_FILENO, data, sizeof(data));
	if (got < 0 && errno == EINTR)
		return;
	if (got < 0)
		got = 0;
	params = json_object_new_object();
	rpc_json_put_number(params, "request", run->id);
	rpc_json_put_bytes(params, "data", data, (size_t)got);
	if (got == 0)
		rpc_json_put_boolean(params, "end", true);
	(void)cli_send(&run->connection, "input", params);
	run->unanswered++;
	run->feeding = got > 0;
	if (is(run->cli, "snapshot.import")) {
		run->moved += (uint64_t)got;
		cli_show_progress(run->moved, run->total, got == 0);
	}
}

static int
take_output(struct run *run, struct json_object *params, struct error *err)
{
	const char *stream;
	size_t size;
	char *data;
	int result;

	stream = rpc_json_get_text(params, "stream", "");
	data = rpc_json_get_bytes(params, "data", &size);
	if (data == NULL)
		return error_set(err, ERROR_INVALID, "the gateway sent output without data");
	result = descriptor_write(
	    strcmp(stream, "stderr") == 0 ? STDERR_FILENO : STDOUT_FILENO, data, size, err);
	memory_free(data);
	if (strcmp(stream, "archive") == 0) {
		run->moved += size;
		cli_show_progress(run->moved, run->total, false);
	}
	return result;
}

static int
take_notification(
    struct run *run, const char *method, struct json_object *params, struct error *err)
{
	const char *text;

	if (strcmp(method, "output") == 0)
		return take_output(run, params, err);
	text = rpc_json_get_text(params, "text", NULL);
	if (strcmp(method, "progress") == 0 && text != NULL && isatty(STDERR_FILENO)) {
		(void)fputs("rws: ", stderr);
		cli_put_text(stderr, text, strlen(text));
		(void)fputc('\n', stderr);
	}
	return 0;
}

static int
take_message(struct run *run, struct json_object *message, struct error *err)
{
	struct json_object *params;
	const char *method;

	method = rpc_json_get_text(message, "method", NULL);
	params = NULL;
	(void)json_object_object_get_ex(message, "params", &params);
	if (method != NULL)
		return take_notification(run, method, params, err);
	if (rpc_json_get_number(message, "id", 0) == run->id)
		run->answer = json_object_get(message);
	else if (run->unanswered > 0)
		run->unanswered--;
	return 0;
}

static int
receive(struct run *run, struct error *err)
{
	struct json_object *message;
	bool end;
	int result;

	message = cli_receive(&run->connection, &end, err);
	if (end)
		return error_set(err, ERROR_UNAVAILABLE, "the connection ended without an answer");
	for (; message != NULL; message = cli_next(&run->connection, err)) {
		result = take_message(run, message, err);
		json_object_put(message);
		if (result != 0)
			return -1;
	}
	return 0;
}

/* The first interrupt asks the gateway to stop it, the second leaves. */
static int
cancel(struct run *run, struct error *err)
{
	if (run->cancelled && interrupted > 1)
		return error_set(err, ERROR_ABORTED, "interrupted");
	if (!run->cancelled)
		cli_send_cancel(&run->connection, run->id);
	run->cancelled = true;
	return 0;
}

static int
wait_answer(struct run *run, struct error *err)
{
	struct pollfd waited[2];

	while (run->answer == NULL) {
		if (interrupted > 0 && cancel(run, err) != 0)
			return -1;
		waited[0].fd = run->connection.output;
		waited[0].events = POLLIN;
		waited[1].fd = run->feeding && run->unanswered < UNANSWERED_MAX ? STDIN_FILENO : -1;
		waited[1].events = POLLIN;
		waited[0].revents = waited[1].revents = 0;
		if (poll(waited, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return error_system(err, errno, "poll");
		}
		if (waited[0].revents != 0 && receive(run, err) != 0)
			return -1;
		if (run->answer == NULL && waited[1].revents != 0)
			feed(run);
	}
	return 0;
}

/*
 * Calls another operation first, for what it says. NULL when it fails; the real one will say why.
 */
static struct json_object *
ask(struct run *run, const char *method, struct json_object *params)
{
	struct json_object *result;
	struct error err;

	run->id = cli_send(&run->connection, method, params);
	if (wait_answer(run, &err) != 0)
		return NULL;
	result = NULL;
	if (json_object_object_get_ex(run->answer, "result", &result))
		json_object_get(result);
	json_object_put(run->answer);
	run->answer = NULL;
	return result;
}

/* How much there is to move, when it can be known and somebody looks. */
static void
find_total(struct run *run)
{
	struct json_object *params, *result;
	struct stat status;

	if (!isatty(STDERR_FILENO))
		return;
	if (is(run->cli, "snapshot.import") && fstat(STDIN_FILENO, &status) == 0 &&
	    S_ISREG(status.st_mode))
		run->total = (uint64_t)status.st_size;
	if (!is(run->cli, "snapshot.export"))
		return;
	params = json_object_new_object();
	rpc_json_put_text(params, "id", rpc_json_get_text(run->cli->parameters, "id", ""));
	result = ask(run, "snapshot.show", params);
	if (result != NULL)
		run->total = (uint64_t)rpc_json_get_number(result, "archive_bytes", 0);
	json_object_put(result);
}

/* write without --content takes it from stdin. */
static int
read_content(struct json_object *parameters, struct error *err)
{
	struct buffer content;
	unsigned char *place;
	ssize_t got;

	buffer_init(&content, CONTENT_MAX);
	do {
		place = buffer_reserve(&content, PIECE_SIZE);
		if (place == NULL) {
			buffer_free(&content);
			return error_set(
			    err, ERROR_TOO_LARGE, "more than write takes: use sftp or scp");
		}
		got = read(STDIN_FILENO, place, PIECE_SIZE);
		if (got > 0)
			buffer_extend(&content, (size_t)got);
	} while (got > 0 || (got < 0 && errno == EINTR));
	rpc_json_put_bytes(parameters, "content",
	    content.length == 0 ? "" : (const char *)buffer_data(&content), content.length);
	buffer_free(&content);
	return got == 0 ? 0 : error_system(err, errno, "read stdin");
}

/* What a person at a terminal, or a pipe, wants beyond the parameters that were given. */
static int
prepare(struct run *run, struct error *err)
{
	const struct cli *cli = run->cli;
	struct json_object *parameters = cli->parameters;

	if (is(cli, "write") && !rpc_json_has(parameters, "content"))
		return read_content(parameters, err);
	if (is(cli, "snapshot.export") && isatty(STDOUT_FILENO))
		return error_set(
		    err, ERROR_INVALID, "an archive is not for a terminal: > FILE or | COMMAND");
	if (is(cli, "exec") && !cli->json && !rpc_json_get_boolean(parameters, "detach", false)) {
		rpc_json_put_boolean(parameters, "stream", true);
		if (!rpc_json_has(parameters, "max_output_bytes"))
			rpc_json_put_number(parameters, "max_output_bytes", 0);
	}
	if (is(cli, "exec") && !rpc_json_has(parameters, "stdin") && !isatty(STDIN_FILENO) &&
	    !rpc_json_get_boolean(parameters, "detach", false)) {
		rpc_json_put_boolean(parameters, "stdin_open", true);
		run->feeding = true;
	}
	if (is(cli, "snapshot.import"))
		run->feeding = true;
	return 0;
}

/* A command's end is rws's own, so that scripts work as with ssh. */
static int
exit_status(const struct cli *cli, struct json_object *result)
{
	if (is(cli, "exec") || is(cli, "attach"))
		return (int)rpc_json_get_number(result, "exit_code", 0);
	return 0;
}

static int
take_answer(struct run *run, struct error *err)
{
	const struct cli *cli = run->cli;
	struct json_object *result, *problem, *data;
	enum error_code code;

	if (run->moved > 0)
		cli_show_progress(run->moved, run->total, true);
	if (json_object_object_get_ex(run->answer, "result", &result)) {
		if (cli->json && !is(cli, "snapshot.export"))
			(void)puts(json_object_to_json_string_ext(
			    result, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
		else
			cli_show(cli, result);
		return exit_status(cli, result);
	}
	problem = data = NULL;
	(void)json_object_object_get_ex(run->answer, "error", &problem);
	(void)json_object_object_get_ex(problem, "data", &data);
	code = error_code_parse(rpc_json_get_text(data, "code", "INVALID"));
	error_set(err, code == ERROR_NONE ? ERROR_INVALID : code, "%s",
	    rpc_json_get_text(problem, "message", "no reason"));
	return -1;
}

static void
watch_interrupt(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = take_interrupt;
	(void)sigemptyset(&action.sa_mask);
	/* Without SA_RESTART: poll is to come back. */
	(void)sigaction(SIGINT, &action, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

int
cli_run(const struct cli *cli)
{
	struct run run = { .cli = cli };
	struct error err;
	int status, ssh;

	watch_interrupt();
	status = prepare(&run, &err);
	if (status == 0)
		status = cli_connect(&run.connection, cli, &err);
	if (status != 0)
		return cli_fail(cli, &err);
	find_total(&run);
	run.id = cli_send(&run.connection, cli->operation->name, json_object_get(cli->parameters));
	status = wait_answer(&run, &err);
	if (status == 0)
		status = take_answer(&run, &err);
	json_object_put(run.answer);
	if (fflush(stdout) != 0 && status >= 0)
		status = error_system(&err, errno, "write to stdout");
	ssh = cli_disconnect(&run.connection);
	if (status >= 0)
		return status;
	/* ssh has said itself why there is no connection. */
	if (ssh == SSH_FAILED && err.code == ERROR_UNAVAILABLE && run.answer == NULL)
		return error_kind(ERROR_UNAVAILABLE)->exit_status;
	return cli_fail(cli, &err);
}
