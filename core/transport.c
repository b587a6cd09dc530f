/* SPDX-License-Identifier: ISC */
/*
 * Two lines, one for the command's stdin and stdout, one for its stderr and for what the far side
 * is told. Everything that happens ends in advance(), which looks at both and does what can be
 * done; it is called from the loop only, so owners may free a transport whenever they are called.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/driver.h"
#include "core/marker.h"
#include "core/pump.h"
#include "core/scripts.h"
#include "core/transport.h"
#include "core/transport_line.h"

/* ms between two signs of life, and seconds without any after which the far side ends the command.
 */
#define BEAT_PERIOD 5000
#define SILENCE_MAX "30"
#define FRAME_MAX 65536
#define FRAME_HEAD_MAX 16

struct transport {
	struct transport_setup setup;
	const struct driver_stream_events *events;
	void *argument;
	bool pty, want_stdin;
	struct transport_line *main, *side;
	bool started, input_ended, finished, told;
	struct pump_source *input; /* of the command */
	struct loop_timer *beat, *soon;
};

static void advance(void *argument);

/* Grants what the receivers have room for. */
static void
grant(struct transport *transport)
{
	if (!transport_line_is_open(transport->side))
		return;
	while (transport_line_take_turn(transport->main))
		transport_line_say(transport->side, "output\n", 7);
	while (transport_line_take_turn(transport->side))
		transport_line_say(transport->side, "errors\n", 7);
}

static void
say_frame(struct transport *transport, const void *data, size_t size)
{
	char head[FRAME_HEAD_MAX];
	int length;

	length = snprintf(head, sizeof(head), "%zu\n", size);
	transport_line_say(transport->main, head, (size_t)length);
	if (size > 0)
		transport_line_say(transport->main, data, size);
}

/* Passes the command's stdin on, and its end. On a terminal the end of input is a byte of the
 * client's. */
static void
feed(struct transport *transport)
{
	const struct buffer *content;
	size_t size, room;

	if (transport->input_ended || !transport_line_is_open(transport->main))
		return;
	if (transport->input != NULL) {
		content = pump_source_buffer(transport->input);
		room = transport_line_room(transport->main);
		size = content->length < FRAME_MAX ? content->length : FRAME_MAX;
		if (room < FRAME_HEAD_MAX + size)
			return;
		if (size > 0) {
			say_frame(transport, buffer_data(content), size);
			pump_source_consume(transport->input, size);
			loop_timer_start(transport->soon, 0);
			return;
		}
		if (!pump_source_has_ended(transport->input) || transport->pty)
			return;
	}
	say_frame(transport, NULL, 0);
	transport->input_ended = true;
}

static void
input_ready(void *argument)
{
	feed(argument);
}

/* One socket for each stream, or for a terminal one for both directions. */
static int
connect_owner(struct transport *transport, struct driver_descriptors *owner, struct error *err)
{
	int output[2] = { -1, -1 }, errors[2] = { -1, -1 }, input[2] = { -1, -1 };

	if (descriptor_pair(output, err) != 0 || descriptor_pair(errors, err) != 0)
		goto failed;
	if (transport->pty) {
		input[1] = dup(output[1]);
		if (input[1] < 0) {
			error_system(err, errno, "duplicate a socket");
			goto failed;
		}
		descriptor_close(&errors[0]);
	} else if (transport->want_stdin && descriptor_pair(input, err) != 0) {
		goto failed;
	}
	transport_line_connect(transport->main, output[1]);
	transport_line_connect(transport->side, errors[1]);
	if (input[1] >= 0)
		transport->input = pump_source_new(
		    transport->setup.loop, input[1], FRAME_MAX, input_ready, transport);
	owner->input = input[0];
	owner->output = output[0];
	owner->errors = errors[0];
	return 0;
failed:
	descriptor_close(&output[0]);
	descriptor_close(&output[1]);
	descriptor_close(&errors[0]);
	descriptor_close(&errors[1]);
	return -1;
}

static void
tell_end(struct transport *transport, const struct driver_exit *ended, const struct error *err)
{
	transport->told = true;
	loop_timer_stop(transport->beat);
	transport_line_disconnect(transport->main);
	transport_line_disconnect(transport->side);
	transport->events->exited(transport->argument, ended, err);
}

static const struct error *
failure_of(const struct transport *transport)
{
	const struct error *failure;

	failure = transport_line_failure(transport->main);
	return failure != NULL ? failure : transport_line_failure(transport->side);
}

