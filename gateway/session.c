/* SPDX-License-Identifier: ISC */
/*
 * The session process: one SSH connection.
 *
 * Started by: the listener, ahead of need (a spare waits for its connection).
 * User and rights: the configured user; no files, no children, no sockets of its own (seccomp,
 *	Landlock); not dumpable.
 * Descriptors: 0 and 1 /dev/null, 2 the log, 3 the listener; then what messages bring: host keys
 *	(read and closed), the connection, the worker's socket, the descriptors of commands.
 * Secrets: the host keys. Never a provider's credential.
 * Reaches: no file and no host.
 * Messages: from the listener SESSION_*, HOST_KEY, CONNECTION, AUTH_ANSWER, DRAIN; to it AUTH_REQUEST
 *	and SESSION_REPORT; with the worker COMMAND_*.
 * Ends: with the connection; when the listener is gone; when the login takes too long.
 *
 * One loop (core/base/loop.h) waits for everything. libssh is driven from it: after each wait
 * session_pump (session_pump.c) lets libssh read and write, then moves the channels' bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/admin_protocol.h"
#include "core/base/confine.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "core/base/process.h"
#include "core/file_protocol.h"
#include "gateway/channel.h"
#include "gateway/session.h"
#include "gateway/session_files.h"
#include "gateway/session_state.h"
#include "keys/hostkey.h"

/* ms for telling the worker what the client left behind. */
#define FLUSH_WAIT 1000

/*
 * What is offered unless the configuration says otherwise: post-quantum hybrids where this libssh
 * has them (names it does not know are passed over), then curve25519 and the NIST curves.
 */
static const char standard_kex[] =
    "mlkem768x25519-sha256,sntrup761x25519-sha512,sntrup761x25519-sha512@openssh.com,"
    "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,"
    "ecdh-sha2-nistp521,diffie-hellman-group18-sha512,diffie-hellman-group16-sha512";

static struct session session;

void
session_disconnect(struct session *self, const char *format, ...)
{
	va_list arguments;
	char text[200];

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	log_debug("disconnecting: %s", text);
	(void)ssh_session_set_disconnect_message(self->ssh, text);
	self->dead = true;
}

void
session_send_worker(struct session *self, struct message *message)
{
	if (self->worker != NULL)
		peer_send(self->worker, message);
	else
		message_free(message);
}

static int
set_option(
    struct session *self, enum ssh_bind_options_e option, const void *value, const char *what)
{
	if (value == NULL || ssh_bind_options_set(self->bind, option, value) == SSH_OK)
		return 0;
	log_error("%s: %s", what, ssh_get_error(self->bind));
	return -1;
}

static int
take_start(void *argument, struct message *message, struct error *err)
{
	struct session *self = argument;
	bool no = false;

	if (session_start_decode(message, &self->start, err) != 0)
		return -1;
	if (set_option(self, SSH_BIND_OPTIONS_PROCESS_CONFIG, &no, "configuration files off") !=
		0 ||
	    set_option(self, SSH_BIND_OPTIONS_KEY_EXCHANGE,
		self->start.kex == NULL ? standard_kex : self->start.kex, "kex") != 0 ||
	    set_option(self, SSH_BIND_OPTIONS_CIPHERS_C_S, self->start.ciphers, "ciphers") != 0 ||
	    set_option(self, SSH_BIND_OPTIONS_CIPHERS_S_C, self->start.ciphers, "ciphers") != 0 ||
	    set_option(self, SSH_BIND_OPTIONS_HMAC_C_S, self->start.macs, "macs") != 0 ||
	    set_option(self, SSH_BIND_OPTIONS_HMAC_S_C, self->start.macs, "macs") != 0)
		return error_set(err, ERROR_INVALID, "libssh does not take the algorithms");
	return 0;
}

