/* SPDX-License-Identifier: ISC */
/*
 * The listener's side of rws admin: a Unix socket on which root and the listener's own user ask what
 * goes on and have it changed. listener_admin.c has the socket and the life of a request,
 * listener_admin_list.c the lists, listener_admin_act.c what changes something.
 */
#ifndef GATEWAY_LISTENER_ADMIN_H
#define GATEWAY_LISTENER_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/admin_protocol.h"

struct admin;
struct error;
struct listener;
struct loop_timer;
struct loop_watch;
struct message;
struct peer;
struct session_entry;
struct worker_entry;

/* ms that sessions and workers have to say how they are; who does not is listed without it. */
#define ADMIN_REPORT_WAIT 3000

/* Binds the socket; one that nobody listens on any more is replaced. */
int listener_admin_open(struct listener *listener, struct error *err);
/* Removes the socket, and leaves who still waits without an answer. */
void listener_admin_close(struct listener *listener);

/* Messages of a session or worker, whose entry is the argument. */
int listener_admin_take_session(void *argument, struct message *message, struct error *err);
int listener_admin_take_worker(void *argument, struct message *message, struct error *err);
int listener_admin_take_done(void *argument, struct message *message, struct error *err);

/* Whoever waits for it need not wait any more. */
void listener_admin_session_gone(struct session_entry *session);
void listener_admin_worker_gone(struct worker_entry *worker);

/* The rest is for the files of listener_admin*.c. */

/* A session or a worker that has yet to answer. */
struct awaited {
	struct awaited *next;
	struct session_entry *session;
	struct worker_entry *worker;
};

/* One connection with one request; the number names an act to its worker. */
struct admin_client {
	struct admin_client *next;
	struct listener *listener;
	struct peer *peer;
	struct loop_timer *deadline;
	uint32_t number;
	uid_t user;
	unsigned stage; /* ADMIN_STAGE_... */
	enum admin_verb verb;
	struct awaited *awaited;
	bool killed; /* the session that was to end did not by itself */
};

enum admin_stage {
	ADMIN_STAGE_NEW = 1,   /* has yet to say what it wants */
	ADMIN_STAGE_ASKED = 2, /* has an answer to come */
	ADMIN_STAGE_ENDED = 4, /* has it, and has yet to close */
};

/* listener_admin.c */
struct admin_client *listener_admin_clients(const struct listener *listener);
int64_t listener_admin_since(const struct listener *listener);
void admin_client_await(
    struct admin_client *client, struct session_entry *session, struct worker_entry *worker);
/* Was it awaited? It is no more. */
bool admin_client_stop_awaiting(struct admin_client *client, const struct session_entry *session,
    const struct worker_entry *worker);
void admin_client_send(struct admin_client *client, struct message *message);
/* The last message. failure is NULL for success; sandbox_id and note may be NULL. */
void admin_client_end(struct admin_client *client, const struct error *failure,
    const char *sandbox_id, const char *note);
/* Ends a list to which nothing more will come. */
void admin_client_end_list(struct admin_client *client);

/* listener_admin_list.c: starts of requests, and what is done about those who did not answer. */
void admin_list_status(struct admin_client *client, const char *target);
void admin_list_logins(struct admin_client *client, const char *target);
void admin_list_workspaces(struct admin_client *client, const char *target);
void admin_list_sessions(struct admin_client *client, const char *target);
void admin_list_without(struct admin_client *client);

/* listener_admin_act.c: the same. */
void admin_act_reload(struct admin_client *client, const char *target);
void admin_act_drain(struct admin_client *client, const char *target);
void admin_act_disconnect(struct admin_client *client, const char *target);
void admin_act_workspace(struct admin_client *client, const char *target);
void admin_act_kill(struct admin_client *client);
void admin_act_give_up(struct admin_client *client);
void admin_act_disconnected(struct admin_client *client);

#endif
