/* SPDX-License-Identifier: ISC */
/*
 * Operations that the script has. files_script.c sends requests and takes replies apart,
 * files_job.c knows what they mean for one operation. Nothing else includes this.
 */
#ifndef CORE_FILES_JOB_H
#define CORE_FILES_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/file.h"

struct files_fresh;
struct files_operation;
struct loop_timer;

#define FILES_JOB_TEXT_MAX (256U * 1024U)

enum {
	AGENT_QUICK,
	AGENT_LONG,
	AGENTS,
};

enum files_call_kind {
	CALL_MAIN, /* the verb itself */
	CALL_FEED, /* a piece of content on its way there */
	CALL_GET,  /* one on its way here */
};

/* One of the agents, and what it was asked. */
struct files_line {
	struct files_far *far;
	struct files_agent *agent;       /* NULL until needed */
	struct files_call *first, *last; /* requests that are not answered, in their order */
};

/* One operation. */
struct files_job {
	struct files_job *next;
	struct files_line *on;
	struct files_operation *operation; /* NULL: cancelled, or already told how it ended */
	enum file_verb verb;
	unsigned calls;          /* not answered */
	struct file_reply reply; /* in the making */
	struct buffer text;      /* data that is no file's content */
	unsigned texts;          /* data lines so far */
	struct buffer records;   /* of a listing, to be written to reply.fd */
	int spool;               /* content */
	uint64_t offset, size;   /* of content: asked for or sent so far, and in all */
	char *real;
	uint32_t upload;
	bool told;               /* the first reply of several was given */
	bool cut_short;          /* the file ended before its size */
	struct loop_timer *soon; /* answers what needs no question */
	struct error failure;    /* what it answers */
};

/* A request that was sent. */
struct files_call {
	struct files_call *next;
	struct files_job *job; /* NULL: a sweep */
	uint32_t number;
	enum files_call_kind kind;
	uint64_t wanted, got; /* bytes of a piece */
};

/* The far end. */
struct files_far {
	struct files *files;
	struct files_line agents[AGENTS];
	struct files_job *jobs;
	uint32_t last_upload;
	struct loop_timer *sweep;
	struct files_fresh *fresh;
};

/*
 * files_script.c: a number was just taken; sends its line, which is freed here. size: see wanted.
 */
void files_job_send(struct files_job *job, enum files_call_kind kind, char *line, size_t size);

/* A private file for content: on the disk of this workspace's state, else memory. */
int files_job_open_spool(const struct files_far *far, struct error *err);

/* The owner is told; the job stays while requests of it are not answered. */
void files_job_finish(struct files_job *job);
void files_job_fail(struct files_job *job, const struct error *err);
void files_job_free_if_done(struct files_job *job);
void files_job_free(struct files_job *job);

/* The verb itself, or a piece, was answered: what comes next. */
void files_job_end(struct files_job *job);
void files_job_go_on_reading(struct files_job *job);
void files_job_feed(struct files_job *job);

/* Has the script forget what it was fed. */
void files_job_drop(struct files_job *job);

/* Bytes of a reply. */
int files_job_take_records(
    struct files_job *job, const unsigned char *data, size_t size, struct error *err);
int files_job_take_content(
    struct files_call *call, const unsigned char *data, size_t size, struct error *err);
int files_job_take_path(
    struct files_job *job, const unsigned char *data, size_t size, struct error *err);

#endif
