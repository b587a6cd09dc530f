/* SPDX-License-Identifier: ISC */
/*
 * The listener's side of sessions. Spares are started before anybody connects, so that a
 * connection does not wait for a process: it is handed over as a descriptor in a message.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "conf/conf.h"
#include "core/admin_protocol.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/option.h"
#include "core/base/peer.h"
#include "gateway/listener.h"
#include "gateway/listener_admin.h"
#include "gateway/listener_state.h"
#include "keys/hostkey.h"

/* ms */
#define SPARE_PAUSE 1000

static void
send_start(struct listener *listener, struct peer *peer)
{
	const struct settings *settings = conf_global(listener->conf);
	struct session_start start = { 0 };
	struct message message;
	const char *banner;

	banner = settings_text(settings, "banner");
	start.ciphers = listener_join_list(settings, "ciphers");
	start.kex = listener_join_list(settings, "kex");
	start.macs = listener_join_list(settings, "macs");
	start.banner = banner == NULL ? NULL : memory_text(banner);
	start.login_grace = (uint32_t)settings_number(settings, "login_grace_time");
	start.max_auth_tries = (uint32_t)settings_number(settings, "max_auth_tries");
	start.max_channels = (uint32_t)settings_number(settings, "max_channels");
	start.alive_interval = (uint32_t)settings_number(settings, "client_alive_interval");
	start.alive_count = (uint32_t)settings_number(settings, "client_alive_count");
	session_start_encode(&message, &start);
	peer_send(peer, &message);
	session_start_free(&start);
}

static int
send_host_keys(struct listener *listener, struct peer *peer, struct error *err)
{
	struct message message;
	int keys[HOSTKEY_COUNT];
	size_t i;

	if (hostkey_open(settings_text(conf_global(listener->conf), "host_keys"), keys, err) != 0)
		return -1;
	for (i = 0; i < HOSTKEY_COUNT; i++) {
		message_start(&message, MESSAGE_HOST_KEY);
		message.fd = keys[i];
		peer_send(peer, &message);
	}
	return 0;
}

static int
take_auth_request(void *argument, struct message *message, struct error *err)
{
	struct session_entry *session = argument;

	if (session->spare || session->logged_in || session->asking)
		return error_set(err, ERROR_INVALID, "a session asked for a login out of turn");
	listener_ask_auth(session, message);
	return 0;
}

static const struct peer_rule session_rules[] = {
	{ MESSAGE_AUTH_REQUEST, "AUTH_REQUEST", 1, take_auth_request },
	{ MESSAGE_SESSION_START, "SESSION_START", 0, NULL },
	{ MESSAGE_HOST_KEY, "HOST_KEY", 0, NULL },
	{ MESSAGE_CONNECTION, "CONNECTION", 0, NULL },
	{ MESSAGE_AUTH_ANSWER, "AUTH_ANSWER", 0, NULL },
	{ MESSAGE_DRAIN, "DRAIN", 0, NULL },
	{ MESSAGE_SESSION_REPORT, "SESSION_REPORT", 1, listener_admin_take_session },
	{ MESSAGE_SESSION_ASK, "SESSION_ASK", 0, NULL },
	{ MESSAGE_SESSION_DISCONNECT, "SESSION_DISCONNECT", 0, NULL },
	{ 0, NULL, 0, NULL },
};

/*
 * The process is gone, or as good as. Where spares end by themselves the next ones would too: until
 * SPARE_PAUSE is over, sessions are started only for connections that are there.
 */
static void
lose_session(struct session_entry *session)
{
	if (session->spare)
		session->listener->spares_again = loop_now() + SPARE_PAUSE;
	listener_end_session(session);
}

static void
session_closed(void *argument, const struct error *err)
{
	struct session_entry *session = argument;

	if (err->code == ERROR_INVALID)
		log_error("session %ld: %s", (long)session->pid, err->message);
	lose_session(session);
}

static const struct peer_events session_events = { session_rules, session_closed, NULL };

static void
count(struct listener *listener, const struct session_entry *session, int change)
{
	unsigned *counter;

	counter = session->spare ? &listener->spares : &listener->starting;
	if (session->spare || !session->logged_in)
		*counter += (unsigned)change;
	if (!session->spare)
		listener->total += (unsigned)change;
}

