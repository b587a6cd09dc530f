/* SPDX-License-Identifier: ISC */
/* What the files of the worker process share. */
#ifndef GATEWAY_WORKER_H
#define GATEWAY_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/protocol.h"

struct act;
struct error;
struct job;
struct link;
struct link_files;
struct loop;
struct message;
struct peer;
struct settings;
struct workspace;
struct workspace_records;

struct worker {
	struct loop *loop;
	struct workspace *workspace;
	struct settings *settings;
	struct link *links; /* the sessions attached to it */
	unsigned link_count;
	struct job *jobs; /* what exec started; rpc_job.c */
	uint32_t last_job;
	struct act *acts;  /* what the operator asked for; worker_admin.c */
	bool looks_back;   /* on its way to what a worker before us has left running */
	int64_t last_used; /* s of the epoch: when a session last came or went */
};

/* worker_link.c: a session's end of the worker; takes over attach->fd and the restrictions. */
void link_open(struct worker *worker, struct worker_attach *attach);
/* Closes all; their commands are ended. */
void link_close_all(struct worker *worker);

/* worker.c: is there anybody to be here for? When that changes, idle time starts or stops. */
bool worker_in_use(const struct worker *self);
void worker_links_changed(struct worker *self);

/* worker.c: asks the listener at once whether the process may end. */
void worker_offer_end(struct worker *self);
bool worker_leaves(const struct worker *self);

/* worker.c: frees the message; without a listener nobody is told. */
void worker_tell_listener(struct message *message);

/* worker_admin.c: messages of the listener on behalf of rws admin. */
int worker_take_ask(void *argument, struct message *message, struct error *err);
int worker_take_act(void *argument, struct message *message, struct error *err);
void worker_free_acts(struct worker *worker);

/*
 * worker_records.c: what the workspace is given to keep its records with. open takes over a socket to a
 * records process, each time there is a new one; use says whether there are sessions; close waits a moment
 * until all is told.
 */
extern const struct workspace_records worker_records;
void worker_records_init(struct worker *worker);
void worker_records_open(struct worker *worker, int fd);
void worker_records_use(bool is_used);
void worker_records_close(void);

/*
 * worker_files.c: the file operations of one session. They answer through peer, and are given up by
 * free; take returns -1 for what ends the peer.
 */
struct link_files *link_files_new(
    struct worker *worker, struct peer *peer, const struct restrictions *restrictions);
void link_files_free(struct link_files *files);
int link_files_take_request(struct link_files *files, struct message *message, struct error *err);
int link_files_take_cancel(struct link_files *files, struct message *message, struct error *err);

#endif
