/* SPDX-License-Identifier: ISC */
/*
 * Commands that are run to their end, by one request each. What it returns is text, so the outputs
 * come in base64 (core/scripts/gather.sh), and so does all that goes in: the command is fed to a
 * shell, and its text must hold nothing that a shell looks at.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/base64.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/json.h"
#include "core/marker.h"
#include "core/scripts.h"
#include "drivers/daytona_driver.h"
#include "drivers/operation.h"

/* Seconds for the command, and ms for the request. */
#define COMMAND_TIMEOUT 600
#define REQUEST_TIMEOUT 630000
/* Bytes of stdin in one argument, below Linux's limit of 128 KiB in base64; and of all arguments.
 */
#define PIECE ((size_t)72 * 1024)
#define COMMAND_MAX ((size_t)1024 * 1024)
#define ANSWER_MIN ((size_t)256 * 1024)

/* Where the script has its files, and the start of its name. */
#define WORK "/tmp/.rws-run-"

struct daytona_run {
	struct driver_operation operation; /* first: a run is an operation */
	struct http_request *request;
	struct loop_timer *soon; /* tells what failed within the call */
	struct error err;
	char work[sizeof(WORK) + MARKER_TOKEN_SIZE]; /* the script's directory */
	bool is_killer;                              /* of another one */
	size_t max_output;
	driver_result_fn *done;
	void *argument;
};

/* A client that leaves does not end what it asked for. */
static void
kill_run(const struct daytona_run *run)
{
	char *arguments[2] = { NULL, NULL }, **argv;
	struct driver_operation *killer;

	arguments[0] = memory_text(run->work);
	argv = script_argv("gather_cancel", arguments);
	killer = daytona_run(run->operation.sandbox, argv, NULL, 0, 0, NULL, NULL);
	((struct daytona_run *)killer)->is_killer = true;
	memory_list_free(argv);
	memory_free(arguments[0]);
}

static void
destroy(struct driver_operation *operation)
{
	struct daytona_run *run = (struct daytona_run *)operation;

	if (run->request != NULL && !run->is_killer && !operation->sandbox->is_closing &&
	    !operation->sandbox->is_lost)
		kill_run(run);
	http_cancel(run->request);
	loop_timer_free(run->soon);
	memory_free(run);
}

static void
report(struct daytona_run *run, const struct driver_result *result, const struct error *err)
{
	driver_result_fn *done = run->done;
	void *argument = run->argument;
	struct error reason;

	if (err != NULL) {
		reason = *err;
		err = &reason;
	}
	operation_cancel(&run->operation);
	if (done != NULL)
		done(argument, result, err);
}

static void
soon_expired(void *argument)
{
	struct daytona_run *run = argument;

	report(run, NULL, &run->err);
}

/* The next word of a line; moves line behind it. */
static char *
take_word(const char **line)
{
	size_t length;
	char *word;

	length = strcspn(*line, " \n");
	word = memory_text_bounded(*line, length);
	*line += length + ((*line)[length] == ' ' ? 1 : 0);
	return word;
}

/* One output: a dot, then base64. A new piece of memory. */
static unsigned char *
take_output(const char **line, size_t *size)
{
	unsigned char *bytes;
	char *word;

	word = take_word(line);
	bytes = NULL;
	if (word[0] == '.') {
		bytes = memory_allocate(strlen(word));
		if (base64_decode(bytes, size, word + 1, strlen(word + 1)) != 0) {
			memory_free(bytes);
			bytes = NULL;
		}
	}
	memory_free(word);
	return bytes;
}

/* The line of the script is the last; what shells said before it is noise. */
static const char *
find_line(const char *text)
{
	static const char start[] = "rws-result ";
	const char *found, *at;

	found = NULL;
	for (at = text; (at = strstr(at, start)) != NULL; at++)
		if (at == text || at[-1] == '\n')
			found = at + strlen(start);
	return found;
}

static void
read_line(struct daytona_run *run, const char *line)
{
	struct driver_result result = { 0 };
	unsigned char *output, *errors;
	char *kind, *status, *cut;
	struct error err;
	int64_t number;

	kind = take_word(&line);
	status = take_word(&line);
	cut = take_word(&line);
	output = take_output(&line, &result.output_size);
	errors = take_output(&line, &result.errors_size);
	if (output == NULL || errors == NULL || number_parse(status, 0, 255, &number, NULL) != 0) {
		error_set(&err, ERROR_UNAVAILABLE, "the sandbox's script gave a malformed answer");
		report(run, NULL, &err);
	} else {
		result.ended.signaled = strcmp(kind, "signaled") == 0;
		result.ended.status = (int)number;
		result.truncated = strcmp(cut, "1") == 0;
		result.output = output;
		result.errors = errors;
		report(run, &result, NULL);
	}
	memory_free(output);
	memory_free(errors);
	memory_free(kind);
	memory_free(status);
	memory_free(cut);
}

