/* SPDX-License-Identifier: ISC */
/*
 * scp's old protocol, so that it needs no scp in the sandbox. One thing at a time is under way, as
 * the protocol has it: a line, the content of a file, or an answer of either side.
 */
#include <string.h>

#include "core/base/descriptor.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "gateway/channel.h"
#include "gateway/scp.h"
#include "gateway/scp_state.h"
#include "gateway/service.h"
#include "gateway/session_files.h"

#define STATUS_BYTE_OK '\0'
#define STATUS_BYTE_WARNING '\1'
#define STATUS_BYTE_FATAL '\2'

struct question {
	struct scp *scp;
	scp_reply_fn *done;
};

void
scp_put_byte(struct scp *scp, char byte)
{
	(void)buffer_append(&scp->output, &byte, 1);
}

void
scp_warn(struct scp *scp, const struct error *err)
{
	char *line, *c;

	scp->failed = true;
	/* A client that does not read its errors gets no more of them. */
	if (scp->output.length >= SCP_OUTPUT_HIGH)
		return;
	line = memory_text_format("\1scp: %s: %s", error_kind(err->code)->name, err->message);
	/* It is one line. */
	for (c = line; *c != '\0'; c++)
		if (*c == '\n' || *c == '\r')
			*c = '?';
	(void)buffer_append_format(&scp->output, "%s\n", line);
	memory_free(line);
}

void
scp_finish(struct scp *scp)
{
	scp->stage = SCP_DONE;
	channel_service_end(scp->channel, scp->failed ? 1 : 0);
}

void
scp_abort(struct scp *scp, const char *text)
{
	struct error err;

	error_set(&err, ERROR_INVALID, "%s", text);
	log_info("scp: %s", text);
	scp_warn(scp, &err);
	scp_finish(scp);
}

void
scp_log(const struct scp *scp, const char *what, const char *path, uint64_t bytes,
    const struct error *err)
{
	(void)scp;
	if (err == NULL)
		log_info("scp: %s %s, %llu bytes", what, path, (unsigned long long)bytes);
	else
		log_info(
		    "scp: %s %s: %s: %s", what, path, error_kind(err->code)->name, err->message);
}

static void
reply_came(void *argument, struct file_reply *reply, const struct error *err)
{
	struct question *question = argument;
	struct scp *scp = question->scp;
	scp_reply_fn *done = question->done;

	/* More replies come only to OPEN, whose bytes are still arriving. */
	if (err == NULL && reply->more) {
		scp->arrival = scp->request;
		done(scp, reply, NULL);
		return;
	}
	memory_free(question);
	scp->request = NULL;
	scp->arrival = NULL;
	done(scp, reply, err);
	channel_service_resume(scp->channel);
}

void
scp_ask(struct scp *scp, struct file_request *request, scp_reply_fn *done)
{
	struct question *question;

	question = memory_zeroed(1, sizeof(*question));
	question->scp = scp;
	question->done = done;
	scp->question = question;
	scp->stage = SCP_BUSY;
	scp->request = session_file_start(scp->session, request, reply_came, question);
	file_request_free(request);
}

void
scp_cancel(struct scp *scp)
{
	if (scp->request == NULL)
		return;
	session_file_cancel(scp->request);
	memory_free(scp->question);
	scp->request = scp->arrival = NULL;
}

void
scp_item_free(struct scp_item *item)
{
	descriptor_close(&item->fd);
	memory_free(item->path);
	memset(item, 0, sizeof(*item));
	item->fd = -1;
}

void
scp_level_pop(struct scp *scp)
{
	struct scp_level *level = &scp->levels[--scp->depth];

	file_list_free(level->list);
	memory_free(level->path);
	memset(level, 0, sizeof(*level));
}

/*
 * A byte that says how it went, with a line behind it when it did not go well. True when complete.
 */
static bool
take_status(struct scp *scp, const char *text, size_t length, bool complete)
{
	if (length == 0)
		return false;
	if (text[0] == STATUS_BYTE_OK)
		return true;
	if (!complete)
		return false;
	log_info("scp: the client says: %.*s", (int)length - 1, text + 1);
	scp->failed = true;
	return true;
}

