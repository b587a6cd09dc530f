/* SPDX-License-Identifier: ISC */
/*
 * A command inside its wrapper script. The token goes ahead of the client's stdin; output passes
 * through a relay that takes the markers out; signals go to the group by scripts (core/news.h).
 *
 * On a pty the wrapper becomes the command, so its end is the driver's to tell. With follow_background the
 * output of what was left running goes on behind the end marker, until the driver tells that all is gone.
 *
 * A carrier may have made up the terminal, and then the driver does not know it: that gets a new size by a
 * script too.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/carrier.h"
#include "core/driver.h"
#include "core/ledger.h"
#include "core/marker.h"
#include "core/news.h"
#include "core/relay.h"
#include "core/scripts.h"
#include "core/transport.h"
#include "core/wrapped.h"

struct wrapped {
	struct wrapped_setup setup;
	char *id; /* of the sandbox */
	bool is_in_ledger;
	const struct driver_stream_events *events;
	void *argument;
	struct carrier *carrier;
	bool pty, keep_background;
	bool close_input;
	char token[MARKER_TOKEN_SIZE];
	struct marker output_marker, errors_marker;
	struct relay *output, *errors, *input; /* input with a pty only */
	bool told;                             /* the owner knows of the end */
	bool exited;                           /* the driver reported the end */
	bool gone;                             /* the owner knows that nothing runs any more */
	bool is_known;
	struct driver_exit ended; /* of the driver, with a pty */
	struct error failure;
	struct news *news;
	struct loop_timer *soon; /* tells of the end, from the loop */
};

/* Should we die, the next worker ends it. */
static void
enter_ledger(struct wrapped *wrapped)
{
	const struct marker *marker = &wrapped->output_marker;

	if (wrapped->is_in_ledger || wrapped->setup.is_script || marker->pid == 0)
		return;
	ledger_add(wrapped->setup.directory, wrapped->id, marker->pid, marker->start_time);
	wrapped->is_in_ledger = true;
}

static void
leave_ledger(struct wrapped *wrapped)
{
	const struct marker *marker = &wrapped->output_marker;

	if (wrapped->is_in_ledger)
		ledger_remove(wrapped->setup.directory, marker->pid, marker->start_time);
	wrapped->is_in_ledger = false;
}

static void
free_wrapped(struct wrapped *wrapped)
{
	leave_ledger(wrapped);
	news_free(wrapped->news);
	loop_timer_free(wrapped->soon);
	relay_free(wrapped->output);
	relay_free(wrapped->errors);
	relay_free(wrapped->input);
	carrier_close(wrapped->carrier);
	memory_free(wrapped->id);
	explicit_bzero(wrapped, sizeof(*wrapped));
	memory_free(wrapped);
}

/* All that the owner will get of this stream until it is told of the end. */
static bool
is_complete(const struct relay *relay)
{
	return relay == NULL || relay_has_delivered(relay);
}

/* The wrapper stays until no process of the group is left, so its own end means that they are gone. */
static void
tell_if_gone(struct wrapped *wrapped)
{
	if (!wrapped->told || !wrapped->exited || wrapped->gone || wrapped->output != NULL ||
	    wrapped->errors != NULL)
		return;
	wrapped->gone = true;
	leave_ledger(wrapped);
	wrapped->events->gone(wrapped->argument);
}

/* The end from the markers, once both streams are complete; with a pty from the driver. */
static void
tell_if_ended(struct wrapped *wrapped)
{
	struct driver_exit ended = { 0 };
	struct error err;

	if (wrapped->told || !is_complete(wrapped->output) || !is_complete(wrapped->errors))
		return;
	if (!wrapped->pty && wrapped->output_marker.stage == MARKER_ENDED) {
		ended.signaled = wrapped->output_marker.signaled;
		ended.status = (int)wrapped->output_marker.number;
	} else if (!wrapped->exited) {
		return;
	} else if (wrapped->pty && wrapped->is_known) {
		ended = wrapped->ended;
	} else {
		err = wrapped->failure;
		if (err.code == ERROR_NONE)
			error_set(&err, ERROR_UNAVAILABLE,
			    "the command's output ended without its exit status");
		wrapped->told = true;
		wrapped->events->exited(wrapped->argument, NULL, &err);
		return;
	}
	wrapped->told = true;
	/* What it left running stays by permission. */
	if (wrapped->keep_background)
		leave_ledger(wrapped);
	wrapped->events->exited(wrapped->argument, &ended, NULL);
	tell_if_gone(wrapped);
}

