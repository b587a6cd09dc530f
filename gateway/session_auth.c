/* SPDX-License-Identifier: ISC */
/*
 * Logging in, by public key only. Requests come from libssh's message queue rather than from its
 * callbacks, because only a queued message can wait for the auth process without blocking.
 *
 * The identity is the key of the signed request, never that of a query (RFC 4252 section 7). The
 * user name of the first request holds for the connection.
 *
 * libssh drops a request whose key or signature it cannot parse, and the client waits for ever.
 * What the public API shows of that is a packet that became no message: when nothing follows it for
 * a while, a failure is sent in its name, on an earlier request kept for the purpose; where there
 * was none, the connection ends. Packets before the service request are not counted (EXT_INFO).
 */
#include <string.h>

#include "core/base/base64.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "core/protocol.h"
#include "gateway/session_state.h"

/* libssh 0.11 marks the message API as deprecated without offering another that can wait. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/*
 * ms; far longer than the gap between two packets of one client, short enough for a person to wait.
 */
#define UNANSWERED_WAIT 400

static void
refuse(struct session *session, ssh_message request)
{
	if (request != NULL) {
		(void)ssh_message_auth_set_methods(request, SSH_AUTH_METHOD_PUBLICKEY);
		(void)ssh_message_reply_default(request);
	}
	if (session->tries < session->start.max_auth_tries)
		return;
	log_info("too many authentication failures for %s from %s",
	    session->user == NULL ? "no user" : session->user, session->connection.address);
	session_disconnect(session, "Too many authentication failures");
}

/* Keeps the first request to answer on later, and frees the others. */
static void
release_request(struct session *session, ssh_message request)
{
	if (session->remembered == NULL)
		session->remembered = request;
	else
		ssh_message_free(request);
}

/* The key's type as its blob names it (RFC 4253 section 6.6): a new text, NULL when malformed. */
static char *
blob_algorithm(const unsigned char *blob, size_t size)
{
	size_t length;

	if (size < 4)
		return NULL;
	length = (size_t)blob[0] << 24 | (size_t)blob[1] << 16 | (size_t)blob[2] << 8 | blob[3];
	if (length > size - 4 || memchr(blob + 4, '\0', length) != NULL)
		return NULL;
	return memory_text_bounded(blob + 4, length);
}

/* The request's public key in its wire form; libssh's public API gives it only as base64. */
static int
export_key(ssh_message request, struct auth_request *question)
{
	char *text;
	size_t length;
	int result;

	if (ssh_message_auth_pubkey(request) == NULL ||
	    ssh_pki_export_pubkey_base64(ssh_message_auth_pubkey(request), &text) != SSH_OK)
		return -1;
	length = strlen(text);
	question->blob = memory_allocate(length);
	result = base64_decode(question->blob, &question->blob_size, text, length);
	ssh_string_free_char(text);
	if (result == 0)
		question->algorithm = blob_algorithm(question->blob, question->blob_size);
	return question->algorithm == NULL ? -1 : 0;
}

/* Asks the auth process about the request's key and user. */
static int
ask_auth(struct session *session, ssh_message request)
{
	struct auth_request question = { 0 };
	struct message message;

	if (export_key(request, &question) != 0) {
		auth_request_free(&question);
		return -1;
	}
	question.user = memory_text(session->user);
	question.is_signed = ssh_message_auth_publickey_state(request) == SSH_PUBLICKEY_STATE_VALID;
	auth_request_encode(&message, &question);
	peer_send(session->listener, &message);
	session->pending_signed = question.is_signed;
	auth_request_free(&question);
	return 0;
}

/* The user name of the first request holds; another one ends the connection as sshd does. */
static bool
pin_user(struct session *session, const char *user)
{
	if (session->user == NULL && user != NULL)
		session->user = memory_text(user);
	if (session->user != NULL && user != NULL && strcmp(session->user, user) == 0)
		return true;
	log_info(
	    "the user name changed during authentication, from %s", session->connection.address);
	session_disconnect(session, "Change of username not allowed");
	return false;
}

