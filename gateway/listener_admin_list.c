/* SPDX-License-Identifier: ISC */
/*
 * The lists of rws admin. What the listener knows itself it says at once; the rest comes from sessions
 * and workers as they answer. One that does not answer is listed without, and is not waited for a
 * second time: it may be stopped, and the list is there to find that out.
 */
#include <string.h>
#include <unistd.h>

#include "conf/conf.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/option.h"
#include "core/base/peer.h"
#include "gateway/listener_admin_state.h"
#include "gateway/listener_state.h"
#include "gateway/version.h"

void
admin_list_status(struct admin_client *client, const char *target)
{
	const struct listener *listener = client->listener;
	const struct worker_entry *worker;
	struct admin_status status = { 0 };
	struct message message;

	(void)target;
	status.version = memory_text(RWSD_VERSION);
	status.configuration = memory_text(listener->path);
	status.pid = (uint32_t)getpid();
	status.since = listener->admin->since;
	status.draining = listener->draining;
	status.sessions = listener->total;
	status.starting = listener->starting;
	status.spares = listener->spares;
	status.crashes = listener->crashes;
	status.place = listener->place == NULL ? NULL : memory_text(listener->place);
	for (worker = listener->workers; worker != NULL; worker = worker->next)
		status.workers++;
	admin_status_encode(&message, &status);
	admin_status_free(&status);
	peer_send(client->peer, &message);
	admin_client_end(client, NULL, NULL, NULL);
}

void
admin_list_logins(struct admin_client *client, const char *target)
{
	const struct listener *listener = client->listener;
	const struct worker_entry *worker;
	const struct settings *settings;
	struct admin_login login = { 0 };
	struct message message;
	size_t i;

	(void)target;
	for (i = 0; i < conf_login_count(listener->conf); i++) {
		settings = conf_login(listener->conf, i);
		login.name = memory_text(conf_login_name(listener->conf, i));
		login.driver = memory_text(settings_text(settings, "driver"));
		login.instances = memory_text(settings_text(settings, "instances"));
		for (worker = listener->workers; worker != NULL; worker = worker->next) {
			if (strcmp(worker->login, login.name) != 0)
				continue;
			login.workspaces++;
			login.sessions += worker->sessions;
		}
		admin_login_encode(&message, &login);
		admin_login_free(&login);
		peer_send(client->peer, &message);
	}
	admin_client_end(client, NULL, NULL, NULL);
}

/*
 * Asks unless a question is still open, whose answer will do. False when that has been open for so long
 * that there is no point in waiting.
 */
static bool
ask(struct peer *peer, int64_t *asked, uint8_t type)
{
	struct message message;

	if (*asked != 0)
		return loop_now() - *asked < ADMIN_REPORT_WAIT;
	*asked = loop_now();
	admin_ask_encode(&message, type);
	peer_send(peer, &message);
	return true;
}

/*
 * report is NULL when there was none. A worker that was told to end and has hung up can give none, which
 * is no sign that it is stuck.
 */
static void
send_workspace(struct admin_client *client, const struct worker_entry *worker,
    const struct worker_report *report)
{
	static const struct worker_report last = { .state = SANDBOX_RELEASING };
	struct admin_workspace row = { 0 };
	struct message message;

	row.login = worker->login;
	row.workspace = worker->workspace;
	row.driver = worker->driver;
	row.pid = (uint32_t)worker->pid;
	row.since = worker->since;
	row.sessions = worker->sessions;
	if (report == NULL && worker->leaving && worker->peer == NULL)
		report = &last;
	row.answered = report != NULL;
	if (report != NULL)
		row.report = *report;
	admin_workspace_encode(&message, &row);
	peer_send(client->peer, &message);
}

void
admin_list_workspaces(struct admin_client *client, const char *target)
{
	struct worker_entry *worker;

	(void)target;
	for (worker = client->listener->workers; worker != NULL; worker = worker->next) {
		if (worker->peer != NULL && ask(worker->peer, &worker->asked, MESSAGE_WORKER_ASK))
			admin_client_await(client, NULL, worker);
		else
			send_workspace(client, worker, NULL);
	}
	admin_records_list(client);
	admin_client_end_list(client);
}

