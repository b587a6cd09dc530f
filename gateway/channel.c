/* SPDX-License-Identifier: ISC */
/*
 * Session channels: their opening, the command or service behind each, and the end: all data, then
 * exit-status or exit-signal, EOF and CLOSE, once. What the client asks for is in
 * channel_request.c.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "core/signal_name.h"
#include "gateway/channel.h"
#include "gateway/service.h"
#include "gateway/session_state.h"

#define STATUS_FAILED 255
/* ms without a channel after which a connection that stays gives back what it can. */
#define REST_WAIT 1000
/*
 * More than libssh's buffer of a channel may hold before the connection is cut (channel_stream.c).
 */
#define HELD_MAX (6U * 1024U * 1024U)

int
channel_serve(
    struct channel *channel, const struct service *service, void *argument, struct buffer *output)
{
	if (channel->stage != CHANNEL_IDLE || channel->session->draining)
		return -1;
	channel->service = service;
	channel->service_argument = argument;
	channel->service_output = output;
	channel->input.ready = true;
	channel->stage = CHANNEL_RUNNING;
	return 0;
}

void
channel_service_resume(struct channel *channel)
{
	channel->input.ready = true;
}

void
channel_service_end(struct channel *channel, uint32_t status)
{
	channel->has_ended = true;
	channel->ended.status = status;
	channel->input.ended = true;
}

void
channel_service_fail(struct channel *channel, const struct error *err)
{
	if (channel->has_ended)
		return;
	channel_service_end(channel, STATUS_FAILED);
	channel->ended.failed = true;
	channel->ended.failure = *err;
}

static void
init_stream(struct stream *stream, struct channel *channel)
{
	stream->channel = channel;
	stream->fd = -1;
}

ssh_channel
channel_open(ssh_session ssh, void *argument)
{
	struct session *session = argument;
	struct channel *channel;

	if (session->channel_count >= session->start.max_channels || session->draining) {
		channel_log_refusal(
		    session, "a channel was refused: %u are open", session->channel_count);
		return NULL;
	}
	channel = memory_zeroed(1, sizeof(*channel));
	channel->ssh = ssh_channel_new(ssh);
	if (channel->ssh == NULL) {
		memory_free(channel);
		return NULL;
	}
	channel->session = session;
	channel->number = ++session->last_channel;
	channel->since = (int64_t)time(NULL);
	channel->window = CHANNEL_WINDOW;
	init_stream(&channel->input, channel);
	init_stream(&channel->output, channel);
	init_stream(&channel->errors, channel);
	buffer_init(&channel->input_held, HELD_MAX);
	buffer_init(&channel->output_held, HELD_MAX);
	channel->quiet = loop_timer_new(session->loop, channel_quiet_expired, channel);
	channel_set_callbacks(channel);
	if (ssh_set_channel_callbacks(channel->ssh, &channel->callbacks) != SSH_OK)
		log_error("cannot set the callbacks of a channel: %s", ssh_get_error(ssh));
	channel->next = session->channels;
	session->channels = channel;
	session->channel_count++;
	return channel->ssh;
}

/* Tells the worker that the client has no more interest: what still runs is ended. */
static void
release_command(struct channel *channel)
{
	struct message message;

	if (channel->command == 0 || channel->session->worker == NULL)
		return;
	command_id_encode(&message, MESSAGE_COMMAND_CLOSE, channel->command);
	peer_send(channel->session->worker, &message);
}

/* Ends what runs on the channel, and sends our CLOSE. */
static void
end_channel(struct channel *channel)
{
	channel->stage = CHANNEL_CLOSED;
	release_command(channel);
	if (channel->service != NULL)
		channel->service->close(channel->service_argument);
	stream_close(&channel->input);
	stream_close(&channel->output);
	stream_close(&channel->errors);
	/* The first call may only get as far as EOF: see ssh_channel_close in libssh 0.10. */
	if (ssh_channel_close(channel->ssh) != SSH_OK)
		(void)ssh_channel_close(channel->ssh);
	loop_timer_free(channel->quiet);
	buffer_free(&channel->input_held);
	buffer_free(&channel->output_held);
	command_exit_free(&channel->ended);
	memory_list_free(channel->environment);
	memory_free(channel->term);
}

