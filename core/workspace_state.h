/* SPDX-License-Identifier: ISC */
/*
 * What the files of the workspace share: its state, and the ways between its beginning and its end.
 */
#ifndef CORE_WORKSPACE_STATE_H
#define CORE_WORKSPACE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/driver.h"
#include "core/workspace.h"
#include "core/workspace_waiter.h"

struct loop_timer;

enum workspace_stage {
	WORKSPACE_CLOSED,
	WORKSPACE_CLAIMING, /* the records are asked */
	WORKSPACE_CONNECTING,
	WORKSPACE_CHECKING, /* the start check runs in the sandbox */
	WORKSPACE_READY,
	WORKSPACE_RELEASING,
};

struct workspace {
	struct workspace_setup setup;
	struct driver_sandbox *sandbox;
	enum workspace_stage stage;
	struct waiters waiters;
	struct loop_timer *soon; /* tells waiters of a workspace that is ready already */
	struct loop_timer *slow; /* tells them that it takes a while */
	struct loop_timer *deadline;
	struct driver_operation *check;
	int64_t started; /* loop_now */
	bool told;       /* that it takes a while */

	char *id, *directory, *root, *shell;
	struct command *commands;
	struct files *files;

	/* workspace_remnant.c */
	bool looked_back; /* at what an earlier worker left: once, before commands of our own */
	char **remnants;  /* being ended: PID, STARTTIME, ... */
	struct driver_operation *reaping;

	/* what the records say */
	bool has_claim;
	char *known; /* a sandbox that we made earlier */
	char *lost;  /* one that we made earlier and that is gone */
	bool is_shared;
	bool in_doubt;     /* there may be a second sandbox of our label */
	bool made_nothing; /* the last connect failed, and nothing will come of it */
	unsigned settle_looks;
	struct loop_timer *settle;
	bool reclaiming;
	workspace_reclaimed_fn *reclaimed;
	void *reclaimed_argument;
	unsigned losses; /* of the sandbox, by itself */

	bool under_way;   /* its release is */
	bool asking;      /* the records were asked whether it may be released */
	bool was_granted; /* and said yes */
	enum driver_release release;
	bool dispose;
	workspace_done_fn *done;
	void *done_argument;
	/* while it is put away for now only */
	enum driver_release away;
	bool is_direct; /* by its id: it is not connected */
	workspace_done_fn *away_done;
	void *away_argument;
};

/* workspace.c */

/* Tells everybody who waits; each may start to wait again. */
void workspace_tell_waiters(struct workspace *workspace, const struct error *err);
void workspace_stop_connecting(struct workspace *workspace);
void workspace_fail(struct workspace *workspace, const struct error *reason);
/* What was looked for to be released is known by its id, and need not be connected to. */
void workspace_end_search(struct workspace *workspace);
/* The driver's answer to connect. */
void workspace_connected(
    void *argument, const struct driver_connected *found, const struct error *reason);

/* workspace_record.c */

/* Asks which sandbox is ours, and has the driver connect to it. */
void workspace_claim(struct workspace *workspace);
/*
 * Will nothing come of a connect that failed like this? found is as the driver said. An attach makes no
 * sandbox, so where there is none of that id, or can be none, nothing is to be kept.
 */
bool workspace_made_nothing(const struct workspace *workspace, const struct driver_connected *found,
    const struct error *reason);
/* The sandbox on record is gone: starts over without it where the login's policy is that, and returns true. */
bool workspace_recover(struct workspace *workspace, const struct error *reason);
void workspace_record_found(struct workspace *workspace, bool is_attached);
void workspace_record_failure(struct workspace *workspace, const struct error *reason);
/* After a start that may have left a second sandbox behind. */
void workspace_begin_settling(struct workspace *workspace);
void workspace_settle_expired(void *argument);

/* workspace_remnant.c: ends what a worker that died has left in the sandbox, once. */
void workspace_end_remnants(struct workspace *workspace);
void workspace_forget_remnants(struct workspace *workspace);

/* workspace_release.c */

/* Goes on with a release once nothing runs any more. */
void workspace_release_if_idle(struct workspace *workspace);
/* Goes on with what was put away while it was not connected: its id is known, or it is connected now. */
void workspace_go_away(struct workspace *workspace);
/* It is not known, cannot be reached, or is not there. */
void workspace_fail_away(struct workspace *workspace, const struct error *err);

#endif
