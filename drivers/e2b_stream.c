/* SPDX-License-Identifier: ISC */
/* Started commands: the descriptors they are given, and their signals. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "core/pump.h"
#include "core/signal_name.h"
#include "drivers/connect.h"
#include "drivers/e2b_driver.h"

/* Bytes that wait for a reader; one event more may come on top. */
#define SINK_MAX 65536
#define SIGNAL_OUTPUT_MAX 1024

enum {
	SINK_OUTPUT,
	SINK_ERRORS,
	SINKS,
};

struct driver_stream {
	struct driver_stream *next;
	struct driver_sandbox *sandbox;
	struct driver_stream_events events;
	void *argument;
	struct e2b_process *process;
	struct e2b_input *input;
	struct pump_sink *sinks[SINKS];
	bool want_stdin, pty;
	bool has_ended, reported;
	bool is_known; /* how it ended; if not, err says why */
	struct driver_exit exit;
	struct error err;
};

static void
report_if_complete(struct driver_stream *stream)
{
	struct driver_exit exit = stream->exit;
	struct error err = stream->err;
	size_t i;

	if (!stream->has_ended || stream->reported)
		return;
	for (i = 0; i < SINKS; i++)
		if (stream->sinks[i] != NULL && !pump_sink_is_done(stream->sinks[i]))
			return;
	stream->reported = true;
	/* Copies: the stream is closed from within. */
	if (stream->is_known)
		stream->events.exited(stream->argument, &exit, NULL);
	else
		stream->events.exited(stream->argument, NULL, &err);
}

static void
sink_has_room(void *argument)
{
	struct driver_stream *stream = argument;

	if (stream->has_ended)
		report_if_complete(stream);
	else
		e2b_process_resume(stream->process);
}

static struct pump_sink *
sink_of(const struct driver_stream *stream, enum e2b_event_kind kind)
{
	return stream->sinks[kind == E2B_EVENT_ERRORS && !stream->pty ? SINK_ERRORS : SINK_OUTPUT];
}

static bool
process_has_room(void *argument, enum e2b_event_kind kind)
{
	struct driver_stream *stream = argument;

	return pump_sink_room(sink_of(stream, kind)) >= CONNECT_PAYLOAD_MAX;
}

static void
process_output(void *argument, enum e2b_event_kind kind, const unsigned char *data, size_t size)
{
	struct driver_stream *stream = argument;

	pump_sink_put(sink_of(stream, kind), data, size);
}

static void
process_gap(void *argument)
{
	struct driver_stream *stream = argument;

	if (stream->events.gap != NULL)
		stream->events.gap(stream->argument);
}

static void
process_ended(void *argument, const struct driver_exit *ended, const struct error *err)
{
	struct driver_stream *stream = argument;
	size_t i;

	stream->has_ended = true;
	stream->is_known = ended != NULL;
	if (ended != NULL)
		stream->exit = *ended;
	else
		stream->err = *err;
	e2b_input_free(stream->input);
	stream->input = NULL;
	for (i = 0; i < SINKS; i++)
		if (stream->sinks[i] != NULL)
			pump_sink_end(stream->sinks[i]);
	report_if_complete(stream);
}

static void
input_failed(void *argument, const struct error *err)
{
	struct driver_stream *stream = argument;

	e2b_process_fail(stream->process, err);
}

/* One output: a sink, and the reader's end of its pair. */
static int
open_sink(struct driver_stream *stream, int which, int *reader, struct error *err)
{
	int pair[2];

	if (descriptor_pair(pair, err) != 0)
		return -1;
	*reader = pair[0];
	stream->sinks[which] = pump_sink_new(stream->sandbox->context.loop, pair[1],
	    SINK_MAX + CONNECT_PAYLOAD_MAX, sink_has_room, stream);
	return 0;
}

static void
open_input(struct driver_stream *stream, uint32_t pid, int fd)
{
	struct e2b_input_setup setup = { 0 };

	setup.sandbox = stream->sandbox;
	setup.pid = pid;
	setup.pty = stream->pty;
	setup.source = fd;
	setup.failed = input_failed;
	setup.argument = stream;
	stream->input = e2b_input_new(&setup);
}

/* A terminal goes both ways over one pair, whose second end serves as sink and as source. */
static int
open_terminal(struct driver_stream *stream, uint32_t pid, struct driver_descriptors *descriptors,
    struct error *err)
{
	int pair[2], second;

	if (descriptor_pair(pair, err) != 0)
		return -1;
	descriptors->output = pair[0];
	stream->sinks[SINK_OUTPUT] = pump_sink_new(stream->sandbox->context.loop, pair[1],
	    SINK_MAX + CONNECT_PAYLOAD_MAX, sink_has_room, stream);
	second = fcntl(pair[1], F_DUPFD_CLOEXEC, 0);
	if (second < 0)
		return error_system(err, errno, "duplicate a descriptor");
	open_input(stream, pid, second);
	return 0;
}

