/* SPDX-License-Identifier: ISC */
/* Handles, and the requests that open, close and describe files. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/file_path.h"
#include "gateway/sftp_state.h"

/* Permissions that a new file is not given unless asked for afterwards, as sshd's umask has it. */
#define UMASK 022U

struct sftp_handle *
sftp_add_handle(struct sftp *sftp, const char *path)
{
	struct sftp_handle *handle;
	size_t i;

	for (i = 0; i < SFTP_HANDLES_MAX && sftp->handles[i] != NULL; i++)
		continue;
	if (i == SFTP_HANDLES_MAX)
		return NULL;
	handle = memory_zeroed(1, sizeof(*handle));
	/* The low bits say the place, so that a number that was reused is told apart. */
	sftp->last_serial += SFTP_HANDLES_MAX;
	handle->serial = sftp->last_serial + (uint32_t)i;
	handle->path = memory_text(path);
	sftp->handles[i] = handle;
	sftp->handle_count++;
	return handle;
}

void
sftp_drop_handle(struct sftp *sftp, struct sftp_handle *handle)
{
	if (handle->file != NULL)
		sftp_file_release(handle->file);
	file_list_free(handle->list);
	memory_free(handle->path);
	sftp->handles[handle->serial % SFTP_HANDLES_MAX] = NULL;
	sftp->handle_count--;
	memory_free(handle);
}

void
sftp_put_handle(struct sftp *sftp, uint32_t id, const struct sftp_handle *handle)
{
	size_t start;

	start = sftp_put_start(&sftp->output, SFTP_HANDLE, id);
	sftp_put_u32(&sftp->output, 4);
	sftp_put_u32(&sftp->output, handle->serial);
	sftp_put_finish(&sftp->output, start);
}

struct sftp_handle *
sftp_get_handle(struct sftp *sftp, struct sftp_input *input)
{
	struct sftp_input number = { .failed = false };
	struct sftp_handle *handle;
	uint32_t serial;

	number.at = sftp_get_string(input, &number.left);
	serial = sftp_get_u32(&number);
	handle = sftp->handles[serial % SFTP_HANDLES_MAX];
	if (number.failed || number.left != 0 || handle == NULL || handle->serial != serial)
		return NULL;
	/* One that the client was not told of yet can only be guessed. */
	return handle->file != NULL && handle->file->opening ? NULL : handle;
}

struct sftp_handle *
sftp_get_file(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct sftp_handle *handle;

	handle = sftp_get_handle(sftp, input);
	if (handle != NULL && handle->file != NULL)
		return handle;
	sftp_put_refusal(sftp, id, SFTP_FAILURE, "there is no such file handle");
	return NULL;
}

/* More bytes of a file that is read have arrived, or no more will. */
static void
bytes_arrived(struct sftp_file *file, const struct file_reply *reply, const struct error *err)
{
	if (err != NULL || !reply->more)
		file->arrival = NULL;
	if (err == NULL) {
		file->arrived = reply->arrived;
	} else {
		log_info("sftp: reading %s: %s", file->path, err->message);
		file->spoiled = true;
		file->trouble = *err;
	}
	sftp_answer_waits(file);
}

static void
answer_opened(struct sftp_call *call, const struct error *err)
{
	struct sftp_file *file = call->file;

	file->opening = false;
	if (err == NULL && file->fd < 0)
		log_fatal("sftp: a file was opened without a descriptor");
	if (err == NULL) {
		sftp_put_handle(call->sftp, call->id, call->handle);
		return;
	}
	sftp_put_error(&call->sftp->output, call->id, err);
	sftp_drop_handle(call->sftp, call->handle);
}