/* A new session process without a connection. */
static struct session_entry *
start_spare(struct listener *listener)
{
	struct session_entry *session;
	struct error err;
	int control;
	pid_t pid;

	if (process_start(listener->program, "session", "rwsd: session", &listener->user, &pid,
		&control, &err) != 0) {
		log_error("start a session: %s", err.message);
		return NULL;
	}
	session = memory_zeroed(1, sizeof(*session));
	session->listener = listener;
	session->pid = pid;
	session->spare = true;
	session->peer = peer_new(
	    listener->loop, control, "listener", "session", &session_events, session);
	/* See hold_questions in listener_auth.c. */
	peer_pause(session->peer, listener->auth == NULL);
	session->next = listener->sessions;
	listener->sessions = session;
	count(listener, session, 1);
	send_start(listener, session->peer);
	if (send_host_keys(listener, session->peer, &err) != 0) {
		log_error("host keys for a session: %s", err.message);
		listener_end_session(session);
		return NULL;
	}
	return session;
}

void
listener_fill_spares(struct listener *listener)
{
	unsigned wanted;

	wanted = (unsigned)settings_number(conf_global(listener->conf), "spare_sessions");
	if (loop_now() < listener->spares_again)
		return;
	while (!listener->draining && listener->spares < wanted)
		if (start_spare(listener) == NULL)
			break;
}

void
listener_drop_spares(struct listener *listener)
{
	struct session_entry *session, *next;

	for (session = listener->sessions; session != NULL; session = next) {
		next = session->next;
		if (session->spare)
			listener_end_session(session);
	}
}

static struct session_entry *
find_spare(struct listener *listener)
{
	struct session_entry *session, *oldest;

	oldest = NULL;
	for (session = listener->sessions; session != NULL; session = session->next)
		if (session->spare)
			oldest = session;
	return oldest;
}

void
listener_start_session(struct listener *listener, int fd, const char *address, uint32_t port)
{
	struct connection connection = { 0 };
	struct session_entry *session;
	struct message message;

	session = find_spare(listener);
	if (session == NULL)
		session = start_spare(listener);
	if (session == NULL) {
		(void)close(fd);
		return;
	}
	count(listener, session, -1);
	session->spare = false;
	count(listener, session, 1);
	session->connection = ++listener->last_connection;
	(void)snprintf(session->address, sizeof(session->address), "%s", address);
	session->port = port;
	session->since = (int64_t)time(NULL);
	connection.number = session->connection;
	connection.fd = fd;
	connection.address = session->address;
	connection.port = port;
	connection_encode(&message, &connection);
	peer_send(session->peer, &message);
}

struct session_entry *
listener_find_session(struct listener *listener, uint64_t connection)
{
	struct session_entry *session;

	for (session = listener->sessions; session != NULL; session = session->next)
		if (!session->spare && session->connection == connection)
			return session;
	return NULL;
}

void
listener_answer_session(struct session_entry *session, const struct auth_answer *answer)
{
	struct message message;

	if (answer->worker >= 0) {
		count(session->listener, session, -1);
		session->logged_in = true;
		count(session->listener, session, 1);
	}
	session->asking = false;
	auth_answer_encode(&message, answer);
	peer_send(session->peer, &message);
}

/* Forgets the session; its process ends by itself when the socket closes. */
void
listener_end_session(struct session_entry *session)
{
	struct listener *listener = session->listener;
	struct session_entry **place;

	for (place = &listener->sessions; *place != session; place = &(*place)->next)
		continue;
	*place = session->next;
	count(listener, session, -1);
	listener_detach(session);
	listener_admin_session_gone(session);
	peer_free(session->peer);
	memory_free(session->workspace);
	memory_free(session->key);
	memory_free(session);
	listener_check_drained(listener);
}

bool
listener_session_exited(struct listener *listener, pid_t pid)
{
	struct session_entry *session;

	for (session = listener->sessions; session != NULL; session = session->next) {
		if (session->pid == pid) {
			lose_session(session);
			return true;
		}
	}
	return false;
}

void
listener_drain_sessions(struct listener *listener, bool now)
{
	struct session_entry *session;
	struct message message;

	for (session = listener->sessions; session != NULL; session = session->next) {
		drain_encode(&message, now);
		peer_send(session->peer, &message);
	}
}

unsigned
listener_count_source(const struct listener *listener, const char *address)
{
	const struct session_entry *session;
	unsigned found;

	found = 0;
	for (session = listener->sessions; session != NULL; session = session->next)
		if (!session->spare && !session->logged_in &&
		    strcmp(session->address, address) == 0)
			found++;
	return found;
}
