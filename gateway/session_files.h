/* SPDX-License-Identifier: ISC */
/* A session asking its worker for files: core/files.h from the other side of the socket. */
#ifndef GATEWAY_SESSION_FILES_H
#define GATEWAY_SESSION_FILES_H

#include <stdint.h>

#include "core/file.h"

struct error;
struct message;
struct session;
struct session_file;

/* As files_done_fn in core/files.h. */
typedef void session_file_fn(void *argument, struct file_reply *reply, const struct error *err);

/*
 * Sends the request; its descriptor goes with it, the rest stays the caller's. The answer comes
 * later, an error too when the worker is gone. What is returned is gone after the last answer.
 */
struct session_file *session_file_start(
    struct session *session, struct file_request *request, session_file_fn *done, void *argument);

/* No answer comes any more. Accepts NULL. */
void session_file_cancel(struct session_file *file);

/* The worker's FILE_REPLY, and the end of it all: every request fails with err. */
int session_file_take_reply(void *argument, struct message *message, struct error *err);
void session_files_fail(struct session *session, const struct error *err);

#endif