static int
take_host_key(void *argument, struct message *message, struct error *err)
{
	struct session *self = argument;
	ssh_key key;
	char *text;
	int fd, result;

	fd = message_take_fd(message);
	if (fd < 0 || message_end(message, err) != 0)
		return error_set(err, ERROR_INVALID, "a host key without its file");
	text = hostkey_read(fd, err);
	(void)close(fd);
	if (text == NULL)
		return -1;
	result = ssh_pki_import_privkey_base64(text, NULL, NULL, NULL, &key);
	memory_text_wipe(text);
	if (result != SSH_OK)
		return error_set(err, ERROR_INVALID, "libssh cannot read a host key");
	/* The key is the bind object's from here on. */
	return set_option(self, SSH_BIND_OPTIONS_IMPORT_KEY, key, "host key");
}

static void
grace_expired(void *argument)
{
	struct session *self = argument;

	if (self->stage == SESSION_OPEN) {
		session_disconnect(self, self->worker == NULL ? "the worker of this workspace ended"
							      : "the gateway is going down");
		return;
	}
	log_info("no login within the grace time from %s", self->connection.address);
	session_disconnect(self, "Timeout before authentication");
}

/*
 * A lone small packet must not wait for the acknowledgement of the one before it (RFC 1122, Nagle).
 */
static void
hurry_socket(int fd)
{
	int on = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
		log_debug("TCP_NODELAY cannot be set: not a TCP socket?");
	if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) != 0)
		log_debug("SO_KEEPALIVE cannot be set");
}

static void
connection_ready(void *argument, unsigned events)
{
	struct session *self = argument;

	/* session_pump, which follows every wait, does the work. */
	if ((events & LOOP_HANGUP) != 0)
		self->hung_up = true;
	if ((events & LOOP_WRITE) != 0)
		self->sendable = true;
}

static int
take_connection(void *argument, struct message *message, struct error *err)
{
	struct session *self = argument;

	if (connection_decode(message, &self->connection, err) != 0)
		return -1;
	log_set_context(self->connection.number, NULL);
	process_set_title("rwsd: session [%s]", self->connection.address);
	hurry_socket(self->connection.fd);
	self->ssh = ssh_new();
	self->event = ssh_event_new();
	if (self->ssh == NULL || self->event == NULL)
		return error_set(err, ERROR_UNAVAILABLE, "out of memory");
	if (ssh_bind_accept_fd(self->bind, self->ssh, self->connection.fd) != SSH_OK)
		return error_set(
		    err, ERROR_UNAVAILABLE, "start SSH: %s", ssh_get_error(self->bind));
	ssh_set_blocking(self->ssh, 0);
	ssh_set_counters(self->ssh, NULL, &self->counter);
	ssh_set_auth_methods(self->ssh, SSH_AUTH_METHOD_PUBLICKEY);
	/*
	 * Sends our banner, and makes the poll context that the session is added to the event with.
	 */
	if (ssh_handle_key_exchange(self->ssh) == SSH_ERROR ||
	    ssh_event_add_session(self->event, self->ssh) != SSH_OK)
		return error_set(
		    err, ERROR_UNAVAILABLE, "watch the connection: %s", ssh_get_error(self->ssh));
	/* A duplicate is watched: libssh closes its own at a time of its choosing. */
	self->watched = fcntl(self->connection.fd, F_DUPFD_CLOEXEC, 0);
	if (self->watched < 0)
		return error_system(err, errno, "duplicate the connection");
	self->watch = loop_watch(self->loop, self->watched, LOOP_READ, connection_ready, self);
	self->stage = SESSION_EXCHANGING;
	peer_set_state(self->listener, self->stage);
	self->grace = loop_timer_new(self->loop, grace_expired, self);
	loop_timer_start(self->grace, self->start.login_grace);
	return 0;
}

/* The gateway is going down: no new channels; whoever sits at a terminal is told. */
static int
take_drain(void *argument, struct message *message, struct error *err)
{
	struct session *self = argument;
	bool now;

	if (drain_decode(message, &now, err) != 0)
		return -1;
	if (self->stage != SESSION_OPEN || now || self->channels == NULL) {
		self->dead = true;
		return 0;
	}
	self->draining = true;
	channels_announce(
	    self, "\r\nrws: the gateway is going down; this connection will be closed.\r\n");
	return 0;
}

