/* SPDX-License-Identifier: ISC */
/*
 * Output goes straight from the terminal to its receiver, less the markers in it. How much may be
 * under way is limited by turns, so it always fits into the receiver's queue; a far side that sends
 * more is broken.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/ledger.h"
#include "core/marker.h"
#include "core/pump.h"
#include "core/transport.h"
#include "core/transport_line.h"

/* Bytes read from the terminal at once, and bytes that wait to be written to it. */
#define READ_MAX 65536
#define SAY_MAX ((size_t)2 * 65536)

struct transport_line {
	struct transport_setup setup;
	char *id; /* of the sandbox */
	struct driver_stream *stream;
	void (*changed)(void *argument);
	void *argument;
	struct loop_timer *soon; /* to say so from the loop */
	struct marker marker;
	struct pump_source *terminal_out;
	struct pump_sink *terminal_in;
	struct buffer decoded;
	struct pump_sink *receiver;
	uint64_t granted;
	bool is_in_ledger;
	bool exited;
	struct error exit_failure; /* what the driver said of the end */
	struct error failure;
};

static void
tell_changed(void *argument)
{
	struct transport_line *line = argument;

	loop_timer_start(line->soon, 0);
}

static void
soon_expired(void *argument)
{
	struct transport_line *line = argument;

	line->changed(line->argument);
}

static void
fail(struct transport_line *line, const struct error *err)
{
	if (line->failure.code == ERROR_NONE)
		line->failure = *err;
	tell_changed(line);
}

/* Hands on what was decoded. */
static void
deliver(struct transport_line *line)
{
	struct error err;

	if (line->decoded.length == 0)
		return;
	if (line->receiver == NULL || pump_sink_room(line->receiver) < line->decoded.length) {
		error_set(&err, ERROR_UNAVAILABLE, "the sandbox sends more than it may");
		fail(line, &err);
	} else {
		pump_sink_put(line->receiver, buffer_data(&line->decoded), line->decoded.length);
	}
	buffer_consume(&line->decoded, line->decoded.length);
}

/* All was said, and the end marker was not in it. What the driver knows of the reason comes with
 * its exit. */
static void
check_end(struct transport_line *line)
{
	struct error err;

	if (line->marker.stage == MARKER_ENDED || !line->exited ||
	    (line->terminal_out != NULL && !pump_source_has_ended(line->terminal_out)))
		return;
	err = line->exit_failure;
	if (err.code == ERROR_NONE)
		error_set(
		    &err, ERROR_UNAVAILABLE, "a terminal of the command ended before the command");
	fail(line, &err);
}

/* Should we die, the next worker ends it, without waiting for the far side to find out. */
static void
enter_ledger(struct transport_line *line)
{
	ledger_add(line->setup.directory, line->id, line->marker.pid, line->marker.start_time);
	line->is_in_ledger = true;
}

static void
leave_ledger(struct transport_line *line)
{
	if (line->is_in_ledger)
		ledger_remove(line->setup.directory, line->marker.pid, line->marker.start_time);
	line->is_in_ledger = false;
}

static int
decode(struct transport_line *line, const struct buffer *content, struct error *err)
{
	enum marker_stage stage = line->marker.stage;
	uint64_t turns = line->marker.turns;

	if (marker_decode(
		&line->marker, buffer_data(content), content->length, &line->decoded, err) != 0)
		return -1;
	if (line->marker.turns > line->granted)
		return error_set(
		    err, ERROR_UNAVAILABLE, "the sandbox takes turns it was not given");
	if (stage == MARKER_BEFORE && line->marker.stage != stage && !line->exited)
		enter_ledger(line);
	if (line->marker.stage != stage || line->marker.turns != turns)
		tell_changed(line);
	return 0;
}

static void
terminal_said(void *argument)
{
	struct transport_line *line = argument;
	const struct buffer *content;
	struct error err;

	content = pump_source_buffer(line->terminal_out);
	if (line->failure.code == ERROR_NONE && decode(line, content, &err) != 0)
		fail(line, &err);
	pump_source_consume(line->terminal_out, content->length);
	if (line->failure.code == ERROR_NONE)
		deliver(line);
	if (line->marker.stage == MARKER_ENDED)
		transport_line_disconnect(line);
	check_end(line);
}

