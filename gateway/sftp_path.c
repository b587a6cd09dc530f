/* SPDX-License-Identifier: ISC */
/*
 * Requests on paths. Each is parsed, waits its turn when something at its path is under way, is
 * answered from what this client has open there, or goes to the worker.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/file_path.h"
#include "gateway/session_files.h"
#include "gateway/sftp_state.h"

/*
 * The next value of the packet as a normal path; NULL when there is none and the client was told.
 */
static char *
get_normal_path(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	char *text, *path;

	text = sftp_get_path(input);
	path = input->failed ? NULL : sftp_path(sftp, id, text);
	if (input->failed)
		sftp_put_refusal(sftp, id, SFTP_BAD_MESSAGE, "a malformed request");
	memory_free(text);
	return path;
}

/* Sends verb on path, which is handed over. */
static struct sftp_call *
send_path(struct sftp *sftp, uint32_t id, enum sftp_type type, struct file_request *request,
    char *path, const char *what)
{
	struct sftp_call *call;

	request->path = memory_text(path);
	call = sftp_call_new(sftp, id, type);
	call->path = path;
	call->what = what;
	sftp_call_send(call, request);
	return call;
}

static void
serve_stat(struct sftp *sftp, uint32_t id, struct sftp_input *input, unsigned flags)
{
	struct file_attributes attributes;
	struct file_request request;
	struct sftp_file *file;
	struct error err;
	size_t start;
	char *path;

	path = get_normal_path(sftp, id, input);
	if (path == NULL || sftp_path_waits(sftp, path)) {
		memory_free(path);
		return;
	}
	file = sftp_file_pending(sftp, path);
	if (file == NULL) {
		file_request_init(&request, FILE_STAT);
		request.flags = flags;
		(void)send_path(sftp, id, SFTP_ATTRS, &request, path, NULL);
		return;
	}
	memory_free(path);
	if (sftp_file_attributes(file, &attributes, &err) != 0) {
		sftp_put_error(&sftp->output, id, &err);
		return;
	}
	start = sftp_put_start(&sftp->output, SFTP_ATTRS, id);
	sftp_put_attributes(&sftp->output, &attributes);
	sftp_put_finish(&sftp->output, start);
}

void
sftp_serve_lstat(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	serve_stat(sftp, id, input, 0);
}

void
sftp_serve_stat(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	serve_stat(sftp, id, input, FILE_FOLLOW);
}

void
sftp_setstat(struct sftp *sftp, uint32_t id, struct sftp_input *input, bool follow)
{
	struct file_request request;
	struct sftp_file *file;
	struct error err;
	char *path;
	int result = 1;

	file_request_init(&request, FILE_SETSTAT);
	path = get_normal_path(sftp, id, input);
	sftp_get_change(input, &request.change);
	if (path == NULL || sftp_path_waits(sftp, path)) {
		memory_free(path);
		return;
	}
	file = sftp_file_pending(sftp, path);
	if (input->failed)
		error_set(&err, ERROR_INVALID, "a malformed SETSTAT");
	else if (file != NULL)
		result = sftp_file_change(file, &request.change, &err);
	/* An owner that only the worker can set needs the file to be there. */
	if (!input->failed && result > 0 && file != NULL && sftp_path_settle(sftp, path)) {
		memory_free(path);
		return;
	}
	if (!input->failed && result > 0) {
		request.flags = follow ? FILE_FOLLOW : 0;
		(void)send_path(sftp, id, SFTP_STATUS, &request, path, "setstat");
		return;
	}
	sftp_put_done(sftp, id, result == 0 ? NULL : &err);
	memory_free(path);
}

void
sftp_serve_setstat(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	sftp_setstat(sftp, id, input, true);
}

void
sftp_serve_remove(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct file_request request;
	bool pending;
	char *path;

	path = get_normal_path(sftp, id, input);
	if (path == NULL || sftp_path_waits(sftp, path)) {
		memory_free(path);
		return;
	}
	/* What was never committed need not be there. */
	pending = sftp_file_pending(sftp, path) != NULL;
	sftp_path_discard(sftp, path);
	file_request_init(&request, FILE_REMOVE);
	request.flags = FILE_ONLY_FILE;
	send_path(sftp, id, SFTP_STATUS, &request, path, "remove")->forgive_missing = pending;
}