/* OPEN or EDIT was answered. */
static void
open_done(struct sftp_call *call, struct file_reply *reply, const struct error *err)
{
	struct sftp_file *file = call->file;

	if (file->fd >= 0) {
		bytes_arrived(file, reply, err);
		return;
	}
	if (err == NULL) {
		file->arrival = reply->more ? call : NULL;
		file->fd = reply->fd;
		reply->fd = -1;
		file->old = reply->attributes;
		file->limit = reply->limit;
		file->arrived = reply->arrived;
		file->real = reply->text != NULL ? reply->text : memory_text(file->path);
		reply->text = NULL;
		/* A mode is for a file that is made, not for one that is there. */
		if (file->old.mode != 0)
			file->change.fields = 0;
		else
			file->dirty = file->is_private;
	}
	answer_opened(call, err);
}

/* Shares what is open for writing at the path already, which nobody else can see yet. */
static void
share_pending(struct sftp *sftp, uint32_t id, struct sftp_handle *handle, struct sftp_file *file,
    uint32_t flags)
{
	if ((flags & SFTP_OPEN_EXCLUSIVE) != 0 ||
	    ((flags & SFTP_OPEN_TRUNCATE) != 0 && handle->writes && ftruncate(file->fd, 0) != 0)) {
		sftp_put_refusal(sftp, id, SFTP_FAILURE, "EXISTS: the file is being written");
		sftp_drop_handle(sftp, handle);
		return;
	}
	file->uses++;
	handle->file = file;
	if (handle->writes)
		file->writers++;
	sftp_put_handle(sftp, id, handle);
}

static unsigned
edit_flags(uint32_t flags)
{
	return ((flags & SFTP_OPEN_CREATE) != 0 ? (unsigned)FILE_CREATE : 0) |
	       ((flags & SFTP_OPEN_EXCLUSIVE) != 0 ? (unsigned)FILE_EXCLUSIVE : 0) |
	       ((flags & SFTP_OPEN_TRUNCATE) != 0 ? (unsigned)FILE_TRUNCATE : 0);
}

static void
open_file(struct sftp *sftp, uint32_t id, struct sftp_handle *handle, uint32_t flags,
    const struct file_change *change)
{
	struct file_request request;
	struct sftp_file *file;
	struct sftp_call *call;

	file = sftp_file_new(sftp, handle->path);
	handle->file = file;
	file->opening = true;
	file->is_private = handle->writes;
	file->writers = handle->writes ? 1 : 0;
	file->exclusive = (flags & SFTP_OPEN_EXCLUSIVE) != 0;
	file->dirty = (flags & SFTP_OPEN_TRUNCATE) != 0;
	if ((change->fields & FILE_CHANGE_MODE) != 0) {
		file->change.fields = FILE_CHANGE_MODE;
		file->change.mode = change->mode & 0777 & ~UMASK;
		file->mode_if_new = true;
	}
	file->uses++;
	call = sftp_call_new(sftp, id, SFTP_HANDLE);
	call->file = file;
	call->handle = handle;
	call->what = handle->writes ? "open for writing" : "open for reading";
	call->path = memory_text(handle->path);
	call->done = open_done;
	file_request_init(&request, handle->writes ? FILE_EDIT : FILE_OPEN);
	request.path = memory_text(handle->path);
	request.flags = handle->writes ? edit_flags(flags) : 0;
	sftp_call_send(call, &request);
}

void
sftp_serve_open(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct file_change change;
	struct sftp_handle *handle;
	struct sftp_file *pending;
	char *text, *path;
	uint32_t flags;

	text = sftp_get_path(input);
	flags = sftp_get_u32(input);
	sftp_get_change(input, &change);
	path = input->failed ? NULL : sftp_path(sftp, id, text);
	memory_free(text);
	if (input->failed || (path != NULL && (flags & (SFTP_OPEN_READ | SFTP_OPEN_WRITE)) == 0))
		sftp_put_refusal(sftp, id, SFTP_BAD_MESSAGE, "a malformed OPEN");
	else if (path != NULL && !sftp_path_waits(sftp, path)) {
		pending = sftp_file_pending(sftp, path);
		handle = sftp_add_handle(sftp, path);
		if (handle == NULL) {
			sftp_put_refusal(sftp, id, SFTP_FAILURE, "too many open handles");
		} else {
			handle->reads = (flags & SFTP_OPEN_READ) != 0;
			handle->writes = (flags & SFTP_OPEN_WRITE) != 0;
			handle->appends = (flags & SFTP_OPEN_APPEND) != 0;
			if (pending != NULL)
				share_pending(sftp, id, handle, pending, flags);
			else
				open_file(sftp, id, handle, flags, &change);
		}
	}
	memory_free(path);
}