/* libssh forgets the channel now when the client has closed it, else when it does. */
static void
forget_channel(struct channel *channel)
{
	(void)ssh_remove_channel_callbacks(channel->ssh, &channel->callbacks);
	ssh_channel_free(channel->ssh);
	if (--channel->session->channel_count == 0)
		loop_timer_start(channel->session->rest, REST_WAIT);
	memory_free(channel);
}

/* A line of ours for stderr. Providers have their words in it, and it goes to a terminal. */
static void
say_line(struct channel *channel, const char *kind, const char *words)
{
	char plain[2 * ERROR_MESSAGE_MAX];
	char *line;

	(void)log_escape(plain, sizeof(plain), words, false);
	line = memory_text_format("rws: %s%s%s%s\n", kind == NULL ? "" : kind,
	    kind == NULL ? "" : ": ", plain, channel->pty ? "\r" : "");
	channel_say(channel, line);
	memory_free(line);
}

/* The last words, once everything before them was sent. True when there were any. */
static bool
say_last_words(struct channel *channel)
{
	if (channel->note_sent)
		return false;
	channel->note_sent = true;
	if (channel->ended.failed)
		say_line(channel, error_kind(channel->ended.failure.code)->name,
		    channel->ended.failure.message);
	else if (channel->ended.note != NULL)
		say_line(channel, NULL, channel->ended.note);
	else
		return false;
	return true;
}

/* RFC 4254 section 6.10: exactly one of exit-status and exit-signal, then EOF, then CLOSE. */
static void
send_end(struct channel *channel)
{
	const char *name;

	name = channel->ended.signaled ? signal_name((int)channel->ended.status) : NULL;
	if (name != NULL)
		(void)ssh_channel_request_send_exit_signal(
		    channel->ssh, name, channel->ended.core ? 1 : 0, "", "");
	else
		(void)ssh_channel_request_send_exit_status(
		    channel->ssh, (int)channel->ended.status);
	log_debug("command %u ended: %s %u", channel->command,
	    channel->ended.signaled ? "signal" : "status", channel->ended.status);
	channel->stage = CHANNEL_CLOSED;
}

/* Sends the end once all output is on its way; true when something was written. */
static bool
finish(struct channel *channel)
{
	if (!channel->has_ended || channel->stage == CHANNEL_CLOSED ||
	    channel->output_held.length > 0 || channel->output.fd >= 0 || channel->errors.fd >= 0 ||
	    (channel->service != NULL && channel->service_output->length > 0))
		return false;
	if (say_last_words(channel))
		return true;
	send_end(channel);
	return true;
}

/*
 * Until the client closes a channel it can send data on it, which libssh keeps. So the channel
 * counts until then, and what waits in it is held to its window as before.
 */
static void
forget_closed(struct session *session)
{
	struct channel **place, *channel;

	place = &session->closing;
	while ((channel = *place) != NULL) {
		if (channel->left) {
			*place = channel->next;
			forget_channel(channel);
		} else {
			place = &channel->next;
		}
	}
}

bool
channels_advance(struct session *session)
{
	struct channel **place, *channel;
	bool moved;

	moved = false;
	place = &session->channels;
	while ((channel = *place) != NULL) {
		if (channel->stage != CHANNEL_CLOSED && channel_stream_advance(channel))
			moved = true;
		if (finish(channel))
			moved = true;
		if (channel->stage == CHANNEL_CLOSED) {
			*place = channel->next;
			end_channel(channel);
			channel->next = session->closing;
			session->closing = channel;
		} else {
			place = &channel->next;
		}
	}
	forget_closed(session);
	return moved;
}

void
channels_watch(struct session *session)
{
	struct channel *channel;

	for (channel = session->channels; channel != NULL; channel = channel->next)
		channel_stream_watch(channel);
}

void
channels_free(struct session *session)
{
	struct channel *channel;

	while ((channel = session->channels) != NULL) {
		session->channels = channel->next;
		end_channel(channel);
		forget_channel(channel);
	}
	while ((channel = session->closing) != NULL) {
		session->closing = channel->next;
		forget_channel(channel);
	}
}