int
listener_admin_take_worker(void *argument, struct message *message, struct error *err)
{
	struct worker_entry *worker = argument;
	struct admin_client *client;
	struct worker_report report;

	if (worker_report_decode(message, &report, err) != 0)
		return -1;
	worker->asked = 0;
	client = worker->listener->admin->clients;
	for (; client != NULL; client = client->next) {
		if (client->verb != ADMIN_WORKSPACES ||
		    !admin_client_stop_awaiting(client, NULL, worker))
			continue;
		send_workspace(client, worker, &report);
		admin_client_end_list(client);
	}
	worker_report_free(&report);
	return 0;
}

static void
send_session(struct admin_client *client, const struct session_entry *session,
    const struct session_report *report)
{
	char address[ADDRESS_TEXT_MAX];
	struct admin_session row = { 0 };
	struct message message;

	memcpy(address, session->address, sizeof(address));
	row.connection = session->connection;
	row.pid = (uint32_t)session->pid;
	row.workspace = session->workspace;
	row.key = session->key;
	row.address = address;
	row.port = session->port;
	row.since = session->since;
	row.answered = report != NULL;
	if (report != NULL) {
		row.bytes_in = report->bytes_in;
		row.bytes_out = report->bytes_out;
		row.channels = report->channel_count;
	}
	admin_session_encode(&message, &row);
	peer_send(client->peer, &message);
}

static void
send_channels(struct admin_client *client, const struct session_entry *session,
    const struct session_report *report)
{
	struct admin_channel row = { .answered = report != NULL };
	struct message message;
	uint32_t i;

	row.connection = session->connection;
	row.workspace = session->workspace;
	for (i = 0; i < (report == NULL ? 1 : report->channel_count); i++) {
		if (report != NULL)
			row.channel = report->channels[i];
		admin_channel_encode(&message, &row);
		peer_send(client->peer, &message);
	}
}

static void
tell_session(struct admin_client *client, const struct session_entry *session,
    const struct session_report *report)
{
	if (client->verb == ADMIN_SESSIONS)
		send_session(client, session, report);
	else if (session->workspace != NULL)
		send_channels(client, session, report);
}

/* Sessions that have yet to log in have no more to say than the listener knows. */
void
admin_list_sessions(struct admin_client *client, const char *target)
{
	struct session_entry *session;

	(void)target;
	for (session = client->listener->sessions; session != NULL; session = session->next) {
		if (session->spare)
			continue;
		if (session->logged_in && ask(session->peer, &session->asked, MESSAGE_SESSION_ASK))
			admin_client_await(client, session, NULL);
		else
			tell_session(client, session, NULL);
	}
	admin_client_end_list(client);
}

int
listener_admin_take_session(void *argument, struct message *message, struct error *err)
{
	struct session_entry *session = argument;
	struct admin_client *client;
	struct session_report report;

	if (session_report_decode(message, &report, err) != 0)
		return -1;
	session->asked = 0;
	client = session->listener->admin->clients;
	for (; client != NULL; client = client->next) {
		if (client->verb == ADMIN_DISCONNECT ||
		    !admin_client_stop_awaiting(client, session, NULL))
			continue;
		tell_session(client, session, &report);
		admin_client_end_list(client);
	}
	session_report_free(&report);
	return 0;
}

void
admin_list_without(struct admin_client *client)
{
	const struct awaited *awaited;

	while ((awaited = client->awaited) != NULL) {
		if (awaited->worker != NULL)
			send_workspace(client, awaited->worker, NULL);
		else
			tell_session(client, awaited->session, NULL);
		(void)admin_client_stop_awaiting(client, awaited->session, awaited->worker);
	}
	admin_records_give_up(client);
	admin_client_end_list(client);
}
