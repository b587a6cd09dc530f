/* SPDX-License-Identifier: ISC */
/*
 * Files by our script in the sandbox, for every driver that has nothing better. Two agents run it:
 * one for what is quick, one for what may take long, so that a hash of a big file holds up no
 * listing. Content goes in pieces, some under way at a time, with other requests in between; what
 * is read lands in a private file here while it arrives, and what is written is collected in one
 * before it is sent.
 */
#include <string.h>
#include <sys/stat.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/file_path.h"
#include "core/files.h"
#include "core/files_agent.h"
#include "core/files_backend.h"
#include "core/files_fresh.h"
#include "core/files_job.h"
#include "core/files_script.h"
#include "core/workspace.h"

#define SWEEP_MIN 1000

static void
call_ended(struct files_call *call, const struct error *failure)
{
	struct files_job *job = call->job;

	job->calls--;
	if (failure != NULL) {
		files_job_fail(job, failure);
		files_job_drop(job);
	} else if (call->kind == CALL_MAIN) {
		files_job_end(job);
	} else if (call->kind == CALL_GET) {
		/* The file has shrunk; what pieces behind it held belongs elsewhere. */
		if (call->got < call->wanted)
			job->cut_short = true;
		files_job_go_on_reading(job);
	} else {
		files_job_feed(job);
	}
	files_job_free_if_done(job);
}

static int
take_line(void *argument, const struct files_reply_line *line, struct error *err)
{
	struct files_line *on = argument;
	struct files_call *call = on->first;

	if (call == NULL || call->number != line->number)
		return error_set(err, ERROR_INVALID, "the script answers what was not asked");
	if (call->job == NULL && line->kind != FILES_REPLY_OK && line->kind != FILES_REPLY_FAIL)
		return error_set(err, ERROR_INVALID, "the script answers what was not asked");
	if (line->kind == FILES_REPLY_ATTRIBUTES && call->kind == CALL_MAIN) {
		call->job->reply.attributes = line->attributes;
	} else if (line->kind == FILES_REPLY_VOLUME) {
		call->job->reply.volume = line->volume;
	} else if (line->kind == FILES_REPLY_DATA) {
		call->job->texts++;
	} else if (line->kind == FILES_REPLY_OK || line->kind == FILES_REPLY_FAIL) {
		on->first = call->next;
		if (on->first == NULL)
			on->last = NULL;
		if (call->job != NULL)
			call_ended(call, line->kind == FILES_REPLY_FAIL ? &line->failure : NULL);
		memory_free(call);
	}
	return 0;
}

static int
take_data(
    void *argument, uint32_t number, const unsigned char *data, size_t size, struct error *err)
{
	struct files_line *on = argument;
	struct files_call *call = on->first;
	struct files_job *job = call->job;

	(void)number;
	if (job == NULL)
		return error_set(err, ERROR_INVALID, "the script answers what was not asked");
	if (job->verb == FILE_LIST)
		return files_job_take_records(job, data, size, err);
	if (job->verb == FILE_OPEN || job->verb == FILE_EDIT) {
		/* Of OPEN the path comes first, then the file's beginning. */
		if (call->kind == CALL_MAIN && job->texts == 1)
			return files_job_take_path(job, data, size, err);
		return files_job_take_content(call, data, size, err);
	}
	if (size > buffer_room(&job->text))
		return error_set(err, ERROR_INVALID, "the script's reply is too long");
	return buffer_append(&job->text, data, size);
}

static void
agent_lost(void *argument, const struct error *err)
{
	struct files_line *on = argument;
	bool is_untouched = true;
	size_t i;

	for (i = 0; i < AGENTS; i++)
		if (on->far->agents[i].agent != NULL &&
		    files_agent_is_started(on->far->agents[i].agent))
			is_untouched = false;
	files_lost(on->far->files, is_untouched, err);
}

static const struct files_agent_events agent_events = {
	.replies = { .line = take_line, .data = take_data },
	.lost = agent_lost,
};

/* A request that was just numbered: its number was the last one given. */
static struct files_call *
add_call(struct files_line *on, struct files_job *job, enum files_call_kind kind)
{
	struct files_call *call;

	call = memory_zeroed(1, sizeof(*call));
	call->job = job;
	call->kind = kind;
	call->number = files_agent_last_number(on->agent);
	if (on->last != NULL)
		on->last->next = call;
	else
		on->first = call;
	on->last = call;
	return call;
}

/*
 * Sends a line, which is freed here;
 * of a piece size bytes, with FEED those of the spool at the offset.
 */
void
files_job_send(struct files_job *job, enum files_call_kind kind, char *line, size_t size)
{
	bool feeds = kind == CALL_FEED && size > 0;

	add_call(job->on, job, kind)->wanted = size;
	job->calls++;
	files_agent_send(
	    job->on->agent, line, feeds ? job->spool : -1, job->offset, feeds ? size : 0);
	memory_free(line);
}

/* Has the script look for what is left of others, now and then. */
static void
send_sweep(void *argument)
{
	struct files_far *far = argument;
	struct files_line *on = &far->agents[AGENT_QUICK];
	int64_t age;
	char *line;

	age = settings_number(workspace_settings(files_workspace(far->files)), "leftover_age");
	line = memory_text_format("%u sweep", files_agent_number(on->agent));
	(void)add_call(on, NULL, CALL_MAIN);
	files_agent_send(on->agent, line, -1, 0, 0);
	memory_free(line);
	loop_timer_start(far->sweep, age < SWEEP_MIN ? SWEEP_MIN : age);
}

