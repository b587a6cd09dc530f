/* SPDX-License-Identifier: ISC */
/*
 * The file operations that a session asks for. A key with a forced command has none, unless that
 * command is internal-sftp; a session may not have more under way than its channels together need.
 */
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "core/file_protocol.h"
#include "core/files.h"
#include "core/workspace.h"
#include "gateway/worker.h"

#define OPERATIONS_MAX 4096U

struct link_file {
	struct link_file *next;
	struct link_files *files;
	uint32_t id;
	struct files_operation *operation;
};

struct link_files {
	struct worker *worker;
	struct peer *peer;
	bool refused;
	struct link_file *operations;
	unsigned count;
};

struct link_files *
link_files_new(struct worker *worker, struct peer *peer, const struct restrictions *restrictions)
{
	struct link_files *files;

	files = memory_zeroed(1, sizeof(*files));
	files->worker = worker;
	files->peer = peer;
	files->refused = forced_command_parse(restrictions->command) == FORCED_COMMAND;
	return files;
}

static void
forget(struct link_file *file)
{
	struct link_file **place;

	for (place = &file->files->operations; *place != file; place = &(*place)->next)
		continue;
	*place = file->next;
	file->files->count--;
	memory_free(file);
}

void
link_files_free(struct link_files *files)
{
	while (files->operations != NULL) {
		files_cancel(files->operations->operation);
		forget(files->operations);
	}
	memory_free(files);
}

static void
send_reply(struct link_files *files, uint32_t id, struct file_reply *reply, const struct error *err)
{
	struct error none;
	struct message message;

	error_clear(&none);
	file_reply_encode(&message, id, reply, err == NULL ? &none : err);
	peer_send(files->peer, &message);
}

static void
operation_done(void *argument, struct file_reply *reply, const struct error *err)
{
	struct link_file *file = argument;

	send_reply(file->files, file->id, reply, err);
	if (err != NULL || !reply->more)
		forget(file);
}

int
link_files_take_request(struct link_files *files, struct message *message, struct error *err)
{
	struct file_request request;
	struct link_file *file;
	struct error failure;
	uint32_t id;

	if (file_request_decode(message, &id, &request, err) != 0)
		return -1;
	if (files->refused || files->count >= OPERATIONS_MAX) {
		if (files->refused)
			error_set(&failure, ERROR_DENIED, "this key may only run its own command");
		else
			error_set(&failure, ERROR_BUSY, "too many file operations at once");
		send_reply(files, id, NULL, &failure);
		file_request_free(&request);
		return 0;
	}
	file = memory_zeroed(1, sizeof(*file));
	file->files = files;
	file->id = id;
	file->next = files->operations;
	files->operations = file;
	files->count++;
	file->operation = files_start(
	    workspace_files(files->worker->workspace), &request, operation_done, file);
	file_request_free(&request);
	return 0;
}

int
link_files_take_cancel(struct link_files *files, struct message *message, struct error *err)
{
	struct link_file *file;
	uint32_t id;

	if (file_cancel_decode(message, &id, err) != 0)
		return -1;
	for (file = files->operations; file != NULL; file = file->next) {
		if (file->id == id) {
			files_cancel(file->operation);
			forget(file);
			break;
		}
	}
	return 0;
}
