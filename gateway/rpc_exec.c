/* SPDX-License-Identifier: ISC */
/* exec, attach and input: requests that stand for a job while it runs. */
#include <string.h>

#include <json-c/json.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/base/utf8.h"
#include "core/signal_name.h"
#include "core/workspace.h"
#include "gateway/rpc_call.h"
#include "gateway/rpc_handlers.h"
#include "gateway/rpc_job.h"
#include "gateway/rpc_json.h"
#include "gateway/worker.h"

/* A shell's way to tell a death by signal. */
#define STATUS_SIGNAL 128
#define TITLE_MAX 200
/* The most that the two streams of a result may be kept, whatever the login allows. */
#define OUTPUT_MAX (4U * 1024U * 1024U)

/* What exec and attach keep of a call. */
struct follower {
	struct rpc_call *call;
	struct job *job;
	struct job_watcher *watcher; /* NULL once the job has finished */
	bool stream;
	bool attached; /* by attach: signals and leaving do not end the job */
};

/* A cut between the bytes of a character would make the whole no text. */
static size_t
whole_characters(const unsigned char *data, size_t size)
{
	size_t back;

	for (back = 1; back <= 3 && back <= size; back++) {
		if ((data[size - back] & 0xc0) == 0x80)
			continue;
		if (data[size - back] >= 0xc0 &&
		    utf8_sequence((const char *)data + size - back, back) == 0)
			return size - back;
		break;
	}
	return size;
}

static void
put_stream(
    struct json_object *result, const char *name, const unsigned char *data, size_t size, bool cut)
{
	if (cut)
		size = whole_characters(data, size);
	rpc_json_put_bytes(result, name, data == NULL ? (const unsigned char *)"" : data, size);
}

static void
put_exit(struct json_object *result, const struct command_exit *ended)
{
	const char *name;

	name = ended->signaled ? signal_name((int)ended->status) : NULL;
	rpc_json_put_number(
	    result, "exit_code", ended->signaled ? STATUS_SIGNAL + ended->status : ended->status);
	if (name != NULL)
		rpc_json_put_text(result, "signal", name);
	if (ended->note != NULL)
		rpc_json_put_text(result, "note", ended->note);
}

/* The result of a job that has ended, or has been detached. */
static struct json_object *
make_result(const struct job *job, bool with_output)
{
	const struct command_exit *ended = job_exit(job);
	struct json_object *result;
	const unsigned char *data;
	size_t size;

	result = json_object_new_object();
	if (ended != NULL)
		put_exit(result, ended);
	if (job_timed_out(job))
		rpc_json_put_boolean(result, "timed_out", true);
	if (with_output) {
		data = job_head(job, JOB_OUTPUT, &size);
		put_stream(result, "stdout", data, size, job_truncated(job));
		data = job_head(job, JOB_ERRORS, &size);
		put_stream(result, "stderr", data, size, job_truncated(job));
	}
	rpc_json_put_boolean(result, "truncated", job_truncated(job));
	if (ended != NULL)
		rpc_json_put_number(result, "duration", job_duration(job));
	if (job_state(job) != JOB_ENDED)
		rpc_json_put_number(result, "job", job_number(job));
	return result;
}

static bool
follower_ready(void *argument)
{
	struct follower *follower = argument;

	return !follower->stream || rpc_call_ready(follower->call);
}

static void
follower_progress(void *argument, const char *text)
{
	struct follower *follower = argument;

	rpc_call_progress(follower->call, 0, 0, text);
}

/* A detached job needs its client no longer. */
static void
follower_started(void *argument)
{
	struct follower *follower = argument;

	if (!job_detached(follower->job))
		return;
	job_unwatch(follower->watcher);
	follower->watcher = NULL;
	rpc_call_result(follower->call, make_result(follower->job, false));
}

static void
follower_output(void *argument, enum job_stream stream, const void *data, size_t size)
{
	struct follower *follower = argument;

	if (follower->stream)
		rpc_call_output(
		    follower->call, stream == JOB_OUTPUT ? "stdout" : "stderr", data, size);
}

static void
follower_finished(void *argument)
{
	struct follower *follower = argument;
	const struct command_exit *ended = job_exit(follower->job);

	follower->watcher = NULL;
	if (ended->failed)
		rpc_call_error(follower->call, &ended->failure);
	else
		rpc_call_result(follower->call, make_result(follower->job, !follower->attached));
}

