/* SPDX-License-Identifier: ISC */
/* A command on a terminal: it is told to it, and what it writes is its own from the first byte. */
#include <string.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/pump.h"
#include "drivers/terminal.h"

/* Bytes that wait for the reader, and from the writer. */
#define OUTPUT_MAX ((size_t)1024 * 1024)
#define OUTPUT_HOLD ((size_t)512 * 1024)
#define INPUT_MAX ((size_t)64 * 1024)
/* What Linux takes as one argument, and in all. */
#define WORD_MAX ((size_t)128 * 1024)
#define LAUNCH_MAX ((size_t)2 * 1024 * 1024)

struct driver_stream {
	struct driver_stream *next;
	struct terminal_pool *pool;
	const struct driver_stream_events *events;
	void *argument;
	struct terminal *terminal;
	struct buffer launch; /* what is still to be told of the command */
	struct pump_sink *output;
	struct pump_source *input;
	struct loop_timer *soon; /* tells what failed within start */
	bool ended, told, is_known;
	struct driver_exit exit;
	struct error failure;
};

static void
tell_if_ended(struct driver_stream *stream)
{
	if (!stream->ended || stream->told ||
	    (stream->output != NULL && !pump_sink_is_done(stream->output)))
		return;
	stream->told = true;
	/* The owner may free the stream in here. */
	stream->events->exited(
	    stream->argument, stream->is_known ? &stream->exit : NULL, &stream->failure);
}

static void
output_has_room(void *argument)
{
	struct driver_stream *stream = argument;

	if (!stream->ended && pump_sink_room(stream->output) >= OUTPUT_HOLD)
		terminal_hold(stream->terminal, false);
	tell_if_ended(stream);
}

/* Sends some of what waits: the command first, then what is typed. Returns how much. */
static size_t
send_some(struct driver_stream *stream)
{
	const struct buffer *waiting = &stream->launch;
	size_t size, room;

	if (waiting->length == 0 && stream->input != NULL)
		waiting = pump_source_buffer(stream->input);
	room = terminal_room(stream->terminal);
	size = waiting->length < room ? waiting->length : room;
	if (size == 0)
		return 0;
	terminal_send(stream->terminal, buffer_data(waiting), size);
	if (waiting == &stream->launch)
		buffer_consume(&stream->launch, size);
	else
		pump_source_consume(stream->input, size);
	return size;
}

/* Nobody tells of room that is there again at once, so this goes on until there is none. */
static void
send_more(struct driver_stream *stream)
{
	while (send_some(stream) > 0)
		continue;
}

static void
input_ready(void *argument)
{
	struct driver_stream *stream = argument;

	if (!stream->ended)
		send_more(stream);
}

static void
terminal_ready(void *argument)
{
	struct driver_stream *stream = argument;
	struct driver_descriptors descriptors = { -1, -1, -1 };
	struct loop *loop = stream->pool->loop;
	int pair[2], second;
	struct error err;

	if (descriptor_pair(pair, &err) != 0)
		log_fatal("%s", err.message);
	second = dup(pair[1]);
	if (second < 0)
		log_fatal("no descriptor for a terminal");
	stream->output = pump_sink_new(loop, pair[1], OUTPUT_MAX, output_has_room, stream);
	stream->input = pump_source_new(loop, second, INPUT_MAX, input_ready, stream);
	send_more(stream);
	descriptors.output = pair[0];
	stream->events->started(stream->argument, &descriptors, 0);
}

static void
fail(struct driver_stream *stream, const struct error *err)
{
	if (stream->ended)
		return;
	stream->ended = true;
	stream->failure = *err;
	if (stream->output != NULL)
		pump_sink_end(stream->output);
	tell_if_ended(stream);
}

void
terminal_pool_fail(struct terminal_pool *pool, const struct error *err)
{
	struct driver_stream *stream;

	/* Each may free itself, and others, when it is told. */
	do {
		for (stream = pool->streams; stream != NULL && stream->ended; stream = stream->next)
			continue;
		if (stream != NULL)
			fail(stream, err);
	} while (stream != NULL);
}

static void
terminal_received(void *argument, const void *data, size_t size)
{
	struct driver_stream *stream = argument;
	struct error err;

	if (stream->ended)
		return;
	if (size > pump_sink_room(stream->output)) {
		error_set(&err, ERROR_UNAVAILABLE, "the terminal says more than can be taken");
		fail(stream, &err);
		return;
	}
	pump_sink_put(stream->output, data, size);
	if (pump_sink_room(stream->output) < OUTPUT_HOLD)
		terminal_hold(stream->terminal, true);
}

