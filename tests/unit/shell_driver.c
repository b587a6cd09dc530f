/* SPDX-License-Identifier: ISC */
/*
 * Commands as plain child processes: just what a workspace and the files script need of a driver.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "tests/unit/shell_driver.h"

#define OUTPUT_MAX 65536

struct driver_sandbox {
	struct driver_context context;
	struct loop_timer *connect;
	driver_connected_fn *connected;
	void *argument;
};

struct driver_stream {
	struct driver_sandbox *sandbox;
	const struct driver_stream_events *events;
	void *argument;
	pid_t pid;
	struct driver_descriptors ends;
	struct loop_timer *started;
};

struct driver_operation {
	struct driver_sandbox *sandbox;
	driver_result_fn *done;
	void *argument;
	struct loop_timer *timer;
	char output[OUTPUT_MAX];
	size_t size;
};

static const char *shell_program = "/bin/sh", *shell_applet, *shell_path;
static pid_t last_pid;

void
shell_driver_choose(const char *program, const char *applet)
{
	shell_program = program;
	shell_applet = applet;
}

void
shell_driver_set_path(const char *path)
{
	shell_path = path;
}

int
shell_driver_last(void)
{
	return last_pid;
}

static _Noreturn void
run_child(char *const *argv, const char *directory, int input, int output)
{
	char *words[64];
	size_t i, count = 0;

	(void)dup2(input, STDIN_FILENO);
	(void)dup2(output, STDOUT_FILENO);
	(void)close_range(3, ~0U, 0);
	if (directory != NULL && chdir(directory) != 0)
		_exit(126);
	words[count++] = memory_text(shell_program);
	if (shell_applet != NULL)
		words[count++] = memory_text(shell_applet);
	for (i = 1; argv[i] != NULL; i++)
		words[count++] = argv[i];
	words[count] = NULL;
	(void)setenv("LC_ALL", "C", 1);
	if (shell_path != NULL)
		(void)setenv("PATH", shell_path, 1);
	(void)execv(words[0], words);
	_exit(127);
}

static pid_t
start_child(char *const *argv, const char *directory, int *input, int *output)
{
	int in[2], out[2];
	pid_t pid;

	if (descriptor_pipe(in, NULL) != 0 || descriptor_pipe(out, NULL) != 0)
		abort();
	pid = fork();
	if (pid == 0)
		run_child(argv, directory, in[0], out[1]);
	(void)close(in[0]);
	(void)close(out[1]);
	*input = in[1];
	*output = out[0];
	last_pid = pid;
	return pid;
}

static struct driver_sandbox *
shell_open(const struct driver_context *context, struct error *err)
{
	struct driver_sandbox *sandbox;

	(void)err;
	sandbox = memory_zeroed(1, sizeof(*sandbox));
	sandbox->context = *context;
	return sandbox;
}

static void
shell_close(struct driver_sandbox *sandbox)
{
	loop_timer_free(sandbox->connect);
	memory_free(sandbox);
}

static void
report_connected(void *argument)
{
	struct driver_sandbox *sandbox = argument;
	struct driver_connected connected = { .id = "shell", .directory = "/" };

	sandbox->connected(sandbox->argument, &connected, NULL);
}

static void
shell_connect(struct driver_sandbox *sandbox, const struct driver_target *target,
    driver_connected_fn *done, void *argument)
{
	(void)target;
	sandbox->connected = done;
	sandbox->argument = argument;
	sandbox->connect = loop_timer_new(sandbox->context.loop, report_connected, sandbox);
	loop_timer_start(sandbox->connect, 0);
}

static void
report_result(void *argument)
{
	struct driver_operation *operation = argument;
	struct driver_result result = { .output = (unsigned char *)operation->output,
		.output_size = operation->size };
	driver_result_fn *done = operation->done;
	void *done_argument = operation->argument;

	done(done_argument, &result, NULL);
	loop_timer_free(operation->timer);
	memory_free(operation);
}

/* The start check is all that is run, so it may be waited for. */
static struct driver_operation *
shell_run(struct driver_sandbox *sandbox, char *const *argv, const void *input, size_t input_size,
    size_t max_output, driver_result_fn *done, void *argument)
{
	struct driver_operation *operation;
	int sink, output;
	ssize_t got;
	pid_t pid;

	(void)input;
	(void)input_size;
	(void)max_output;
	operation = memory_zeroed(1, sizeof(*operation));
	operation->done = done;
	operation->argument = argument;
	pid = start_child(argv, NULL, &sink, &output);
	(void)close(sink);
	while ((got = read(
		    output, operation->output + operation->size, OUTPUT_MAX - operation->size)) > 0)
		operation->size += (size_t)got;
	(void)close(output);
	(void)waitpid(pid, NULL, 0);
	operation->timer = loop_timer_new(sandbox->context.loop, report_result, operation);
	loop_timer_start(operation->timer, 0);
	return operation;
}

static void
shell_cancel(struct driver_operation *operation)
{
	loop_timer_free(operation->timer);
	memory_free(operation);
}

static void
report_started(void *argument)
{
	struct driver_stream *stream = argument;

	stream->events->started(stream->argument, &stream->ends, (uint32_t)stream->pid);
}

static struct driver_stream *
shell_start(struct driver_sandbox *sandbox, const struct driver_command *command,
    const struct driver_stream_events *events, void *argument)
{
	struct driver_stream *stream;

	stream = memory_zeroed(1, sizeof(*stream));
	stream->sandbox = sandbox;
	stream->events = events;
	stream->argument = argument;
	stream->ends.errors = -1;
	stream->pid = start_child(
	    command->argv, command->directory, &stream->ends.input, &stream->ends.output);
	stream->started = loop_timer_new(sandbox->context.loop, report_started, stream);
	loop_timer_start(stream->started, 0);
	return stream;
}

/*
 * Its output ends with it, so nobody need be told; it is asked first, for the sake of its clean-up.
 */
static void
shell_close_stream(struct driver_stream *stream)
{
	(void)kill(stream->pid, SIGTERM);
	(void)waitpid(stream->pid, NULL, 0);
	loop_timer_free(stream->started);
	memory_free(stream);
}

static const struct option shell_options[] = { { .name = NULL } };

static const struct driver_kind shell_kind = {
	.name = "shell",
	.supports = DRIVER_STDIN | DRIVER_END_OF_STDIN | DRIVER_STDERR | DRIVER_BINARY |
		    DRIVER_EXIT | DRIVER_GROUP | DRIVER_FLOW,
	.options = shell_options,
	.standard_dispose = "keep",
};

const struct driver shell_driver = {
	.kind = &shell_kind,
	.open = shell_open,
	.close = shell_close,
	.connect = shell_connect,
	.run = shell_run,
	.cancel = shell_cancel,
	.start = shell_start,
	.close_stream = shell_close_stream,
};