static const struct job_events follower_events = {
	follower_ready,
	follower_progress,
	follower_started,
	follower_output,
	follower_finished,
};

static void
follower_cancel(struct rpc_call *call)
{
	struct follower *follower = call->state;
	struct error err;

	if (follower == NULL || follower->watcher == NULL)
		return;
	if (!follower->attached) {
		job_abort(follower->job);
		return;
	}
	error_set(&err, ERROR_ABORTED, "the job runs on without this client");
	rpc_call_error(call, &err);
}

static void
follower_drop(struct rpc_call *call)
{
	struct follower *follower = call->state;

	if (follower != NULL && follower->watcher != NULL)
		job_unwatch(follower->watcher);
	memory_free(follower);
	call->state = NULL;
}

static void
follower_resume(struct rpc_call *call)
{
	struct follower *follower = call->state;

	if (follower != NULL && follower->watcher != NULL)
		job_resume(follower->job);
}

/* What the table leaves to the login. */
static void
fill_request(
    const struct rpc_call *call, struct json_object *parameters, struct job_request *request)
{
	const struct settings *settings = call->rpc->worker->settings;
	const char *background;
	int64_t output;

	request->detach = rpc_json_get_boolean(parameters, "detach", false);
	request->input_open = rpc_json_get_boolean(parameters, "stdin_open", false);
	request->command.timeout = rpc_json_get_number(
	    parameters, "timeout", request->detach ? 0 : settings_number(settings, "timeout"));
	request->command.kill_grace = (uint32_t)rpc_json_get_number(
	    parameters, "kill_grace", settings_number(settings, "kill_grace"));
	output = rpc_json_get_number(
	    parameters, "max_output_bytes", settings_number(settings, "max_output_bytes"));
	request->max_output = output < (int64_t)OUTPUT_MAX ? (uint64_t)output : OUTPUT_MAX;
	request->max_stream = (uint64_t)rpc_json_get_number(parameters, "max_stream_bytes",
	    request->detach ? 0 : settings_number(settings, "max_stream_bytes"));
	background = rpc_json_get_text(
	    parameters, "background", settings_text(settings, "background"));
	request->command.keep_background = strcmp(background, "keep") == 0;
	request->command.follow_background = request->command.keep_background;
	request->command.want_stdin = request->input_open || rpc_json_has(parameters, "stdin") ||
				      rpc_json_has(parameters, "stdin_base64");
}

/* The words of the command; new. NULL when it is not said once what to run. */
static char **
make_argv(struct json_object *parameters, struct error *err)
{
	const char *command;
	char **argv;
	size_t count;

	command = rpc_json_get_text(parameters, "command", NULL);
	argv = rpc_json_get_list(parameters, "argv");
	if ((command != NULL) == (argv[0] != NULL)) {
		error_set(err, ERROR_INVALID, "exec needs either command or argv");
		memory_list_free(argv);
		return NULL;
	}
	if (command == NULL)
		return argv;
	count = 0;
	argv = memory_list_add(argv, count++, "sh");
	argv = memory_list_add(argv, count++, "-c");
	return memory_list_add(argv, count, command);
}

/* What the connection may set, and then what this request sets. */
static char **
make_environment(const struct rpc_call *call, struct json_object *parameters)
{
	char **environment, **pairs;
	size_t i, count;

	environment = memory_list(call->rpc->environment);
	for (count = 0; environment[count] != NULL; count++)
		continue;
	pairs = rpc_json_get_pairs(parameters, "env");
	for (i = 0; pairs[i] != NULL; i++)
		environment = memory_list_add(environment, count++, pairs[i]);
	memory_list_free(pairs);
	return environment;
}

static char *
make_title(char *const *argv, struct json_object *parameters)
{
	const char *command;
	char *title, *longer;
	size_t i;

	command = rpc_json_get_text(parameters, "command", NULL);
	if (command != NULL)
		return memory_text_bounded(command, strnlen(command, TITLE_MAX));
	title = memory_text_bounded(argv[0], strnlen(argv[0], TITLE_MAX));
	for (i = 1; argv[i] != NULL && strlen(title) < TITLE_MAX; i++) {
		longer = memory_text_format("%s %s", title, argv[i]);
		memory_free(title);
		title = longer;
	}
	title[strnlen(title, TITLE_MAX)] = '\0';
	return title;
}

