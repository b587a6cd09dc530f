/* SPDX-License-Identifier: ISC */
/*
 * The life of a job. Its command's end is told to the watchers when three things are true: the
 * command has ended, nothing of it runs any more (or it may: background keep), and its pipes are
 * read empty. Everything that frees happens in the settle timer, never below a callback.
 */
#include <time.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/driver.h"
#include "gateway/rpc_job.h"
#include "gateway/rpc_job_state.h"
#include "gateway/worker.h"

#define STATUS_TIMEOUT 124
/*
 * ms after the end of a command with background keep: when it left nothing, that is known by then.
 */
#define KEEP_WAIT 100
/*
 * ms after the end of any other, beyond its kill_grace:
 * it is over even if the driver does not say so.
 */
#define KILL_WAIT 5000
/* Jobs that ended and whose output can still be read. */
#define ENDED_KEPT 8

static void
free_job(struct job *job)
{
	struct job_watcher *watcher;
	struct job **place;

	for (place = &job->worker->jobs; *place != job; place = &(*place)->next)
		continue;
	*place = job->next;
	if (job->command != NULL)
		command_close(job->command);
	feed_free(job->input);
	while ((watcher = job->watchers) != NULL) {
		job->watchers = watcher->next;
		memory_free(watcher);
	}
	job_output_free(job);
	loop_timer_free(job->settle);
	memory_free(job->ending.note);
	memory_free(job->title);
	memory_free(job);
}

/* Only the last few of those that ended are kept. */
static void
forget_old(struct worker *worker)
{
	struct job *job, *oldest;
	unsigned count;

	count = 0;
	oldest = NULL;
	for (job = worker->jobs; job != NULL; job = job->next) {
		if (!job->over)
			continue;
		if (oldest == NULL)
			oldest = job;
		count++;
	}
	if (count > ENDED_KEPT)
		free_job(oldest);
}

/* Tells the watchers the end; each is gone afterwards. */
static void
tell_finished(struct job *job)
{
	struct job_watcher *watcher, *list;

	list = job->watchers;
	job->watchers = NULL;
	while ((watcher = list) != NULL) {
		list = watcher->next;
		watcher->events->finished(watcher->argument);
		memory_free(watcher);
	}
}

/* Moves a job on whose command has ended. */
static void
advance(struct job *job)
{
	if ((!job->gone && !job->waited) || job->over || !job_output_read_rest(job))
		return;
	if (!job->finished) {
		job->finished = true;
		feed_close(job->input);
		tell_finished(job);
	}
	if (job->gone) {
		job->over = true;
		tell_finished(job);
		loop_timer_start(job->settle, 0);
	}
}

/* The place where a command is let go and a job is freed. */
static void
settle_expired(void *argument)
{
	struct job *job = argument;
	struct worker *worker = job->worker;

	if (!job->over) {
		job->waited = job->ended;
		advance(job);
		return;
	}
	if (job->command != NULL)
		command_close(job->command);
	job->command = NULL;
	if (!job->keep && !job->detach)
		free_job(job);
	else
		forget_old(worker);
}

static void
command_progress(void *argument, const char *text)
{
	struct job *job = argument;
	struct job_watcher *watcher;

	for (watcher = job->watchers; watcher != NULL; watcher = watcher->next)
		if (watcher->events->progress != NULL)
			watcher->events->progress(watcher->argument, text);
}

static void
command_started(void *argument, const struct driver_descriptors *descriptors)
{
	struct job *job = argument;
	struct job_watcher *watcher, *next;

	job->started = loop_now();
	job->sources[JOB_OUTPUT].fd = descriptors->output;
	job->sources[JOB_ERRORS].fd = descriptors->errors;
	(void)descriptor_nonblock(descriptors->output, NULL);
	if (descriptors->errors >= 0)
		(void)descriptor_nonblock(descriptors->errors, NULL);
	job_output_watch(job);
	feed_start(job->input, descriptors->input);
	for (watcher = job->watchers; watcher != NULL; watcher = next) {
		next = watcher->next;
		if (watcher->events->started != NULL)
			watcher->events->started(watcher->argument);
	}
}

static void
command_ended(void *argument, const struct command_exit *ended)
{
	struct job *job = argument;

	job->ended = true;
	job->ending = *ended;
	job->ending.note = ended->note == NULL ? NULL : memory_text(ended->note);
	job->duration = loop_now() - job->started;
	loop_timer_start(job->settle, job->keep ? KEEP_WAIT : job->kill_grace + KILL_WAIT);
}

static void
command_gone(void *argument)
{
	struct job *job = argument;

	job->gone = true;
	loop_timer_start(job->settle, 0);
}

static const struct command_events command_events = {
	command_progress,
	command_started,
	command_ended,
	command_gone,
};

