/* SPDX-License-Identifier: ISC */
/*
 * What the parts of a job share: rpc_job.c is its life, rpc_job_output.c reads, keeps and tells
 * what its command writes. Nothing else includes this.
 */
#ifndef GATEWAY_RPC_JOB_STATE_H
#define GATEWAY_RPC_JOB_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buffer.h"
#include "core/protocol.h"
#include "gateway/rpc_job.h"

struct loop_timer;
struct loop_watch;

struct job_watcher {
	struct job_watcher *next;
	struct job *job;
	const struct job_events *events;
	void *argument;
	bool owner;
};

/* One of its output streams. */
struct job_source {
	struct job *job;
	enum job_stream number;
	int fd;
	struct loop_watch *watch;
	uint64_t written;
	struct buffer head, tail;
};

struct job {
	struct job *next;
	struct worker *worker;
	uint32_t number;
	char *title;
	struct command *command;
	struct job_source sources[JOB_STREAMS];
	struct feed *input;
	struct job_watcher *watchers;
	struct loop_timer *settle;
	uint64_t max_stream;
	int64_t timeout;
	uint32_t kill_grace;
	bool keep, detach;
	bool limited;  /* it wrote too much */
	bool ended;    /* its command did; ending says how */
	bool waited;   /* long enough for what it left */
	bool gone;     /* nothing of it runs */
	bool finished; /* the watchers were told that it ended */
	bool over;     /* and that nothing of it runs */
	struct command_exit ending;
	int64_t started, start_time, duration;
};

/* Empty streams, of which max bytes each are kept; and their end. */
void job_output_init(struct job *job, size_t max);
void job_output_free(struct job *job);

/* Reads the streams as long as the watchers are ready. */
void job_output_watch(struct job *job);

/* Reads what is there; true when that is all there will be of the command. */
bool job_output_read_rest(struct job *job);

#endif