/* The last writer is gone: what it wrote appears, unless there is a reason why not. */
static void
close_written(struct sftp *sftp, uint32_t id, struct sftp_file *file)
{
	if (file->spoiled) {
		sftp_put_error(&sftp->output, id, &file->trouble);
	} else if (file->discarded || (!file->dirty && file->change.fields == 0)) {
		/* Gone meanwhile, or opened for writing and never written to. */
		sftp_put_done(sftp, id, NULL);
	} else {
		sftp_file_commit(file, sftp_call_new(sftp, id, SFTP_STATUS));
	}
}

void
sftp_serve_close(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct sftp_handle *handle;
	struct sftp_file *file;

	handle = sftp_get_handle(sftp, input);
	if (handle == NULL) {
		sftp_put_refusal(sftp, id, SFTP_FAILURE, "there is no such handle");
		return;
	}
	file = handle->file;
	if (file != NULL && file->committing) {
		sftp->held = true;
		return;
	}
	if (file != NULL)
		log_info("sftp: close %s, read %llu, written %llu", file->path,
		    (unsigned long long)file->read, (unsigned long long)file->written);
	if (file != NULL && handle->writes && --file->writers == 0)
		close_written(sftp, id, file);
	else
		sftp_put_done(sftp, id, NULL);
	/* Nobody else reads what is still arriving. */
	if (file != NULL && file->arrival != NULL && file->uses == 2)
		sftp_call_free(file->arrival);
	sftp_drop_handle(sftp, handle);
}

void
sftp_serve_fstat(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct file_attributes attributes;
	struct sftp_handle *handle;
	struct error err;
	size_t start;

	handle = sftp_get_handle(sftp, input);
	if (handle == NULL) {
		sftp_put_refusal(sftp, id, SFTP_FAILURE, "there is no such handle");
		return;
	}
	attributes = handle->attributes;
	if (handle->file != NULL && sftp_file_attributes(handle->file, &attributes, &err) != 0) {
		sftp_put_error(&sftp->output, id, &err);
		return;
	}
	start = sftp_put_start(&sftp->output, SFTP_ATTRS, id);
	sftp_put_attributes(&sftp->output, &attributes);
	sftp_put_finish(&sftp->output, start);
}

/* By the worker: what a descriptor in here cannot. */
static void
send_fsetstat(struct sftp *sftp, uint32_t id, const struct sftp_handle *handle,
    const struct file_change *change)
{
	struct file_request request;
	struct sftp_call *call;

	call = sftp_call_new(sftp, id, SFTP_STATUS);
	call->what = "setstat";
	call->path = memory_text(handle->path);
	file_request_init(&request, FILE_SETSTAT);
	request.path = memory_text(handle->path);
	request.flags = FILE_FOLLOW;
	request.change = *change;
	if (handle->file != NULL && handle->file->is_private)
		request.fd = descriptor_duplicate(handle->file->fd);
	sftp_call_send(call, &request);
}

void
sftp_serve_fsetstat(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct sftp_handle *handle;
	struct file_change change;
	struct error err;
	int result = 1;

	handle = sftp_get_handle(sftp, input);
	sftp_get_change(input, &change);
	if (handle == NULL || input->failed) {
		sftp_put_refusal(sftp, id, handle == NULL ? SFTP_FAILURE : SFTP_BAD_MESSAGE,
		    handle == NULL ? "there is no such handle" : "a malformed FSETSTAT");
		return;
	}
	if (handle->file != NULL && handle->file->is_private)
		result = sftp_file_change(handle->file, &change, &err);
	if (result > 0)
		send_fsetstat(sftp, id, handle, &change);
	else
		sftp_put_done(sftp, id, result == 0 ? NULL : &err);
}
