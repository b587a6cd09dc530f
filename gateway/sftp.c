/* SPDX-License-Identifier: ISC */
/*
 * Our own SFTP server (draft-ietf-secsh-filexfer-02, version 3). Requests are served in the order
 * they come; those for the worker are sent on at once and answered as their replies arrive. A
 * packet is held back, and everything behind it, while its path is being opened or committed, while
 * too much is under way, and while the client does not read what it was sent.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/file_path.h"
#include "gateway/channel.h"
#include "gateway/service.h"
#include "gateway/session_files.h"
#include "gateway/session_state.h"
#include "gateway/sftp.h"
#include "gateway/sftp_state.h"

#define VERSION 3U
/* One reply may follow when the output is nearly high: a read, or a listing. */
#define OUTPUT_MAX (SFTP_OUTPUT_HIGH + SFTP_CALLS_MAX * 8192U + 4U * SFTP_PACKET_MAX)

static const struct {
	const char *name;
	sftp_serve_fn *serve;
} requests[256] = {
	[SFTP_OPEN] = { "OPEN", sftp_serve_open },
	[SFTP_CLOSE] = { "CLOSE", sftp_serve_close },
	[SFTP_READ] = { "READ", sftp_serve_read },
	[SFTP_WRITE] = { "WRITE", sftp_serve_write },
	[SFTP_LSTAT] = { "LSTAT", sftp_serve_lstat },
	[SFTP_FSTAT] = { "FSTAT", sftp_serve_fstat },
	[SFTP_SETSTAT] = { "SETSTAT", sftp_serve_setstat },
	[SFTP_FSETSTAT] = { "FSETSTAT", sftp_serve_fsetstat },
	[SFTP_OPENDIR] = { "OPENDIR", sftp_serve_opendir },
	[SFTP_READDIR] = { "READDIR", sftp_serve_readdir },
	[SFTP_REMOVE] = { "REMOVE", sftp_serve_remove },
	[SFTP_MKDIR] = { "MKDIR", sftp_serve_mkdir },
	[SFTP_RMDIR] = { "RMDIR", sftp_serve_rmdir },
	[SFTP_REALPATH] = { "REALPATH", sftp_serve_realpath },
	[SFTP_STAT] = { "STAT", sftp_serve_stat },
	[SFTP_RENAME] = { "RENAME", sftp_serve_rename },
	[SFTP_READLINK] = { "READLINK", sftp_serve_readlink },
	[SFTP_SYMLINK] = { "SYMLINK", sftp_serve_symlink },
	[SFTP_EXTENDED] = { "EXTENDED", sftp_serve_extended },
};

struct sftp_call *
sftp_call_new(struct sftp *sftp, uint32_t id, enum sftp_type type)
{
	struct sftp_call *call;

	call = memory_zeroed(1, sizeof(*call));
	call->sftp = sftp;
	call->id = id;
	call->type = type;
	call->next = sftp->calls;
	sftp->calls = call;
	sftp->call_count++;
	return call;
}

void
sftp_call_free(struct sftp_call *call)
{
	struct sftp_call **place;

	for (place = &call->sftp->calls; *place != call; place = &(*place)->next)
		continue;
	*place = call->next;
	call->sftp->call_count--;
	session_file_cancel(call->request);
	if (call->file != NULL)
		sftp_file_release(call->file);
	memory_free(call->path);
	memory_free(call->other);
	memory_free(call);
}

void
sftp_put_done(struct sftp *sftp, uint32_t id, const struct error *err)
{
	if (err == NULL)
		sftp_put_status(&sftp->output, id, SFTP_OK, "Success");
	else
		sftp_put_error(&sftp->output, id, err);
}

void
sftp_put_refusal(struct sftp *sftp, uint32_t id, enum sftp_status status, const char *text)
{
	sftp_put_status(&sftp->output, id, status, text);
}

static void
put_volume(struct sftp *sftp, uint32_t id, const struct file_volume *volume)
{
	struct buffer *output = &sftp->output;
	size_t start;

	start = sftp_put_start(output, SFTP_EXTENDED_REPLY, id);
	sftp_put_u64(output, volume->block_size);
	sftp_put_u64(output, volume->fragment_size);
	sftp_put_u64(output, volume->blocks);
	sftp_put_u64(output, volume->blocks_free);
	sftp_put_u64(output, volume->blocks_available);
	sftp_put_u64(output, volume->files);
	sftp_put_u64(output, volume->files_free);
	sftp_put_u64(output, volume->files_available);
	sftp_put_u64(output, volume->id);
	sftp_put_u64(output, volume->flags);
	sftp_put_u64(output, volume->name_max);
	sftp_put_finish(output, start);
}

