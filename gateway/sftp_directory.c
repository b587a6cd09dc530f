/* SPDX-License-Identifier: ISC */
/*
 * Reading directories: what the sandbox lists, with what this client is writing there as it will be
 * once it is committed.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/file_path.h"
#include "gateway/sftp_state.h"

/* What a NAME reply to READDIR holds, roughly: all clients take that much. */
#define NAMES_SIZE (32U * 1024U)

static void
list_done(struct sftp_call *call, struct file_reply *reply, const struct error *err)
{
	struct sftp *sftp = call->sftp;
	struct sftp_handle *handle;

	handle = err != NULL ? NULL : sftp_add_handle(sftp, call->path);
	if (handle != NULL) {
		handle->list = file_list_open(reply->fd);
		handle->attributes = reply->attributes;
		reply->fd = -1;
		sftp_put_handle(sftp, call->id, handle);
	} else if (err != NULL) {
		sftp_put_error(&sftp->output, call->id, err);
	} else {
		sftp_put_refusal(sftp, call->id, SFTP_FAILURE, "too many open handles");
	}
}

void
sftp_serve_opendir(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct file_request request;
	struct sftp_call *call;
	char *text, *path;

	text = sftp_get_path(input);
	path = input->failed ? NULL : sftp_path(sftp, id, text);
	memory_free(text);
	if (input->failed)
		sftp_put_refusal(sftp, id, SFTP_BAD_MESSAGE, "a malformed OPENDIR");
	if (path == NULL || sftp_path_waits(sftp, path)) {
		memory_free(path);
		return;
	}
	file_request_init(&request, FILE_LIST);
	request.path = memory_text(path);
	request.flags = FILE_HIDDEN;
	call = sftp_call_new(sftp, id, SFTP_HANDLE);
	call->path = path;
	call->done = list_done;
	sftp_call_send(call, &request);
}

/* An entry that this client is writing looks as it will after the commit. */
static void
overlay_entry(struct sftp *sftp, const struct sftp_handle *handle, struct file_entry *entry)
{
	struct sftp_file *file;
	char *path;

	if (sftp->files == NULL)
		return;
	path = path_join(handle->path, entry->path);
	file = sftp_file_pending(sftp, path);
	memory_free(path);
	if (file == NULL)
		return;
	file->listed_by = handle->serial;
	(void)sftp_file_attributes(file, &entry->attributes, NULL);
}

/* What this client is writing in the directory and nobody else has seen yet: 1, or 0 at the end. */
static int
next_unlisted(struct sftp *sftp, struct sftp_handle *handle, struct file_entry *entry)
{
	struct sftp_file *file;
	char *parent;
	bool here;

	while ((file = handle->unlisted) != NULL) {
		handle->unlisted = file->next;
		parent = path_parent(file->path);
		here = strcmp(parent, handle->path) == 0;
		memory_free(parent);
		if (!here || file->listed_by == handle->serial ||
		    sftp_file_pending(sftp, file->path) != file ||
		    sftp_file_attributes(file, &entry->attributes, NULL) != 0)
			continue;
		entry->path = file->path + (path_last(file->path) - file->path);
		return 1;
	}
	return 0;
}

/*
 * The next name of a directory: the two that every one has, what it holds, what is not committed.
 */
static int
next_name(
    struct sftp *sftp, struct sftp_handle *handle, struct file_entry *entry, struct error *err)
{
	static char dot[] = ".", dots[] = "..";
	int result;

	if (handle->dots < 2) {
		entry->path = handle->dots++ == 0 ? dot : dots;
		entry->attributes = handle->attributes;
		return 1;
	}
	if (handle->listed)
		return next_unlisted(sftp, handle, entry);
	result = file_list_next(handle->list, entry, err);
	if (result == 1)
		overlay_entry(sftp, handle, entry);
	if (result != 0)
		return result;
	handle->listed = true;
	handle->unlisted = sftp->files;
	return next_unlisted(sftp, handle, entry);
}

void
sftp_serve_readdir(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct buffer *output = &sftp->output;
	struct sftp_handle *handle;
	struct file_entry entry;
	struct error err;
	uint32_t count = 0;
	size_t start, i;
	int result = 1;

	handle = sftp_get_handle(sftp, input);
	if (handle == NULL || handle->list == NULL) {
		sftp_put_refusal(sftp, id, SFTP_FAILURE, "there is no such directory handle");
		return;
	}
	start = sftp_put_start(output, SFTP_NAME, id);
	sftp_put_u32(output, 0);
	while (output->length - start < NAMES_SIZE &&
	       (result = next_name(sftp, handle, &entry, &err)) == 1) {
		sftp_put_name(output, entry.path, &entry.attributes);
		count++;
	}
	for (i = 0; i < 4; i++)
		buffer_data(output)[start + 9 + i] = (unsigned char)(count >> (24 - 8 * i));
	if (result >= 0 && count > 0) {
		sftp_put_finish(output, start);
		return;
	}
	output->length = start;
	if (result < 0)
		sftp_put_error(output, id, &err);
	else
		sftp_put_status(output, id, SFTP_EOF, "End of directory");
}
