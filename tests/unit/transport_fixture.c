/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/descriptor.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/wrapped.h"
#include "tests/unit/transport_fixture.h"

#define PATIENCE 60000
#define CONTENT_MAX ((size_t)1024 * 1024)

struct transport_fixture transport_fixture;

/* Every value occurs, at no regular distance. */
static unsigned char
pattern(uint64_t offset)
{
	offset *= 0x9e3779b97f4a7c15U;
	return (unsigned char)(offset >> 56);
}

static int
open_with(void **state, const char *shell)
{
	char *link;

	memset(&transport_fixture, 0, sizeof(transport_fixture));
	transport_fixture.loop = loop_new(NULL);
	transport_fixture.directory = memory_text("/tmp/transport-XXXXXX");
	if (transport_fixture.loop == NULL || mkdtemp(transport_fixture.directory) == NULL)
		return -1;
	link = memory_text_format("%s/sh", transport_fixture.directory);
	if (symlink(shell, link) != 0)
		return -1;
	memory_free(link);
	transport_fixture.path = memory_text_format(
	    "%s:%s", transport_fixture.directory, getenv("PATH"));
	transport_fixture.sandbox.loop = transport_fixture.loop;
	transport_fixture.sandbox.path = transport_fixture.path;
	transport_fixture.input = transport_fixture.output.fd = transport_fixture.errors.fd = -1;
	*state = &transport_fixture;
	return 0;
}

int
transport_open_dash(void **state)
{
	return open_with(state, "/bin/dash");
}

int
transport_open_bash(void **state)
{
	return open_with(state, "/bin/bash");
}

int
transport_open_busybox(void **state)
{
	return open_with(state, "/bin/busybox");
}

static void
close_stream(struct transport_stream *stream)
{
	loop_unwatch(stream->watch);
	stream->watch = NULL;
	descriptor_close(&stream->fd);
	stream->ended = true;
}

void
transport_end_input(void)
{
	loop_unwatch(transport_fixture.input_watch);
	transport_fixture.input_watch = NULL;
	descriptor_close(&transport_fixture.input);
}

void
transport_forget_command(void)
{
	if (transport_fixture.wrapped != NULL)
		wrapped_close(transport_fixture.wrapped);
	transport_fixture.wrapped = NULL;
	transport_end_input();
	close_stream(&transport_fixture.output);
	close_stream(&transport_fixture.errors);
	buffer_free(&transport_fixture.output.content);
	buffer_free(&transport_fixture.errors.content);
	transport_fixture.started = transport_fixture.exited = transport_fixture.gone =
	    transport_fixture.unknown = false;
}

int
transport_close_all(void **state)
{
	char *link;

	(void)state;
	transport_forget_command();
	pty_driver_close(&transport_fixture.sandbox);
	link = memory_text_format("%s/sh", transport_fixture.directory);
	(void)unlink(link);
	(void)rmdir(transport_fixture.directory);
	memory_free(link);
	memory_free(transport_fixture.directory);
	memory_free(transport_fixture.path);
	loop_free(transport_fixture.loop);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
	return 0;
}

static void
stream_ready(void *argument, unsigned events)
{
	static unsigned char chunk[65536];
	struct transport_stream *stream = argument;
	size_t room;
	ssize_t got, i;

	(void)events;
	got = read(stream->fd, chunk, sizeof(chunk));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		close_stream(stream);
		return;
	}
	for (i = 0; i < got && !stream->differs; i++)
		stream->differs = chunk[i] != pattern(stream->size + (uint64_t)i);
	stream->size += (uint64_t)got;
	room = buffer_room(&stream->content);
	(void)buffer_append(&stream->content, chunk, room < (size_t)got ? room : (size_t)got);
}

static void
watch_stream(struct transport_stream *stream)
{
	if (stream->fd >= 0 && stream->watch == NULL)
		stream->watch = loop_watch(
		    transport_fixture.loop, stream->fd, LOOP_READ, stream_ready, stream);
}

static void
input_ready(void *argument, unsigned events)
{
	unsigned char chunk[65536];
	ssize_t written;
	uint64_t i;

	(void)argument;
	(void)events;
	for (i = 0; i < sizeof(chunk) && transport_fixture.sent + i < transport_fixture.to_send;
	     i++)
		chunk[i] = pattern(transport_fixture.sent + i);
	if (i == 0) {
		transport_end_input();
		return;
	}
	written = write(transport_fixture.input, chunk, i);
	if (written > 0)
		transport_fixture.sent += (uint64_t)written;
	else if (written < 0 && errno == EPIPE)
		transport_end_input();
}

