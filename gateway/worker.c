/* SPDX-License-Identifier: ISC */
/*
 * The worker process: one workspace. A program of its own (rwsd-worker), so that only workers
 * carry the libraries that speak to providers and read what they say.
 *
 * Started by: the listener, for the first session of a workspace, or after one that died and left commands in
 *	the sandbox: they are ended, and the workspace is idle from then on.
 * User and rights: the configured user; for the local driver it may start bubblewrap, for all others it
 *	may only connect. Not dumpable.
 * Descriptors: 0 and 1 /dev/null, 2 the log, 3 the listener; then what messages bring: the workspace's own
 *	directory, a socket to the records process, and one to each session.
 * Secrets: the provider credentials of this one login.
 * Reaches: the workspace's own directory; the provider's hosts.
 * Messages: from the listener WORKER_CONFIGURE, WORKER_ATTACH, WORKER_RECORDS, WORKER_RECLAIM, DRAIN; to
 *	it WORKER_IDLE; what the operator wants (worker_admin.c); with sessions COMMAND_* (worker_link.c);
 *	with the records process RECORD_*.
 * Ends: when the listener says so, after nothing has used the workspace for idle_timeout; when the
 *	listener is gone and the last session with it.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "conf/conf.h"
#include "core/admin_protocol.h"
#include "core/base/confine.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/option.h"
#include "core/base/peer.h"
#include "core/base/process.h"
#include "core/driver.h"
#include "core/record_protocol.h"
#include "core/workspace.h"
#include "gateway/rpc_job.h"
#include "gateway/worker.h"

/* ms for the provider to take the sandbox back, before the process ends all the same. */
#define RELEASE_WAIT 90000
/* ms after its last user that a worker goes which never got to a sandbox. */
#define UNREACHED_WAIT 1000
/* ms until the end is offered again that the listener did not take. */
#define OFFER_AGAIN 10000

enum worker_stage {
	WORKER_EMPTY = 1,
	WORKER_SERVING = 2,
	WORKER_LEAVING = 4,
};

static struct worker worker;

static struct {
	struct peer *listener;
	struct worker_configure configure;
	struct process_user user;
	enum worker_stage stage;
	struct loop_timer *idle, *give_up;
} state;

static void
released(void *argument, const struct error *err)
{
	(void)argument;
	if (err != NULL)
		log_error("release of %s: %s", state.configure.workspace, err->message);
	loop_stop(worker.loop);
}

static void
give_up(void *argument)
{
	(void)argument;
	log_error("the sandbox of %s was not released in time", state.configure.workspace);
	loop_stop(worker.loop);
}

static void
leave(bool dispose)
{
	if (state.stage == WORKER_LEAVING)
		return;
	state.stage = WORKER_LEAVING;
	if (state.listener != NULL)
		peer_set_state(state.listener, WORKER_LEAVING);
	loop_timer_stop(state.idle);
	link_close_all(&worker);
	if (worker.workspace == NULL) {
		loop_stop(worker.loop);
		return;
	}
	loop_timer_start(state.give_up, RELEASE_WAIT);
	workspace_release(worker.workspace, dispose, released, NULL);
}

static void
idle_expired(void *argument)
{
	(void)argument;
	worker_offer_end(&worker);
	/* The listener may not know yet that the last session has left us, and then does not take the offer. */
	if (!worker_in_use(&worker) && state.stage == WORKER_SERVING)
		loop_timer_start(state.idle, OFFER_AGAIN);
}

bool
worker_in_use(const struct worker *self)
{
	return self->links != NULL || self->acts != NULL || self->looks_back;
}

void
worker_offer_end(struct worker *self)
{
	struct message message;

	if (worker_in_use(self) || state.listener == NULL)
		return;
	worker_idle_encode(&message);
	peer_send(state.listener, &message);
}

bool
worker_leaves(const struct worker *self)
{
	(void)self;
	return state.stage == WORKER_LEAVING;
}