/* A NAME reply with one name; its attributes mean nothing (section 6.11). */
static void
put_one_name(struct sftp *sftp, uint32_t id, const char *name)
{
	struct buffer *output = &sftp->output;
	size_t start;

	start = sftp_put_start(output, SFTP_NAME, id);
	sftp_put_u32(output, 1);
	sftp_put_text(output, name);
	sftp_put_text(output, name);
	sftp_put_u32(output, 0);
	sftp_put_finish(output, start);
}

void
sftp_answer(struct sftp_call *call, struct file_reply *reply, const struct error *err)
{
	struct buffer *output = &call->sftp->output;
	size_t start;

	if (err != NULL || call->type == SFTP_STATUS) {
		sftp_put_done(call->sftp, call->id, err);
	} else if (call->type == SFTP_ATTRS) {
		start = sftp_put_start(output, SFTP_ATTRS, call->id);
		sftp_put_attributes(output, &reply->attributes);
		sftp_put_finish(output, start);
	} else if (call->type == SFTP_NAME) {
		put_one_name(call->sftp, call->id, reply->text == NULL ? "" : reply->text);
	} else {
		put_volume(call->sftp, call->id, &reply->volume);
	}
}

/* One line of the log for what changed something, or was refused to. */
static void
log_call(const struct sftp_call *call, const struct error *err)
{
	const char *between = call->other == NULL ? "" : " ";
	const char *other = call->other == NULL ? "" : call->other;

	if (call->what == NULL)
		return;
	if (err == NULL)
		log_info("sftp: %s %s%s%s", call->what, call->path, between, other);
	else
		log_info("sftp: %s %s%s%s: %s: %s", call->what, call->path, between, other,
		    error_kind(err->code)->name, err->message);
}

static void advance(struct sftp *sftp);

static void
call_done(void *argument, struct file_reply *reply, const struct error *err)
{
	struct sftp_call *call = argument;
	struct sftp *sftp = call->sftp;

	if (err == NULL && reply->more) {
		log_call(call, NULL);
		call->what = NULL;
		call->done(call, reply, NULL);
		advance(sftp);
		return;
	}
	call->request = NULL;
	if (err != NULL && call->forgive_missing && err->code == ERROR_NOT_FOUND)
		err = NULL;
	log_call(call, err);
	if (call->done != NULL)
		call->done(call, reply, err);
	else
		sftp_answer(call, reply, err);
	sftp_call_free(call);
	advance(sftp);
}

void
sftp_call_send(struct sftp_call *call, struct file_request *request)
{
	call->request = session_file_start(call->sftp->session, request, call_done, call);
	file_request_free(request);
}

char *
sftp_path(struct sftp *sftp, uint32_t id, const char *path)
{
	struct error err;
	char *text;

	text = path_normalize(sftp->root, path, &err);
	if (text == NULL)
		sftp_put_error(&sftp->output, id, &err);
	return text;
}

/* The root is known: the client may begin. */
static void
root_known(struct sftp_call *call, struct file_reply *reply, const struct error *err)
{
	struct sftp *sftp = call->sftp;
	size_t start;

	if (err != NULL) {
		sftp->failed = true;
		channel_service_fail(sftp->channel, err);
		return;
	}
	sftp->root = memory_text(reply->text);
	/* VERSION has its number where others have the request's. */
	start = sftp_put_start(&sftp->output, SFTP_VERSION, VERSION);
	sftp_put_extensions(&sftp->output);
	sftp_put_finish(&sftp->output, start);
	log_info("sftp: begun");
}

/* INIT: the workspace is made ready before the client is greeted. */
static void
begin(struct sftp *sftp, struct sftp_input *input)
{
	struct file_request request;
	struct sftp_call *call;

	sftp->begun = true;
	log_debug("sftp: the client speaks version %u", sftp_get_u32(input));
	file_request_init(&request, FILE_RESOLVE);
	request.path = memory_text(".");
	call = sftp_call_new(sftp, 0, SFTP_STATUS);
	call->done = root_known;
	sftp_call_send(call, &request);
}

static void
fail(struct sftp *sftp, const char *text)
{
	struct error err;

	error_set(&err, ERROR_INVALID, "sftp: %s", text);
	log_info("%s", err.message);
	sftp->failed = true;
	channel_service_fail(sftp->channel, &err);
}

