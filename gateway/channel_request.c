/* SPDX-License-Identifier: ISC */
/* What a client asks for on a session channel: libssh's callbacks (RFC 4254 section 6). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/signal_name.h"
#include "gateway/channel.h"
#include "gateway/scp.h"
#include "gateway/scp_command.h"
#include "gateway/session_state.h"
#include "gateway/sftp.h"

#define ENVIRONMENT_MAX 256
/* Of all entries of a channel; with the command it must fit into one message. */
#define ENVIRONMENT_SIZE_MAX 131072
#define TERM_MAX 256
#define COMMAND_MAX 262144
/* Lines of the log for what is refused to one client, which may ask without end. */
#define REFUSALS_LOGGED 10

static int
request_pty(ssh_session ssh, ssh_channel ssh_channel, const char *term, int columns, int rows,
    int x_pixels, int y_pixels, void *argument)
{
	struct channel *channel = argument;

	(void)ssh;
	(void)ssh_channel;
	if (channel->stage != CHANNEL_IDLE || channel->pty || channel->session->no_pty ||
	    (term != NULL && strlen(term) > TERM_MAX))
		return -1;
	channel->pty = true;
	channel->term = memory_text(term == NULL ? "" : term);
	channel->columns = (uint32_t)columns;
	channel->rows = (uint32_t)rows;
	channel->x_pixels = (uint32_t)x_pixels;
	channel->y_pixels = (uint32_t)y_pixels;
	return 0;
}

static int
request_environment(
    ssh_session ssh, ssh_channel ssh_channel, const char *name, const char *value, void *argument)
{
	struct channel *channel = argument;
	size_t size;
	char *entry;

	(void)ssh;
	(void)ssh_channel;
	size = strlen(name) + strlen(value);
	if (channel->stage != CHANNEL_IDLE || channel->environment_count == ENVIRONMENT_MAX ||
	    *name == '\0' || strchr(name, '=') != NULL ||
	    size > ENVIRONMENT_SIZE_MAX - channel->environment_size)
		return 1;
	channel->environment_size += size;
	entry = memory_text_format("%s=%s", name, value);
	channel->environment = memory_list_add(
	    channel->environment, channel->environment_count++, entry);
	memory_free(entry);
	return 0;
}

/* Asks the worker for a command; -1 when there is one already, or no worker. */
static int
start_command(struct channel *channel, enum command_kind kind, const char *text)
{
	struct session *session = channel->session;
	struct command_start start = { 0 };
	struct message message;

	if (channel->stage != CHANNEL_IDLE || session->draining ||
	    (text != NULL && strlen(text) > COMMAND_MAX))
		return -1;
	channel->command = ++session->last_command;
	channel->kind = kind == COMMAND_EXEC    ? CHANNEL_KIND_EXEC
			: kind == COMMAND_SHELL ? CHANNEL_KIND_SHELL
						: CHANNEL_KIND_RWS;
	channel->stage = CHANNEL_STARTING;
	start.id = channel->command;
	start.kind = kind;
	start.command = text == NULL ? NULL : memory_text(text);
	start.environment = memory_list(channel->environment);
	start.pty = channel->pty;
	start.term = channel->pty ? memory_text(channel->term) : NULL;
	start.columns = channel->columns;
	start.rows = channel->rows;
	start.x_pixels = channel->x_pixels;
	start.y_pixels = channel->y_pixels;
	command_start_encode(&message, &start);
	command_start_free(&start);
	session_send_worker(session, &message);
	return 0;
}

/* Both as libssh's callbacks want it: 0, or 1 to refuse. */
static int
start_sftp(struct channel *channel)
{
	if (sftp_start(channel) != 0)
		return 1;
	channel->kind = CHANNEL_KIND_SFTP;
	return 0;
}

static int
start_scp(struct channel *channel, struct scp_command *copy)
{
	if (scp_start(channel, copy) != 0)
		return 1;
	channel->kind = CHANNEL_KIND_SCP;
	return 0;
}

static int
request_shell(ssh_session ssh, ssh_channel ssh_channel, void *argument)
{
	struct channel *channel = argument;

	(void)ssh;
	(void)ssh_channel;
	if (channel->session->forced == FORCED_SFTP)
		return start_sftp(channel);
	return start_command(channel, COMMAND_SHELL, NULL) == 0 ? 0 : 1;
}

