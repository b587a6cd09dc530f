/* SPDX-License-Identifier: ISC */
/* A request that stands for one or more file operations, one after another. */
#ifndef GATEWAY_RPC_FILE_H
#define GATEWAY_RPC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/file.h"

struct error;
struct files_operation;
struct json_object;
struct rpc_call;

/* What a call keeps while its operation is under way. */
struct file_call {
	struct rpc_call *call;
	struct files_operation *operation;
	struct json_object *parameters;    /* held */
	struct file_attributes attributes; /* of stat, while a link is read */
	int64_t count;                     /* of edit, while it is written */
	/* Takes the reply; NULL: the reply says nothing and the answer is the path. */
	void (*reply)(struct file_call *file, struct file_reply *reply);
};

/* Starts operations for a call: request is taken over. */
struct file_call *file_call_new(struct rpc_call *call, struct json_object *parameters);
void file_call_send(struct file_call *file, struct file_request *request,
    void (*reply)(struct file_call *file, struct file_reply *reply));

/* Answers, which ends the call. */
void file_call_result(struct file_call *file, struct json_object *result);
void file_call_error(struct file_call *file, const struct error *err);

/* For handlers. */
void file_call_cancel(struct rpc_call *call);
void file_call_drop(struct rpc_call *call);

/* A path parameter as a new text; what is missing is otherwise (which may be NULL). */
char *file_call_path(struct json_object *parameters, const char *name, const char *otherwise);

/* An object with the parameter path as it was given. */
struct json_object *file_call_object(const struct file_call *file);

/* "file", "directory", "symlink" or "other". */
const char *file_type_name(uint32_t mode);

#endif