static void
start_job(struct rpc_call *call, struct job_request *request, bool stream)
{
	struct follower *follower;

	follower = memory_zeroed(1, sizeof(*follower));
	follower->call = call;
	follower->stream = stream;
	call->state = follower;
	follower->job = job_start(
	    call->rpc->worker, request, &follower_events, follower, &follower->watcher);
}

static void
exec_start(struct rpc_call *call, struct json_object *parameters)
{
	struct job_request request = { 0 };
	char **argv, **environment, *input, *title, *directory;
	struct error err;
	size_t size;

	argv = make_argv(parameters, &err);
	if (argv == NULL) {
		rpc_call_error(call, &err);
		return;
	}
	environment = make_environment(call, parameters);
	title = make_title(argv, parameters);
	input = rpc_json_get_bytes(parameters, "stdin", &request.input_size);
	directory = rpc_json_get_bytes(parameters, "cwd", &size);
	fill_request(call, parameters, &request);
	request.command.argv = argv;
	request.command.environment = environment;
	request.command.directory = directory;
	request.input = input;
	request.title = title;
	start_job(
	    call, &request, rpc_json_get_boolean(parameters, "stream", call->mcp.progress != NULL));
	memory_free(directory);
	memory_text_wipe(input);
	memory_free(title);
	memory_list_free(environment);
	memory_list_free(argv);
}

static void
attach_start(struct rpc_call *call, struct json_object *parameters)
{
	struct follower *follower;
	struct error err;
	struct job *job;

	job = job_find(call->rpc->worker, rpc_json_get_number(parameters, "job", 0));
	if (job == NULL) {
		error_set(&err, ERROR_NOT_FOUND, "there is no such job");
		rpc_call_error(call, &err);
		return;
	}
	follower = memory_zeroed(1, sizeof(*follower));
	follower->call = call;
	follower->job = job;
	follower->stream = true;
	follower->attached = true;
	call->state = follower;
	follower->watcher = job_watch(
	    job, rpc_json_get_boolean(parameters, "replay", true), &follower_events, follower);
	if (job_state(job) == JOB_ENDED) {
		job_unwatch(follower->watcher);
		follower_finished(follower);
	}
}

static int
follower_input(
    struct rpc_call *call, const struct feed_input *input, struct feed_lot **lot, struct error *err)
{
	struct follower *follower = call->state;

	if (follower == NULL || follower->watcher == NULL)
		return error_set(err, ERROR_NOT_FOUND, "the request has ended");
	return job_input(follower->job, input, lot, err);
}

static void
input_taken(void *argument)
{
	struct rpc_call *call = argument;

	call->state = NULL;
	rpc_call_result(call, json_object_new_object());
}

/* To the request or the job that is named. */
static int
put_input(struct rpc_call *call, struct json_object *parameters, const struct feed_input *input,
    struct error *err)
{
	struct json_object *id;
	struct rpc_call *other;
	struct feed_lot *lot;
	struct job *job;
	int result;

	if (json_object_object_get_ex(parameters, "request", &id) && id != NULL) {
		other = rpc_call_find(call->rpc, id);
		if (other == NULL || other->handler == NULL || other->handler->input == NULL)
			return error_set(
			    err, ERROR_NOT_FOUND, "there is no such request that takes input");
		result = other->handler->input(other, input, &lot, err);
	} else {
		job = job_find(call->rpc->worker, rpc_json_get_number(parameters, "job", 0));
		if (job == NULL)
			return error_set(err, ERROR_NOT_FOUND, "there is no such job");
		result = job_input(job, input, &lot, err);
	}
	if (result == 0)
		call->state = lot;
	return result;
}

static void
input_start(struct rpc_call *call, struct json_object *parameters)
{
	struct feed_input input = { .taken = input_taken, .argument = call };
	struct error err;
	char *data;

	data = rpc_json_get_bytes(parameters, "data", &input.size);
	input.data = data;
	input.end = rpc_json_get_boolean(parameters, "end", false);
	if (put_input(call, parameters, &input, &err) != 0)
		rpc_call_error(call, &err);
	memory_text_wipe(data);
}

static void
input_drop(struct rpc_call *call)
{
	if (call->state != NULL)
		feed_forget(call->state);
}

const struct rpc_handler rpc_exec_handlers[] = {
	{ "exec", exec_start, follower_cancel, follower_drop, follower_resume, follower_input },
	{ "attach", attach_start, follower_cancel, follower_drop, follower_resume, follower_input },
	{ "input", input_start, NULL, input_drop, NULL, NULL },
	{ .name = NULL },
};
