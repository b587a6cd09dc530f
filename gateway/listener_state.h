/* SPDX-License-Identifier: ISC */
/*
 * What the files of the listener share: listener.c (life, sockets, signals), listener_session.c,
 * listener_worker.c, listener_auth.c and listener_records*.c (the processes it starts, a file for each
 * kind), listener_audit.c, and those of listener_admin.h.
 */
#ifndef GATEWAY_LISTENER_STATE_H
#define GATEWAY_LISTENER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/error.h"
#include "core/base/process.h"
#include "core/protocol.h"

struct admin;
struct audit;
struct conf;
struct loop;
struct loop_timer;
struct loop_watch;
struct message;
struct peer;
struct record_entry;
struct records_forgotten;
struct records_page;
struct records_question;

#define LISTEN_MAX 16
#define ADDRESS_TEXT_MAX 64
#define RUN_SIZE 17 /* 16 digits */

/* A session that is to meet a worker which is about to end: it gets the next one. */
struct waiting {
	struct waiting *next;
	struct worker_attach attach;
};

struct worker_entry {
	struct worker_entry *next;
	struct listener *listener;
	pid_t pid;
	struct peer *peer; /* NULL once its socket is closed, until its process has ended */
	char *login;
	char *workspace;
	char *driver;
	unsigned sessions;
	unsigned acts; /* of the operator's under way */
	int64_t since; /* s of the epoch */
	int64_t asked; /* loop_now of an unanswered question, 0 for none: listener_admin_list.c */
	bool leaving;  /* was told to end */
	bool is_successor; /* of one that died and left commands behind */
	bool was_used;     /* by a session */
	struct waiting *waiting;
};

struct session_entry {
	struct session_entry *next;
	struct listener *listener;
	pid_t pid;
	struct peer *peer;
	bool spare;
	bool asking; /* the auth process has yet to answer */
	bool logged_in;
	uint64_t connection;
	char address[ADDRESS_TEXT_MAX];
	uint32_t port;
	int64_t since;               /* s of the epoch */
	int64_t asked;               /* as a worker's */
	char *workspace, *key;       /* from the login on; key: its fingerprint */
	struct worker_entry *worker; /* NULL before the login, and once it is gone */
};

struct listener {
	struct loop *loop;
	struct conf *conf;
	const char *path;         /* of the configuration, for reloads */
	char *const *overrides;   /* of the command line */
	struct process_user user; /* that the children become */
	int program, worker_program, records_program;
	int workspaces; /* the directory of all workspaces' own directories */

	int sockets[LISTEN_MAX];
	struct loop_watch *socket_watches[LISTEN_MAX];
	size_t socket_count;
	struct loop_timer *accept_again; /* while there is no descriptor for one more connection */
	int signals;
	struct loop_watch *signal_watch;

	struct session_entry *sessions;
	unsigned spares, starting, total;
	int64_t spares_again; /* loop_now: none is started before */
	uint64_t last_connection;
	struct worker_entry *workers;

	pid_t auth_pid;
	struct peer *auth;
	int64_t auth_started;          /* loop_now */
	struct loop_timer *auth_again; /* until the next one is started */

	pid_t records_pid;
	struct peer *records;
	char *place; /* names this gateway in the records; NULL until they have said it */
	struct error records_failure; /* of the database, when they began; NONE when it is there */
	bool records_told;            /* that, by the records process that runs now */
	struct records_question *questions; /* that it has yet to answer */
	uint32_t last_question;
	struct audit *audit;
	int64_t records_started; /* loop_now */
	struct loop_timer *records_again;
	struct admin *admin; /* listener_admin.c */

	char run[RUN_SIZE]; /* names this run of the gateway in its records */

	bool draining;
	struct loop_timer *drain;
	unsigned drain_steps;
	unsigned crashes; /* of sessions and workers */
};

