/* SPDX-License-Identifier: ISC */
/*
 * The auth process: decides who may log in.
 *
 * Started by: the listener, once.
 * User and rights: the configured user, with the right to read any file when started by root (an
 *	authorized_keys file may be its owner's alone); no children, no sockets of its own; not
 *	dumpable.
 * Descriptors: 0 and 1 /dev/null, 2 the log, 3 the listener.
 * Secrets: the keys that are trusted (public ones).
 * Reaches: authorized_keys files, read only; no host.
 * Messages: from the listener AUTH_START, AUTH_LOGIN, AUTH_READY (all logins, anew at each
 *	reload) and AUTH_CHECK; to it AUTH_RESULT.
 * Ends: when the listener is gone.
 */
#include <signal.h>

#include "core/base/confine.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "core/base/process.h"
#include "core/protocol.h"
#include "gateway/auth.h"
#include "keys/decision.h"

/* The order of messages: all logins between AUTH_START and AUTH_READY. */
enum auth_stage {
	AUTH_EMPTY = 1,
	AUTH_LOADING = 2,
	AUTH_SERVING = 4,
};

static struct {
	struct loop *loop;
	struct peer *listener;
	struct decision *decision; /* in force */
	struct decision *loading;  /* comes into force with AUTH_READY */
} auth;

static int
take_start(void *argument, struct message *message, struct error *err)
{
	(void)argument;
	if (message_end(message, err) != 0)
		return -1;
	auth.loading = decision_new();
	peer_set_state(auth.listener, AUTH_LOADING);
	return 0;
}

static int
take_login(void *argument, struct message *message, struct error *err)
{
	struct decision_login entry = { 0 };
	struct auth_login login;
	struct error reason;

	(void)argument;
	if (auth_login_decode(message, &login, err) != 0)
		return -1;
	entry.name = login.name;
	entry.files = login.files;
	entry.keys = login.keys;
	entry.instances = decision_instances_parse(login.instances);
	/* The configuration was checked, so this is a key that only the full parser refuses. */
	if (decision_add(auth.loading, &entry, &reason) != 0)
		log_error("login %s cannot be used: %s", login.name, reason.message);
	auth_login_free(&login);
	return 0;
}

static int
take_ready(void *argument, struct message *message, struct error *err)
{
	(void)argument;
	if (message_end(message, err) != 0)
		return -1;
	decision_free(auth.decision);
	auth.decision = auth.loading;
	auth.loading = NULL;
	peer_set_state(auth.listener, AUTH_SERVING);
	return 0;
}

/*
 * The part of the check that a session wrote: malformed means refused, not an end of this process.
 */
static void
decide(const struct auth_check *check, struct auth_result *result)
{
	struct auth_request request;
	struct message inner;
	struct error err;

	message_start(&inner, MESSAGE_AUTH_REQUEST);
	(void)buffer_append(&inner.payload, check->request, check->request_size);
	if (auth_request_decode(&inner, &request, &err) == 0) {
		decision_make(auth.decision, check, &request, result);
		auth_request_free(&request);
	} else {
		log_error(
		    "connection %llu: %s", (unsigned long long)check->connection, err.message);
	}
	message_free(&inner);
	result->connection = check->connection;
}

static int
take_check(void *argument, struct message *message, struct error *err)
{
	struct auth_result result = { 0 };
	struct auth_check check;
	struct message reply;

	(void)argument;
	if (auth_check_decode(message, &check, err) != 0)
		return -1;
	decide(&check, &result);
	auth_result_encode(&reply, &result);
	peer_send(auth.listener, &reply);
	auth_result_free(&result);
	auth_check_free(&check);
	return 0;
}

static const struct peer_rule rules[] = {
	{ MESSAGE_AUTH_START, "AUTH_START", AUTH_EMPTY | AUTH_SERVING, take_start },
	{ MESSAGE_AUTH_LOGIN, "AUTH_LOGIN", AUTH_LOADING, take_login },
	{ MESSAGE_AUTH_READY, "AUTH_READY", AUTH_LOADING, take_ready },
	{ MESSAGE_AUTH_CHECK, "AUTH_CHECK", AUTH_SERVING, take_check },
	{ MESSAGE_AUTH_RESULT, "AUTH_RESULT", 0, NULL },
	{ 0, NULL, 0, NULL },
};

static void
listener_closed(void *argument, const struct error *err)
{
	(void)argument;
	log_debug("ending: %s", err->message);
	loop_stop(auth.loop);
}

static const struct peer_events events = { rules, listener_closed, NULL };

static int
enter(const struct process_user *user, struct error *err)
{
	/*
	 * Not narrowed by Landlock:
	 * editors replace key files, and rules follow the file, not the name.
	 */
	struct confine confine = {
		.user = user,
		.keep_reading = true,
		.calls = CONFINE_CALLS_FILES,
		.files = true,
	};

	(void)signal(SIGPIPE, SIG_IGN);
	auth.loop = loop_new(err);
	if (auth.loop == NULL || confine_enter(&confine, err) != 0)
		return -1;
	auth.listener = peer_new(auth.loop, PROCESS_CONTROL_FD, "auth", "listener", &events, NULL);
	peer_set_state(auth.listener, AUTH_EMPTY);
	return 0;
}

int
auth_main(const struct process_user *user)
{
	struct error err;
	int result;

	process_set_title("rwsd: auth");
	if (enter(user, &err) != 0) {
		log_error("%s", err.message);
		return 1;
	}
	result = loop_run(auth.loop, &err);
	if (result != 0)
		log_error("%s", err.message);
	peer_free(auth.listener);
	decision_free(auth.decision);
	decision_free(auth.loading);
	loop_free(auth.loop);
	return result == 0 ? 0 : 1;
}