/* Serves the packet that is complete; false when it has to wait. */
static bool
serve_packet(struct sftp *sftp)
{
	struct sftp_input input = { buffer_data(&sftp->packet) + 4, sftp->packet.length - 4,
		false };
	uint8_t type;
	uint32_t id;

	type = sftp_get_u8(&input);
	if (!sftp->begun) {
		if (type == SFTP_INIT)
			begin(sftp, &input);
		else
			fail(sftp, "the first packet is not INIT");
		return true;
	}
	if (sftp->root == NULL)
		return false;
	id = sftp_get_u32(&input);
	sftp->held = false;
	if (input.failed)
		fail(sftp, "a packet without a number");
	else if (requests[type].serve == NULL)
		sftp_put_refusal(
		    sftp, id, SFTP_UNSUPPORTED, "there is no such request in version 3");
	else
		requests[type].serve(sftp, id, &input);
	return !sftp->held;
}

/* How many bytes the packet being received has in all; 4 until its length is known. */
static size_t
packet_size(struct sftp *sftp)
{
	const unsigned char *data;
	size_t length;

	if (sftp->packet.length < 4)
		return 4;
	data = buffer_data(&sftp->packet);
	length = (size_t)data[0] << 24 | (size_t)data[1] << 16 | (size_t)data[2] << 8 | data[3];
	if (length >= 1 && length <= SFTP_PACKET_MAX)
		return 4 + length;
	fail(sftp, "a packet that is empty or over the limit");
	return 0;
}

static bool
may_serve(const struct sftp *sftp)
{
	return !sftp->failed && sftp->call_count < SFTP_CALLS_MAX &&
	       sftp->output.length < SFTP_OUTPUT_HIGH;
}

static void
finish_if_done(struct sftp *sftp)
{
	if (!sftp->ended || sftp->failed || sftp->call_count > 0)
		return;
	log_info("sftp: ended");
	channel_service_end(sftp->channel, 0);
	sftp->failed = true; /* nothing more is served */
}

static size_t
take(void *argument, const unsigned char *data, size_t size)
{
	struct sftp *sftp = argument;
	size_t used = 0, part, needed;

	while (may_serve(sftp)) {
		needed = packet_size(sftp);
		if (needed == 0)
			break;
		part = needed - sftp->packet.length;
		if (part > size - used)
			part = size - used;
		if (part > 0)
			(void)buffer_append(&sftp->packet, data + used, part);
		used += part;
		if (sftp->packet.length < needed)
			break;
		if (needed == 4)
			continue;
		if (!serve_packet(sftp))
			break;
		buffer_consume(&sftp->packet, sftp->packet.length);
	}
	return sftp->failed ? size : used;
}

static void
advance(struct sftp *sftp)
{
	struct sftp_file *file;

	for (file = sftp->files; file != NULL; file = file->next)
		sftp_answer_waits(file);
	(void)take(sftp, NULL, 0);
	channel_service_resume(sftp->channel);
	finish_if_done(sftp);
}

static void
ended(void *argument)
{
	struct sftp *sftp = argument;

	sftp->ended = true;
	finish_if_done(sftp);
}

static void
drained(void *argument)
{
	struct sftp *sftp = argument;

	if (sftp->output.length < SFTP_OUTPUT_HIGH)
		advance(sftp);
}

static void
close_sftp(void *argument)
{
	struct sftp *sftp = argument;
	size_t i;

	while (sftp->calls != NULL)
		sftp_call_free(sftp->calls);
	for (i = 0; i < SFTP_HANDLES_MAX; i++)
		if (sftp->handles[i] != NULL)
			sftp_drop_handle(sftp, sftp->handles[i]);
	buffer_free(&sftp->packet);
	buffer_free(&sftp->output);
	memory_free(sftp->root);
	memory_free(sftp);
}

static const struct service service = {
	.take = take,
	.ended = ended,
	.drained = drained,
	.close = close_sftp,
};

int
sftp_start(struct channel *channel)
{
	struct sftp *sftp;

	sftp = memory_zeroed(1, sizeof(*sftp));
	sftp->channel = channel;
	sftp->session = channel->session;
	buffer_init(&sftp->packet, SFTP_PACKET_MAX + 4);
	buffer_init(&sftp->output, OUTPUT_MAX);
	if (channel_serve(channel, &service, sftp, &sftp->output) == 0)
		return 0;
	close_sftp(sftp);
	return -1;
}
