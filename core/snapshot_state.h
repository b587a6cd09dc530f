/* SPDX-License-Identifier: ISC */
/* What the files of the snapshot operations share. */
#ifndef CORE_SNAPSHOT_STATE_H
#define CORE_SNAPSHOT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/snapshot.h"
#include "core/snapshot_exclude.h"
#include "core/snapshot_plan.h"
#include "core/task.h"

struct archive_copy;
struct buffer;
struct loop_timer;

struct snapshot {
	struct workspace *workspace;
	const struct snapshot_events *events; /* NULL: nobody wants to know any more */
	void *argument;
	struct task *task; /* the script that runs, or NULL */
	struct snapshot_record record;
	struct snapshot_exclude exclude;
	struct loop_timer *later; /* tells a failure that was there at once */
	struct error failure;
	/* restore */
	struct snapshot_plan plan;
	bool dry_run;
	bool changing; /* the workspace: there is no stopping any more */
	/* export */
	uint64_t announced, sent;
	bool has_size;
	/* import */
	struct archive_copy *copy;
	struct buffer *entries;
};

/* A new one without anything running. */
struct snapshot *snapshot_new(
    struct workspace *workspace, const struct snapshot_events *events, void *argument);

/* Ends it: tells the outcome or the failure, and frees. */
void snapshot_finish(
    struct snapshot *snapshot, const struct snapshot_outcome *outcome, const struct error *err);

/* The same from the loop, for a failure that is known at once. */
void snapshot_fail_later(struct snapshot *snapshot);

/* Is the text an id? Then it is the snapshot's; else the operation will fail from the loop. */
bool snapshot_take_id(struct snapshot *snapshot, const char *id);

/*
 * Runs a verb of core/scripts/snapshot.sh on the snapshot's id, with more arguments behind it
 * (NULL-ended, or NULL). setup says what it is fed and how much it may print.
 */
void snapshot_run(struct snapshot *snapshot, const char *verb, char *const *more,
    const struct task_setup *setup, const struct task_events *events);

/* The setup of a verb that has nothing to print but what goes wrong. */
#define SNAPSHOT_QUIET_MAX 65536U
extern const struct task_setup snapshot_quiet;

/* For task_events. */
void snapshot_progress(void *argument, const char *text);

#endif