void
worker_tell_listener(struct message *message)
{
	if (state.listener != NULL)
		peer_send(state.listener, message);
	else
		message_free(message);
}

/*
 * One that never got to a sandbox, for a wrong key maybe, makes room soon: whoever comes next has a worker
 * with the configuration of then.
 */
static int64_t
idle_time(const struct worker *self)
{
	int64_t time = settings_number(self->settings, "idle_timeout");

	return time > UNREACHED_WAIT && !workspace_was_reached(self->workspace) ? UNREACHED_WAIT
										: time;
}

void
worker_links_changed(struct worker *self)
{
	self->last_used = (int64_t)time(NULL);
	if (state.stage != WORKER_SERVING)
		return;
	worker_records_use(worker_in_use(self));
	if (worker_in_use(self))
		loop_timer_stop(state.idle);
	else if (state.listener == NULL)
		leave(false);
	else
		loop_timer_start(state.idle, idle_time(self));
}

/* The rights that the driver's work needs and no more. */
static int
confine(const struct driver *driver, struct error *err)
{
	struct confine rights = { .user = &state.user, .files = true };

	rights.calls = strcmp(driver->kind->name, "local") == 0 ? CONFINE_CALLS_LISTENER
								: CONFINE_CALLS_NETWORK;
	return confine_enter(&rights, err);
}

static int
configure(struct message *message, struct error *err)
{
	const struct option *tables[3] = { conf_options, NULL, NULL };
	struct workspace_setup setup = { 0 };

	setup.driver = driver_find(state.configure.driver);
	if (setup.driver == NULL)
		return error_set(
		    err, ERROR_INVALID, "there is no driver %s", state.configure.driver);
	tables[1] = setup.driver->kind->options;
	worker.settings = settings_new(tables);
	if (settings_get(message, worker.settings, err) != 0 || message_end(message, err) != 0 ||
	    confine(setup.driver, err) != 0)
		return -1;
	setup.loop = worker.loop;
	setup.settings = worker.settings;
	setup.login = state.configure.login;
	setup.name = state.configure.workspace;
	setup.instance = state.configure.instance;
	setup.directory = state.configure.directory;
	setup.records = &worker_records;
	worker.workspace = workspace_new(&setup);
	return 0;
}

/* We are here for what a worker before us left behind, and maybe for nobody else. */
static void
looked_after(void *argument, const struct error *err)
{
	(void)argument;
	if (err != NULL)
		log_error("what was left behind is not ended: %s", err->message);
	worker.looks_back = false;
	worker_links_changed(&worker);
}

static int
take_configure(void *argument, struct message *message, struct error *err)
{
	(void)argument;
	if (worker_configure_decode(message, &state.configure, err) != 0)
		return -1;
	log_set_context(0, state.configure.workspace);
	process_set_title("rwsd: worker %s", state.configure.workspace);
	if (configure(message, err) != 0)
		return error_wrap(err, "workspace %s", state.configure.workspace);
	state.stage = WORKER_SERVING;
	peer_set_state(state.listener, WORKER_SERVING);
	if (workspace_has_remnants(worker.workspace)) {
		worker.looks_back = true;
		(void)workspace_use(worker.workspace, looked_after, NULL, NULL);
		worker_links_changed(&worker);
	}
	return 0;
}

static int
take_attach(void *argument, struct message *message, struct error *err)
{
	struct worker_attach attach;

	(void)argument;
	if (worker_attach_decode(message, &attach, err) != 0)
		return -1;
	link_open(&worker, &attach);
	return 0;
}

static int
take_drain(void *argument, struct message *message, struct error *err)
{
	bool dispose;

	(void)argument;
	if (drain_decode(message, &dispose, err) != 0)
		return -1;
	leave(dispose);
	return 0;
}

