/* SPDX-License-Identifier: ISC */
/*
 * What the operator wants of a worker: how its workspace is, and the sandbox started, stopped or
 * destroyed, by the rules that hold for the workspace's own users. A worker that was started for that
 * alone ends by itself afterwards.
 */
#include "core/admin_protocol.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/workspace.h"
#include "gateway/worker.h"

struct act {
	struct act *next;
	struct worker *worker;
	struct worker_act what;
	struct workspace_waiter *waiter; /* until the sandbox is there */
};

int
worker_take_ask(void *argument, struct message *message, struct error *err)
{
	struct worker *worker = argument;
	struct worker_report report;
	struct message answer;

	if (admin_ask_decode(message, err) != 0)
		return -1;
	workspace_describe(worker->workspace, &report);
	report.last_used = worker->last_used;
	worker_report_encode(&answer, &report);
	worker_report_free(&report);
	worker_tell_listener(&answer);
	return 0;
}

static void
send_done(struct worker *worker, uint32_t id, const struct error *err)
{
	struct worker_done done = { 0 };
	struct message message;

	done.id = id;
	if (err != NULL)
		done.failure = *err;
	done.sandbox_id = workspace_copy_id(worker->workspace);
	worker_done_encode(&message, &done);
	worker_done_free(&done);
	worker_tell_listener(&message);
}

static void
remove_act(struct act *act)
{
	struct act **place;

	for (place = &act->worker->acts; *place != act; place = &(*place)->next)
		continue;
	*place = act->next;
	memory_free(act);
}

/* Without a sandbox there is nothing to wait for until idle_timeout. */
static void
finish(void *argument, const struct error *err)
{
	struct act *act = argument;
	struct worker *worker = act->worker;
	bool gone = err == NULL && act->what.verb != ADMIN_START;

	send_done(worker, act->what.id, err);
	remove_act(act);
	worker_links_changed(worker);
	if (gone && !worker_in_use(worker))
		worker_offer_end(worker);
}

static void ready(void *argument, const struct error *err);

/* A sandbox that does not run is not started for it; one that is just being started is waited for. */
static void
put_away(struct act *act)
{
	struct workspace *workspace = act->worker->workspace;
	struct worker_report report;
	struct error failure;
	bool is_starting;

	workspace_describe(workspace, &report);
	is_starting = report.state == SANDBOX_STARTING;
	worker_report_free(&report);
	if (is_starting)
		act->waiter = workspace_use(workspace, ready, NULL, act);
	else if (workspace_put_away(
		     workspace, act->what.verb == ADMIN_DESTROY, finish, act, &failure) != 0)
		finish(act, &failure);
}

static void
ready(void *argument, const struct error *err)
{
	struct act *act = argument;

	act->waiter = NULL;
	if (err != NULL || act->what.verb == ADMIN_START)
		finish(act, err);
	else
		put_away(act);
}

int
worker_take_act(void *argument, struct message *message, struct error *err)
{
	struct worker *worker = argument;
	struct worker_act what;
	struct error failure;
	struct act *act;

	if (worker_act_decode(message, &what, err) != 0)
		return -1;
	if (worker_leaves(worker)) {
		error_set(&failure, ERROR_BUSY, "the workspace is being released");
		send_done(worker, what.id, &failure);
		return 0;
	}
	act = memory_zeroed(1, sizeof(*act));
	act->worker = worker;
	act->what = what;
	act->next = worker->acts;
	worker->acts = act;
	worker_links_changed(worker);
	if (what.verb == ADMIN_START)
		act->waiter = workspace_use(worker->workspace, ready, NULL, act);
	else
		put_away(act);
	return 0;
}

void
worker_free_acts(struct worker *worker)
{
	struct act *act;

	while ((act = worker->acts) != NULL) {
		workspace_waiter_cancel(act->waiter);
		remove_act(act);
	}
}
