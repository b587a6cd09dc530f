/* SPDX-License-Identifier: ISC */
/*
 * What a job's command writes: it is read when all watchers are ready for it, the first and the
 * last of it are kept, and the watchers are told it.
 */
#include <errno.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/loop.h"
#include "core/command.h"
#include "gateway/rpc_job_state.h"
#include "gateway/worker.h"

#define READ_SIZE 65536

static void
close_source(struct job_source *source)
{
	loop_unwatch(source->watch);
	source->watch = NULL;
	descriptor_close(&source->fd);
}

static bool
watchers_ready(const struct job *job)
{
	const struct job_watcher *watcher;

	for (watcher = job->watchers; watcher != NULL; watcher = watcher->next)
		if (watcher->events->ready != NULL && !watcher->events->ready(watcher->argument))
			return false;
	return true;
}

/* Keeps the first and the last of it. */
static void
keep_output(struct job_source *source, const unsigned char *data, size_t size)
{
	size_t room;

	room = buffer_room(&source->head);
	(void)buffer_append(&source->head, data, size < room ? size : room);
	if (!source->job->keep && !source->job->detach)
		return;
	if (size > source->tail.limit) {
		data += size - source->tail.limit;
		size = source->tail.limit;
	}
	if (size > buffer_room(&source->tail))
		buffer_consume(&source->tail, size - buffer_room(&source->tail));
	(void)buffer_append(&source->tail, data, size);
}

static void
take_output(struct job_source *source, const unsigned char *data, size_t size)
{
	struct job *job = source->job;
	struct job_watcher *watcher;

	if (job->limited)
		return;
	source->written += size;
	keep_output(source, data, size);
	for (watcher = job->watchers; watcher != NULL; watcher = watcher->next)
		if (watcher->events->output != NULL)
			watcher->events->output(watcher->argument, source->number, data, size);
	if (job->max_stream > 0 && !job->ended &&
	    job->sources[JOB_OUTPUT].written + job->sources[JOB_ERRORS].written > job->max_stream) {
		job->limited = true;
		command_limit(job->command, job->max_stream);
	}
}

/* Reads once; false when there is nothing more for now. */
static bool
read_source(struct job_source *source)
{
	static unsigned char chunk[READ_SIZE];
	ssize_t got;

	if (source->fd < 0)
		return false;
	got = read(source->fd, chunk, sizeof(chunk));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0) {
		close_source(source);
		return false;
	}
	take_output(source, chunk, (size_t)got);
	return true;
}

static void
source_ready(void *argument, unsigned events)
{
	struct job_source *source = argument;
	struct job *job = source->job;

	(void)events;
	if (!watchers_ready(job)) {
		/* Not only unread: a hang-up would be reported again and again. */
		loop_unwatch(source->watch);
		source->watch = NULL;
		return;
	}
	(void)read_source(source);
}

void
job_output_init(struct job *job, size_t max)
{
	unsigned i;

	for (i = 0; i < JOB_STREAMS; i++) {
		job->sources[i].job = job;
		job->sources[i].number = (enum job_stream)i;
		job->sources[i].fd = -1;
		buffer_init(&job->sources[i].head, max);
		buffer_init(&job->sources[i].tail, max);
	}
}

void
job_output_free(struct job *job)
{
	struct job_source *source;

	for (source = job->sources; source < job->sources + JOB_STREAMS; source++) {
		close_source(source);
		buffer_free(&source->head);
		buffer_free(&source->tail);
	}
}

void
job_output_watch(struct job *job)
{
	struct job_source *source;

	for (source = job->sources; source < job->sources + JOB_STREAMS; source++)
		if (source->fd >= 0 && source->watch == NULL)
			source->watch = loop_watch(
			    job->worker->loop, source->fd, LOOP_READ, source_ready, source);
}

bool
job_output_read_rest(struct job *job)
{
	struct job_source *source;

	for (source = job->sources; source < job->sources + JOB_STREAMS; source++) {
		do {
			if (!watchers_ready(job))
				return false;
		} while (read_source(source));
	}
	return true;
}

uint64_t
job_written(const struct job *job, enum job_stream stream)
{
	return job->sources[stream].written;
}

bool
job_truncated(const struct job *job)
{
	const struct job_source *source;

	for (source = job->sources; source < job->sources + JOB_STREAMS; source++)
		if (source->written > source->head.length)
			return true;
	return job->limited;
}

const unsigned char *
job_head(const struct job *job, enum job_stream stream, size_t *size)
{
	*size = job->sources[stream].head.length;
	return buffer_data(&job->sources[stream].head);
}

const unsigned char *
job_tail(const struct job *job, enum job_stream stream, size_t max, size_t *size)
{
	const struct job_source *source = &job->sources[stream];
	const struct buffer *kept;

	/* One that keeps no tail has not finished: its head is all there is. */
	kept = job->keep || job->detach ? &source->tail : &source->head;
	*size = kept->length < max ? kept->length : max;
	return kept->length == 0 ? NULL : buffer_data(kept) + kept->length - *size;
}
