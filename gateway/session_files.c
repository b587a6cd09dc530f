/* SPDX-License-Identifier: ISC */
/* Requests for files that are with the worker. */
#include "gateway/session_files.h"

#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/file_protocol.h"
#include "gateway/session_state.h"

struct session_file {
	struct session_file *next;
	struct session *session; /* NULL while its last answer is given */
	uint32_t id;
	session_file_fn *done;
	void *argument;
	struct loop_timer *failed; /* tells that there is no worker */
};

static void
unlink_file(struct session_file *file)
{
	struct session_file **place;

	for (place = &file->session->files; *place != file; place = &(*place)->next)
		continue;
	*place = file->next;
	file->session = NULL;
}

static void
free_file(struct session_file *file)
{
	loop_timer_free(file->failed);
	memory_free(file);
}

static void
fail_file(struct session_file *file, const struct error *err)
{
	unlink_file(file);
	file->done(file->argument, NULL, err);
	free_file(file);
}

static void
tell_no_worker(void *argument)
{
	struct error err;

	error_set(&err, ERROR_UNAVAILABLE, "the worker of this workspace ended unexpectedly");
	fail_file(argument, &err);
}

struct session_file *
session_file_start(
    struct session *session, struct file_request *request, session_file_fn *done, void *argument)
{
	struct session_file *file;
	struct message message;

	file = memory_zeroed(1, sizeof(*file));
	file->session = session;
	file->id = ++session->last_file;
	file->done = done;
	file->argument = argument;
	file->next = session->files;
	session->files = file;
	file_request_encode(&message, file->id, request);
	if (session->worker == NULL) {
		file->failed = loop_timer_new(session->loop, tell_no_worker, file);
		loop_timer_start(file->failed, 0);
	}
	session_send_worker(session, &message);
	return file;
}

void
session_file_cancel(struct session_file *file)
{
	struct message message;

	if (file == NULL || file->session == NULL)
		return;
	file_cancel_encode(&message, file->id);
	session_send_worker(file->session, &message);
	unlink_file(file);
	free_file(file);
}

int
session_file_take_reply(void *argument, struct message *message, struct error *err)
{
	struct session *session = argument;
	struct session_file *file;
	struct file_reply reply;
	struct error failure;
	bool last;
	uint32_t id;

	if (file_reply_decode(message, &id, &reply, &failure, err) != 0)
		return -1;
	for (file = session->files; file != NULL && file->id != id; file = file->next)
		continue;
	if (file != NULL && failure.code != ERROR_NONE) {
		fail_file(file, &failure);
	} else if (file != NULL) {
		last = !reply.more;
		if (last)
			unlink_file(file);
		file->done(file->argument, &reply, NULL);
		if (last)
			free_file(file);
	}
	file_reply_free(&reply);
	return 0;
}

void
session_files_fail(struct session *session, const struct error *err)
{
	while (session->files != NULL)
		fail_file(session->files, err);
}
