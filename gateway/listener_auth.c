/* SPDX-License-Identifier: ISC */
/*
 * The listener's side of the auth process. A session's question is passed on unread with the
 * number of its connection; the answer comes from the auth process alone, so that no session can
 * talk itself into a login.
 */
#include <signal.h>
#include <string.h>

#include "conf/conf.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/option.h"
#include "core/base/peer.h"
#include "gateway/listener_state.h"

/* ms from the start of one auth process to that of the next: one that cannot live is not started in a loop. */
#define AUTH_LIFE_MIN 2000

static void
note_login(struct session_entry *session, const struct auth_result *result)
{
	session->workspace = memory_text(result->workspace);
	session->key = memory_text(result->fingerprint);
	log_info("connection %llu from %s logs in as %s with %s",
	    (unsigned long long)result->connection, session->address, result->workspace,
	    result->fingerprint);
}

static void
answer(struct listener *listener, const struct auth_result *result)
{
	struct auth_answer reply = { .worker = -1 };
	struct session_entry *session;
	struct error err;

	session = listener_find_session(listener, result->connection);
	if (session == NULL || session->logged_in)
		return;
	reply.allowed = result->allowed;
	reply.no_pty = result->restrictions.no_pty;
	reply.forced = forced_command_parse(result->restrictions.command);
	reply.workspace = result->workspace;
	if (result->allowed && result->is_signed) {
		reply.worker = listener_attach(listener, result, &err);
		if (reply.worker < 0)
			log_error("workspace %s: %s", result->workspace, err.message);
		else
			note_login(session, result);
	}
	listener_answer_session(session, &reply);
}

static int
take_result(void *argument, struct message *message, struct error *err)
{
	struct listener *listener = argument;
	struct auth_result result;

	if (auth_result_decode(message, &result, err) != 0)
		return -1;
	answer(listener, &result);
	auth_result_free(&result);
	return 0;
}

static const struct peer_rule auth_rules[] = {
	{ MESSAGE_AUTH_RESULT, "AUTH_RESULT", 1, take_result },
	{ MESSAGE_AUTH_START, "AUTH_START", 0, NULL },
	{ MESSAGE_AUTH_LOGIN, "AUTH_LOGIN", 0, NULL },
	{ MESSAGE_AUTH_READY, "AUTH_READY", 0, NULL },
	{ MESSAGE_AUTH_CHECK, "AUTH_CHECK", 0, NULL },
	{ 0, NULL, 0, NULL },
};

/* While there is no auth process, questions for it stay unread: a refusal would say that the key is wrong. */
static void
hold_questions(struct listener *listener, bool hold)
{
	struct session_entry *session;

	for (session = listener->sessions; session != NULL; session = session->next)
		if (!session->logged_in)
			peer_pause(session->peer, hold);
}

static void
auth_closed(void *argument, const struct error *err)
{
	struct listener *listener = argument;

	if (listener->draining) {
		log_debug("auth: %s", err->message);
	} else {
		/* It may live on, of no use to anybody: another one is started once it has ended. */
		log_error("auth: %s", err->message);
		if (listener->auth_pid > 0)
			(void)kill(listener->auth_pid, SIGKILL);
	}
	peer_free(listener->auth);
	listener->auth = NULL;
	hold_questions(listener, true);
}

static const struct peer_events auth_events = { auth_rules, auth_closed, NULL };

int
listener_configure_auth(struct listener *listener)
{
	struct auth_login login;
	struct message message;
	size_t i;

	if (listener->auth == NULL)
		return -1;
	message_start(&message, MESSAGE_AUTH_START);
	peer_send(listener->auth, &message);
	for (i = 0; i < conf_login_count(listener->conf); i++) {
		const struct settings *settings = conf_login(listener->conf, i);

		memset(&login, 0, sizeof(login));
		login.name = memory_text(conf_login_name(listener->conf, i));
		login.instances = memory_text(settings_text(settings, "instances"));
		login.files = memory_list(settings_list(settings, "authorized_keys"));
		login.keys = memory_list(settings_list(settings, "key"));
		auth_login_encode(&message, &login);
		peer_send(listener->auth, &message);
		auth_login_free(&login);
	}
	message_start(&message, MESSAGE_AUTH_READY);
	peer_send(listener->auth, &message);
	return 0;
}

int
listener_start_auth(struct listener *listener, struct error *err)
{
	int control;

	if (process_start(listener->program, "auth", "rwsd: auth", &listener->user,
		&listener->auth_pid, &control, err) != 0)
		return -1;
	listener->auth_started = loop_now();
	listener->auth = peer_new(
	    listener->loop, control, "listener", "auth", &auth_events, listener);
	hold_questions(listener, false);
	return listener_configure_auth(listener);
}

void
listener_ask_auth(struct session_entry *session, struct message *request)
{
	struct listener *listener = session->listener;
	struct auth_answer refusal = { .worker = -1 };
	struct auth_check check = { 0 };
	struct message message;

	if (listener->auth == NULL) {
		listener_answer_session(session, &refusal);
		return;
	}
	check.connection = session->connection;
	check.address = session->address;
	check.request = buffer_data(&request->payload);
	check.request_size = request->payload.length;
	/* Room for our own part of the message; a request of that size is no key anyway. */
	if (check.request_size > MESSAGE_PAYLOAD_MAX / 2) {
		listener_answer_session(session, &refusal);
		return;
	}
	session->asking = true;
	auth_check_encode(&message, &check);
	peer_send(listener->auth, &message);
}

/* Sessions that wait for an answer of an auth process that is gone would wait for ever. */
static void
end_asking(struct listener *listener)
{
	struct session_entry *session, *next;

	for (session = listener->sessions; session != NULL; session = next) {
		next = session->next;
		if (session->asking)
			listener_end_session(session);
	}
}

static void
start_again(void *argument)
{
	struct listener *listener = argument;
	struct error err;

	if (listener->draining || listener_start_auth(listener, &err) == 0)
		return;
	log_error("start the auth process: %s", err.message);
	loop_timer_start(listener->auth_again, AUTH_LIFE_MIN);
}

bool
listener_auth_exited(struct listener *listener, pid_t pid)
{
	if (pid != listener->auth_pid)
		return false;
	listener->auth_pid = -1;
	peer_free(listener->auth);
	listener->auth = NULL;
	if (listener->draining)
		return true;
	listener->crashes++;
	end_asking(listener);
	hold_questions(listener, true);
	log_error("the auth process ended unexpectedly and is started again");
	if (listener->auth_again == NULL)
		listener->auth_again = loop_timer_new(listener->loop, start_again, listener);
	loop_timer_start(listener->auth_again, listener->auth_started + AUTH_LIFE_MIN - loop_now());
	return true;
}