static void
take_auth(struct session *session, ssh_message request)
{
	if (!pin_user(session, ssh_message_auth_user(request))) {
		ssh_message_free(request);
		return;
	}
	if (ssh_message_subtype(request) == SSH_AUTH_METHOD_PUBLICKEY) {
		if (ask_auth(session, request) == 0) {
			session->pending = request;
			return;
		}
		session->tries++;
	} else if (ssh_message_subtype(request) != SSH_AUTH_METHOD_NONE || session->asked_methods) {
		session->tries++;
	}
	/* Every client sends one "none" to learn the methods. */
	if (ssh_message_subtype(request) == SSH_AUTH_METHOD_NONE)
		session->asked_methods = true;
	refuse(session, request);
	release_request(session, request);
}

static void
take_request(struct session *session, ssh_message request)
{
	const char *service;

	session->expected_packets++;
	if (ssh_message_type(request) == SSH_REQUEST_AUTH) {
		take_auth(session, request);
		return;
	}
	service = NULL;
	if (ssh_message_type(request) == SSH_REQUEST_SERVICE)
		service = ssh_message_service_service(request);
	if (service != NULL && strcmp(service, "ssh-userauth") == 0) {
		session->serving = true;
		session->expected_packets = session->counter.in_packets;
		(void)ssh_message_service_reply_success(request);
	} else {
		(void)ssh_message_reply_default(request);
	}
	ssh_message_free(request);
}

/* A packet became no message and nothing came after it: see above. */
static void
unanswered_expired(void *argument)
{
	struct session *session = argument;

	if (session->stage != SESSION_LOGGING_IN || session->pending != NULL)
		return;
	log_info("a request that cannot be parsed from %s", session->connection.address);
	session->expected_packets = session->counter.in_packets;
	session->tries++;
	if (session->remembered == NULL)
		session_disconnect(session, "The authentication request cannot be parsed");
	else
		refuse(session, session->remembered);
}

static void
watch_unanswered(struct session *session)
{
	if (!session->serving) {
		session->expected_packets = session->counter.in_packets;
		return;
	}
	if (session->unanswered == NULL)
		session->unanswered = loop_timer_new(session->loop, unanswered_expired, session);
	if (session->counter.in_packets == session->seen_packets)
		return;
	session->seen_packets = session->counter.in_packets;
	if (session->counter.in_packets > session->expected_packets)
		loop_timer_start(session->unanswered, UNANSWERED_WAIT);
	else
		loop_timer_stop(session->unanswered);
}

void
session_auth_advance(struct session *session)
{
	ssh_message request;

	while (session->stage == SESSION_LOGGING_IN && session->pending == NULL && !session->dead) {
		request = ssh_message_get(session->ssh);
		if (request == NULL)
			break;
		take_request(session, request);
	}
	if (session->stage == SESSION_LOGGING_IN && !session->dead)
		watch_unanswered(session);
}

/* The answer to a signed request that may log in. */
static void
log_in(struct session *session, ssh_message request, struct auth_answer *answer)
{
	session->workspace = memory_text(answer->workspace);
	session->no_pty = answer->no_pty;
	session->forced = answer->forced;
	(void)ssh_message_auth_reply_success(request, 0);
	session_opened(session, answer->worker);
	answer->worker = -1;
}

int
session_auth_take_answer(void *argument, struct message *message, struct error *err)
{
	struct session *session = argument;
	struct auth_answer answer;
	ssh_message request;

	if (auth_answer_decode(message, &answer, err) != 0)
		return -1;
	request = session->pending;
	session->pending = NULL;
	if (request == NULL) {
		auth_answer_free(&answer);
		return error_set(err, ERROR_INVALID, "an answer without a question");
	}
	if (!answer.allowed) {
		session->tries++;
		refuse(session, request);
	} else if (session->pending_signed && answer.worker >= 0) {
		log_in(session, request, &answer);
	} else if (session->pending_signed) {
		session_disconnect(session, "no worker for this login");
	} else {
		(void)ssh_message_auth_reply_pk_ok_simple(request);
	}
	release_request(session, request);
	auth_answer_free(&answer);
	return 0;
}

void
session_auth_free(struct session *session)
{
	if (session->pending != NULL)
		ssh_message_free(session->pending);
	if (session->remembered != NULL)
		ssh_message_free(session->remembered);
	session->pending = session->remembered = NULL;
	loop_timer_free(session->unanswered);
	loop_timer_free(session->grace);
	session->unanswered = session->grace = NULL;
	memory_free(session->user);
	memory_free(session->workspace);
	session->user = session->workspace = NULL;
}
