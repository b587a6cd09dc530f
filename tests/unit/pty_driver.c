/* SPDX-License-Identifier: ISC */
/*
 * Each terminal is behind a socket, with a relay for each direction, so that it can be taken away.
 */
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/relay.h"
#include "tests/unit/pty_driver.h"

struct driver_stream {
	struct driver_stream *next;
	struct driver_sandbox *sandbox;
	pid_t pid;
	int terminal; /* keeps what runs there from being hung up */
	int process;  /* readable when it has ended */
	struct loop_watch *watch;
	struct loop_timer *soon;
	struct relay *output, *input;
	bool ended, broken;
	struct driver_exit exit;
	const struct driver_stream_events *events;
	void *argument;
};

static void
tell_if_ended(struct driver_stream *stream)
{
	if (stream->ended && stream->output == NULL && !stream->broken)
		stream->events->exited(stream->argument, &stream->exit, NULL);
}

static void
relay_ended(void *argument, struct relay *relay, const struct error *err)
{
	struct driver_stream *stream = argument;

	(void)err;
	relay_free(relay);
	if (relay == stream->input) {
		stream->input = NULL;
		return;
	}
	stream->output = NULL;
	tell_if_ended(stream);
}

static const struct relay_events relay_events = { NULL, relay_ended };

static void
start_soon(void *argument)
{
	struct driver_stream *stream = argument;
	struct driver_descriptors descriptors = { -1, -1, -1 };
	struct loop *loop = stream->sandbox->loop;
	struct error err;
	int pair[2];

	if (stream->broken) {
		error_set(&err, ERROR_UNAVAILABLE, "the connection broke");
		stream->events->exited(stream->argument, NULL, &err);
		return;
	}
	if (descriptor_pair(pair, &err) != 0)
		log_fatal("%s", err.message);
	stream->output = relay_new(loop, fcntl(stream->terminal, F_DUPFD_CLOEXEC, 0), pair[1], NULL,
	    &relay_events, stream);
	stream->input = relay_new(loop, fcntl(pair[1], F_DUPFD_CLOEXEC, 0),
	    fcntl(stream->terminal, F_DUPFD_CLOEXEC, 0), NULL, &relay_events, stream);
	descriptors.output = pair[0];
	stream->events->started(stream->argument, &descriptors, 0);
}

static void
process_ended(void *argument, unsigned events)
{
	struct driver_stream *stream = argument;
	int status;

	(void)events;
	loop_unwatch(stream->watch);
	stream->watch = NULL;
	if (waitpid(stream->pid, &status, 0) != stream->pid)
		log_fatal("a process cannot be waited for");
	stream->pid = 0;
	relay_free(stream->input);
	stream->input = NULL;
	descriptor_close(&stream->terminal);
	stream->ended = true;
	stream->exit.signaled = WIFSIGNALED(status);
	stream->exit.status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
	tell_if_ended(stream);
}

static void
run_child(const struct driver_sandbox *sandbox, char *const *argv, char *const *environment)
{
	int number;

	/* Who runs the tests in a background shell has interrupts ignored. */
	for (number = 1; number < NSIG; number++)
		(void)signal(number, SIG_DFL);
	for (; environment != NULL && *environment != NULL; environment++)
		(void)putenv(*environment);
	(void)setenv("PATH", sandbox->path, 1);
	(void)execvp(argv[0], argv);
	_exit(127);
}