static bool
takes_long(const struct file_request *request)
{
	return ((request->verb == FILE_LIST || request->verb == FILE_REMOVE) &&
		   (request->flags & (FILE_RECURSIVE | FILE_TRASH)) == FILE_RECURSIVE) ||
	       request->verb == FILE_COPY || request->verb == FILE_HASH;
}

static struct files_line *
choose_agent(struct files_far *far, const struct file_request *request)
{
	struct files_line *on;

	on = &far->agents[takes_long(request) ? AGENT_LONG : AGENT_QUICK];
	on->far = far;
	if (on->agent != NULL)
		return on;
	on->agent = files_agent_open(files_workspace(far->files), &agent_events, on);
	if (on == &far->agents[AGENT_QUICK])
		send_sweep(far);
	return on;
}

/* Paths go out absolute and normal. */
static int
normalize(const struct files_far *far, char **path, struct error *err)
{
	char *normal;

	if (*path == NULL)
		return 0;
	normal = path_normalize(workspace_root(files_workspace(far->files)), *path, err);
	if (normal == NULL)
		return -1;
	memory_free(*path);
	*path = normal;
	return 0;
}

static int
prepare(struct files_job *job, struct file_request *request, struct error *err)
{
	const struct files_far *far = job->on->far;
	uint64_t limit = files_limit(far->files);
	struct stat status;

	if (normalize(far, &request->path, err) != 0 ||
	    (request->verb != FILE_SYMLINK && normalize(far, &request->other, err) != 0))
		return -1;
	if (request->verb == FILE_OPEN || request->verb == FILE_EDIT ||
	    request->verb == FILE_LIST) {
		job->spool = files_job_open_spool(far, err);
		return job->spool < 0 ? -1 : 0;
	}
	if (request->verb == FILE_SETSTAT && (request->change.fields & FILE_CHANGE_SIZE) != 0 &&
	    request->change.size > limit)
		return file_too_large(err, request->change.size, limit);
	if (request->verb != FILE_COMMIT)
		return 0;
	job->spool = request->fd;
	request->fd = -1;
	if (fstat(job->spool, &status) != 0 || !S_ISREG(status.st_mode))
		return error_set(err, ERROR_INVALID, "the content is not a regular file");
	job->size = (uint64_t)status.st_size;
	return job->size > limit ? file_too_large(err, job->size, limit) : 0;
}

static void
answer_soon(void *argument)
{
	struct files_job *job = argument;

	files_job_finish(job);
	files_job_free_if_done(job);
}

static void
fail_soon(void *argument)
{
	struct files_job *job = argument;
	struct error err = job->failure;

	files_job_fail(job, &err);
	files_job_free_if_done(job);
}

/* The owner of a new file in a directory of his own need not wait to hear that he may make it. */
static void
begin_anew(struct files_job *job)
{
	job->reply.fd = job->spool;
	job->spool = -1;
	job->reply.limit = files_limit(job->on->far->files);
	job->soon = loop_timer_new(
	    workspace_loop(files_workspace(job->on->far->files)), answer_soon, job);
	loop_timer_start(job->soon, 0);
}

static void
send_script(struct files_far *far, struct files_operation *operation)
{
	struct file_request *request = files_operation_request(operation);
	struct files_job *job;

	files_fresh_watch(far->fresh, request);
	job = memory_zeroed(1, sizeof(*job));
	job->on = choose_agent(far, request);
	job->operation = operation;
	job->verb = request->verb;
	job->spool = -1;
	job->next = far->jobs;
	far->jobs = job;
	file_reply_init(&job->reply);
	buffer_init(&job->text, FILES_JOB_TEXT_MAX);
	buffer_init(&job->records, FILES_PIECE);
	*files_operation_state(operation) = job;
	if (prepare(job, request, &job->failure) != 0) {
		job->soon = loop_timer_new(
		    workspace_loop(files_workspace(far->files)), fail_soon, job);
		loop_timer_start(job->soon, 0);
	} else if (files_fresh_allows(far->fresh, request)) {
		begin_anew(job);
	} else if (job->verb == FILE_COMMIT) {
		job->upload = ++far->last_upload;
		files_job_feed(job);
	} else {
		files_job_send(job, CALL_MAIN,
		    files_script_line(
			files_agent_number(job->on->agent), request, 0, 0, files_limit(far->files)),
		    0);
	}
}

static void
cancel_script(struct files_far *far, struct files_operation *operation)
{
	struct files_job *job = *files_operation_state(operation);

	(void)far;
	job->operation = NULL;
	if (job->calls > 0)
		files_job_drop(job);
	files_job_free_if_done(job);
}

static void
close_script(struct files_far *far)
{
	struct files_call *call;
	size_t i;

	for (i = 0; i < AGENTS; i++) {
		files_agent_close(far->agents[i].agent);
		while ((call = far->agents[i].first) != NULL) {
			far->agents[i].first = call->next;
			memory_free(call);
		}
	}
	while (far->jobs != NULL)
		files_job_free(far->jobs);
	loop_timer_free(far->sweep);
	files_fresh_free(far->fresh);
	memory_free(far);
}

static struct files_far *
open_script(struct files *files, struct error *err)
{
	struct files_far *far;

	(void)err;
	far = memory_zeroed(1, sizeof(*far));
	far->files = files;
	far->fresh = files_fresh_new();
	far->sweep = loop_timer_new(workspace_loop(files_workspace(files)), send_sweep, far);
	return far;
}

const struct files_backend files_script = {
	.open = open_script,
	.close = close_script,
	.send = send_script,
	.cancel = cancel_script,
};