static void
line_complete(struct scp *scp)
{
	char *text;

	text = memory_text_bounded(buffer_data(&scp->line), scp->line.length);
	buffer_consume(&scp->line, scp->line.length);
	if (text[0] == STATUS_BYTE_FATAL) {
		log_info("scp: the client gave up: %s", text + 1);
		scp->failed = true;
		scp_finish(scp);
	} else if (text[0] == STATUS_BYTE_WARNING) {
		/* What the client could not read; it goes on with the next. */
		log_info("scp: the client says: %s", text + 1);
		scp->failed = true;
	} else {
		scp_sink_take_line(scp, text);
	}
	memory_free(text);
}

/* Takes one byte of a line or of a status. */
static void
take_byte(struct scp *scp, unsigned char byte)
{
	bool ok;

	if (byte == '\0' && scp->stage == SCP_LINE) {
		scp_abort(scp, "a control line with a NUL byte");
		return;
	}
	if (byte != '\n' && buffer_append(&scp->line, &byte, 1) != 0) {
		scp_abort(scp, "a control line is too long");
		return;
	}
	if (scp->stage == SCP_LINE) {
		if (byte == '\n')
			line_complete(scp);
		return;
	}
	if (!take_status(
		scp, (const char *)buffer_data(&scp->line), scp->line.length, byte == '\n'))
		return;
	ok = *buffer_data(&scp->line) == STATUS_BYTE_OK;
	buffer_consume(&scp->line, scp->line.length);
	if (scp->command.sink)
		scp_sink_take_status(scp, ok);
	else
		scp_source_take_status(scp, ok);
}

static size_t
take(void *argument, const unsigned char *data, size_t size)
{
	struct scp *scp = argument;
	size_t used = 0, part;
	uint64_t left;

	while (used < size && scp->stage != SCP_BUSY && scp->stage != SCP_DONE) {
		if (scp->stage == SCP_DATA && !scp->command.sink) {
			/*
			 * Nothing is to be said while a file is being sent;
			 * whoever does is not listened to.
			 */
			used = size;
		} else if (scp->stage == SCP_DATA) {
			left = scp->item.size - scp->item.at;
			part = left < size - used ? (size_t)left : size - used;
			scp_sink_take_data(scp, data + used, part);
			used += part;
		} else {
			take_byte(scp, data[used++]);
		}
	}
	return scp->stage == SCP_DONE ? size : used;
}

/*
 * The client has said all: for a sink that is the end, for a source it means that nobody listens.
 */
static void
ended(void *argument)
{
	struct scp *scp = argument;

	if (scp->stage == SCP_DONE)
		return;
	if (!scp->command.sink || scp->stage != SCP_LINE || scp->line.length > 0)
		scp->failed = true;
	scp_finish(scp);
}

static void
drained(void *argument)
{
	struct scp *scp = argument;

	if (scp->stage == SCP_DATA && !scp->command.sink)
		scp_source_send_data(scp);
}

static void
close_scp(void *argument)
{
	struct scp *scp = argument;

	scp_cancel(scp);
	while (scp->depth > 0)
		scp_level_pop(scp);
	scp_item_free(&scp->item);
	file_list_free(scp->matches);
	memory_free(scp->matches_base);
	scp_command_free(&scp->command);
	buffer_free(&scp->line);
	buffer_free(&scp->output);
	memory_free(scp);
}

static const struct service service = {
	.take = take,
	.ended = ended,
	.drained = drained,
	.close = close_scp,
};

int
scp_start(struct channel *channel, struct scp_command *command)
{
	struct scp *scp;

	scp = memory_zeroed(1, sizeof(*scp));
	scp->channel = channel;
	scp->session = channel->session;
	scp->command = *command;
	memset(command, 0, sizeof(*command));
	scp->item.fd = -1;
	buffer_init(&scp->line, SCP_LINE_MAX);
	buffer_init(&scp->output, SCP_OUTPUT_MAX);
	if (channel_serve(channel, &service, scp, &scp->output) != 0) {
		close_scp(scp);
		return -1;
	}
	if (scp->command.sink)
		scp_sink_start(scp);
	else
		scp_source_start(scp);
	return 0;
}