static int
take_records(void *argument, struct message *message, struct error *err)
{
	int fd;

	(void)argument;
	if (worker_records_decode(message, &fd, err) != 0)
		return -1;
	worker_records_open(&worker, fd);
	return 0;
}

static void
reclaimed(void *argument)
{
	/* The same way out as for an idle one: the listener knows who is about to come in. */
	idle_expired(argument);
}

static int
take_reclaim(void *argument, struct message *message, struct error *err)
{
	(void)argument;
	if (message_end(message, err) != 0)
		return -1;
	workspace_reclaim(worker.workspace, reclaimed, NULL);
	return 0;
}

static const struct peer_rule rules[] = {
	{ MESSAGE_WORKER_CONFIGURE, "WORKER_CONFIGURE", WORKER_EMPTY, take_configure },
	{ MESSAGE_WORKER_ATTACH, "WORKER_ATTACH", WORKER_SERVING, take_attach },
	{ MESSAGE_DRAIN, "DRAIN", WORKER_SERVING | WORKER_LEAVING, take_drain },
	{ MESSAGE_WORKER_RECORDS, "WORKER_RECORDS", WORKER_SERVING | WORKER_LEAVING, take_records },
	{ MESSAGE_WORKER_RECLAIM, "WORKER_RECLAIM", WORKER_SERVING, take_reclaim },
	{ MESSAGE_WORKER_IDLE, "WORKER_IDLE", 0, NULL },
	{ MESSAGE_WORKER_ASK, "WORKER_ASK", WORKER_SERVING | WORKER_LEAVING, worker_take_ask },
	{ MESSAGE_WORKER_REPORT, "WORKER_REPORT", 0, NULL },
	{ MESSAGE_WORKER_ACT, "WORKER_ACT", WORKER_SERVING | WORKER_LEAVING, worker_take_act },
	{ MESSAGE_WORKER_DONE, "WORKER_DONE", 0, NULL },
	{ 0, NULL, 0, NULL },
};

/* The gateway is gone: what sessions are left end by themselves, and we after them. */
static void
listener_closed(void *argument, const struct error *err)
{
	(void)argument;
	if (err->code != ERROR_UNAVAILABLE)
		log_error("%s", err->message);
	else
		log_debug("ending: %s", err->message);
	peer_free(state.listener);
	state.listener = NULL;
	if (worker.links == NULL || state.stage == WORKER_EMPTY)
		leave(false);
}

static const struct peer_events events = { rules, listener_closed, NULL };

static int
run(struct error *err)
{
	(void)signal(SIGPIPE, SIG_IGN);
	worker.loop = loop_new(err);
	if (worker.loop == NULL)
		return -1;
	state.stage = WORKER_EMPTY;
	state.configure.directory = -1;
	state.idle = loop_timer_new(worker.loop, idle_expired, NULL);
	state.give_up = loop_timer_new(worker.loop, give_up, NULL);
	worker_records_init(&worker);
	state.listener = peer_new(
	    worker.loop, PROCESS_CONTROL_FD, "worker", "listener", &events, &worker);
	peer_set_state(state.listener, WORKER_EMPTY);
	return loop_run(worker.loop, err);
}

int
main(int argc, char **argv)
{
	struct error err;
	const char *role;
	int result;

	role = process_enter(argc, argv, &state.user);
	if (role == NULL || strcmp(role, "worker") != 0) {
		(void)fputs("rwsd-worker is started by rwsd, not by hand\n", stderr);
		return 64;
	}
	result = run(&err);
	if (result != 0)
		log_error("%s", err.message);
	link_close_all(&worker);
	worker_free_acts(&worker);
	job_free_all(&worker);
	workspace_free(worker.workspace);
	settings_free(worker.settings);
	worker_records_close();
	peer_free(state.listener);
	worker_configure_free(&state.configure);
	loop_timer_free(state.idle);
	loop_timer_free(state.give_up);
	loop_free(worker.loop);
	return result == 0 ? 0 : 1;
}
