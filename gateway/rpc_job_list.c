/* SPDX-License-Identifier: ISC */
/* jobs, logs and signal: what can be asked of jobs whoever started them. */
#include <string.h>

#include <json-c/json.h>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/signal_name.h"
#include "gateway/rpc_call.h"
#include "gateway/rpc_handlers.h"
#include "gateway/rpc_job.h"
#include "gateway/rpc_json.h"

#define STATUS_SIGNAL 128

static const char *
state_name(const struct job *job)
{
	static const char *const names[] = { "running", "left", "ended" };

	return names[job_state(job)];
}

static void
put_exit_code(struct json_object *object, const struct job *job)
{
	const struct command_exit *ended = job_exit(job);

	if (ended != NULL && !ended->failed)
		rpc_json_put_number(object, "exit_code",
		    ended->signaled ? STATUS_SIGNAL + ended->status : ended->status);
}

static void
jobs_start(struct rpc_call *call, struct json_object *parameters)
{
	struct json_object *result, *list, *entry;
	struct job *job;
	size_t i;

	(void)parameters;
	list = json_object_new_array();
	for (i = 0; (job = job_at(call->rpc->worker, i)) != NULL; i++) {
		entry = json_object_new_object();
		rpc_json_put_number(entry, "job", job_number(job));
		rpc_json_put_text(entry, "command", job_title(job));
		rpc_json_put_text(entry, "state", state_name(job));
		rpc_json_put_number(entry, "started", job_start_time(job));
		put_exit_code(entry, job);
		rpc_json_put_number(entry, "output_bytes",
		    (int64_t)(job_written(job, JOB_OUTPUT) + job_written(job, JOB_ERRORS)));
		(void)json_object_array_add(list, entry);
	}
	result = json_object_new_object();
	(void)json_object_object_add(result, "jobs", list);
	rpc_call_result(call, result);
}

static struct job *
find_job(struct rpc_call *call, struct json_object *parameters)
{
	struct error err;
	struct job *job;

	job = job_find(call->rpc->worker, rpc_json_get_number(parameters, "job", 0));
	if (job == NULL) {
		error_set(&err, ERROR_NOT_FOUND, "there is no such job");
		rpc_call_error(call, &err);
	}
	return job;
}

/* The last bytes, from a whole character on; true when there was more before. */
static bool
put_tail(struct json_object *result, const char *name, const struct job *job,
    enum job_stream stream, size_t max)
{
	const unsigned char *data;
	uint64_t written;
	size_t size;

	written = job_written(job, stream);
	data = job_tail(job, stream, max, &size);
	while (size > 0 && size < written && (*data & 0xc0) == 0x80) {
		data++;
		size--;
	}
	rpc_json_put_bytes(result, name, data == NULL ? (const unsigned char *)"" : data, size);
	return size < written;
}

static void
logs_start(struct rpc_call *call, struct json_object *parameters)
{
	struct json_object *result;
	struct job *job;
	bool cut;
	size_t max;

	job = find_job(call, parameters);
	if (job == NULL)
		return;
	max = (size_t)rpc_json_get_number(parameters, "max_bytes", 65536);
	result = json_object_new_object();
	rpc_json_put_number(result, "job", job_number(job));
	rpc_json_put_text(result, "state", state_name(job));
	put_exit_code(result, job);
	cut = put_tail(result, "stdout", job, JOB_OUTPUT, max);
	cut = put_tail(result, "stderr", job, JOB_ERRORS, max) || cut;
	rpc_json_put_boolean(result, "truncated", cut);
	rpc_call_result(call, result);
}

static void
signal_start(struct rpc_call *call, struct json_object *parameters)
{
	struct json_object *result;
	const char *name;
	struct error err;
	struct job *job;

	name = rpc_json_get_text(parameters, "signal", "TERM");
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	if (signal_number(name) == 0) {
		error_set(&err, ERROR_INVALID, "there is no signal %.32s", name);
		rpc_call_error(call, &err);
		return;
	}
	job = find_job(call, parameters);
	if (job == NULL)
		return;
	if (job_state(job) == JOB_ENDED) {
		error_set(&err, ERROR_NOT_FOUND, "job %u has ended", job_number(job));
		rpc_call_error(call, &err);
		return;
	}
	job_signal(job, signal_number(name));
	result = json_object_new_object();
	rpc_json_put_number(result, "job", job_number(job));
	rpc_json_put_text(result, "signal", name);
	rpc_call_result(call, result);
}

const struct rpc_handler rpc_job_handlers[] = {
	{ "jobs", jobs_start, NULL, NULL, NULL, NULL },
	{ "logs", logs_start, NULL, NULL, NULL, NULL },
	{ "signal", signal_start, NULL, NULL, NULL, NULL },
	{ .name = NULL },
};