/* listener_session.c */
void listener_fill_spares(struct listener *listener);
/* Discards spares, which know the configuration of before a reload. */
void listener_drop_spares(struct listener *listener);
/* Gives an accepted socket, which it takes over, to a session. */
void listener_start_session(struct listener *listener, int fd, const char *address, uint32_t port);
struct session_entry *listener_find_session(struct listener *listener, uint64_t connection);
void listener_answer_session(struct session_entry *session, const struct auth_answer *answer);
bool listener_session_exited(struct listener *listener, pid_t pid);
void listener_drain_sessions(struct listener *listener, bool now);
void listener_end_session(struct session_entry *session);
unsigned listener_count_source(const struct listener *listener, const char *address);

/* listener_worker.c */
/* The worker of that workspace, which may be leaving, or NULL. */
struct worker_entry *listener_find_worker(struct listener *listener, const char *workspace);
/* Starts one where there is none. */
struct worker_entry *listener_start_worker(
    struct listener *listener, const char *login, const char *workspace, struct error *err);
/* Brings a session that logged in to its workspace's worker. Returns the session's end of their socket, or -1. */
int listener_attach(struct listener *listener, const struct auth_result *result, struct error *err);
/* The worker that a session was attached to lost it. */
void listener_detach(struct session_entry *session);
/* The workspace of the worker with this pid, or NULL. */
const char *listener_worker_name(const struct listener *listener, pid_t pid);
bool listener_worker_exited(struct listener *listener, pid_t pid);
void listener_drain_workers(struct listener *listener);
/* Starts a worker, when there is none, that disposes of a sandbox of a gateway that is gone. */
void listener_reclaim(struct listener *listener, const char *login, const char *instance);

/* At the start: ends what workers of an earlier run, which ended in no order, left in their sandboxes. */
void listener_look_back(struct listener *listener);

/* listener_auth.c */
int listener_start_auth(struct listener *listener, struct error *err);
int listener_configure_auth(struct listener *listener);
void listener_ask_auth(struct session_entry *session, struct message *request);
bool listener_auth_exited(struct listener *listener, pid_t pid);

/* listener_records.c */
int listener_start_records(struct listener *listener, struct error *err);
/* Gives a worker its way to the records. */
void listener_record_worker(struct worker_entry *worker);
bool listener_records_exited(struct listener *listener, pid_t pid);
/*
 * At the start: waits for the first word of the records process. -1 when the database cannot be used
 * before somebody has seen to it; one that is merely away is warned of.
 */
int listener_await_records(struct listener *listener, struct error *err);
/* Is that this gateway's name in the records? */
bool listener_is_place(const struct listener *listener, const char *place);

/* listener_records_ask.c: questions to the records. Answers never come from within the call. */

/* page is NULL with err when the records did not answer. Of a question there is one answer. */
typedef void records_page_fn(
    void *argument, const struct records_page *page, const struct error *err);
/* What comes after this entry, NULL for the start. NULL with err when nobody can be asked. */
struct records_question *listener_list_records(struct listener *listener,
    const struct record_entry *after, records_page_fn *done, void *argument, struct error *err);
typedef void records_forgotten_fn(
    void *argument, const struct records_forgotten *forgotten, const struct error *err);
struct records_question *listener_forget_record(struct listener *listener, const char *login,
    const char *instance, records_forgotten_fn *done, void *argument, struct error *err);
/* Its answer does not come any more; accepts NULL. */
void records_question_cancel(struct records_question *question);
/* The records process is gone: all who wait for an answer are told. */
void listener_fail_questions(struct listener *listener);
/* Messages of the records process; the listener is the argument. */
int listener_take_page(void *argument, struct message *message, struct error *err);
int listener_take_forgotten(void *argument, struct message *message, struct error *err);
/* The name of the workspace of this record; new. */
char *listener_workspace_name(const char *login, const char *instance);

/*
 * listener_audit.c: says in the log, once at the start and at each reload, which sandboxes are on record
 * whose login is not configured.
 */
void listener_audit_records(struct listener *listener);
void listener_audit_free(struct listener *listener);

/* listener.c: after a session or worker has gone, while draining. */
void listener_check_drained(struct listener *self);
/* Reads the configuration anew; on failure the old one stays. */
int listener_reload(struct listener *self, struct error *err);
/* Goes down once all sessions have; the second call ends them. */
void listener_drain(struct listener *self);

#endif