static void
command_started(void *argument, const struct driver_descriptors *descriptors, uint32_t pid)
{
	(void)argument;
	(void)pid;
	transport_fixture.started = true;
	transport_fixture.output.fd = descriptors->output;
	transport_fixture.errors.fd = descriptors->errors;
	transport_fixture.input = descriptors->input;
	assert_int_equal(descriptor_nonblock(descriptors->output, NULL), 0);
	if (transport_fixture.input >= 0)
		assert_int_equal(descriptor_nonblock(transport_fixture.input, NULL), 0);
	if (transport_fixture.to_send > 0)
		transport_fixture.input_watch = loop_watch(
		    transport_fixture.loop, transport_fixture.input, LOOP_WRITE, input_ready, NULL);
}

static void
command_exited(void *argument, const struct driver_exit *ended, const struct error *err)
{
	(void)argument;
	assert_false(transport_fixture.exited);
	transport_fixture.exited = true;
	transport_fixture.unknown = ended == NULL;
	if (ended != NULL)
		transport_fixture.ended = *ended;
	else
		transport_fixture.failure = *err;
}

static void
command_gone(void *argument)
{
	(void)argument;
	transport_fixture.gone = true;
}

static const struct driver_stream_events events = {
	.started = command_started,
	.exited = command_exited,
	.gone = command_gone,
};

static void
start_command(const struct driver_command *command)
{
	struct wrapped_setup setup = { .loop = transport_fixture.loop,
		.driver = &pty_driver,
		.sandbox = &transport_fixture.sandbox,
		.directory = -1,
		.id = "test" };

	transport_fixture.sent = 0;
	buffer_init(&transport_fixture.output.content, CONTENT_MAX);
	buffer_init(&transport_fixture.errors.content, CONTENT_MAX);
	transport_fixture.output.size = transport_fixture.errors.size = 0;
	transport_fixture.output.ended = transport_fixture.output.differs = false;
	transport_fixture.errors.ended = command->pty;
	transport_fixture.wrapped = wrapped_start(&setup, command, &events, NULL);
}

void
transport_start_script(const char *script, uint64_t to_send, bool keep_input)
{
	char shell[] = "sh", flag[] = "-c", *text = memory_text(script);
	char *argv[] = { shell, flag, text, NULL };
	struct driver_command command = { .argv = argv, .directory = "/", .kill_grace = 1000 };

	transport_fixture.to_send = to_send;
	command.want_stdin = to_send > 0 || keep_input;
	start_command(&command);
	memory_free(text);
}

void
transport_dispatch(const bool *flag)
{
	int64_t until;

	until = loop_now() + PATIENCE;
	while (!*flag) {
		if (loop_now() > until)
			fail_msg("waited in vain");
		assert_int_equal(loop_dispatch(transport_fixture.loop, 1000, NULL), 0);
	}
}

void
transport_finish_command(void)
{
	transport_dispatch(&transport_fixture.started);
	watch_stream(&transport_fixture.output);
	watch_stream(&transport_fixture.errors);
	transport_dispatch(&transport_fixture.exited);
	transport_dispatch(&transport_fixture.output.ended);
	transport_dispatch(&transport_fixture.errors.ended);
}

const char *
transport_text_of(struct transport_stream *stream)
{
	unsigned char *end;

	end = buffer_reserve(&stream->content, 1);
	assert_non_null(end);
	*end = '\0';
	return (const char *)buffer_data(&stream->content);
}

void
transport_expect_text(struct transport_stream *stream, const char *text)
{
	int64_t until;

	transport_dispatch(&transport_fixture.started);
	watch_stream(stream);
	until = loop_now() + PATIENCE;
	while (strstr(transport_text_of(stream), text) == NULL) {
		if (loop_now() > until || stream->ended)
			fail_msg("no \"%s\" in \"%s\"", text, transport_text_of(stream));
		assert_int_equal(loop_dispatch(transport_fixture.loop, 1000, NULL), 0);
	}
}

void
transport_expect_run(const char *script, const char *output, int status)
{
	transport_start_script(script, 0, false);
	transport_finish_command();
	if (transport_fixture.unknown)
		fail_msg("%s", transport_fixture.failure.message);
	assert_string_equal(transport_text_of(&transport_fixture.output), output);
	assert_false(transport_fixture.ended.signaled);
	assert_int_equal(transport_fixture.ended.status, status);
	transport_forget_command();
}

void
transport_type(int fd, const char *text)
{
	assert_int_equal(descriptor_write(fd, text, strlen(text), NULL), 0);
}

void
transport_start_terminal(const char *script)
{
	char shell[] = "sh", flag[] = "-c", *text = memory_text(script);
	char *argv[] = { shell, flag, text, NULL };
	struct driver_command command = { .argv = argv,
		.directory = "/",
		.want_stdin = true,
		.pty = true,
		.term = "xterm",
		.columns = 91,
		.rows = 37 };

	transport_fixture.to_send = 0;
	start_command(&command);
	memory_free(text);
}
