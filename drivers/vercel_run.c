/* SPDX-License-Identifier: ISC */
/*
 * Commands that are run to their end. All goes in and comes out in base64 (core/scripts/gather.sh),
 * whose answer is also its own proof of being complete.
 *
 * One request starts a command and streams its lines. When that breaks, the command goes on, and is
 * found again by its id: its log is read once more from the beginning. When it broke before the id
 * was told, it is looked for among all commands by the name of its directory, and is started again
 * only when it is not there; that name also keeps a second one from beginning.
 *
 * What a script is told stays in Vercel's record of it: nothing secret goes this way.
 *
 * What nobody has said of Vercel's commands (sheet, section 12), and what is done about it:
 *
 *	what becomes of bytes that are not UTF-8     none is ever printed
 *	what stdin is                                nobody reads it
 *	whether a log is cut when it gets long       an answer that is not whole is none
 *	whom kill reaches                            scripts of ours signal groups instead
 *	whether a wait=true of its own is cut        logs are read instead, and are taken to be cut
 *	whether wait has to be in the query too      it is in the body, as the official SDK has it; an
 *	                                             answer that did not wait is followed by its id
 *	the status of executable_not_found           any refusal is told; only sh is ever started
 */
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "core/scripts.h"
#include "drivers/gather.h"
#include "drivers/vercel_driver.h"
#include "drivers/vercel_event.h"
#include "drivers/vercel_log.h"

/* ms for the whole of it, and for a request that is no stream. */
#define RUN_TIMEOUT 600000
#define REQUEST_TIMEOUT 30000
/* ms for the stream's own end, once the command's was told in it. */
#define END_DELAY 1000
/* ms before what failed is tried again, doubled each time up to the longest. */
#define AGAIN_DELAY 250
#define AGAIN_DELAY_MAX 5000
/* Failures in a row, commands started, and logs of an ended command that say nothing. */
#define FAILURES_MAX 6
#define STARTS_MAX 3
#define LOGS_MAX 4

struct vercel_run {
	struct driver_operation operation; /* first: a run is an operation */
	struct gather gather;
	char **arguments; /* of the script that runs it */
	bool is_killer;   /* of another one */
	struct vercel_log log;
	struct http_request *request;
	void (*step)(struct vercel_run *run); /* what again begins */
	struct loop_timer *again, *deadline;
	unsigned failures, starts, logs;
	struct error err; /* of the call, or of the last failure */
	driver_result_fn *done;
	void *argument;
};

static void follow(struct vercel_run *run);
static void search(struct vercel_run *run);
static void start(struct vercel_run *run);

/* A client that leaves does not end what it asked for. */
static void
kill_run(const struct vercel_run *run)
{
	struct driver_operation *killer;
	char **argv;

	argv = gather_cancel_argv(&run->gather);
	killer = vercel_run(run->operation.sandbox, argv, NULL, 0, 0, NULL, NULL);
	((struct vercel_run *)killer)->is_killer = true;
	memory_list_free(argv);
}

static void
destroy(struct driver_operation *operation)
{
	struct vercel_run *run = (struct vercel_run *)operation;

	if (run->starts > 0 && !run->log.has_exit && !run->is_killer &&
	    !operation->sandbox->is_closing && !operation->sandbox->is_lost)
		kill_run(run);
	http_cancel(run->request);
	loop_timer_free(run->again);
	loop_timer_free(run->deadline);
	memory_list_free(run->arguments);
	vercel_log_free(&run->log);
	memory_free(run);
}

static void
report(struct vercel_run *run, const struct driver_result *result, const struct error *err)
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
again_expired(void *argument)
{
	struct vercel_run *run = argument;

	if (run->step != NULL)
		run->step(run);
	else
		report(run, NULL, &run->err);
}

static void
deadline_expired(void *argument)
{
	struct error err;

	error_set(&err, ERROR_TIMEOUT, "a script did not end within %d s", RUN_TIMEOUT / 1000);
	report(argument, NULL, &err);
}

static void
begin_step(struct vercel_run *run, void (*step)(struct vercel_run *), int64_t delay)
{
	run->step = step;
	loop_timer_start(run->again, delay);
}

/* Begins step after a failure, later each time; gives up after too many. */
static void
try_again(struct vercel_run *run, void (*step)(struct vercel_run *), const struct error *err)
{
	int64_t delay;

	if (run->failures >= FAILURES_MAX) {
		report(run, NULL, err);
		return;
	}
	run->err = *err;
	delay = (int64_t)AGAIN_DELAY << run->failures++;
	begin_step(run, step, delay < AGAIN_DELAY_MAX ? delay : AGAIN_DELAY_MAX);
}

