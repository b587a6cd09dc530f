/* SPDX-License-Identifier: ISC */
/* The driver's own file server: requests and replies go through as they are. */
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/option.h"
#include "core/base/peer.h"
#include "core/driver.h"
#include "core/file_protocol.h"
#include "core/files.h"
#include "core/files_backend.h"
#include "core/workspace.h"

struct files_far {
	struct files *files;
	struct peer *peer;
};

static int
take_reply(void *argument, struct message *message, struct error *err)
{
	struct files_far *far = argument;
	struct files_operation *operation;
	struct file_reply reply;
	struct error failure;
	uint32_t id;

	if (file_reply_decode(message, &id, &reply, &failure, err) != 0)
		return -1;
	operation = files_find(far->files, id);
	if (operation == NULL)
		file_reply_free(&reply);
	else if (failure.code == ERROR_NONE)
		files_reply(operation, &reply);
	else
		files_fail(operation, &failure);
	return 0;
}

static const struct peer_rule rules[] = {
	{ MESSAGE_FILE_REPLY, "FILE_REPLY", 1, take_reply },
	{ MESSAGE_FILE_REQUEST, "FILE_REQUEST", 0, NULL },
	{ MESSAGE_FILE_CANCEL, "FILE_CANCEL", 0, NULL },
	{ MESSAGE_FILE_SERVE, "FILE_SERVE", 0, NULL },
	{ 0, NULL, 0, NULL },
};

static void
server_closed(void *argument, const struct error *reason)
{
	struct files_far *far = argument;
	struct error err;

	error_set(&err, ERROR_UNAVAILABLE,
	    "the sandbox's file server ended; whether the operation was done is unknown (%s)",
	    reason->message);
	files_lost(far->files, false, &err);
}

static const struct peer_events events = { .rules = rules, .closed = server_closed };

static struct files_far *
open_native(struct files *files, struct error *err)
{
	struct workspace *workspace = files_workspace(files);
	struct file_serve serve = { 0 };
	struct message message;
	struct files_far *far;
	int socket;

	socket = workspace_driver(workspace)->open_files(workspace_sandbox(workspace), err);
	if (socket < 0)
		return NULL;
	far = memory_zeroed(1, sizeof(*far));
	far->files = files;
	far->peer = peer_new(workspace_loop(workspace), socket, "worker", "files", &events, far);
	serve.root = memory_text(workspace_root(workspace));
	serve.limit = files_limit(files);
	serve.leftover_age = (uint32_t)(settings_number(
					    workspace_settings(workspace), "leftover_age") /
					1000);
	file_serve_encode(&message, &serve);
	file_serve_free(&serve);
	peer_send(far->peer, &message);
	return far;
}

static void
close_native(struct files_far *far)
{
	peer_free(far->peer);
	memory_free(far);
}

static void
send_native(struct files_far *far, struct files_operation *operation)
{
	struct message message;

	file_request_encode(
	    &message, files_operation_id(operation), files_operation_request(operation));
	peer_send(far->peer, &message);
}

static void
cancel_native(struct files_far *far, struct files_operation *operation)
{
	struct message message;

	file_cancel_encode(&message, files_operation_id(operation));
	peer_send(far->peer, &message);
}

const struct files_backend files_native = {
	.open = open_native,
	.close = close_native,
	.send = send_native,
	.cancel = cancel_native,
};