static struct job_watcher *
add_watcher(struct job *job, const struct job_events *events, void *argument)
{
	struct job_watcher *watcher;

	watcher = memory_zeroed(1, sizeof(*watcher));
	watcher->job = job;
	watcher->events = events;
	watcher->argument = argument;
	watcher->next = job->watchers;
	job->watchers = watcher;
	return watcher;
}

struct job *
job_start(struct worker *worker, const struct job_request *request, const struct job_events *events,
    void *argument, struct job_watcher **watcher)
{
	struct feed_input given = { 0 };
	struct job *job, **place;

	job = memory_zeroed(1, sizeof(*job));
	job->worker = worker;
	job->number = ++worker->last_job;
	job->title = memory_text(request->title);
	job->keep = request->command.keep_background;
	job->detach = request->detach;
	job->max_stream = request->max_stream;
	job->kill_grace = request->command.kill_grace;
	job->timeout = request->command.timeout;
	job->start_time = (int64_t)time(NULL);
	job->started = loop_now();
	job_output_init(job, (size_t)request->max_output);
	job->settle = loop_timer_new(worker->loop, settle_expired, job);
	job->input = feed_new(worker->loop, true);
	given.data = request->input;
	given.size = request->input_size;
	given.end = !request->input_open;
	if (given.size > 0 || given.end)
		(void)feed_put(job->input, &given, NULL, NULL);
	*watcher = add_watcher(job, events, argument);
	(*watcher)->owner = true;
	for (place = &worker->jobs; *place != NULL; place = &(*place)->next)
		continue;
	*place = job;
	job->command = command_start(worker->workspace, &request->command, &command_events, job);
	return job;
}

struct job *
job_find(struct worker *worker, int64_t number)
{
	struct job *job;

	for (job = worker->jobs; job != NULL; job = job->next)
		if (job->number == number)
			return job;
	return NULL;
}

struct job *
job_at(struct worker *worker, size_t index)
{
	struct job *job;

	for (job = worker->jobs; job != NULL; job = job->next)
		if (index-- == 0)
			return job;
	return NULL;
}

struct job_watcher *
job_watch(struct job *job, bool replay, const struct job_events *events, void *argument)
{
	const unsigned char *data;
	size_t size;
	unsigned i;

	for (i = 0; replay && i < JOB_STREAMS; i++) {
		data = job_tail(job, (enum job_stream)i, SIZE_MAX, &size);
		if (size > 0)
			events->output(argument, (enum job_stream)i, data, size);
	}
	return add_watcher(job, events, argument);
}

void
job_unwatch(struct job_watcher *watcher)
{
	struct job *job = watcher->job;
	struct job_watcher **place;
	bool owner = watcher->owner;

	for (place = &job->watchers; *place != watcher; place = &(*place)->next)
		continue;
	*place = watcher->next;
	memory_free(watcher);
	if (owner && !job->detach && !job->finished)
		free_job(job);
	else
		job_resume(job);
}

void
job_resume(struct job *job)
{
	job_output_watch(job);
	if (!job->over && (job->gone || job->waited))
		loop_timer_start(job->settle, 0);
}

int
job_input(struct job *job, const struct feed_input *input, struct feed_lot **lot, struct error *err)
{
	if (job->ended)
		return error_set(err, ERROR_NOT_FOUND, "job %u has ended", job->number);
	if (feed_put(job->input, input, lot, err) != 0)
		return error_wrap(err, "job %u", job->number);
	return 0;
}

void
job_signal(struct job *job, int number)
{
	if (job->command != NULL)
		command_signal(job->command, number);
}

void
job_abort(struct job *job)
{
	if (job->command != NULL && !job->ended)
		command_abort(job->command);
}

uint32_t
job_number(const struct job *job)
{
	return job->number;
}

const char *
job_title(const struct job *job)
{
	return job->title;
}

enum job_state
job_state(const struct job *job)
{
	if (!job->ended)
		return JOB_RUNNING;
	return job->gone ? JOB_ENDED : JOB_LEFT;
}

int64_t
job_start_time(const struct job *job)
{
	return job->start_time;
}

int64_t
job_duration(const struct job *job)
{
	return job->duration;
}

const struct command_exit *
job_exit(const struct job *job)
{
	return job->ended ? &job->ending : NULL;
}

bool
job_timed_out(const struct job *job)
{
	/* A command may say 124 by itself. */
	return job->ended && !job->ending.failed && !job->ending.signaled &&
	       job->ending.status == STATUS_TIMEOUT && job->timeout > 0 &&
	       job->duration >= job->timeout;
}

bool
job_detached(const struct job *job)
{
	return job->detach;
}

void
job_free_all(struct worker *worker)
{
	while (worker->jobs != NULL)
		free_job(worker->jobs);
}