/* The script's answer is there, or there is none. */
static void
conclude(struct vercel_run *run, const char *text)
{
	struct gather_answer answer;
	struct error err;

	/* What it did is done: nobody has to be killed. */
	run->log.has_exit = true;
	if (gather_read(text, &answer, &err) == 0)
		report(run, &answer.result, NULL);
	else
		report(run, NULL, &err);
	gather_answer_free(&answer);
}

/* A stream is over: is that the end, or is there more to be had? */
static void
judge(struct vercel_run *run)
{
	char *text;

	text = vercel_log_text(&run->log);
	if (gather_is_complete(text) || (run->log.has_exit && ++run->logs >= LOGS_MAX))
		conclude(run, text);
	else
		begin_step(run, run->log.id == NULL ? search : follow, AGAIN_DELAY << run->logs);
	explicit_bzero(text, strlen(text));
	memory_free(text);
}

static void
stream_expired(struct vercel_run *run)
{
	http_cancel(run->request);
	run->request = NULL;
	judge(run);
}

/* The command's end was told: that of the stream is not waited for long. */
static void
await_stream_end(struct vercel_run *run)
{
	begin_step(run, stream_expired, END_DELAY);
}

/* What is wrong with what came ends the stream, not the command. */
static void
received(void *argument)
{
	struct vercel_run *run = argument;
	const struct buffer *bytes = http_received(run->request);
	bool ends = false;
	struct error err;
	int result;

	result = vercel_log_take(&run->log, buffer_data(bytes), bytes->length, &ends, &err);
	if (result == 0) {
		http_consume(run->request, bytes->length);
		if (ends)
			await_stream_end(run);
		return;
	}
	http_cancel(run->request);
	run->request = NULL;
	loop_timer_stop(run->again);
	try_again(run, run->log.id == NULL ? search : follow, &err);
}

/* An answer that says that the session is over, or is not ours to use. */
static void
refuse(struct vercel_run *run, const struct http_answer *answer, const struct error *reason)
{
	struct error err = *reason;

	/* What is stopped is no mistake of the request's. */
	if (vercel_is_suspicious(answer)) {
		err.code = ERROR_UNAVAILABLE;
		vercel_life_check(run->operation.sandbox);
	}
	report(run, NULL, &err);
}

static bool
may_recover(const struct http_answer *answer)
{
	return answer->outcome == HTTP_UNKNOWN || answer->outcome == HTTP_BROKEN ||
	       answer->status >= 500;
}

static void
started(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct vercel_run *run = argument;

	run->request = NULL;
	if (reason == NULL)
		vercel_log_take_rest(&run->log);
	loop_timer_stop(run->again);
	if (reason == NULL || run->log.id != NULL) {
		judge(run);
	} else if (may_recover(answer)) {
		try_again(run, search, reason);
	} else {
		/* It was not started. */
		run->starts = 0;
		refuse(run, answer, reason);
	}
}

static void
start(struct vercel_run *run)
{
	struct json_object *body, *list;
	size_t i;

	if (run->starts++ >= STARTS_MAX) {
		if (run->err.code == ERROR_NONE)
			error_set(&run->err, ERROR_UNAVAILABLE,
			    "the command was taken %d times, and is not there", STARTS_MAX);
		report(run, NULL, &run->err);
		return;
	}
	vercel_log_clear(&run->log);
	list = json_object_new_array();
	for (i = 1; run->arguments[i] != NULL; i++)
		json_object_array_add(list, json_object_new_string(run->arguments[i]));
	body = json_object_new_object();
	json_add_text(body, "command", run->arguments[0]);
	json_object_object_add(body, "args", list);
	json_add_text(body, "cwd", "/");
	json_object_object_add(body, "env", json_object_new_object());
	json_object_object_add(body, "wait", json_object_new_boolean(1));
	json_object_object_add(body, "logs", json_object_new_boolean(1));
	run->request = vercel_session_call(run->operation.sandbox, "/cmd",
	    &(struct vercel_call){ .method = "POST",
		.body = body,
		.received = received,
		.done = started,
		.argument = run });
}

