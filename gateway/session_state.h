/* SPDX-License-Identifier: ISC */
/*
 * What the files of the session process share: session.c (life and loop), session_auth.c (logging
 * in), channel.c and channel_stream.c (what runs on a channel).
 */
#ifndef GATEWAY_SESSION_STATE_H
#define GATEWAY_SESSION_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <libssh/server.h>

#include "core/protocol.h"

struct channel;
struct loop;
struct loop_timer;
struct loop_watch;
struct message;
struct peer;
struct session_file;

/* Bytes that may wait to be sent before nothing more is read from the client, or for it. */
#define SESSION_UNSENT_MAX (8U * 1024U * 1024U)

/* Where the connection stands; bits, for the tables of messages. */
enum session_stage {
	SESSION_WAITING = 1,    /* a spare without a connection */
	SESSION_EXCHANGING = 2, /* key exchange */
	SESSION_LOGGING_IN = 4,
	SESSION_OPEN = 8,
};

struct session {
	struct loop *loop;
	struct peer *listener;
	struct peer *worker; /* NULL before the login, and when it is gone */
	struct session_start start;
	struct connection connection;
	enum session_stage stage;

	ssh_bind bind;
	ssh_session ssh;
	ssh_event event;
	int watched;              /* a duplicate of the connection's socket */
	struct loop_watch *watch; /* on it */
	struct ssh_server_callbacks_struct callbacks;
	struct ssh_counter_struct counter; /* of what was received */
	bool dead;     /* libssh reported a fatal error, or the client hung up */
	bool hung_up;  /* the socket reported an error or hang-up; libssh will find out */
	bool more;     /* libssh may have more to read at once */
	bool writable; /* libssh has nothing left to send */
	bool sendable; /* the socket takes more */
	struct ssh_counter_struct sent; /* the counter as of when libssh had nothing left to send */
	bool draining;                  /* the gateway is going down: no new channels */

	/* session_auth.c */
	struct loop_timer *grace; /* for logging in; later, for the drain */
	struct loop_timer *unanswered;
	ssh_message pending;    /* waits for the auth process */
	ssh_message remembered; /* an earlier request to hang an answer on */
	bool pending_signed;
	bool serving;       /* the service request is behind us: every packet should be a request */
	bool asked_methods; /* the first "none" is behind us */
	char *user;         /* pinned by the first request */
	char *workspace;    /* the login in full, once logged in */
	bool no_pty;
	enum forced_command forced;
	unsigned tries;
	uint64_t seen_packets, expected_packets;

	/* channel.c */
	struct channel *channels;
	struct channel *closing; /* wait for the client to close them too */
	unsigned channel_count;  /* of both */
	unsigned refusals;       /* told in the log */
	uint32_t last_channel;   /* number that the operator sees */
	uint32_t last_command;
	struct session_file *files; /* session_files.c: requests that are with the worker */
	uint32_t last_file;
	struct loop_timer *alive;
	struct loop_timer *rest; /* from the end of the last channel until memory is given back */
	uint64_t alive_packets;  /* received when the timer was last started */
	unsigned alive_missed;
};

/* session.c: ends the connection for a reason that the client is told where libssh can. */
void session_disconnect(struct session *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* session.c: the login succeeded; channels may open. worker is our end of the worker's socket. */
void session_opened(struct session *self, int worker);

/* session.c: sends a message to the worker; when that is gone the channels learn it elsewhere. */
void session_send_worker(struct session *self, struct message *message);

/*
 * session_pump.c: bytes that libssh may have yet to send, no fewer than there are. It queues
 * without limit, and answers whatever the client sends.
 */
uint64_t session_unsent(const struct session *session);

/* session_pump.c: moves what can be moved; true when the next wait must not wait. */
bool session_pump(struct session *session);

/*
 * session_pump.c: says goodbye. libssh closes the socket right behind its last packet, whether or
 * not that packet could be sent; so what is queued is sent first, as far as the socket takes it.
 */
void session_say_goodbye(struct session *session);

/* session_report.c: what the operator asks for (rws admin). */
int session_take_ask(void *argument, struct message *message, struct error *err);
int session_take_disconnect(void *argument, struct message *message, struct error *err);

/* session_auth.c: takes the requests that have arrived; called after each round of packets. */
void session_auth_advance(struct session *session);
int session_auth_take_answer(void *argument, struct message *message, struct error *err);
void session_auth_free(struct session *session);

#endif
