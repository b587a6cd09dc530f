/* SPDX-License-Identifier: ISC */
/*
 * The operations of a workspace's files, from their start to their end. The far end is started by
 * the first of them, and again by the next one after it was lost; operations that were under way fail,
 * since nobody knows how far they got.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/driver.h"
#include "core/files.h"
#include "core/files_backend.h"
#include "core/workspace.h"

enum stage {
	STAGE_WAITING,  /* for the workspace */
	STAGE_SETTLING, /* for what is left of commands that have ended */
	STAGE_SENT,     /* with the backend */
	STAGE_FAILED,   /* the timer tells so */
};

/*
 * ms after the end of a command: a provider tells later that nothing of it is left, and a client that was told
 * of the end may well go on before that.
 */
#define SETTLE_WAIT 2000

struct files_operation {
	struct files_operation *next;
	struct files *files; /* NULL while its last callback runs */
	uint32_t id;
	enum stage stage;
	bool is_second; /* it begins anew */
	struct file_request request;
	files_done_fn *done;
	void *argument;
	struct workspace_waiter *waiter;
	struct loop_timer *timer; /* while settling, and to tell a failure */
	struct error failure;
	void *state;
};

struct files {
	struct workspace *workspace;
	const struct files_backend *backend; /* of far, when there is one */
	struct files_far *far;
	struct files_operation *operations;
	uint32_t last_id;
};

struct files *
files_new(struct workspace *workspace)
{
	struct files *files;

	files = memory_zeroed(1, sizeof(*files));
	files->workspace = workspace;
	return files;
}

static void
unlink_operation(struct files_operation *operation)
{
	struct files_operation **place;

	for (place = &operation->files->operations; *place != operation; place = &(*place)->next)
		continue;
	*place = operation->next;
	operation->files = NULL;
	workspace_waiter_cancel(operation->waiter);
	operation->waiter = NULL;
}

static void
free_operation(struct files_operation *operation)
{
	loop_timer_free(operation->timer);
	file_request_free(&operation->request);
	memory_free(operation);
}

void
files_free(struct files *files)
{
	struct files_operation *operation;

	if (files == NULL)
		return;
	if (files->far != NULL)
		files->backend->close(files->far);
	while ((operation = files->operations) != NULL) {
		unlink_operation(operation);
		free_operation(operation);
	}
	memory_free(files);
}

struct workspace *
files_workspace(const struct files *files)
{
	return files->workspace;
}

uint64_t
files_limit(const struct files *files)
{
	return (uint64_t)settings_number(workspace_settings(files->workspace), "max_file_bytes");
}

struct file_request *
files_operation_request(struct files_operation *operation)
{
	return &operation->request;
}

uint32_t
files_operation_id(const struct files_operation *operation)
{
	return operation->id;
}

void **
files_operation_state(struct files_operation *operation)
{
	return &operation->state;
}

struct files_operation *
files_find(const struct files *files, uint32_t id)
{
	struct files_operation *operation;

	for (operation = files->operations; operation != NULL; operation = operation->next)
		if (operation->id == id && operation->stage == STAGE_SENT)
			return operation;
	return NULL;
}

void
files_reply(struct files_operation *operation, struct file_reply *reply)
{
	if (reply->more) {
		operation->done(operation->argument, reply, NULL);
		file_reply_free(reply);
		return;
	}
	unlink_operation(operation);
	operation->done(operation->argument, reply, NULL);
	file_reply_free(reply);
	free_operation(operation);
}

void
files_fail(struct files_operation *operation, const struct error *reason)
{
	struct error err = *reason;

	unlink_operation(operation);
	operation->done(operation->argument, NULL, &err);
	free_operation(operation);
}

static void
fail_later(struct files_operation *operation, const struct error *err)
{
	operation->stage = STAGE_FAILED;
	operation->failure = *err;
	loop_timer_start(operation->timer, 0);
}

static void workspace_ready(void *argument, const struct error *err);

void
files_lost(struct files *files, bool is_untouched, const struct error *err)
{
	struct files_operation *operation;

	log_debug("files of %s: %s", workspace_login(files->workspace), err->message);
	if (files->far != NULL)
		files->backend->close(files->far);
	files->far = NULL;
	/* Told from the loop: whoever is told may start another one, or end it all. */
	for (operation = files->operations; operation != NULL; operation = operation->next) {
		if (operation->stage != STAGE_SENT)
			continue;
		if (!is_untouched || operation->is_second) {
			fail_later(operation, err);
			continue;
		}
		operation->is_second = true;
		operation->stage = STAGE_WAITING;
		operation->state = NULL;
		operation->waiter = workspace_use(
		    files->workspace, workspace_ready, NULL, operation);
	}
}

/* The driver's own server where there is one, else the script. */
static int
open_far(struct files *files, struct error *err)
{
	files->backend = &files_native;
	if (workspace_driver(files->workspace)->open_files != NULL) {
		files->far = files->backend->open(files, err);
		if (files->far != NULL)
			return 0;
		if (err->code != ERROR_UNSUPPORTED)
			return -1;
	}
	files->backend = &files_script;
	files->far = files->backend->open(files, err);
	return files->far == NULL ? -1 : 0;
}