static void
terminal_sent(void *argument)
{
	input_ready(argument);
}

static void
terminal_ended(void *argument, const struct driver_exit *ended, const struct error *err)
{
	struct driver_stream *stream = argument;

	if (stream->ended)
		return;
	stream->is_known = ended != NULL;
	if (ended != NULL)
		stream->exit = *ended;
	fail(stream, err);
}

static const struct terminal_events terminal_events = {
	.ready = terminal_ready,
	.received = terminal_received,
	.sent = terminal_sent,
	.ended = terminal_ended,
};

static int
add_text(struct buffer *out, const char *text, struct error *err)
{
	if (strlen(text) >= WORD_MAX || buffer_append_format(out, "%8zu", strlen(text)) != 0 ||
	    buffer_append_text(out, text) != 0)
		return error_set(err, ERROR_TOO_LARGE, "the command's arguments are too long");
	return 0;
}

static size_t
count_list(char *const *list)
{
	size_t count;

	for (count = 0; list != NULL && list[count] != NULL; count++)
		continue;
	return count;
}

/* What core/scripts/launch.sh reads. */
static int
write_launch(struct buffer *out, const struct driver_command *command, struct error *err)
{
	static const char cd[] = "cd -- \"$1\" && shift && exec \"$@\"";
	const char *const first[] = { "sh", "-c", cd, "rws-launch", command->directory };
	char *const *at;
	char *term;
	size_t i;
	int result;

	(void)buffer_append_format(
	    out, "%8zu", count_list(command->environment) + (command->term != NULL ? 1 : 0));
	if (command->term != NULL) {
		term = memory_text_format("TERM=%s", command->term);
		result = add_text(out, term, err);
		memory_free(term);
		if (result != 0)
			return -1;
	}
	for (at = command->environment; at != NULL && *at != NULL; at++)
		if (add_text(out, *at, err) != 0)
			return -1;
	(void)buffer_append_format(out, "%8zu", count_list(command->argv) + 5);
	for (i = 0; i < 5; i++)
		if (add_text(out, first[i], err) != 0)
			return -1;
	for (at = command->argv; *at != NULL; at++)
		if (add_text(out, *at, err) != 0)
			return -1;
	return 0;
}

static void
soon_expired(void *argument)
{
	tell_if_ended(argument);
}

static void
fail_start(struct driver_stream *stream)
{
	stream->ended = true;
	stream->soon = loop_timer_new(stream->pool->loop, soon_expired, stream);
	loop_timer_start(stream->soon, 0);
}

struct driver_stream *
terminal_stream_start(struct terminal_pool *pool, const struct error *refusal,
    const struct driver_command *command, const struct driver_stream_events *events, void *argument)
{
	struct driver_stream *stream;

	stream = memory_zeroed(1, sizeof(*stream));
	stream->pool = pool;
	stream->events = events;
	stream->argument = argument;
	stream->next = pool->streams;
	pool->streams = stream;
	buffer_init(&stream->launch, LAUNCH_MAX);
	if (refusal != NULL)
		stream->failure = *refusal;
	else if (!command->pty)
		error_set(&stream->failure, ERROR_UNSUPPORTED, "%s has terminals only",
		    pool->kind->provider);
	else
		(void)write_launch(&stream->launch, command, &stream->failure);
	if (stream->failure.code != ERROR_NONE)
		fail_start(stream);
	else
		stream->terminal = terminal_take(pool, &terminal_events, stream);
	return stream;
}

/* Not used by core/transport, whose terminals are made in the sandbox. */
void
terminal_stream_resize(struct driver_stream *stream, uint32_t columns, uint32_t rows,
    uint32_t x_pixels, uint32_t y_pixels)
{
	(void)stream;
	(void)columns;
	(void)rows;
	(void)x_pixels;
	(void)y_pixels;
}

/* Signals go to groups by core/scripts/signal.sh; such a terminal has none. */
void
terminal_stream_signal(struct driver_stream *stream, int number)
{
	(void)stream;
	(void)number;
}

void
terminal_stream_close(struct driver_stream *stream)
{
	struct driver_stream **place;

	for (place = &stream->pool->streams; *place != stream; place = &(*place)->next)
		continue;
	*place = stream->next;
	terminal_free(stream->terminal);
	pump_sink_free(stream->output);
	pump_source_free(stream->input);
	loop_timer_free(stream->soon);
	buffer_wipe(&stream->launch);
	memory_free(stream);
}