static void
start(struct transport *transport)
{
	struct driver_descriptors owner = { -1, -1, -1 };
	struct error err;

	if (connect_owner(transport, &owner, &err) != 0) {
		tell_end(transport, NULL, &err);
		return;
	}
	transport->started = true;
	transport_line_say(transport->side, "beat\n", 5);
	loop_timer_start(transport->beat, BEAT_PERIOD);
	grant(transport);
	/* The owner may free us in here. */
	loop_timer_start(transport->soon, 0);
	transport->events->started(transport->argument, &owner, 0);
}

/* The far side waits for this word before its terminals go: what they said last would be lost with
 * them. */
static void
finish(struct transport *transport)
{
	transport->finished = true;
	transport_line_say(transport->side, "finish\n", 7);
}

static void
advance(void *argument)
{
	struct transport *transport = argument;
	struct driver_exit ended = { 0 };
	const struct error *failure;

	if (transport->told)
		return;
	failure = failure_of(transport);
	if (failure != NULL) {
		tell_end(transport, NULL, failure);
		return;
	}
	if (!transport->started) {
		if (transport_line_is_open(transport->main) &&
		    transport_line_is_open(transport->side))
			start(transport);
		return;
	}
	grant(transport);
	feed(transport);
	if (!transport->finished && transport_line_is_complete(transport->main) &&
	    transport_line_is_complete(transport->side))
		finish(transport);
	if (transport->finished && transport_line_has_exited(transport->main) &&
	    transport_line_has_exited(transport->side)) {
		transport_line_get_exit(transport->main, &ended);
		tell_end(transport, &ended, NULL);
	}
}

static void
beat_expired(void *argument)
{
	struct transport *transport = argument;

	if (transport_line_room(transport->side) > FRAME_HEAD_MAX)
		transport_line_say(transport->side, "beat\n", 5);
	loop_timer_start(transport->beat, BEAT_PERIOD);
}

/* argv of the half with the command. */
static char **
main_argv(const struct driver_command *command, char *meeting)
{
	char pipe[] = "pipe", verdict[] = "verdict", **terminal, **argv, *arguments[4], *launch;
	size_t i, count;

	arguments[0] = meeting;
	arguments[1] = command->pty ? verdict : pipe;
	arguments[2] = NULL;
	argv = script_argv("transport", arguments);
	for (count = 0; argv[count] != NULL; count++)
		continue;
	if (command->pty) {
		launch = script_text("launch");
		arguments[0] = memory_text_format("%u", command->rows);
		arguments[1] = memory_text_format("%u", command->columns);
		arguments[2] = launch;
		arguments[3] = NULL;
		terminal = script_argv("terminal", arguments);
		for (i = 0; terminal[i] != NULL; i++)
			argv = memory_list_add(argv, count++, terminal[i]);
		memory_list_free(terminal);
		memory_free(arguments[0]);
		memory_free(arguments[1]);
		memory_free(launch);
	}
	for (i = 0; command->argv[i] != NULL; i++)
		argv = memory_list_add(argv, count++, command->argv[i]);
	return argv;
}

static char **
side_argv(char *meeting)
{
	char silence[] = SILENCE_MAX, *arguments[] = { meeting, silence, NULL };

	return script_argv("transport_side", arguments);
}

static void
open_lines(struct transport *transport, const struct driver_command *command)
{
	char name[MARKER_TOKEN_SIZE], token[MARKER_TOKEN_SIZE], *meeting, **argv;
	struct driver_command line = *command;

	marker_make_token(name);
	marker_make_token(token);
	meeting = memory_text_format("/tmp/.rws-%s", name);
	line.pty = true;
	line.directory = "/";
	argv = main_argv(command, meeting);
	line.argv = argv;
	transport->main = transport_line_open(&transport->setup, token, &line, advance, transport);
	memory_list_free(argv);
	argv = side_argv(meeting);
	line.argv = argv;
	line.environment = NULL;
	transport->side = transport_line_open(&transport->setup, token, &line, advance, transport);
	memory_list_free(argv);
	memory_free(meeting);
	explicit_bzero(token, sizeof(token));
}

struct transport *
transport_start(const struct transport_setup *setup, const struct driver_command *command,
    const struct driver_stream_events *events, void *argument)
{
	struct transport *transport;

	transport = memory_zeroed(1, sizeof(*transport));
	transport->setup = *setup;
	transport->events = events;
	transport->argument = argument;
	transport->pty = command->pty;
	transport->want_stdin = command->want_stdin;
	transport->beat = loop_timer_new(setup->loop, beat_expired, transport);
	transport->soon = loop_timer_new(setup->loop, advance, transport);
	open_lines(transport, command);
	return transport;
}

void
transport_close(struct transport *transport)
{
	loop_timer_free(transport->beat);
	loop_timer_free(transport->soon);
	transport_line_close(transport->main);
	transport_line_close(transport->side);
	pump_source_free(transport->input);
	memory_free(transport);
}