static const struct peer_rule listener_rules[] = {
	{ MESSAGE_SESSION_START, "SESSION_START", SESSION_WAITING, take_start },
	{ MESSAGE_HOST_KEY, "HOST_KEY", SESSION_WAITING, take_host_key },
	{ MESSAGE_CONNECTION, "CONNECTION", SESSION_WAITING, take_connection },
	{ MESSAGE_AUTH_REQUEST, "AUTH_REQUEST", 0, NULL },
	{ MESSAGE_AUTH_ANSWER, "AUTH_ANSWER", SESSION_LOGGING_IN, session_auth_take_answer },
	{ MESSAGE_DRAIN, "DRAIN",
	    SESSION_WAITING | SESSION_EXCHANGING | SESSION_LOGGING_IN | SESSION_OPEN, take_drain },
	{ MESSAGE_SESSION_ASK, "SESSION_ASK", SESSION_LOGGING_IN | SESSION_OPEN, session_take_ask },
	{ MESSAGE_SESSION_REPORT, "SESSION_REPORT", 0, NULL },
	{ MESSAGE_SESSION_DISCONNECT, "SESSION_DISCONNECT",
	    SESSION_EXCHANGING | SESSION_LOGGING_IN | SESSION_OPEN, session_take_disconnect },
	{ 0, NULL, 0, NULL },
};

static void
listener_closed(void *argument, const struct error *err)
{
	struct session *self = argument;

	log_debug("ending: %s", err->message);
	self->dead = true;
}

static const struct peer_events listener_events = { listener_rules, listener_closed, NULL };

static const struct peer_rule worker_rules[] = {
	{ MESSAGE_COMMAND_STREAM, "COMMAND_STREAM", SESSION_OPEN, channel_take_stream },
	{ MESSAGE_COMMAND_PROGRESS, "COMMAND_PROGRESS", SESSION_OPEN, channel_take_progress },
	{ MESSAGE_COMMAND_EXIT, "COMMAND_EXIT", SESSION_OPEN, channel_take_exit },
	{ MESSAGE_FILE_REPLY, "FILE_REPLY", SESSION_OPEN, session_file_take_reply },
	{ MESSAGE_FILE_REQUEST, "FILE_REQUEST", 0, NULL },
	{ MESSAGE_FILE_CANCEL, "FILE_CANCEL", 0, NULL },
	{ MESSAGE_COMMAND_START, "COMMAND_START", 0, NULL },
	{ MESSAGE_COMMAND_SIGNAL, "COMMAND_SIGNAL", 0, NULL },
	{ MESSAGE_COMMAND_RESIZE, "COMMAND_RESIZE", 0, NULL },
	{ MESSAGE_COMMAND_LIMIT, "COMMAND_LIMIT", 0, NULL },
	{ MESSAGE_COMMAND_CLOSE, "COMMAND_CLOSE", 0, NULL },
	{ 0, NULL, 0, NULL },
};

/* Commands that run are lost to us: each channel says so and ends, then the connection. */
static void
worker_closed(void *argument, const struct error *reason)
{
	struct session *self = argument;
	struct error err;

	log_error("the worker of %s is gone: %s", self->workspace, reason->message);
	error_set(&err, ERROR_UNAVAILABLE, "the worker of this workspace ended unexpectedly");
	peer_free(self->worker);
	self->worker = NULL;
	self->draining = true;
	session_files_fail(self, &err);
	channels_fail(self, &err);
}

static const struct peer_events worker_events = { worker_rules, worker_closed, NULL };

/* Asks a silent client whether it is still there; any packet counts as an answer. */
static void
alive_expired(void *argument)
{
	struct session *self = argument;

	if (self->counter.in_packets != self->alive_packets)
		self->alive_missed = 0;
	else if (++self->alive_missed > self->start.alive_count) {
		log_info("no sign of life from %s", self->connection.address);
		session_disconnect(self, "Timeout, client not responding");
		return;
	}
	/* Nothing came but the answer to the last question. */
	if (self->counter.in_packets <= self->alive_packets + 1)
		channels_rest();
	self->alive_packets = self->counter.in_packets;
	(void)ssh_send_keepalive(self->ssh);
	loop_timer_start(self->alive, self->start.alive_interval);
}

