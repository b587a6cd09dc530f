/* SPDX-License-Identifier: ISC */
/* What the files of listener_admin.h share: the requests under way, and what they wait for. */
#ifndef GATEWAY_LISTENER_ADMIN_STATE_H
#define GATEWAY_LISTENER_ADMIN_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/admin_protocol.h"
#include "core/record_list.h"
#include "gateway/listener_admin.h"

struct loop_timer;
struct loop_watch;
struct peer;

/* ms that sessions and workers have to say how they are; who does not is listed without it. */
#define ADMIN_REPORT_WAIT 5000

/* A session or a worker that has yet to answer; the other one is NULL. */
struct awaited {
	struct awaited *next;
	struct session_entry *session;
	struct worker_entry *worker;
};

enum admin_stage {
	ADMIN_STAGE_NEW = 1,   /* has yet to say what it wants */
	ADMIN_STAGE_ASKED = 2, /* has an answer to come */
	ADMIN_STAGE_ENDED = 4, /* has it, and has yet to close */
};

/* One connection with one request. */
struct admin_client {
	struct admin_client *next;
	struct listener *listener;
	struct peer *peer;
	struct loop_timer *deadline; /* of its stage */
	uint32_t number;             /* names an act to its worker */
	uid_t user;
	enum admin_stage stage;
	enum admin_verb verb;
	struct awaited *awaited;
	bool killed;  /* the session that was to end did not by itself */
	char *target; /* the workspace to act on once the worker that leaves it is gone, or NULL */
	/* of a list of workspaces, and of a record to be forgotten */
	struct records_question *question;
	/* Of the page that it has yet to read: its login, instance and place. */
	struct record_entry last;
	bool paused; /* there are more, and it does not read */
	char *note;  /* for the end of a list, or NULL */
};

struct admin {
	int socket;
	struct loop_watch *watch;
	struct loop_timer *again; /* runs while nothing is accepted */
	char *path;
	dev_t device; /* of the socket's file, which another one may have replaced */
	ino_t inode;
	int64_t since; /* s of the epoch: the gateway's start */
	struct admin_client *clients;
	unsigned client_count;
	uint32_t last_number;
};

/* listener_admin.c */
void admin_client_await(
    struct admin_client *client, struct session_entry *session, struct worker_entry *worker);
/* Was it awaited? It is no more. */
bool admin_client_stop_awaiting(struct admin_client *client, const struct session_entry *session,
    const struct worker_entry *worker);
/* The last message. failure is NULL for success; sandbox_id and note may be NULL. */
void admin_client_end(struct admin_client *client, const struct error *failure,
    const char *sandbox_id, const char *note);
/* Ends a list to which nothing more will come. */
void admin_client_end_list(struct admin_client *client);

/* listener_admin_list.c: starts of requests, and what is done about those who did not answer. */
void admin_list_status(struct admin_client *client, const char *target);
void admin_list_logins(struct admin_client *client, const char *target);
void admin_list_workspaces(struct admin_client *client, const char *target);
void admin_list_sessions(struct admin_client *client, const char *target); /* and channels */
void admin_list_without(struct admin_client *client);

/* listener_admin_records.c: what is recorded, beside the workers. */
void admin_records_list(struct admin_client *client);
/* They have not answered in time: the list goes without. */
void admin_records_give_up(struct admin_client *client);
/* It has read what it was sent. */
void admin_records_go_on(struct admin_client *client);
void admin_records_free(struct admin_client *client);
void admin_records_forget(struct admin_client *client, const char *target);
void admin_records_forget_late(struct admin_client *client);

/* listener_admin_act.c: the same. */
void admin_act_reload(struct admin_client *client, const char *target);
void admin_act_drain(struct admin_client *client, const char *target);
void admin_act_disconnect(struct admin_client *client, const char *target);
void admin_act_workspace(struct admin_client *client, const char *target);
void admin_act_kill(struct admin_client *client);
void admin_act_give_up(struct admin_client *client);

#endif