static int
open_pipes(struct driver_stream *stream, uint32_t pid, struct driver_descriptors *descriptors,
    struct error *err)
{
	int pair[2];

	if (open_sink(stream, SINK_OUTPUT, &descriptors->output, err) != 0 ||
	    open_sink(stream, SINK_ERRORS, &descriptors->errors, err) != 0)
		return -1;
	if (!stream->want_stdin)
		return 0;
	if (descriptor_pair(pair, err) != 0)
		return -1;
	descriptors->input = pair[0];
	open_input(stream, pid, pair[1]);
	return 0;
}

static void
process_started(void *argument, uint32_t pid)
{
	struct driver_descriptors descriptors = { -1, -1, -1 };
	struct driver_stream *stream = argument;
	struct error err;
	int result;

	result = stream->pty ? open_terminal(stream, pid, &descriptors, &err)
			     : open_pipes(stream, pid, &descriptors, &err);
	if (result == 0) {
		stream->events.started(stream->argument, &descriptors, pid);
		return;
	}
	descriptor_close(&descriptors.input);
	descriptor_close(&descriptors.output);
	descriptor_close(&descriptors.errors);
	e2b_process_fail(stream->process, &err);
}

static const struct e2b_process_events process_events = {
	.started = process_started,
	.has_room = process_has_room,
	.output = process_output,
	.gap = process_gap,
	.ended = process_ended,
};

struct driver_stream *
e2b_start(struct driver_sandbox *sandbox, const struct driver_command *command,
    const struct driver_stream_events *events, void *argument)
{
	struct driver_stream *stream;

	stream = memory_zeroed(1, sizeof(*stream));
	stream->sandbox = sandbox;
	stream->events = *events;
	stream->argument = argument;
	stream->want_stdin = command->want_stdin;
	stream->pty = command->pty;
	stream->next = sandbox->streams;
	sandbox->streams = stream;
	stream->process = e2b_process_start(sandbox, command, &process_events, stream);
	return stream;
}

void
e2b_resize(struct driver_stream *stream, uint32_t columns, uint32_t rows, uint32_t x_pixels,
    uint32_t y_pixels)
{
	struct json_object *body, *pty, *size;
	uint32_t pid;

	(void)x_pixels;
	(void)y_pixels;
	pid = e2b_process_pid(stream->process);
	if (!stream->pty || pid == 0)
		return;
	size = json_object_new_object();
	json_object_object_add(
	    size, "cols", json_object_new_int64(columns > 65535 ? 65535 : columns));
	json_object_object_add(size, "rows", json_object_new_int64(rows > 65535 ? 65535 : rows));
	pty = json_object_new_object();
	json_object_object_add(pty, "size", size);
	body = e2b_select(pid);
	json_object_object_add(body, "pty", pty);
	e2b_chore(stream->sandbox, "process.Process/Update", body);
}

/* envd sends TERM and KILL; the rest is sent from within. */
static void
signal_within(struct driver_sandbox *sandbox, uint32_t pid, int number)
{
	char shell[] = "sh", flag[] = "-c", script[] = "kill -s \"$1\" \"$2\"", name[] = "signal";
	char *argv[7] = { shell, flag, script, name, NULL, NULL, NULL };

	if (signal_name(number) == NULL)
		return;
	argv[4] = memory_text(signal_name(number));
	argv[5] = memory_text_format("%u", pid);
	(void)e2b_run(sandbox, argv, NULL, 0, SIGNAL_OUTPUT_MAX, NULL, NULL);
	memory_free(argv[4]);
	memory_free(argv[5]);
}

void
e2b_signal(struct driver_stream *stream, int number)
{
	struct json_object *body;
	uint32_t pid;

	pid = e2b_process_pid(stream->process);
	if (pid == 0)
		return;
	if (number != SIGTERM && number != SIGKILL) {
		signal_within(stream->sandbox, pid, number);
		return;
	}
	body = e2b_select(pid);
	json_add_text(body, "signal", number == SIGTERM ? "SIGNAL_SIGTERM" : "SIGNAL_SIGKILL");
	e2b_chore(stream->sandbox, "process.Process/SendSignal", body);
}

void
e2b_close_stream(struct driver_stream *stream)
{
	struct driver_stream **place;
	size_t i;

	for (place = &stream->sandbox->streams; *place != stream; place = &(*place)->next)
		continue;
	*place = stream->next;
	e2b_input_free(stream->input);
	e2b_process_free(stream->process);
	for (i = 0; i < SINKS; i++)
		pump_sink_free(stream->sinks[i]);
	memory_free(stream);
}
