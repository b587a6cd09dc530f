/* SPDX-License-Identifier: ISC */
/*
 * A workspace: one sandbox, one root directory in it, and everything that runs there. It connects
 * its driver on first use, prepares the root, keeps count of commands, and releases the sandbox.
 */
#ifndef CORE_WORKSPACE_H
#define CORE_WORKSPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/record_protocol.h"

struct command;
struct driver;
struct driver_sandbox;
struct error;
struct files;
struct loop;
struct settings;
struct worker_report;
struct workspace;
struct workspace_waiter;

/*
 * Who keeps records of sandboxes beyond the life of this process. Each call returns at once; the answers
 * to claim and release are workspace_claimed and workspace_may_release, never from within the call.
 */
struct workspace_records {
	/* Which sandbox is ours? As in struct record_claim. */
	void (*claim)(void *argument, const char *lost, bool reclaim);
	/* This one; created says whether we made it, now or earlier. */
	void (*ready)(void *argument, const char *id, bool created);
	/* There is no second one of this label. */
	void (*settled)(void *argument);
	/* May it be released? Somebody asks for that, or it is idle. */
	void (*release)(void *argument, bool is_asked);
	/* What became of it; UNKNOWN too for a claim of which nothing came. */
	void (*released)(void *argument, enum record_outcome outcome);
};

struct workspace_setup {
	struct loop *loop;
	const struct driver *driver;
	const struct settings *settings; /* of the login; kept */
	const char *login;               /* all texts are kept */
	const char *name;                /* NAME, NAME+INSTANCE or NAME=ID */
	const char *instance;            /* label at the provider */
	int directory; /* of this workspace's own in the state directory; kept, not closed */
	const struct workspace_records *records; /* kept; NULL: there are none */
	void *records_argument;
};

/* Connects nothing yet. What is wrong with the driver's settings is told to those who use it. */
struct workspace *workspace_new(const struct workspace_setup *setup);

/* Has there been a sandbox behind it, or been found to be gone? If not, it holds nothing worth keeping. */
bool workspace_was_reached(const struct workspace *workspace);

/* How often its sandbox went away by itself: who saw that change can tell what was lost with it. */
unsigned workspace_losses(const struct workspace *workspace);

/* Frees everything; commands must be gone or are dropped without a word. */
void workspace_free(struct workspace *workspace);

/*
 * Calls ready once the sandbox can be used (err NULL), or with the reason why not; never from
 * within the call. progress, which may be NULL, is told in words when that takes a while. The
 * waiter is gone after ready.
 */
typedef void workspace_ready_fn(void *argument, const struct error *err);
typedef void workspace_progress_fn(void *argument, const char *text);
struct workspace_waiter *workspace_use(struct workspace *workspace, workspace_ready_fn *ready,
    workspace_progress_fn *progress, void *argument);
void workspace_waiter_cancel(struct workspace_waiter *waiter); /* accepts NULL */

/* Valid once it was ready: where it is and what it is. Texts belong to the workspace. */
const char *workspace_root(const struct workspace *workspace);  /* absolute, symlinks resolved */
const char *workspace_shell(const struct workspace *workspace); /* the user's login shell */
const char *workspace_id(const struct workspace *workspace);    /* of the sandbox at its provider */

/* May other gateways use the same sandbox, so that commands run in it that we know nothing of? */
bool workspace_is_shared(const struct workspace *workspace);

/* What it was made with, and what it has made. All belong to the workspace. */
struct loop *workspace_loop(const struct workspace *workspace);
const struct driver *workspace_driver(const struct workspace *workspace);
const struct settings *workspace_settings(const struct workspace *workspace);
struct driver_sandbox *workspace_sandbox(const struct workspace *workspace);
const char *workspace_login(const struct workspace *workspace);
int workspace_directory(const struct workspace *workspace); /* in the state directory, or -1 */
struct files *workspace_files(const struct workspace *workspace);

/* For an operator: its state, the sandbox's id and how many commands run; worker_report_free is the caller's. */
void workspace_describe(const struct workspace *workspace, struct worker_report *report);
/* A new text, or NULL while there is none. */
char *workspace_copy_id(const struct workspace *workspace);

/* Does a command run, or has one left processes behind? */
bool workspace_busy(const struct workspace *workspace);

/* Is it busy with nothing but commands that have ended, of which something may be left? */
bool workspace_settles(const struct workspace *workspace);

/* Has a worker that died left commands in the sandbox? The first use ends them. */
bool workspace_has_remnants(const struct workspace *workspace);

/* Commands enter themselves and leave: command.c only. */
void workspace_add_command(struct workspace *workspace, struct command *command);
void workspace_remove_command(struct workspace *workspace, struct command *command);
/* A command has no process any more. */
void workspace_command_gone(struct workspace *workspace);

typedef void workspace_done_fn(void *argument, const struct error *err);

/* The keeper of records answers; claimed and its texts stay the caller's. */
void workspace_claimed(struct workspace *workspace, const struct record_claimed *claimed);
/* The answer takes longer: another gateway is at it. */
void workspace_claim_waits(struct workspace *workspace);
void workspace_may_release(struct workspace *workspace, bool granted);

typedef void workspace_reclaimed_fn(void *argument);
/*
 * Finds the sandbox of a workspace that nobody uses, making none, so that it can be released. Calls done when
 * that is over one way or another.
 */
void workspace_reclaim(struct workspace *workspace, workspace_reclaimed_fn *done, void *argument);

/*
 * Ends all commands of a workspace, and stops or destroys its sandbox; the next use connects again. One
 * that is not connected is neither made nor started for it, where the records and the driver allow.
 * Calls done when that is over, never from within the call. -1 when the provider cannot do it, the login
 * may not (never_delete), or the sandbox is just being started or stopped (BUSY).
 */
int workspace_put_away(struct workspace *workspace, bool destroy, workspace_done_fn *done,
    void *argument, struct error *err);

/*
 * Ends all commands, then releases the sandbox: as on_dispose says with dispose, else it is left as
 * it is (stopped where it cannot outlive us). Calls done when that is over, err NULL on success.
 * Call once.
 */
void workspace_release(
    struct workspace *workspace, bool dispose, workspace_done_fn *done, void *argument);

#endif