void
sftp_serve_mkdir(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct file_request request;
	char *path;

	file_request_init(&request, FILE_MKDIR);
	path = get_normal_path(sftp, id, input);
	sftp_get_change(input, &request.change);
	if (path == NULL || sftp_path_waits(sftp, path)) {
		memory_free(path);
		return;
	}
	request.change.fields &= FILE_CHANGE_MODE;
	(void)send_path(sftp, id, SFTP_STATUS, &request, path, "mkdir");
}

void
sftp_serve_rmdir(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct file_request request;
	char *path;

	path = get_normal_path(sftp, id, input);
	if (path == NULL || sftp_path_settle(sftp, path)) {
		memory_free(path);
		return;
	}
	file_request_init(&request, FILE_REMOVE);
	request.flags = FILE_ONLY_DIRECTORY;
	(void)send_path(sftp, id, SFTP_STATUS, &request, path, "rmdir");
}

void
sftp_serve_realpath(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct file_request request;
	char *path;

	path = get_normal_path(sftp, id, input);
	if (path == NULL)
		return;
	file_request_init(&request, FILE_RESOLVE);
	(void)send_path(sftp, id, SFTP_NAME, &request, path, NULL);
}

static void
rename_done(struct sftp_call *call, struct file_reply *reply, const struct error *err)
{
	if (err == NULL)
		sftp_path_renamed(call->sftp, call->path, call->other);
	sftp_answer(call, reply, err);
}

/* Two paths of a request that names both; false when it is answered, or has to wait. */
static bool
get_two_paths(struct sftp *sftp, uint32_t id, struct sftp_input *input, char **first, char **second)
{
	*second = NULL;
	*first = get_normal_path(sftp, id, input);
	if (*first != NULL)
		*second = get_normal_path(sftp, id, input);
	if (*second != NULL && !sftp_path_settle(sftp, *first) && !sftp_path_waits(sftp, *second))
		return true;
	memory_free(*first);
	memory_free(*second);
	return false;
}

/* Sends verb with two paths, which are handed over. */
static struct sftp_call *
send_two_paths(struct sftp *sftp, uint32_t id, struct file_request *request, char *path,
    char *other, const char *what)
{
	struct sftp_call *call;

	request->path = memory_text(path);
	request->other = memory_text(other);
	call = sftp_call_new(sftp, id, SFTP_STATUS);
	call->path = path;
	call->other = other;
	call->what = what;
	sftp_call_send(call, request);
	return call;
}

void
sftp_rename(struct sftp *sftp, uint32_t id, struct sftp_input *input, bool overwrite)
{
	struct file_request request;
	char *from, *to;

	if (!get_two_paths(sftp, id, input, &from, &to))
		return;
	if (sftp_file_pending(sftp, to) != NULL && !overwrite) {
		sftp_put_refusal(sftp, id, SFTP_FAILURE, "EXISTS: the new name is being written");
		memory_free(from);
		memory_free(to);
		return;
	}
	sftp_path_discard(sftp, to);
	file_request_init(&request, FILE_RENAME);
	request.flags = overwrite ? FILE_OVERWRITE : 0;
	send_two_paths(sftp, id, &request, from, to, "rename")->done = rename_done;
}

void
sftp_serve_rename(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	sftp_rename(sftp, id, input, false);
}

void
sftp_serve_readlink(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct file_request request;
	char *path;

	path = get_normal_path(sftp, id, input);
	if (path == NULL)
		return;
	file_request_init(&request, FILE_READLINK);
	(void)send_path(sftp, id, SFTP_NAME, &request, path, NULL);
}

/*
 * The target comes first, then the link:
 * the reverse of what the draft says, and what everybody does.
 */
void
sftp_serve_symlink(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct file_request request;
	char *target, *path;

	target = sftp_get_text(input);
	path = get_normal_path(sftp, id, input);
	if (path == NULL || sftp_path_waits(sftp, path)) {
		memory_free(target);
		memory_free(path);
		return;
	}
	file_request_init(&request, FILE_SYMLINK);
	(void)send_two_paths(sftp, id, &request, path, target, "symlink");
}
