/* SPDX-License-Identifier: ISC */
/*
 * The listener's side of rws admin: a Unix socket on which root and the listener's own user ask what
 * goes on and have it changed. listener_admin.c has the socket and the life of a request,
 * listener_admin_list.c the lists, listener_admin_records.c what of them and of changes is the records',
 * listener_admin_act.c what changes something.
 */
#ifndef GATEWAY_LISTENER_ADMIN_H
#define GATEWAY_LISTENER_ADMIN_H

struct error;
struct listener;
struct message;
struct session_entry;
struct settings;
struct worker_entry;

/* Can the socket have the path that the configuration gives it? Makes nothing. */
int listener_admin_check(const struct settings *settings, struct error *err);

/* Binds the socket; one that nobody listens on any more is replaced. */
int listener_admin_open(struct listener *listener, struct error *err);
/* Removes the socket, and leaves who still waits without an answer. Accepts one that was never opened. */
void listener_admin_close(struct listener *listener);

/* Messages of a session or worker, whose entry is the argument. */
int listener_admin_take_session(void *argument, struct message *message, struct error *err);
int listener_admin_take_worker(void *argument, struct message *message, struct error *err);
int listener_admin_take_done(void *argument, struct message *message, struct error *err);

/* Whoever waits for it need not wait any more. */
void listener_admin_session_gone(struct session_entry *session);
void listener_admin_worker_gone(struct worker_entry *worker);

#endif