static struct driver_stream *
start(struct driver_sandbox *sandbox, const struct driver_command *command,
    const struct driver_stream_events *events, void *argument)
{
	struct driver_stream *stream;

	stream = memory_zeroed(1, sizeof(*stream));
	stream->sandbox = sandbox;
	stream->events = events;
	stream->argument = argument;
	stream->next = sandbox->streams;
	sandbox->streams = stream;
	stream->pid = forkpty(&stream->terminal, NULL, NULL, NULL);
	if (stream->pid < 0)
		log_fatal("no terminal");
	if (stream->pid == 0)
		run_child(sandbox, command->argv, command->environment);
	(void)fcntl(stream->terminal, F_SETFD, FD_CLOEXEC);
	stream->process = (int)syscall(SYS_pidfd_open, stream->pid, 0);
	if (stream->process < 0)
		log_fatal("a process cannot be watched");
	stream->watch = loop_watch(
	    sandbox->loop, stream->process, LOOP_READ, process_ended, stream);
	stream->soon = loop_timer_new(sandbox->loop, start_soon, stream);
	loop_timer_start(stream->soon, 0);
	return stream;
}

/*
 * Unlike a provider it leaves alone what is below the terminal's shell: what runs on is to be seen.
 */
static void
close_stream(struct driver_stream *stream)
{
	struct driver_stream **place;

	for (place = &stream->sandbox->streams; *place != stream; place = &(*place)->next)
		continue;
	*place = stream->next;
	loop_unwatch(stream->watch);
	loop_timer_free(stream->soon);
	relay_free(stream->output);
	relay_free(stream->input);
	if (stream->pid != 0 && !stream->broken)
		(void)kill(-stream->pid, SIGKILL);
	descriptor_close(&stream->terminal);
	descriptor_close(&stream->process);
	memory_free(stream);
}

void
pty_driver_break(struct driver_sandbox *sandbox)
{
	struct driver_stream *stream;

	for (stream = sandbox->streams; stream != NULL; stream = stream->next) {
		relay_free(stream->output);
		relay_free(stream->input);
		stream->output = stream->input = NULL;
		stream->broken = true;
		/* Nobody closes the terminal: the far side does not know. */
		stream->terminal = -1;
		loop_timer_start(stream->soon, 0);
	}
}

struct driver_operation {
	struct driver_operation *next;
	struct driver_sandbox *sandbox;
	pid_t pid;
	int process;
	struct loop_watch *watch;
	driver_result_fn *done;
	void *argument;
};

static void
free_operation(struct driver_operation *operation)
{
	struct driver_operation **place;

	for (place = &operation->sandbox->operations; *place != operation; place = &(*place)->next)
		continue;
	*place = operation->next;
	loop_unwatch(operation->watch);
	descriptor_close(&operation->process);
	memory_free(operation);
}

static void
run_ended(void *argument, unsigned events)
{
	struct driver_operation *operation = argument;
	struct driver_result result = { 0 };

	(void)events;
	(void)waitpid(operation->pid, NULL, 0);
	operation->done(operation->argument, &result, NULL);
	free_operation(operation);
}

/* What it prints goes where ours does: nobody looks at it. */
static struct driver_operation *
run(struct driver_sandbox *sandbox, char *const *argv, const void *input, size_t input_size,
    size_t max_output, driver_result_fn *done, void *argument)
{
	struct driver_operation *operation;

	(void)input;
	(void)input_size;
	(void)max_output;
	operation = memory_zeroed(1, sizeof(*operation));
	operation->sandbox = sandbox;
	operation->next = sandbox->operations;
	sandbox->operations = operation;
	operation->done = done;
	operation->argument = argument;
	operation->pid = fork();
	if (operation->pid == 0)
		run_child(sandbox, argv, NULL);
	operation->process = (int)syscall(SYS_pidfd_open, operation->pid, 0);
	operation->watch = loop_watch(
	    sandbox->loop, operation->process, LOOP_READ, run_ended, operation);
	return operation;
}

void
pty_driver_close(struct driver_sandbox *sandbox)
{
	while (sandbox->operations != NULL)
		free_operation(sandbox->operations);
}

static const struct driver_kind kind = { .name = "pty", .supports = DRIVER_PTY | DRIVER_STDIN };

const struct driver pty_driver = {
	.kind = &kind,
	.run = run,
	.cancel = free_operation,
	.start = start,
	.close_stream = close_stream,
};
