/* SPDX-License-Identifier: ISC */
/*
 * Commands that are run to their end, by one request each. What it returns is text, so the outputs
 * come in base64 (core/scripts/gather.sh), and so does all that goes in: the command is fed to a
 * shell, and its text must hold nothing that a shell looks at.
 */
#include <string.h>

#include "core/base/base64.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "core/scripts.h"
#include "drivers/daytona_driver.h"
#include "drivers/gather.h"
#include "drivers/operation.h"

/* Seconds for the command, and ms for the request. */
#define COMMAND_TIMEOUT 600
#define REQUEST_TIMEOUT 630000
struct daytona_run {
	struct driver_operation operation; /* first: a run is an operation */
	struct http_request *request;
	struct loop_timer *soon; /* tells what failed within the call */
	struct error err;
	struct gather gather;
	bool is_killer; /* of another one */
	driver_result_fn *done;
	void *argument;
};

/* A client that leaves does not end what it asked for. */
static void
kill_run(const struct daytona_run *run)
{
	struct driver_operation *killer;
	char **argv;

	argv = gather_cancel_argv(&run->gather);
	killer = daytona_run(run->operation.sandbox, argv, NULL, 0, 0, NULL, NULL);
	((struct daytona_run *)killer)->is_killer = true;
	memory_list_free(argv);
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

static void
read_answer(struct daytona_run *run, const char *text)
{
	struct gather_answer answer;
	struct error err;

	if (gather_read(text, &answer, &err) == 0)
		report(run, &answer.result, NULL);
	else
		report(run, NULL, &err);
	gather_answer_free(&answer);
}

static void
executed(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct daytona_run *run = argument;
	struct json_object *object;
	const char *text;
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
	read_answer(run, text == NULL ? "" : text);
	json_object_put(object);
}

/* The command for the shell, which is not known: it has words, quotes and one substitution. */
static void
write_command(struct buffer *text, const struct daytona_run *run, char *const *argv,
    const void *input, size_t size)
{
	char *script, *encoded, **arguments;
	size_t i;

	script = script_text("gather");
	encoded = base64_text(script, strlen(script));
	(void)buffer_append_format(
	    text, "exec sh -c \"$(printf %%s %s | base64 -d)\" rws", encoded);
	memory_free(script);
	memory_free(encoded);
	arguments = gather_arguments(&run->gather, argv, input, size);
	for (i = 0; arguments[i] != NULL; i++) {
		(void)buffer_append_text(text, " ");
		(void)buffer_append_text(text, arguments[i]);
	}
	memory_list_free(arguments);
	(void)buffer_append_text(text, " </dev/null\n");
}

static void
begin(struct daytona_run *run, char *const *argv, const void *input, size_t input_size)
{
	struct driver_sandbox *sandbox = run->operation.sandbox;
	struct json_object *body;
	struct buffer text;

	buffer_init(&text, 2 * GATHER_INPUT_MAX);
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
		.max_answer = gather_answer_max(&run->gather) },
	    executed, run);
}

struct driver_operation *
daytona_run(struct driver_sandbox *sandbox, char *const *argv, const void *input, size_t input_size,
    size_t max_output, driver_result_fn *done, void *argument)
{
	struct daytona_run *run;

	run = memory_zeroed(1, sizeof(*run));
	gather_init(&run->gather, max_output);
	run->done = done;
	run->argument = argument;
	run->soon = loop_timer_new(sandbox->context.loop, soon_expired, run);
	operation_link(&run->operation, sandbox, &sandbox->operations, destroy);
	if (sandbox->base == NULL || sandbox->is_lost)
		error_set(&run->err, ERROR_UNAVAILABLE, "the sandbox does not run");
	else if (gather_check(argv, input_size, &run->err) == 0)
		begin(run, argv, input, input_size);
	if (run->err.code != ERROR_NONE)
		loop_timer_start(run->soon, 0);
	return &run->operation;
}