static void
fail_channel(struct channel *channel, const struct error *err)
{
	if (channel->service != NULL)
		channel_service_fail(channel, err);
	if (channel->command == 0 || channel->has_ended)
		return;
	channel->has_ended = true;
	channel->ended.failed = true;
	channel->ended.failure = *err;
	channel->ended.status = STATUS_FAILED;
	/* Nothing more can be known of the streams; what is in them is still shown. */
	channel->output.ready = channel->errors.ready = true;
	channel->stage = CHANNEL_RUNNING;
	channel->input.ended = channel->input.fd < 0;
}

void
channels_fail(struct session *session, const struct error *err)
{
	struct channel *channel;

	for (channel = session->channels; channel != NULL; channel = channel->next)
		fail_channel(channel, err);
}

void
channels_announce(struct session *session, const char *text)
{
	struct channel *channel;

	for (channel = session->channels; channel != NULL; channel = channel->next)
		if (channel->pty && channel->command != 0)
			channel_say(channel, text);
}

static struct channel *
find_channel(struct session *session, uint32_t command)
{
	struct channel *channel;

	for (channel = session->channels; channel != NULL; channel = channel->next)
		if (channel->command == command && channel->stage != CHANNEL_CLOSED)
			return channel;
	return NULL;
}

/* A pty's one descriptor serves both directions; each is watched by itself. */
static void
open_terminal(struct channel *channel, int fd)
{
	int duplicate;

	duplicate = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	stream_open(&channel->output, fd);
	if (duplicate >= 0)
		stream_open(&channel->input, duplicate);
	else
		channel->input.ended = true;
}

int
channel_take_stream(void *argument, struct message *message, struct error *err)
{
	struct session *session = argument;
	struct command_stream stream;
	struct channel *channel;
	struct error failure;

	if (command_stream_decode(message, &stream, err) != 0)
		return -1;
	channel = find_channel(session, stream.id);
	if (channel == NULL || channel->has_ended) {
		/* The client closed the channel meanwhile, or it has failed. */
		descriptor_close(&stream.fd);
		return 0;
	}
	if (stream.fd < 0) {
		error_set(&failure, ERROR_UNAVAILABLE, "too many descriptors are open");
		fail_channel(channel, &failure);
		return 0;
	}
	channel->max_stream = stream.max_stream;
	if (stream.kind == COMMAND_TERMINAL)
		open_terminal(channel, stream.fd);
	else if (stream.kind == COMMAND_INPUT)
		stream_open(&channel->input, stream.fd);
	else if (stream.kind == COMMAND_OUTPUT)
		stream_open(&channel->output, stream.fd);
	else
		stream_open(&channel->errors, stream.fd);
	if (stream.last) {
		channel->stage = CHANNEL_RUNNING;
		channel->input.ended = channel->input.fd < 0;
	}
	return 0;
}

int
channel_take_progress(void *argument, struct message *message, struct error *err)
{
	struct command_progress progress;
	struct channel *channel;

	if (command_progress_decode(message, &progress, err) != 0)
		return -1;
	channel = find_channel(argument, progress.id);
	if (channel != NULL && channel->pty)
		say_line(channel, NULL, progress.text);
	command_progress_free(&progress);
	return 0;
}

int
channel_take_exit(void *argument, struct message *message, struct error *err)
{
	struct command_exit ended;
	struct channel *channel;

	if (command_exit_decode(message, &ended, err) != 0)
		return -1;
	channel = find_channel(argument, ended.id);
	if (channel == NULL || channel->has_ended) {
		command_exit_free(&ended);
		return 0;
	}
	channel->ended = ended;
	channel->has_ended = true;
	channel->stage = CHANNEL_RUNNING;
	channel->input.ended = channel->input.fd < 0;
	if (ended.failed)
		channel->ended.status = STATUS_FAILED;
	/* What is left in the streams is read to its end, and then the end is sent. */
	channel->output.ready = channel->errors.ready = true;
	return 0;
}