static void
soon_expired(void *argument)
{
	struct wrapped *wrapped = argument;

	if (wrapped->told)
		tell_if_gone(wrapped);
	else
		tell_if_ended(wrapped);
}

static void
relay_marked(void *argument, struct relay *relay)
{
	struct wrapped *wrapped = argument;

	if (relay == wrapped->output && wrapped->output_marker.stage == MARKER_RUNNING) {
		enter_ledger(wrapped);
		news_send(wrapped->news);
	}
	if (relay_has_delivered(relay))
		loop_timer_start(wrapped->soon, 0);
}

static void
relay_ended(void *argument, struct relay *relay, const struct error *err)
{
	struct wrapped *wrapped = argument;

	if (err != NULL && wrapped->failure.code == ERROR_NONE)
		wrapped->failure = *err;
	if (relay == wrapped->output)
		wrapped->output = NULL;
	else if (relay == wrapped->errors)
		wrapped->errors = NULL;
	else
		wrapped->input = NULL;
	relay_free(relay);
	soon_expired(wrapped);
}

static const struct relay_events relay_events = { relay_marked, relay_ended };

/* The token, once for the wrapper and once for the leader, ahead of everything else. */
static int
send_token(struct wrapped *wrapped, int input, struct error *err)
{
	char lines[2 * MARKER_TOKEN_SIZE + 1];
	int length, result;

	length = snprintf(lines, sizeof(lines), "%s\n%s\n", wrapped->token, wrapped->token);
	if (wrapped->pty)
		length = MARKER_TOKEN_SIZE;
	result = descriptor_write(input, lines, (size_t)length, err);
	explicit_bzero(lines, sizeof(lines));
	return result;
}

/* A relay from a descriptor of the driver's to a new socket, whose other end is for the owner. */
static struct relay *
relay_out(struct wrapped *wrapped, int source, struct marker *marker, int *owner, struct error *err)
{
	int pair[2];

	if (descriptor_pair(pair, err) != 0)
		return NULL;
	*owner = pair[0];
	return relay_new(wrapped->setup.loop, source, pair[1], marker, &relay_events, wrapped);
}

/* A terminal goes both ways: the owner's end is one socket, each direction is a relay of its own.
 */
static int
relay_terminal(struct wrapped *wrapped, int terminal, int *owner, struct error *err)
{
	int pair[2], second_terminal, second_socket;

	if (descriptor_pair(pair, err) != 0)
		return -1;
	*owner = pair[0];
	second_terminal = dup(terminal);
	second_socket = dup(pair[1]);
	if (second_terminal < 0 || second_socket < 0)
		return error_system(err, errno, "duplicate a terminal");
	wrapped->output = relay_new(wrapped->setup.loop, terminal, pair[1], &wrapped->output_marker,
	    &relay_events, wrapped);
	wrapped->input = relay_new(
	    wrapped->setup.loop, second_socket, second_terminal, NULL, &relay_events, wrapped);
	return 0;
}

static int
connect_owner(struct wrapped *wrapped, const struct driver_descriptors *inner,
    struct driver_descriptors *owner, struct error *err)
{
	if (wrapped->pty)
		return relay_terminal(wrapped, inner->output, &owner->output, err);
	wrapped->output = relay_out(
	    wrapped, inner->output, &wrapped->output_marker, &owner->output, err);
	if (wrapped->output == NULL)
		return -1;
	wrapped->errors = relay_out(
	    wrapped, inner->errors, &wrapped->errors_marker, &owner->errors, err);
	owner->input = inner->input;
	return wrapped->errors == NULL ? -1 : 0;
}

static void
stream_started(void *argument, const struct driver_descriptors *inner, uint32_t pid)
{
	struct wrapped *wrapped = argument;
	struct driver_descriptors owner = { -1, -1, -1 };
	struct error err;

	(void)pid;
	if (send_token(wrapped, wrapped->pty ? inner->output : inner->input, &err) != 0 ||
	    connect_owner(wrapped, inner, &owner, &err) != 0) {
		wrapped->failure = err;
		log_error("start a command: %s", err.message);
	}
	if (wrapped->close_input)
		descriptor_close(&owner.input);
	wrapped->events->started(wrapped->argument, &owner, 0);
}

static void
stream_exited(void *argument, const struct driver_exit *ended, const struct error *err)
{
	struct wrapped *wrapped = argument;

	wrapped->exited = true;
	if (ended != NULL) {
		wrapped->is_known = true;
		wrapped->ended = *ended;
	} else if (wrapped->failure.code == ERROR_NONE) {
		wrapped->failure = *err;
	}
	soon_expired(wrapped);
}

