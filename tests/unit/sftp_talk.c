/* SPDX-License-Identifier: ISC */
/*
 * A session in a test's own process: one end of a socket pair is its worker, the other is played.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "core/file_protocol.h"
#include "gateway/channel.h"
#include "gateway/service.h"
#include "gateway/session_files.h"
#include "gateway/session_state.h"
#include "tests/unit/sftp_talk.h"

#define ROOT "/root"
#define CONTENT "0123456789"
/* Rounds in which nothing moves any more; each is a few system calls. */
#define ROUNDS 40

struct talk {
	struct session session;
	struct channel channel;
	struct peer *worker; /* the far end */
	struct buffer input; /* what the service did not take yet */
	bool said_end, told_end;
	unsigned requests[FILE_VERBS];
};

static void
fill_attributes(struct file_attributes *attributes, uint32_t mode)
{
	attributes->mode = mode;
	attributes->links = 1;
	attributes->size = sizeof(CONTENT) - 1;
}

/* Anything with "none" in its name is not there, with "dir" a directory, with "denied" refused. */
static int
answer(const struct file_request *request, struct file_reply *reply, struct error *err)
{
	struct file_entry entry = { 0 };
	struct buffer records;
	const char *path = request->path == NULL ? "" : request->path;
	char name[] = "entry";

	if (strstr(path, "none") != NULL && request->verb != FILE_EDIT &&
	    request->verb != FILE_COMMIT && request->verb != FILE_RESOLVE)
		return error_set(err, ERROR_NOT_FOUND, "%s: No such file or directory", path);
	if (strstr(path, "denied") != NULL)
		return error_set(err, ERROR_DENIED, "%s: Permission denied", path);
	fill_attributes(
	    &reply->attributes, strstr(path, "dir") != NULL ? S_IFDIR | 0755 : S_IFREG | 0644);
	reply->limit = 1 << 20;
	if (request->verb == FILE_RESOLVE)
		reply->text = memory_text(strcmp(path, ".") == 0 ? ROOT : path);
	if (request->verb == FILE_READLINK)
		reply->text = memory_text("target");
	if (request->verb == FILE_OPEN || request->verb == FILE_EDIT) {
		reply->fd = file_content(CONTENT, sizeof(CONTENT) - 1, NULL);
		reply->arrived = sizeof(CONTENT) - 1;
	}
	if (request->verb == FILE_EDIT && strstr(path, "none") != NULL)
		reply->attributes.mode = 0;
	if (request->verb == FILE_LIST) {
		buffer_init(&records, 4096);
		entry.path = name;
		fill_attributes(&entry.attributes, S_IFREG | 0644);
		(void)file_list_put(&records, &entry);
		reply->fd = file_content(buffer_data(&records), records.length, NULL);
		(void)lseek(reply->fd, 0, SEEK_SET);
		buffer_free(&records);
	}
	if (request->verb == FILE_HASH) {
		reply->bytes = memory_zeroed(1, 16);
		reply->bytes_size = 16;
	}
	if (request->verb == FILE_NAMES)
		reply->names = memory_list_add(NULL, 0, "name");
	return 0;
}

static int
take_request(void *argument, struct message *message, struct error *err)
{
	struct talk *talk = argument;
	struct file_request request;
	struct file_reply reply;
	struct message reply_message;
	struct error failure;
	uint32_t id;

	if (file_request_decode(message, &id, &request, err) != 0)
		return -1;
	talk->requests[request.verb]++;
	error_clear(&failure);
	file_reply_init(&reply);
	if (answer(&request, &reply, &failure) == 0)
		error_clear(&failure);
	file_reply_encode(&reply_message, id, &reply, &failure);
	file_reply_free(&reply);
	file_request_free(&request);
	peer_send(talk->worker, &reply_message);
	return 0;
}

static int
take_cancel(void *argument, struct message *message, struct error *err)
{
	uint32_t id;

	(void)argument;
	return file_cancel_decode(message, &id, err);
}

/* Ours to the worker must always make sense, and the worker never goes. */
static void
peer_closed(void *argument, const struct error *err)
{
	(void)argument;
	(void)err;
	abort();
}

static const struct peer_rule worker_rules[] = {
	{ MESSAGE_FILE_REQUEST, "FILE_REQUEST", 1, take_request },
	{ MESSAGE_FILE_CANCEL, "FILE_CANCEL", 1, take_cancel },
	{ 0, NULL, 0, NULL },
};
static const struct peer_rule session_rules[] = {
	{ MESSAGE_FILE_REPLY, "FILE_REPLY", 1, session_file_take_reply },
	{ 0, NULL, 0, NULL },
};
static const struct peer_events worker_events = { worker_rules, peer_closed, NULL };
static const struct peer_events session_events = { session_rules, peer_closed, NULL };

struct talk *
talk_open(void)
{
	struct talk *talk;
	int pair[2];

	talk = memory_zeroed(1, sizeof(*talk));
	talk->session.loop = loop_new(NULL);
	if (talk->session.loop == NULL || descriptor_pair(pair, NULL) != 0)
		abort();
	talk->session.worker = peer_new(
	    talk->session.loop, pair[0], "session", "worker", &session_events, &talk->session);
	talk->worker = peer_new(
	    talk->session.loop, pair[1], "worker", "session", &worker_events, talk);
	talk->channel.session = &talk->session;
	buffer_init(&talk->input, 1U << 26);
	return talk;
}

void
talk_close(struct talk *talk)
{
	if (talk->channel.service != NULL)
		talk->channel.service->close(talk->channel.service_argument);
	peer_free(talk->session.worker);
	peer_free(talk->worker);
	loop_free(talk->session.loop);
	buffer_free(&talk->input);
	memory_free(talk);
}

struct channel *
talk_channel(struct talk *talk)
{
	return &talk->channel;
}

static void
offer_input(struct talk *talk)
{
	struct channel *channel = &talk->channel;
	size_t taken;

	if (talk->input.length > 0 && channel->input.ready && !channel->has_ended) {
		taken = channel->service->take(
		    channel->service_argument, buffer_data(&talk->input), talk->input.length);
		if (taken > talk->input.length)
			abort();
		if (taken < talk->input.length)
			channel->input.ready = false;
		buffer_consume(&talk->input, taken);
	}
	if (talk->input.length == 0 && talk->said_end && !talk->told_end && !channel->has_ended) {
		talk->told_end = true;
		channel->service->ended(channel->service_argument);
	}
}

static void
go_on(struct talk *talk)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		offer_input(talk);
		if (loop_dispatch(talk->session.loop, 0, NULL) != 0)
			abort();
	}
}

void
talk_say(struct talk *talk, const void *data, size_t size)
{
	(void)buffer_append(&talk->input, data, size);
	go_on(talk);
}

void
talk_end(struct talk *talk)
{
	talk->said_end = true;
	go_on(talk);
}

struct buffer *
talk_heard(struct talk *talk)
{
	return talk->channel.service_output;
}

bool
talk_ended(const struct talk *talk, uint32_t *status)
{
	*status = talk->channel.ended.status;
	return talk->channel.has_ended;
}

void
talk_hold_replies(struct talk *talk, bool hold)
{
	peer_pause(talk->session.worker, hold);
	if (!hold)
		go_on(talk);
}

unsigned
talk_requests(const struct talk *talk, unsigned verb)
{
	return talk->requests[verb];
}