static int
request_exec(ssh_session ssh, ssh_channel ssh_channel, const char *command, void *argument)
{
	struct channel *channel = argument;
	struct scp_command copy;

	(void)ssh;
	(void)ssh_channel;
	if (channel->session->forced == FORCED_SFTP)
		return start_sftp(channel);
	/* On a pty the bytes of the protocol would not come through; there it is only a command. */
	if (channel->session->forced == FORCED_NONE && !channel->pty &&
	    scp_command_parse(command, &copy))
		return start_scp(channel, &copy);
	return start_command(channel, COMMAND_EXEC, command) == 0 ? 0 : 1;
}

void
channel_log_refusal(struct session *session, const char *format, ...)
{
	va_list arguments;
	char text[200];

	if (session->refusals == REFUSALS_LOGGED)
		return;
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	session->refusals++;
	log_info("%s%s", text,
	    session->refusals == REFUSALS_LOGGED ? "; no more of this is told of this connection"
						 : "");
}

static int
request_subsystem(ssh_session ssh, ssh_channel ssh_channel, const char *name, void *argument)
{
	struct channel *channel = argument;

	(void)ssh;
	(void)ssh_channel;
	if (strcmp(name, "sftp") == 0 && channel->session->forced != FORCED_COMMAND)
		return start_sftp(channel);
	/* A key's forced command takes its place, as in sshd; the worker sees to that. */
	if (strcmp(name, "rws") == 0 && channel->session->forced != FORCED_SFTP)
		return start_command(channel, COMMAND_RWS, NULL) == 0 ? 0 : 1;
	channel_log_refusal(channel->session, "there is no subsystem %s for this key", name);
	return 1;
}

static int
request_resize(ssh_session ssh, ssh_channel ssh_channel, int columns, int rows, int x_pixels,
    int y_pixels, void *argument)
{
	struct channel *channel = argument;
	struct command_resize resize = { 0 };
	struct message message;

	(void)ssh;
	(void)ssh_channel;
	if (!channel->pty || channel->stage == CHANNEL_CLOSED)
		return 1;
	channel->columns = resize.columns = (uint32_t)columns;
	channel->rows = resize.rows = (uint32_t)rows;
	channel->x_pixels = resize.x_pixels = (uint32_t)x_pixels;
	channel->y_pixels = resize.y_pixels = (uint32_t)y_pixels;
	if (channel->stage == CHANNEL_IDLE)
		return 0;
	resize.id = channel->command;
	command_resize_encode(&message, &resize);
	session_send_worker(channel->session, &message);
	return 0;
}

void
channel_signal(struct channel *channel, const char *name)
{
	struct command_signal request = { 0 };
	struct message message;

	if (channel->stage != CHANNEL_STARTING && channel->stage != CHANNEL_RUNNING)
		return;
	if (signal_number(name) == 0) {
		log_debug("unknown signal %s", name);
		return;
	}
	request.id = channel->command;
	request.name = memory_text(name);
	command_signal_encode(&message, &request);
	command_signal_free(&request);
	session_send_worker(channel->session, &message);
}

static void
request_signal(ssh_session ssh, ssh_channel ssh_channel, const char *name, void *argument)
{
	(void)ssh;
	(void)ssh_channel;
	channel_signal(argument, name);
}

static void
channel_eof(ssh_session ssh, ssh_channel ssh_channel, void *argument)
{
	struct channel *channel = argument;

	(void)ssh;
	(void)ssh_channel;
	channel->input_eof = true;
}

static void
channel_closed(ssh_session ssh, ssh_channel ssh_channel, void *argument)
{
	struct channel *channel = argument;

	(void)ssh;
	(void)ssh_channel;
	channel->stage = CHANNEL_CLOSED;
	channel->left = true;
}

void
channel_set_callbacks(struct channel *channel)
{
	channel->callbacks.userdata = channel;
	channel->callbacks.channel_data_function = channel_data;
	channel->callbacks.channel_eof_function = channel_eof;
	channel->callbacks.channel_close_function = channel_closed;
	channel->callbacks.channel_signal_function = request_signal;
	channel->callbacks.channel_pty_request_function = request_pty;
	channel->callbacks.channel_shell_request_function = request_shell;
	channel->callbacks.channel_exec_request_function = request_exec;
	channel->callbacks.channel_env_request_function = request_environment;
	channel->callbacks.channel_subsystem_request_function = request_subsystem;
	channel->callbacks.channel_pty_window_change_function = request_resize;
	ssh_callbacks_init(&channel->callbacks);
}