/* What is missing may be the start marker, and then all that follows would be taken for noise before it. */
static void
stream_gap(void *argument)
{
	struct wrapped *wrapped = argument;

	if (!wrapped->pty || wrapped->told || wrapped->output_marker.stage != MARKER_BEFORE)
		return;
	relay_free(wrapped->output);
	wrapped->output = NULL;
	wrapped->exited = true;
	error_set(&wrapped->failure, ERROR_UNAVAILABLE,
	    "the command's stream broke before it was known to have started");
	loop_timer_start(wrapped->soon, 0);
}

static const struct driver_stream_events stream_events = {
	.started = stream_started,
	.exited = stream_exited,
	.gap = stream_gap,
};

/* argv of the wrapper: command.sh, its own arguments, and the command's argv. */
static char **
wrapper_argv(const struct driver_command *command)
{
	char pipe[] = "pipe", pty[] = "pty", keep[] = "keep", kill_word[] = "kill", grace[24];
	char *directory, **argv, *arguments[5];
	size_t i, count;

	directory = memory_text(command->directory);
	(void)snprintf(grace, sizeof(grace), "%u", (command->kill_grace + 999) / 1000);
	arguments[0] = command->pty ? pty : pipe;
	arguments[1] = command->keep_background ? keep : kill_word;
	arguments[2] = grace;
	arguments[3] = directory;
	arguments[4] = NULL;
	argv = script_argv("command", arguments);
	memory_free(directory);
	for (count = 0; argv[count] != NULL; count++)
		continue;
	for (i = 0; command->argv[i] != NULL; i++)
		argv = memory_list_add(argv, count++, command->argv[i]);
	return argv;
}

struct wrapped *
wrapped_start(const struct wrapped_setup *setup, const struct driver_command *command,
    const struct driver_stream_events *events, void *argument)
{
	struct driver_command outer = *command;
	struct transport_setup inner = { 0 };
	struct wrapped *wrapped;
	char **argv;

	wrapped = memory_zeroed(1, sizeof(*wrapped));
	wrapped->setup = *setup;
	wrapped->id = memory_text(setup->id);
	wrapped->events = events;
	wrapped->argument = argument;
	wrapped->pty = command->pty;
	wrapped->keep_background = command->keep_background;
	wrapped->news = news_new(
	    setup->loop, setup->driver, setup->sandbox, &wrapped->output_marker);
	wrapped->soon = loop_timer_new(setup->loop, soon_expired, wrapped);
	wrapped->close_input = !command->want_stdin && !command->pty;
	marker_make_token(wrapped->token);
	marker_init(&wrapped->output_marker, wrapped->token, false);
	marker_init(&wrapped->errors_marker, wrapped->token, true);
	wrapped->output_marker.follows = wrapped->errors_marker.follows = setup->follow_background;
	argv = wrapper_argv(command);
	outer.argv = argv;
	outer.directory =
	    "/"; /* the script goes where the command is to run, and says when it cannot */
	outer.want_stdin = true;
	inner.loop = setup->loop;
	inner.driver = setup->driver;
	inner.sandbox = setup->sandbox;
	inner.directory = setup->is_script ? -1 : setup->directory;
	inner.id = wrapped->id;
	wrapped->carrier = carrier_start(&inner, &outer, &stream_events, wrapped);
	memory_list_free(argv);
	return wrapped;
}

void
wrapped_signal(struct wrapped *wrapped, int number)
{
	if (!wrapped->exited)
		news_add_signal(wrapped->news, number);
}

void
wrapped_resize(
    struct wrapped *wrapped, uint32_t columns, uint32_t rows, uint32_t x_pixels, uint32_t y_pixels)
{
	if (!wrapped->exited &&
	    !carrier_resize(wrapped->carrier, columns, rows, x_pixels, y_pixels))
		news_set_size(wrapped->news, columns, rows);
}

void
wrapped_close(struct wrapped *wrapped)
{
	/* A stream that broke says nothing of the command. What it left running may be there by permission. */
	if (!(wrapped->exited && wrapped->is_known) && wrapped->output_marker.pid != 0 &&
	    !(wrapped->told && wrapped->keep_background))
		news_send_last(wrapped->news, wrapped->setup.is_script ? SIGTERM : SIGKILL);
	free_wrapped(wrapped);
}