static void
executed(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct daytona_run *run = argument;
	struct json_object *object;
	const char *text, *line;
	struct error err;

	run->request = NULL;
	if (reason != NULL) {
		err = *reason;
		if (answer->status == 408)
			error_set(&err, ERROR_TIMEOUT, "a script did not end within %d s",
			    COMMAND_TIMEOUT);
		/* What is not started, or not there any more, is no mistake of the request's. */
		if (daytona_is_suspicious(answer))
			err.code = ERROR_UNAVAILABLE;
		if (daytona_is_suspicious(answer))
			daytona_life_check(run->operation.sandbox);
		report(run, NULL, &err);
		return;
	}
	object = json_parse_object(answer->body, answer->size, NULL);
	text = json_text(object, "result");
	line = text == NULL ? NULL : find_line(text);
	if (line != NULL) {
		read_line(run, line);
	} else {
		error_set(&err, ERROR_UNAVAILABLE, "the sandbox's script gave no answer: %.200s",
		    text == NULL ? "" : text);
		report(run, NULL, &err);
	}
	json_object_put(object);
}

static void
add_base64(struct buffer *text, const char *before, const void *data, size_t size)
{
	char *encoded;

	encoded = base64_text(data, size);
	(void)buffer_append_text(text, before);
	(void)buffer_append_text(text, encoded);
	memory_free(encoded);
}

/* The command for the shell, which is not known: it has words, quotes and one substitution. */
static void
write_command(struct buffer *text, const struct daytona_run *run, char *const *argv,
    const unsigned char *input, size_t size)
{
	char *script;
	size_t piece;

	script = script_text("gather");
	add_base64(text, "exec sh -c \"$(printf %s ", script, strlen(script));
	memory_free(script);
	(void)buffer_append_format(text, " | base64 -d)\" rws %s %zu %zu", run->work,
	    run->max_output, (size + PIECE - 1) / PIECE);
	for (; size > 0; size -= piece, input += piece) {
		piece = size < PIECE ? size : PIECE;
		add_base64(text, " ", input, piece);
	}
	for (; *argv != NULL; argv++)
		add_base64(text, " =", *argv, strlen(*argv));
	(void)buffer_append_text(text, " </dev/null\n");
}

static size_t
count_bytes(char *const *argv, size_t input)
{
	size_t count;

	for (count = input; *argv != NULL; argv++)
		count += strlen(*argv) + 4;
	return count;
}

static void
begin(struct daytona_run *run, char *const *argv, const void *input, size_t input_size)
{
	struct driver_sandbox *sandbox = run->operation.sandbox;
	struct json_object *body;
	struct buffer text;

	buffer_init(&text, 2 * COMMAND_MAX);
	write_command(&text, run, argv, input, input_size);
	body = json_object_new_object();
	json_object_object_add(body, "command",
	    json_object_new_string_len((const char *)buffer_data(&text), (int)text.length));
	json_object_object_add(body, "timeout", json_object_new_int(COMMAND_TIMEOUT));
	buffer_wipe(&text);
	run->request = daytona_toolbox_call(sandbox,
	    &(struct daytona_call){ .method = "POST",
		.path = "/process/execute",
		.body = body,
		.timeout = REQUEST_TIMEOUT,
		.max_answer = ANSWER_MIN + 4 * run->max_output },
	    executed, run);
}

struct driver_operation *
daytona_run(struct driver_sandbox *sandbox, char *const *argv, const void *input, size_t input_size,
    size_t max_output, driver_result_fn *done, void *argument)
{
	char token[MARKER_TOKEN_SIZE];
	struct daytona_run *run;

	run = memory_zeroed(1, sizeof(*run));
	marker_make_token(token);
	(void)snprintf(run->work, sizeof(run->work), "%s%s", WORK, token);
	run->done = done;
	run->argument = argument;
	run->max_output = max_output;
	run->soon = loop_timer_new(sandbox->context.loop, soon_expired, run);
	operation_link(&run->operation, sandbox, &sandbox->operations, destroy);
	if (sandbox->base == NULL || sandbox->is_lost)
		error_set(&run->err, ERROR_UNAVAILABLE, "the sandbox does not run");
	else if (count_bytes(argv, input_size) > COMMAND_MAX)
		error_set(&run->err, ERROR_TOO_LARGE, "a script's arguments are too long");
	else
		begin(run, argv, input, input_size);
	if (run->err.code != ERROR_NONE)
		loop_timer_start(run->soon, 0);
	return &run->operation;
}
