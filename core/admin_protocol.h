/* SPDX-License-Identifier: ISC */
/*
 * What an operator asks of a running gateway as messages, and what the listener asks of sessions and
 * workers for the answer. Numbers, names and kinds only: no message has a place for a command line,
 * an environment or a path in a sandbox, which may hold secrets.
 *
 *	rws admin -> listener   ADMIN_REQUEST, one on a connection
 *	listener -> rws admin   ADMIN_STATUS, ADMIN_LOGIN, ADMIN_WORKSPACE, ADMIN_RECORD, ADMIN_SESSION
 *				and ADMIN_CHANNEL, a message for each row in no order; ADMIN_END last
 *	listener <-> session    SESSION_ASK, answered by SESSION_REPORT; SESSION_DISCONNECT
 *	listener <-> worker     WORKER_ASK, answered by WORKER_REPORT; WORKER_ACT, answered by WORKER_DONE
 *
 * Structs and their texts are as in core/protocol.h.
 */
#ifndef CORE_ADMIN_PROTOCOL_H
#define CORE_ADMIN_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

struct message;

enum admin_message {
	MESSAGE_ADMIN_REQUEST = 100,
	MESSAGE_ADMIN_STATUS,
	MESSAGE_ADMIN_LOGIN,
	MESSAGE_ADMIN_WORKSPACE,
	MESSAGE_ADMIN_SESSION,
	MESSAGE_ADMIN_CHANNEL,
	MESSAGE_ADMIN_END,
	MESSAGE_ADMIN_RECORD,
	MESSAGE_SESSION_ASK = 110,
	MESSAGE_SESSION_REPORT,
	MESSAGE_SESSION_DISCONNECT,
	MESSAGE_WORKER_ASK = 120,
	MESSAGE_WORKER_REPORT,
	MESSAGE_WORKER_ACT,
	MESSAGE_WORKER_DONE,
};

/* The longest name of something to act on, and the longest id of a sandbox that is reported. */
#define ADMIN_TEXT_MAX 512

enum admin_verb {
	ADMIN_STATUS,
	ADMIN_LOGINS,
	ADMIN_WORKSPACES,
	ADMIN_SESSIONS,
	ADMIN_CHANNELS,
	ADMIN_RELOAD,
	ADMIN_DRAIN,
	/* with a target: the number of a session, or the name of a workspace */
	ADMIN_DISCONNECT,
	ADMIN_START,
	ADMIN_STOP,
	ADMIN_DESTROY,
	ADMIN_FORGET,
	ADMIN_VERBS,
};

/* Does the verb act on something that must be named? */
bool admin_verb_has_target(enum admin_verb verb);

struct admin_request {
	enum admin_verb verb;
	char *target; /* NULL when the verb has none */
};
void admin_request_encode(struct message *message, const struct admin_request *request);
int admin_request_decode(struct message *message, struct admin_request *request, struct error *err);
void admin_request_free(struct admin_request *request);

struct admin_status {
	char *version, *configuration; /* the file, as rwsd was told */
	uint32_t pid;
	int64_t since; /* s of the epoch, as all times here */
	bool draining;
	uint32_t sessions;
	uint32_t starting; /* of the sessions, those yet to log in */
	uint32_t spares, workers;
	uint32_t crashes; /* of any process, since the start */
	char *place;      /* names this gateway in its records; NULL while that is not known */
};
void admin_status_encode(struct message *message, const struct admin_status *status);
int admin_status_decode(struct message *message, struct admin_status *status, struct error *err);
void admin_status_free(struct admin_status *status);

struct admin_login {
	char *name, *driver, *instances; /* the policy: off, on or attach */
	uint32_t workspaces, sessions;
};
void admin_login_encode(struct message *message, const struct admin_login *login);
int admin_login_decode(struct message *message, struct admin_login *login, struct error *err);
void admin_login_free(struct admin_login *login);

enum sandbox_state {
	SANDBOX_NONE, /* not connected: never used, stopped, destroyed or lost */
	SANDBOX_STARTING,
	SANDBOX_RUNNING,
	SANDBOX_RELEASING, /* being stopped or destroyed */
	SANDBOX_STATES,
};

/* worker -> listener, and a part of ADMIN_WORKSPACE */
struct worker_report {
	enum sandbox_state state;
	char *sandbox_id;  /* NULL before the first use */
	uint32_t commands; /* that run or have left processes */
	int64_t last_used; /* 0: not yet */
};
void worker_report_encode(struct message *message, const struct worker_report *report);
int worker_report_decode(struct message *message, struct worker_report *report, struct error *err);
void worker_report_free(struct worker_report *report);