static bool
changes_names(const struct file_request *request)
{
	return request->verb == FILE_REMOVE || request->verb == FILE_RENAME;
}

/* Must it wait until nothing runs? */
static bool
is_held_up(const struct files_operation *operation)
{
	return (operation->request.flags & FILE_UNLESS_BUSY) != 0 &&
	       changes_names(&operation->request) && workspace_busy(operation->files->workspace);
}

static void
send_operation(struct files_operation *operation)
{
	struct files *files = operation->files;
	struct error err;

	if (is_held_up(operation) && operation->stage != STAGE_SETTLING &&
	    workspace_settles(files->workspace)) {
		operation->stage = STAGE_SETTLING;
		loop_timer_start(operation->timer, SETTLE_WAIT);
	} else if (is_held_up(operation)) {
		error_set(&err, ERROR_BUSY, "a command of the workspace runs or left processes");
		fail_later(operation, &err);
	} else if (files->far == NULL && open_far(files, &err) != 0) {
		error_wrap(&err, "files");
		fail_later(operation, &err);
	} else {
		operation->stage = STAGE_SENT;
		/* Where other gateways may run commands too, the far side has to look for them. */
		if (!workspace_is_shared(files->workspace))
			operation->request.flags &= ~(unsigned)FILE_UNLESS_BUSY;
		files->backend->send(files->far, operation);
	}
}

static void
workspace_ready(void *argument, const struct error *err)
{
	struct files_operation *operation = argument;

	operation->waiter = NULL;
	if (err == NULL)
		send_operation(operation);
	else
		fail_later(operation, err);
}

static void
timer_expired(void *argument)
{
	struct files_operation *operation = argument;

	if (operation->stage == STAGE_SETTLING)
		send_operation(operation);
	else
		files_fail(operation, &operation->failure);
}

void
files_settled(struct files *files)
{
	struct files_operation *operation;

	for (operation = files->operations; operation != NULL; operation = operation->next)
		if (operation->stage == STAGE_SETTLING && !is_held_up(operation))
			loop_timer_start(operation->timer, 0);
}

static void
copy_request(struct file_request *copy, struct file_request *request)
{
	*copy = *request;
	request->fd = -1;
	copy->path = request->path == NULL ? NULL : memory_text(request->path);
	copy->other = request->other == NULL ? NULL : memory_text(request->other);
	copy->algorithm = request->algorithm == NULL ? NULL : memory_text(request->algorithm);
	copy->glob = request->glob == NULL ? NULL : memory_text(request->glob);
	copy->skip = memory_list(request->skip);
	copy->numbers = NULL;
	if (request->number_count > 0) {
		copy->numbers = memory_zeroed(request->number_count, sizeof(*copy->numbers));
		memcpy(copy->numbers, request->numbers,
		    request->number_count * sizeof(*copy->numbers));
	}
}

/* What no far end would take, and what a message could not carry. */
static int
check_request(const struct file_request *request, struct error *err)
{
	const char *const texts[] = { request->path, request->other, request->glob };
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i] != NULL && strlen(texts[i]) > FILE_PATH_MAX)
			return error_set(err, ERROR_INVALID, "a path of %zu bytes is too long",
			    strlen(texts[i]));
	if (request->path != NULL && *request->path == '\0')
		return error_set(err, ERROR_INVALID, "an empty path");
	for (i = 0; request->skip != NULL && request->skip[i] != NULL; i++)
		if (i >= 256 || strlen(request->skip[i]) > FILE_NAME_LENGTH_MAX)
			return error_set(
			    err, ERROR_INVALID, "too many names to skip, or too long ones");
	return 0;
}

struct files_operation *
files_start(struct files *files, struct file_request *request, files_done_fn *done, void *argument)
{
	struct files_operation *operation;
	struct error err;

	operation = memory_zeroed(1, sizeof(*operation));
	operation->files = files;
	operation->id = ++files->last_id;
	operation->done = done;
	operation->argument = argument;
	operation->timer = loop_timer_new(
	    workspace_loop(files->workspace), timer_expired, operation);
	copy_request(&operation->request, request);
	operation->next = files->operations;
	files->operations = operation;
	if (check_request(&operation->request, &err) != 0)
		fail_later(operation, &err);
	else if (files->far != NULL)
		send_operation(operation);
	else
		operation->waiter = workspace_use(
		    files->workspace, workspace_ready, NULL, operation);
	return operation;
}

void
files_cancel(struct files_operation *operation)
{
	struct files *files;

	if (operation == NULL || operation->files == NULL)
		return;
	files = operation->files;
	if (operation->stage == STAGE_SENT)
		files->backend->cancel(files->far, operation);
	unlink_operation(operation);
	free_operation(operation);
}
