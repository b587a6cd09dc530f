/* SPDX-License-Identifier: ISC */
/*
 * Jobs: the commands that exec started in this workspace, from any connection, until nothing of
 * them runs. A job keeps the first of its output for a result and the last of it for logs, and
 * tells those who watch it. It belongs to the worker, so it can outlive the connection.
 */
#ifndef GATEWAY_RPC_JOB_H
#define GATEWAY_RPC_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/command.h"
#include "core/protocol.h"
#include "gateway/rpc_feed.h"

struct error;
struct job;
struct job_watcher;
struct worker;

enum job_stream {
	JOB_OUTPUT,
	JOB_ERRORS,
	JOB_STREAMS,
};

enum job_state {
	JOB_RUNNING,
	JOB_LEFT,  /* the command ended, processes that it left run on */
	JOB_ENDED, /* nothing of it runs */
};

struct job_request {
	struct command_request command; /* copied by the command */
	const char *title;              /* for lists; copied */
	const void *input;              /* for stdin; copied */
	size_t input_size;
	bool input_open;     /* more will come with job_input */
	uint64_t max_output; /* bytes of each stream to keep */
	uint64_t max_stream; /* of both together before it is stopped; 0: any */
	bool detach;         /* not ended when its owner leaves */
};

/* All but finished may be NULL. None is called from within a call to the job. */
struct job_events {
	bool (*ready)(void *argument); /* false: output waits until job_resume */
	void (*progress)(void *argument, const char *text);
	void (*started)(void *argument);
	void (*output)(void *argument, enum job_stream stream, const void *data, size_t size);
	/*
	 * The command ended and everything it wrote was told; for one that left processes:
	 * they are gone.
	 */
	void (*finished)(void *argument);
};

/* Starts one; watcher is its owner's. */
struct job *job_start(struct worker *worker, const struct job_request *request,
    const struct job_events *events, void *argument, struct job_watcher **watcher);

/* The job with this number, or NULL. */
struct job *job_find(struct worker *worker, int64_t number);

/* The jobs, oldest first: index from 0; NULL after the last. */
struct job *job_at(struct worker *worker, size_t index);

/* Watches until it has finished or job_unwatch; replay tells first what was written last. */
struct job_watcher *job_watch(
    struct job *job, bool replay, const struct job_events *events, void *argument);
/* The owner's leaving ends a job that still runs and is not detached. */
void job_unwatch(struct job_watcher *watcher);

/* A watcher that was not ready is now. */
void job_resume(struct job *job);

/* Queues bytes for its stdin, as feed_put does; -1 also when it has ended. */
int job_input(
    struct job *job, const struct feed_input *input, struct feed_lot **lot, struct error *err);

/* To what runs of it; with abort it is stopped, and its end says ABORTED. */
void job_signal(struct job *job, int number);
void job_abort(struct job *job);

/* What is known of it. */
uint32_t job_number(const struct job *job);
const char *job_title(const struct job *job);
enum job_state job_state(const struct job *job);
int64_t job_start_time(const struct job *job);              /* seconds since 1970 */
int64_t job_duration(const struct job *job);                /* ms, of one that ended */
const struct command_exit *job_exit(const struct job *job); /* NULL while it runs */
bool job_timed_out(const struct job *job);
uint64_t job_written(const struct job *job, enum job_stream stream);
bool job_truncated(const struct job *job);
bool job_detached(const struct job *job);

/*
 * The first of a stream, or the last of it (at most max bytes). Valid until the job is read again.
 */
const unsigned char *job_head(const struct job *job, enum job_stream stream, size_t *size);
const unsigned char *job_tail(
    const struct job *job, enum job_stream stream, size_t max, size_t *size);

/* At the worker's end. */
void job_free_all(struct worker *worker);

#endif
