/* SPDX-License-Identifier: ISC */
/*
 * Asking for a workspace's files: operations that end in a callback from the loop, never from
 * within the call. They are pipelined, and each stands for itself: one that fails harms no other.
 * Where the work is done is a backend's business: the driver's own file server, or our script in
 * the sandbox.
 */
#ifndef CORE_FILES_H
#define CORE_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "core/file.h"

struct error;
struct files;
struct files_operation;
struct workspace;

/*
 * How an operation went: reply, or NULL and err. Called once, or, while reply->more is set, again.
 * Everything in reply is freed after the call but the descriptor that was taken from it.
 */
typedef void files_done_fn(void *argument, struct file_reply *reply, const struct error *err);

/*
 * The files of a workspace; made and freed with it. Nothing is started before the first operation.
 */
struct files *files_new(struct workspace *workspace);
void files_free(struct files *files); /* accepts NULL; operations under way end without a word */

/*
 * Starts an operation once the workspace is ready. The request's texts are copied; its descriptor
 * is taken over, and request->fd is -1 afterwards. The operation is gone after its last callback.
 */
struct files_operation *files_start(
    struct files *files, struct file_request *request, files_done_fn *done, void *argument);

/*
 * No callback comes any more; whether the operation is done all the same is unknown. Accepts NULL.
 */
void files_cancel(struct files_operation *operation);

/* workspace.c only: nothing is left of a command that had ended. */
void files_settled(struct files *files);

/* The most that a file may have: max_file_bytes. */
uint64_t files_limit(const struct files *files);

#endif
