/* SPDX-License-Identifier: ISC */
/*
 * Open files of the SFTP server, and what is written but not committed yet: committing it,
 * answering for it meanwhile, and keeping track of its name.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/file_path.h"
#include "gateway/sftp_state.h"

#define BILLION INT64_C(1000000000)

struct sftp_file *
sftp_file_new(struct sftp *sftp, const char *path)
{
	struct sftp_file *file;

	file = memory_zeroed(1, sizeof(*file));
	file->sftp = sftp;
	file->uses = 1;
	file->path = memory_text(path);
	file->fd = -1;
	file->next = sftp->files;
	sftp->files = file;
	return file;
}

static void
fail_waits(struct sftp_file *file)
{
	struct sftp_wait *wait;

	while ((wait = file->waits) != NULL) {
		file->waits = wait->next;
		sftp_put_refusal(file->sftp, wait->id, SFTP_FAILURE, "the file was closed");
		file->sftp->call_count--;
		memory_free(wait);
	}
}

void
sftp_file_release(struct sftp_file *file)
{
	struct sftp_file **place;
	size_t i;

	if (--file->uses > 0)
		return;
	for (i = 0; i < SFTP_HANDLES_MAX; i++)
		if (file->sftp->handles[i] != NULL && file->sftp->handles[i]->unlisted == file)
			file->sftp->handles[i]->unlisted = file->next;
	for (place = &file->sftp->files; *place != file; place = &(*place)->next)
		continue;
	*place = file->next;
	fail_waits(file);
	descriptor_close(&file->fd);
	memory_free(file->path);
	memory_free(file->real);
	memory_free(file);
}

static bool
is_at(const struct sftp_file *file, const char *path)
{
	return strcmp(file->path, path) == 0 ||
	       (file->real != NULL && strcmp(file->real, path) == 0);
}

static bool
is_within(const struct sftp_file *file, const char *path)
{
	return path_is_within(path, file->path) ||
	       (file->real != NULL && path_is_within(path, file->real));
}

/* Would its content appear at a commit? */
static bool
is_pending(const struct sftp_file *file)
{
	return file->is_private && file->fd >= 0 && !file->committed && !file->discarded &&
	       !file->spoiled;
}

struct sftp_file *
sftp_file_pending(struct sftp *sftp, const char *path)
{
	struct sftp_file *file;

	for (file = sftp->files; file != NULL; file = file->next)
		if (is_pending(file) && is_at(file, path))
			return file;
	return NULL;
}

bool
sftp_path_waits(struct sftp *sftp, const char *path)
{
	struct sftp_file *file;

	for (file = sftp->files; file != NULL; file = file->next) {
		if ((file->opening || file->committing) && is_within(file, path)) {
			sftp->held = true;
			return true;
		}
	}
	return false;
}

bool
sftp_path_settle(struct sftp *sftp, const char *path)
{
	struct sftp_file *file;

	for (file = sftp->files; file != NULL; file = file->next)
		if (is_pending(file) && !file->opening && !file->committing &&
		    is_within(file, path))
			sftp_file_commit(file, NULL);
	return sftp_path_waits(sftp, path);
}

static void
rename_text(char **text, const char *from, const char *to)
{
	char *renamed;

	if (*text == NULL || !path_is_within(from, *text))
		return;
	renamed = memory_text_format("%s%s", to, *text + strlen(from));
	memory_free(*text);
	*text = renamed;
}

void
sftp_path_renamed(struct sftp *sftp, const char *from, const char *to)
{
	struct sftp_file *file;

	for (file = sftp->files; file != NULL; file = file->next) {
		rename_text(&file->path, from, to);
		rename_text(&file->real, from, to);
	}
}

void
sftp_path_discard(struct sftp *sftp, const char *path)
{
	struct sftp_file *file;

	for (file = sftp->files; file != NULL; file = file->next)
		if (file->is_private && is_at(file, path))
			file->discarded = true;
}

/* Answers the CLOSE, or leaves the failure of an early commit to it. */
static void
commit_done(struct sftp_call *call, struct file_reply *reply, const struct error *err)
{
	struct sftp_file *file = call->file;

	(void)reply;
	file->committing = false;
	if (err == NULL) {
		file->committed = true;
		file->change.fields = 0;
	} else if (call->silent) {
		/* CLOSE will say so. */
		file->spoiled = true;
		file->trouble = *err;
	}
	if (!call->silent)
		sftp_put_done(call->sftp, call->id, err);
}

void
sftp_file_commit(struct sftp_file *file, struct sftp_call *call)
{
	struct file_request request;

	if (call == NULL) {
		call = sftp_call_new(file->sftp, 0, SFTP_STATUS);
		call->silent = true;
	}
	file->uses++;
	file->committing = true;
	file->dirty = false;
	call->file = file;
	call->what = "write";
	call->path = memory_text(file->real);
	call->done = commit_done;
	file_request_init(&request, FILE_COMMIT);
	request.path = memory_text(file->real);
	request.flags = (file->exclusive && !file->committed ? (unsigned)FILE_EXCLUSIVE : 0) |
			(file->mode_if_new ? (unsigned)FILE_CREATE : 0);
	request.change = file->change;
	request.fd = descriptor_duplicate(file->fd);
	sftp_call_send(call, &request);
}

int
sftp_file_attributes(
    const struct sftp_file *file, struct file_attributes *attributes, struct error *err)
{
	const struct file_change *change = &file->change;
	struct stat status;

	if (descriptor_stat(file->fd, &status) != 0)
		return error_system(err, errno, "%s", file->path);
	*attributes = file->old;
	if (file->arrival == NULL)
		attributes->size = (uint64_t)status.st_size;
	if (!file->is_private)
		return 0;
	if (file->old.mode == 0) {
		attributes->mode = S_IFREG | 0644;
		attributes->links = 1;
		attributes->user = status.st_uid;
		attributes->group = status.st_gid;
	}
	attributes->accessed = status.st_atim.tv_sec * BILLION + status.st_atim.tv_nsec;
	attributes->modified = status.st_mtim.tv_sec * BILLION + status.st_mtim.tv_nsec;
	if ((change->fields & FILE_CHANGE_MODE) != 0)
		attributes->mode = S_IFREG | change->mode;
	if ((change->fields & FILE_CHANGE_TIMES) != 0) {
		attributes->accessed = change->accessed;
		attributes->modified = change->modified;
	}
	return 0;
}

int
sftp_file_change(struct sftp_file *file, const struct file_change *change, struct error *err)
{
	struct file_attributes now = { 0 };

	if ((change->fields & FILE_CHANGE_OWNER) != 0 &&
	    (sftp_file_attributes(file, &now, err) != 0 || now.user != change->user ||
		now.group != change->group))
		return 1;
	if ((change->fields & FILE_CHANGE_SIZE) != 0) {
		if (change->size > file->limit)
			return file_too_large(err, change->size, file->limit);
		if (ftruncate(file->fd, (off_t)change->size) != 0)
			return error_system(err, errno, "%s", file->path);
		file->dirty = true;
	}
	if ((change->fields & FILE_CHANGE_MODE) != 0) {
		file->change.fields |= FILE_CHANGE_MODE;
		file->change.mode = change->mode;
		file->mode_if_new = false;
	}
	if ((change->fields & FILE_CHANGE_TIMES) != 0) {
		file->change.fields |= FILE_CHANGE_TIMES;
		file->change.accessed = change->accessed;
		file->change.modified = change->modified;
	}
	return 0;
}
