/* SPDX-License-Identifier: ISC */
/*
 * The messages between our processes, each with its encode and decode. A decoder copies what it
 * needs, checks every value and refuses trailing bytes. Texts and lists in a decoded struct are
 * new: the matching free releases them (and accepts a zeroed struct).
 *
 *	session  -> listener -> auth      AUTH_REQUEST, wrapped in AUTH_CHECK by the listener
 *	auth     -> listener              AUTH_RESULT
 *	listener -> session               SESSION_START, HOST_KEY, CONNECTION, AUTH_ANSWER, DRAIN
 *	listener -> auth                  AUTH_START, AUTH_LOGIN, AUTH_READY, AUTH_CHECK
 *	listener -> worker                WORKER_CONFIGURE, WORKER_ATTACH, DRAIN
 *	worker   -> listener              WORKER_IDLE
 *	session <-> worker                COMMAND_*, and files: core/file_protocol.h
 *	records <-> listener, worker      core/record_protocol.h
 */
#ifndef CORE_PROTOCOL_H
#define CORE_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

struct message;

enum message_type {
	/* listener and session */
	MESSAGE_SESSION_START = 1,
	MESSAGE_HOST_KEY,
	MESSAGE_CONNECTION,
	MESSAGE_AUTH_REQUEST,
	MESSAGE_AUTH_ANSWER,
	MESSAGE_DRAIN,
	/* listener and auth */
	MESSAGE_AUTH_START = 20,
	MESSAGE_AUTH_LOGIN,
	MESSAGE_AUTH_READY,
	MESSAGE_AUTH_CHECK,
	MESSAGE_AUTH_RESULT,
	/* listener and worker */
	MESSAGE_WORKER_CONFIGURE = 40,
	MESSAGE_WORKER_ATTACH,
	MESSAGE_WORKER_IDLE,
	/* session and worker */
	MESSAGE_COMMAND_START = 60,
	MESSAGE_COMMAND_STREAM,
	MESSAGE_COMMAND_PROGRESS,
	MESSAGE_COMMAND_EXIT,
	MESSAGE_COMMAND_SIGNAL,
	MESSAGE_COMMAND_RESIZE,
	MESSAGE_COMMAND_LIMIT,
	MESSAGE_COMMAND_CLOSE,
	/* session and worker: files, from 80 on, in core/file_protocol.h */
};

/*
 * listener -> session, before any connection: how to speak SSH.
 * Lists are comma-separated, NULL for libssh's own.
 */
struct session_start {
	char *ciphers, *kex, *macs;
	char *banner;
	uint32_t login_grace; /* ms */
	uint32_t max_auth_tries;
	uint32_t max_channels;
	uint32_t alive_interval; /* ms; 0: never asks */
	uint32_t alive_count;
};
void session_start_encode(struct message *message, const struct session_start *start);
int session_start_decode(struct message *message, struct session_start *start, struct error *err);
void session_start_free(struct session_start *start);

/* listener -> session: the accepted socket. */
struct connection {
	uint64_t number;
	int fd;        /* encode passes it on; after decode it is the caller's */
	char *address; /* numeric, without port */
	uint32_t port;
};
void connection_encode(struct message *message, const struct connection *connection);
int connection_decode(struct message *message, struct connection *connection, struct error *err);
void connection_free(struct connection *connection); /* leaves fd alone */

/*
 * listener -> auth: the keys of one login block.
 * AUTH_START, these, AUTH_READY replace all that was.
 */
struct auth_login {
	char *name;
	char *instances; /* the policy: off, on or attach */
	char **files;    /* authorized_keys files, absolute */
	char **keys;     /* lines of the configuration itself */
};
void auth_login_encode(struct message *message, const struct auth_login *login);
int auth_login_decode(struct message *message, struct auth_login *login, struct error *err);
void auth_login_free(struct auth_login *login);

/*
 * listener -> worker: end;
 * dispose says whether the sandbox goes as on_dispose says, or is just left.
 */
void drain_encode(struct message *message, bool dispose);
int drain_decode(struct message *message, bool *dispose, struct error *err);

/* What a session asks the auth process: may this key log in under this name? */
struct auth_request {
	char *user;
	char *algorithm;     /* the key's type as in authorized_keys: "ssh-ed25519" */
	unsigned char *blob; /* the public key, RFC 4253 section 6.6 */
	size_t blob_size;
	bool is_signed; /* false: a query before signing (RFC 4252 section 7) */
};
void auth_request_encode(struct message *message, const struct auth_request *request);
int auth_request_decode(struct message *message, struct auth_request *request, struct error *err);
void auth_request_free(struct auth_request *request);

/* The listener passes the request's bytes on unread, with what it knows itself. */
struct auth_check {
	uint64_t connection;
	char *address; /* numeric, without port */
	unsigned char *request;
	size_t request_size;
};
void auth_check_encode(struct message *message, const struct auth_check *check);
int auth_check_decode(struct message *message, struct auth_check *check, struct error *err);
void auth_check_free(struct auth_check *check);

/* What a login may do beyond its block: from the options of its authorized_keys line. */
struct restrictions {
	char *command; /* forced command, or NULL */
	bool no_pty;
	char **environment; /* NAME=VALUE */
};

/* Accepts a zeroed struct, as all of this kind. */
void restrictions_free(struct restrictions *restrictions);

/* What auth decided. */
struct auth_result {
	uint64_t connection;
	bool allowed;
	bool is_signed;
	char *login;       /* NAME of the block, when allowed */
	char *workspace;   /* the full login: NAME, NAME+INSTANCE or NAME=ID */
	char *fingerprint; /* SHA256:… of the key, for the log */
	struct restrictions restrictions;
};
void auth_result_encode(struct message *message, const struct auth_result *result);
int auth_result_decode(struct message *message, struct auth_result *result, struct error *err);
void auth_result_free(struct auth_result *result);

