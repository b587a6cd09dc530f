/* SPDX-License-Identifier: ISC */
/*
 * What rws admin changes: a session's end, a sandbox's state, the gateway's own configuration and end.
 * A workspace without a worker gets one for the purpose; the rules for logins and their instances hold.
 */
#include <signal.h>
#include <string.h>

#include "conf/conf.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/number.h"
#include "core/base/option.h"
#include "core/base/peer.h"
#include "core/login.h"
#include "gateway/listener_admin_state.h"
#include "gateway/listener_state.h"

void
admin_act_reload(struct admin_client *client, const char *target)
{
	struct error err;

	(void)target;
	if (client->listener->draining) {
		error_set(&err, ERROR_BUSY, "the gateway is going down");
		admin_client_end(client, &err, NULL, NULL);
	} else if (listener_reload(client->listener, &err) != 0) {
		admin_client_end(client, &err, NULL, NULL);
	} else {
		admin_client_end(client, NULL, NULL,
		    "reloaded: new connections and workspaces use the new configuration");
	}
}

/* The answer comes first: with nobody connected the gateway is gone at once. */
void
admin_act_drain(struct admin_client *client, const char *target)
{
	struct listener *listener = client->listener;
	char grace[NUMBER_TEXT_MAX];
	char *note;

	(void)target;
	if (listener->draining)
		note = memory_text_format(
		    "ending %u connections that have not ended yet", listener->total);
	else
		note = memory_text_format("draining: %u connections have %s", listener->total,
		    number_format_duration(
			grace, settings_number(conf_global(listener->conf), "drain_grace")));
	admin_client_end(client, NULL, NULL, note);
	memory_free(note);
	listener_drain(listener);
}

void
admin_act_disconnect(struct admin_client *client, const char *target)
{
	struct session_entry *session;
	struct message message;
	struct error err;
	int64_t number;

	if (number_parse(target, 1, INT64_MAX, &number, &err) != 0) {
		error_set(&err, ERROR_INVALID, "%s is no number of a session", target);
		admin_client_end(client, &err, NULL, NULL);
		return;
	}
	session = listener_find_session(client->listener, (uint64_t)number);
	if (session == NULL) {
		error_set(&err, ERROR_NOT_FOUND, "there is no session %s", target);
		admin_client_end(client, &err, NULL, NULL);
		return;
	}
	session_disconnect_encode(&message, "disconnected by the gateway's operator");
	peer_send(session->peer, &message);
	admin_client_await(client, session, NULL);
}

/* A session that does not do as it is told is stopped, or worse. */
void
admin_act_kill(struct admin_client *client)
{
	struct error err;

	if (client->awaited != NULL && !client->killed) {
		log_error("admin: session %ld does not end and is killed",
		    (long)client->awaited->session->pid);
		client->killed = true;
		(void)kill(client->awaited->session->pid, SIGKILL);
		return;
	}
	error_set(&err, ERROR_TIMEOUT, "the session has not ended");
	admin_client_end(client, &err, NULL, NULL);
}

static void
tell_disconnected(struct admin_client *client)
{
	admin_client_end(client, NULL, NULL,
	    client->killed ? "disconnected: the session did not answer and was killed"
			   : "disconnected");
}

/* May there be such a workspace? By the rules of logging in. */
static int
check_workspace(
    const struct listener *listener, const char *name, struct login *login, struct error *err)
{
	const char *instances;
	int index;

	if (login_parse(name, login) != 0)
		return error_set(err, ERROR_INVALID, "%s is no name of a workspace", name);
	index = conf_login_find(listener->conf, login->name);
	if (index < 0)
		return error_set(err, ERROR_NOT_FOUND, "there is no login %s", login->name);
	instances = settings_text(conf_login(listener->conf, (size_t)index), "instances");
	if ((*login->instance != '\0' && strcmp(instances, "off") == 0) ||
	    (*login->id != '\0' && strcmp(instances, "attach") != 0))
		return error_set(
		    err, ERROR_DENIED, "login %s has instances = %s", login->name, instances);
	return 0;
}

static struct worker_entry *
find_worker(struct listener *listener, const char *name, struct error *err)
{
	struct worker_entry *worker;
	struct login login;

	worker = listener_find_worker(listener, name);
	if (worker == NULL) {
		if (check_workspace(listener, name, &login, err) != 0)
			return NULL;
		if (listener->draining) {
			error_set(err, ERROR_BUSY, "the gateway is going down");
			return NULL;
		}
		worker = listener_start_worker(listener, login.name, name, err);
	}
	return worker;
}

void
admin_act_workspace(struct admin_client *client, const char *target)
{
	struct worker_act act = { 0 };
	struct worker_entry *worker;
	struct message message;
	struct error err;

	worker = find_worker(client->listener, target, &err);
	if (worker == NULL) {
		admin_client_end(client, &err, NULL, NULL);
		return;
	}
	/* As for sessions that come then: the next worker will do it. */
	if (worker->leaving || worker->peer == NULL) {
		client->target = memory_text(target);
		admin_client_await(client, NULL, worker);
		return;
	}
	act.id = client->number;
	act.verb = client->verb;
	worker_act_encode(&message, &act);
	peer_send(worker->peer, &message);
	worker->acts++;
	admin_client_await(client, NULL, worker);
}

void
admin_act_give_up(struct admin_client *client)
{
	struct error err;

	if (client->target != NULL)
		error_set(&err, ERROR_BUSY, "the workspace is still being released");
	else
		error_set(
		    &err, ERROR_TIMEOUT, "the worker has not answered; what was asked for goes on");
	admin_client_end(client, &err, NULL, NULL);
}

int
listener_admin_take_done(void *argument, struct message *message, struct error *err)
{
	struct worker_entry *worker = argument;
	struct admin_client *client;
	struct worker_done done;

	if (worker_done_decode(message, &done, err) != 0)
		return -1;
	if (worker->acts > 0)
		worker->acts--;
	client = worker->listener->admin->clients;
	for (; client != NULL; client = client->next)
		if (client->number == done.id && client->stage == ADMIN_STAGE_ASKED &&
		    admin_client_stop_awaiting(client, NULL, worker))
			break;
	if (client != NULL)
		admin_client_end(client, done.failure.code == ERROR_NONE ? NULL : &done.failure,
		    done.sandbox_id, NULL);
	worker_done_free(&done);
	return 0;
}

void
listener_admin_session_gone(struct session_entry *session)
{
	struct admin_client *client;

	client = session->listener->admin->clients;
	for (; client != NULL; client = client->next) {
		if (!admin_client_stop_awaiting(client, session, NULL) ||
		    client->stage != ADMIN_STAGE_ASKED)
			continue;
		if (client->verb == ADMIN_DISCONNECT)
			tell_disconnected(client);
		else
			admin_client_end_list(client);
	}
}

static void
act_late(struct admin_client *client)
{
	char *target = client->target;

	client->target = NULL;
	admin_act_workspace(client, target);
	memory_free(target);
}

void
listener_admin_worker_gone(struct worker_entry *worker)
{
	struct admin_client *client;
	struct error err;

	error_set(
	    &err, ERROR_UNAVAILABLE, "the worker of %s ended; the log says why", worker->workspace);
	client = worker->listener->admin->clients;
	for (; client != NULL; client = client->next) {
		if (!admin_client_stop_awaiting(client, NULL, worker) ||
		    client->stage != ADMIN_STAGE_ASKED)
			continue;
		if (client->verb == ADMIN_WORKSPACES)
			admin_client_end_list(client);
		else if (client->target != NULL)
			act_late(client);
		else
			admin_client_end(client, &err, NULL, NULL);
	}
}