struct admin_workspace {
	char *login, *workspace, *driver;
	uint32_t pid; /* of its worker */
	int64_t since;
	uint32_t sessions;
	bool answered; /* else the report is empty */
	struct worker_report report;
};
void admin_workspace_encode(struct message *message, const struct admin_workspace *workspace);
int admin_workspace_decode(
    struct message *message, struct admin_workspace *workspace, struct error *err);
void admin_workspace_free(struct admin_workspace *workspace);

/* What the records say of a workspace, by itself and beside its ADMIN_WORKSPACE where it has a worker. */
enum admin_record_state {
	ADMIN_RECORD_CREATING,
	ADMIN_RECORD_RUNNING, /* as far as is known */
	ADMIN_RECORD_RELEASING,
	ADMIN_RECORD_STOPPED,
	ADMIN_RECORD_KEPT,     /* left running, and will be */
	ADMIN_RECORD_NO_LOGIN, /* its login is not configured: nothing is done about it */
	ADMIN_RECORD_STATES,
};

struct admin_record {
	char *login, *workspace, *driver;
	char *sandbox_id; /* or NULL */
	enum admin_record_state state;
	bool created;      /* else it was attached to */
	int64_t since;     /* it is on record */
	int64_t last_used; /* by any gateway */
	/* The place of another gateway that has it now, or whose machine it is on, or NULL. */
	char *gateway;
	bool is_elsewhere; /* on another gateway's machine: it has no worker here */
};
void admin_record_encode(struct message *message, const struct admin_record *record);
int admin_record_decode(struct message *message, struct admin_record *record, struct error *err);
void admin_record_free(struct admin_record *record);

enum channel_kind {
	CHANNEL_KIND_NONE, /* open, nothing was asked for yet */
	CHANNEL_KIND_EXEC,
	CHANNEL_KIND_SHELL,
	CHANNEL_KIND_SFTP,
	CHANNEL_KIND_SCP,
	CHANNEL_KIND_RWS,
	CHANNEL_KINDS,
};

struct channel_report {
	uint32_t number; /* counted from 1 in its session */
	enum channel_kind kind;
	bool pty;
	int64_t since;
	uint64_t bytes_in, bytes_out; /* of its content, seen from the gateway */
};

/* session -> listener */
#define SESSION_CHANNELS_MAX 4096
struct session_report {
	uint64_t bytes_in, bytes_out;
	struct channel_report *channels;
	uint32_t channel_count; /* at most SESSION_CHANNELS_MAX */
};
void session_report_encode(struct message *message, const struct session_report *report);
int session_report_decode(
    struct message *message, struct session_report *report, struct error *err);
void session_report_free(struct session_report *report);

struct admin_session {
	uint64_t connection;
	uint32_t pid;
	char *workspace, *key; /* NULL until it has logged in; key: SHA256:... */
	char *address;         /* numeric */
	uint32_t port;
	int64_t since;
	bool answered; /* else what follows is zero */
	uint64_t bytes_in, bytes_out;
	uint32_t channels;
};
void admin_session_encode(struct message *message, const struct admin_session *session);
int admin_session_decode(struct message *message, struct admin_session *session, struct error *err);
void admin_session_free(struct admin_session *session);

struct admin_channel {
	uint64_t connection;
	char *workspace;
	bool answered; /* else the session said nothing of its channels, and this is its only row */
	struct channel_report channel;
};
void admin_channel_encode(struct message *message, const struct admin_channel *channel);
int admin_channel_decode(struct message *message, struct admin_channel *channel, struct error *err);
void admin_channel_free(struct admin_channel *channel);

/* What became of the request: failure.code is ERROR_NONE for success. */
struct admin_end {
	struct error failure;
	char *sandbox_id; /* that was acted on, or NULL */
	char *note;       /* for a person, or NULL */
};
void admin_end_encode(struct message *message, const struct admin_end *end);
int admin_end_decode(struct message *message, struct admin_end *end, struct error *err);
void admin_end_free(struct admin_end *end);

/* listener -> worker: start, stop or destroy the sandbox. id names the answer. */
struct worker_act {
	uint32_t id;
	enum admin_verb verb;
};
void worker_act_encode(struct message *message, const struct worker_act *act);
int worker_act_decode(struct message *message, struct worker_act *act, struct error *err);

struct worker_done {
	uint32_t id;
	struct error failure; /* ERROR_NONE for success */
	char *sandbox_id;
};
void worker_done_encode(struct message *message, const struct worker_done *done);
int worker_done_decode(struct message *message, struct worker_done *done, struct error *err);
void worker_done_free(struct worker_done *done);

/* listener -> session: end, and tell the client why. The text is new. */
void session_disconnect_encode(struct message *message, const char *reason);
int session_disconnect_decode(struct message *message, char **reason, struct error *err);

/* SESSION_ASK and WORKER_ASK, which say nothing more. */
void admin_ask_encode(struct message *message, uint8_t type);
int admin_ask_decode(struct message *message, struct error *err);

#endif