static void
searched(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct vercel_run *run = argument;
	struct json_object *object;
	const char *id;

	run->request = NULL;
	if (reason != NULL) {
		if (may_recover(answer))
			try_again(run, search, reason);
		else
			refuse(run, answer, reason);
		return;
	}
	object = json_parse_object(answer->body, answer->size, NULL);
	id = vercel_event_find_command(object, run->gather.work);
	if (id != NULL) {
		run->log.id = memory_text(id);
		follow(run);
	} else {
		start(run);
	}
	json_object_put(object);
}

static void
search(struct vercel_run *run)
{
	run->request = vercel_session_call(run->operation.sandbox, "/cmd",
	    &(struct vercel_call){ .method = "GET",
		.repeat = HTTP_IDEMPOTENT,
		.timeout = REQUEST_TIMEOUT,
		.done = searched,
		.argument = run });
}

static void
asked(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct vercel_run *run = argument;
	struct json_object *object;
	struct vercel_event event = { 0 };

	run->request = NULL;
	if (reason != NULL) {
		if (may_recover(answer))
			try_again(run, follow, reason);
		else
			refuse(run, answer, reason);
		return;
	}
	object = json_parse_object(answer->body, answer->size, NULL);
	vercel_event_take_command(&event, json_member(object, "command", json_type_object));
	run->log.has_exit = event.has_exit;
	json_object_put(object);
	run->failures = 0;
	judge(run);
}

/* Has the command ended? Its log has, whether that is so or not. */
static void
ask(struct vercel_run *run)
{
	char *rest;

	rest = memory_text_format("/cmd/%s", run->log.id);
	run->request = vercel_session_call(run->operation.sandbox, rest,
	    &(struct vercel_call){ .method = "GET",
		.repeat = HTTP_IDEMPOTENT,
		.timeout = REQUEST_TIMEOUT,
		.done = asked,
		.argument = run });
	memory_free(rest);
}

static void
followed(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct vercel_run *run = argument;
	char *text;

	run->request = NULL;
	if (reason != NULL && !may_recover(answer)) {
		refuse(run, answer, reason);
		return;
	}
	if (reason != NULL && answer->status >= 500) {
		try_again(run, follow, reason);
		return;
	}
	if (reason == NULL)
		vercel_log_take_rest(&run->log);
	/* The stream's end is here: what waits for it would end the next request instead. */
	loop_timer_stop(run->again);
	text = vercel_log_text(&run->log);
	if (gather_is_complete(text))
		conclude(run, text);
	else
		ask(run);
	explicit_bzero(text, strlen(text));
	memory_free(text);
}

/* Reads the log, which begins with the first byte whoever has read it before, and ends with the
 * command. */
static void
follow(struct vercel_run *run)
{
	char *rest;

	vercel_log_clear(&run->log);
	rest = memory_text_format("/cmd/%s/logs", run->log.id);
	run->request = vercel_session_call(run->operation.sandbox, rest,
	    &(struct vercel_call){
		.method = "GET", .received = received, .done = followed, .argument = run });
	memory_free(rest);
}

/* The argv of the script that runs argv. */
static char **
make_argv(const struct gather *gather, char *const *argv, const void *input, size_t size)
{
	char **arguments, **whole;

	arguments = gather_arguments(gather, argv, input, size);
	whole = script_argv("gather", arguments);
	memory_list_free(arguments);
	return whole;
}

struct driver_operation *
vercel_run(struct driver_sandbox *sandbox, char *const *argv, const void *input, size_t input_size,
    size_t max_output, driver_result_fn *done, void *argument)
{
	struct vercel_run *run;

	run = memory_zeroed(1, sizeof(*run));
	gather_init(&run->gather, max_output);
	vercel_log_init(&run->log, gather_answer_max(&run->gather));
	run->done = done;
	run->argument = argument;
	run->again = loop_timer_new(sandbox->context.loop, again_expired, run);
	run->deadline = loop_timer_new(sandbox->context.loop, deadline_expired, run);
	operation_link(&run->operation, sandbox, &sandbox->operations, destroy);
	if (vercel_check_usable(sandbox, &run->err) != 0 ||
	    gather_check(argv, input_size, &run->err) != 0) {
		loop_timer_start(run->again, 0);
		return &run->operation;
	}
	run->arguments = make_argv(&run->gather, argv, input, input_size);
	loop_timer_start(run->deadline, RUN_TIMEOUT);
	vercel_life_use(sandbox);
	start(run);
	return &run->operation;
}
