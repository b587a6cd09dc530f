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
	bool created;
	struct command *commands;
	struct files *files;

	bool under_way; /* the driver was asked to release it */
	bool dispose;
	workspace_done_fn *done;
	void *done_argument;
	/* while it is put away for now only */
	enum driver_release away;
	workspace_done_fn *away_done;
	void *away_argument;
};

/* workspace.c */

/* Tells everybody who waits; each may start to wait again. */
void workspace_tell_waiters(struct workspace *workspace, const struct error *err);
void workspace_stop_connecting(struct workspace *workspace);

/* workspace_release.c: goes on with a release once nothing runs any more. */
void workspace_release_if_idle(struct workspace *workspace);

#endif