/* The two halves of a terminal's descriptor, and the token. */
static void
stream_started(void *argument, const struct driver_descriptors *descriptors, uint32_t pid)
{
	struct transport_line *line = argument;
	char text[MARKER_TOKEN_SIZE + 1];
	struct error err;
	int second;

	(void)pid;
	second = dup(descriptors->output);
	if (second < 0) {
		error_system(&err, errno, "duplicate a terminal");
		fail(line, &err);
	}
	line->terminal_out = pump_source_new(
	    line->setup.loop, descriptors->output, READ_MAX, terminal_said, line);
	line->terminal_in = pump_sink_new(line->setup.loop, second, SAY_MAX, tell_changed, line);
	memcpy(text, line->marker.token, MARKER_TOKEN_SIZE - 1);
	text[MARKER_TOKEN_SIZE - 1] = '\n';
	pump_sink_put(line->terminal_in, text, MARKER_TOKEN_SIZE);
	explicit_bzero(text, sizeof(text));
	tell_changed(line);
}

static void
stream_exited(void *argument, const struct driver_exit *ended, const struct error *err)
{
	struct transport_line *line = argument;

	line->exited = true;
	if (ended == NULL)
		line->exit_failure = *err;
	else
		leave_ledger(line);
	check_end(line);
	tell_changed(line);
}

static const struct driver_stream_events stream_events = {
	.started = stream_started,
	.exited = stream_exited,
};

struct transport_line *
transport_line_open(const struct transport_setup *setup, const char *token,
    const struct driver_command *command, void (*changed)(void *argument), void *argument)
{
	struct transport_line *line;

	line = memory_zeroed(1, sizeof(*line));
	line->setup = *setup;
	line->id = memory_text(setup->id);
	line->changed = changed;
	line->argument = argument;
	line->soon = loop_timer_new(setup->loop, soon_expired, line);
	marker_init(&line->marker, token, false);
	buffer_init(&line->decoded, READ_MAX + sizeof(line->marker.held));
	line->stream = setup->driver->start(setup->sandbox, command, &stream_events, line);
	return line;
}

void
transport_line_close(struct transport_line *line)
{
	if (line == NULL)
		return;
	leave_ledger(line);
	line->setup.driver->close_stream(line->stream);
	pump_source_free(line->terminal_out);
	pump_sink_free(line->terminal_in);
	pump_sink_free(line->receiver);
	loop_timer_free(line->soon);
	buffer_wipe(&line->decoded);
	memory_free(line->id);
	explicit_bzero(line, sizeof(*line));
	memory_free(line);
}

/* Before the start marker the terminal may not be raw yet, and would take bytes for what they are
 * not. */
bool
transport_line_is_open(const struct transport_line *line)
{
	return line->terminal_in != NULL &&
	       (line->marker.stage != MARKER_BEFORE ||
		   (line->setup.driver->kind->supports & DRIVER_RAW_PTY) != 0);
}

size_t
transport_line_room(const struct transport_line *line)
{
	return pump_sink_room(line->terminal_in);
}

void
transport_line_say(struct transport_line *line, const void *data, size_t size)
{
	pump_sink_put(line->terminal_in, data, size);
}

void
transport_line_connect(struct transport_line *line, int fd)
{
	line->receiver = pump_sink_new(
	    line->setup.loop, fd, TRANSPORT_TURNS * TRANSPORT_TURN_SIZE, tell_changed, line);
}

bool
transport_line_take_turn(struct transport_line *line)
{
	uint64_t open;

	open = line->granted - line->marker.turns;
	if (line->receiver == NULL || line->marker.stage == MARKER_ENDED ||
	    open >= TRANSPORT_TURNS ||
	    pump_sink_room(line->receiver) < (open + 1) * TRANSPORT_TURN_SIZE)
		return false;
	line->granted++;
	return true;
}

bool
transport_line_is_complete(const struct transport_line *line)
{
	return line->marker.stage == MARKER_ENDED && line->receiver != NULL &&
	       pump_sink_is_done(line->receiver);
}

void
transport_line_get_exit(const struct transport_line *line, struct driver_exit *ended)
{
	ended->signaled = line->marker.signaled;
	ended->status = (int)line->marker.number;
}

bool
transport_line_has_exited(const struct transport_line *line)
{
	return line->exited;
}

const struct error *
transport_line_failure(const struct transport_line *line)
{
	return line->failure.code == ERROR_NONE ? NULL : &line->failure;
}

void
transport_line_disconnect(struct transport_line *line)
{
	if (line->receiver != NULL)
		pump_sink_end(line->receiver);
}