/* Is what the client asks for replaced by a command of its key's? */
enum forced_command {
	FORCED_NONE,
	FORCED_COMMAND, /* by one that the worker knows */
	FORCED_SFTP,    /* by our own SFTP server: internal-sftp */
	FORCED_COMMANDS,
};

/* FORCED_… for the command of an authorized key, which may be NULL. */
enum forced_command forced_command_parse(const char *command);

/* listener -> session: what the session needs to know of the decision. */
struct auth_answer {
	bool allowed;
	bool no_pty;
	enum forced_command forced;
	char *workspace; /* when allowed; for the process title and the log */
	/*
	 * When allowed and signed: the session's end of the worker's socket, else -1. Encode passes
	 * it on; after decode, free closes it unless it was taken (-1).
	 */
	int worker;
};
void auth_answer_encode(struct message *message, const struct auth_answer *answer);
int auth_answer_decode(struct message *message, struct auth_answer *answer, struct error *err);
void auth_answer_free(struct auth_answer *answer);

/* listener -> worker, first: which workspace it is. The settings follow in the message. */
struct worker_configure {
	char *login;     /* NAME */
	char *workspace; /* NAME, NAME+INSTANCE or NAME=ID */
	char *instance;  /* label at the provider: gateway id and workspace */
	char *driver;
	/* Of this workspace's own. Encode passes it on; after decode it is the caller's. */
	int directory;
};
void worker_configure_encode(struct message *message, const struct worker_configure *configure);
/* Leaves the settings in the message: message_end is the caller's, after settings_get. */
int worker_configure_decode(
    struct message *message, struct worker_configure *configure, struct error *err);
void worker_configure_free(struct worker_configure *configure);

/*
 * worker -> listener: nothing has used the workspace for idle_timeout; may I dispose of it and end?
 */
void worker_idle_encode(struct message *message);
int worker_idle_decode(struct message *message, struct error *err);

/* listener -> worker: a session that logged in, with its end of the socket pair. */
struct worker_attach {
	uint64_t connection;
	int fd; /* encode passes it on; after decode it is the caller's */
	struct restrictions restrictions;
};
void worker_attach_encode(struct message *message, const struct worker_attach *attach);
int worker_attach_decode(struct message *message, struct worker_attach *attach, struct error *err);
void worker_attach_free(struct worker_attach *attach);

enum command_kind {
	COMMAND_EXEC,
	COMMAND_SHELL,
	COMMAND_RWS, /* the rws subsystem */
	COMMAND_KINDS,
};

/* session -> worker: start a command for a channel. id is the session's, unique in it. */
struct command_start {
	uint32_t id;
	enum command_kind kind;
	char *command;      /* the exec string, else NULL */
	char **environment; /* NAME=VALUE as the client asked */
	bool pty;
	char *term;
	uint32_t columns, rows, x_pixels, y_pixels;
};
void command_start_encode(struct message *message, const struct command_start *start);
int command_start_decode(struct message *message, struct command_start *start, struct error *err);
void command_start_free(struct command_start *start);

/* worker -> session: one descriptor of a command, three of these at most. */
enum command_stream_kind {
	COMMAND_INPUT,
	COMMAND_OUTPUT,
	COMMAND_ERRORS,
	COMMAND_TERMINAL,
	COMMAND_STREAM_KINDS,
};
struct command_stream {
	uint32_t id;
	enum command_stream_kind kind;
	bool last;           /* no further descriptor of this command comes */
	uint64_t max_stream; /* output bytes after which the session sends COMMAND_LIMIT; 0: none */
	int fd;              /* encode passes it on; after decode it is the caller's */
};
void command_stream_encode(struct message *message, const struct command_stream *stream);
int command_stream_decode(
    struct message *message, struct command_stream *stream, struct error *err);

/* worker -> session: a line for a person who waits; shown only on a pty. */
struct command_progress {
	uint32_t id;
	char *text;
};
void command_progress_encode(struct message *message, const struct command_progress *progress);
int command_progress_decode(
    struct message *message, struct command_progress *progress, struct error *err);
void command_progress_free(struct command_progress *progress);

/*
 * worker -> session: the command's end, sent once and last. With failure set it did not start, or
 * its outcome is unknown: the session says so on stderr and sends exit-status 255. note is a line
 * for stderr beside a known end ("stopped: more than 64 MiB of output").
 */
struct command_exit {
	uint32_t id;
	bool failed;
	struct error failure;
	bool signaled;
	uint32_t status;
	bool core;
	char *note;
};
void command_exit_encode(struct message *message, const struct command_exit *ended);
int command_exit_decode(struct message *message, struct command_exit *ended, struct error *err);
void command_exit_free(struct command_exit *ended);

/* session -> worker: a signal by its SSH name without "SIG" (RFC 4254 section 6.10). */
struct command_signal {
	uint32_t id;
	char *name;
};
void command_signal_encode(struct message *message, const struct command_signal *request);
int command_signal_decode(
    struct message *message, struct command_signal *request, struct error *err);
void command_signal_free(struct command_signal *request);

/* session -> worker */
struct command_resize {
	uint32_t id;
	uint32_t columns, rows, x_pixels, y_pixels;
};
void command_resize_encode(struct message *message, const struct command_resize *resize);
int command_resize_decode(
    struct message *message, struct command_resize *resize, struct error *err);

/* session -> worker: COMMAND_LIMIT (too much output) and COMMAND_CLOSE (the client is gone). */
void command_id_encode(struct message *message, uint8_t type, uint32_t id);
int command_id_decode(struct message *message, uint32_t *id, struct error *err);

#endif