static void
rest_expired(void *argument)
{
	const struct session *self = argument;

	if (self->channels == NULL)
		channels_rest();
}

/* Forwarding, global requests and what else is not offered: libssh sends the refusal. */
static int
refuse_message(ssh_session ssh, ssh_message request, void *argument)
{
	(void)ssh;
	(void)request;
	(void)argument;
	return 1;
}

void
session_opened(struct session *self, int worker)
{
	loop_timer_stop(self->grace);
	loop_timer_free(self->unanswered);
	self->unanswered = NULL;
	self->stage = SESSION_OPEN;
	peer_set_state(self->listener, self->stage);
	self->worker = peer_new(self->loop, worker, "session", "worker", &worker_events, self);
	peer_set_state(self->worker, SESSION_OPEN);
	self->callbacks.userdata = self;
	self->callbacks.channel_open_request_session_function = channel_open;
	ssh_callbacks_init(&self->callbacks);
	(void)ssh_set_server_callbacks(self->ssh, &self->callbacks);
	ssh_set_message_callback(self->ssh, refuse_message, self);
	log_set_context(self->connection.number, self->workspace);
	process_set_title("rwsd: session %s [%s]", self->workspace, self->connection.address);
	log_info("logged in from %s port %u", self->connection.address, self->connection.port);
	self->rest = loop_timer_new(self->loop, rest_expired, self);
	if (self->start.alive_interval == 0)
		return;
	self->alive = loop_timer_new(self->loop, alive_expired, self);
	loop_timer_start(self->alive, self->start.alive_interval);
}

static int
enter(const struct process_user *user, struct error *err)
{
	struct confine confine = { .user = user, .calls = CONFINE_CALLS_PLAIN };

	(void)signal(SIGPIPE, SIG_IGN);
	session.loop = loop_new(err);
	if (session.loop == NULL)
		return -1;
	hostkey_save_memory();
	if (ssh_init() != SSH_OK)
		return error_set(err, ERROR_UNAVAILABLE, "ssh_init failed");
	session.bind = ssh_bind_new();
	if (session.bind == NULL)
		return error_set(err, ERROR_UNAVAILABLE, "ssh_bind_new failed");
	if (confine_enter(&confine, err) != 0)
		return -1;
	session.stage = SESSION_WAITING;
	session.listener = peer_new(
	    session.loop, PROCESS_CONTROL_FD, "session", "listener", &listener_events, &session);
	peer_set_state(session.listener, SESSION_WAITING);
	return 0;
}

static void
leave(void)
{
	struct error err;

	channels_free(&session);
	if (session.worker != NULL) {
		if (peer_flush(session.worker, FLUSH_WAIT, &err) != 0)
			log_debug("the worker was not told: %s", err.message);
		peer_free(session.worker);
	}
	session_auth_free(&session);
	loop_timer_free(session.alive);
	loop_timer_free(session.rest);
	loop_unwatch(session.watch);
	if (session.ssh != NULL) {
		if (session.event != NULL) {
			session_say_goodbye(&session);
			ssh_event_free(session.event);
		}
		ssh_free(session.ssh);
	}
	descriptor_close(&session.watched);
	ssh_bind_free(session.bind);
	peer_free(session.listener);
	session_start_free(&session.start);
	connection_free(&session.connection);
	loop_free(session.loop);
	ssh_finalize();
}

int
session_main(const struct process_user *user)
{
	struct error err;
	bool more;
	int result;

	process_set_title("rwsd: session (spare)");
	session.watched = -1;
	if (enter(user, &err) != 0) {
		log_error("%s", err.message);
		return 1;
	}
	result = 0;
	more = false;
	while (!session.dead && result == 0) {
		result = loop_dispatch(session.loop, more ? 0 : -1, &err);
		more = session_pump(&session);
	}
	if (result != 0)
		log_error("%s", err.message);
	if (session.workspace != NULL)
		log_info("connection closed");
	leave();
	return result == 0 ? 0 : 1;
}
