/* SPDX-License-Identifier: ISC */
/*
 * How files.c has its work done: by the driver's own file server (files_native.c) or by our script
 * in the sandbox (files_script.c). Nothing else includes this.
 */
#ifndef CORE_FILES_BACKEND_H
#define CORE_FILES_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "core/file.h"

struct error;
struct files;
struct files_far;
struct files_operation;
struct workspace;

struct files_backend {
	/* Starts the far end in a workspace that is ready; NULL with err on failure. */
	struct files_far *(*open)(struct files *files, struct error *err);
	void (*close)(struct files_far *far); /* without callbacks */
	/* Begins the operation: files_reply or files_fail tells its end, never from within. */
	void (*send)(struct files_far *far, struct files_operation *operation);
	void (*cancel)(struct files_far *far, struct files_operation *operation);
};

extern const struct files_backend files_native, files_script;

/* Whose files they are. */
struct workspace *files_workspace(const struct files *files);

/* The operation's own request, which the backend may change, and its number. */
struct file_request *files_operation_request(struct files_operation *operation);
uint32_t files_operation_id(const struct files_operation *operation);

/* A place of the backend's own in the operation, NULL at first. */
void **files_operation_state(struct files_operation *operation);

/* The operation with this number, or NULL: it may have been cancelled. */
struct files_operation *files_find(const struct files *files, uint32_t id);

/* Tells the owner. After one without more, and after fail, the operation is gone. */
void files_reply(struct files_operation *operation, struct file_reply *reply);
void files_fail(struct files_operation *operation, const struct error *err);

/*
 * The far end is gone: it was closed already, or is closed now, and every operation it had fails. Where it
 * is untouched, for none of them ever reached it, they begin anew, once.
 */
void files_lost(struct files *files, bool is_untouched, const struct error *err);

#endif
