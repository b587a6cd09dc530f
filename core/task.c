/* SPDX-License-Identifier: ISC */
/* A script run as an internal command. It is freed by its settle timer, never below a callback. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/command.h"
#include "core/driver.h"
#include "core/protocol.h"
#include "core/scripts.h"
#include "core/task.h"
#include "core/workspace.h"

#define CHUNK_SIZE 65536
#define COMPLAINTS_MAX 4096

struct task {
	struct workspace *workspace;
	struct command *command;
	const struct task_events *events; /* NULL: nobody wants to know any more */
	void *argument;
	char *script;
	int output, errors, input;
	struct loop_watch *output_watch, *errors_watch, *input_watch;
	struct buffer gathered; /* or, when streamed, what the owner did not take yet */
	struct buffer complaints;
	struct buffer waiting; /* for stdin */
	bool input_open;
	bool too_much;
	bool ended;
	struct command_exit ending;
	struct loop_timer *settle;
};

static void
stop_watching(struct loop_watch **watch, int *fd)
{
	loop_unwatch(*watch);
	*watch = NULL;
	descriptor_close(fd);
}

static void
free_task(struct task *task)
{
	if (task->command != NULL)
		command_close(task->command);
	stop_watching(&task->output_watch, &task->output);
	stop_watching(&task->errors_watch, &task->errors);
	stop_watching(&task->input_watch, &task->input);
	buffer_free(&task->gathered);
	buffer_free(&task->complaints);
	buffer_free(&task->waiting);
	loop_timer_free(task->settle);
	memory_free(task->script);
	memory_free(task);
}

/* Offers what is held to the owner; true when all of it was taken. */
static bool
offer(struct task *task)
{
	size_t taken;

	if (task->events == NULL || task->events->output == NULL || task->gathered.length == 0)
		return true;
	taken = task->events->output(
	    task->argument, buffer_data(&task->gathered), task->gathered.length);
	buffer_consume(&task->gathered, taken);
	return task->gathered.length == 0;
}

/* Reads once; false when there is no more for now. */
static bool
read_output(struct task *task)
{
	static unsigned char chunk[CHUNK_SIZE];
	ssize_t got;

	if (task->output < 0)
		return false;
	got = read(task->output, chunk, sizeof(chunk));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0) {
		stop_watching(&task->output_watch, &task->output);
		return false;
	}
	if (buffer_append(&task->gathered, chunk, (size_t)got) != 0) {
		task->too_much = true;
		if (task->command != NULL && !task->ended)
			command_abort(task->command);
		stop_watching(&task->output_watch, &task->output);
		return false;
	}
	return true;
}

static bool
read_errors(struct task *task)
{
	char chunk[1024];
	ssize_t got;

	if (task->errors < 0)
		return false;
	got = read(task->errors, chunk, sizeof(chunk));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0) {
		stop_watching(&task->errors_watch, &task->errors);
		return false;
	}
	/* The last of it says what went wrong. */
	if ((size_t)got > buffer_room(&task->complaints))
		buffer_consume(&task->complaints, (size_t)got - buffer_room(&task->complaints));
	(void)buffer_append(&task->complaints, chunk, (size_t)got);
	return true;
}

static void
output_ready(void *argument, unsigned events)
{
	struct task *task = argument;

	(void)events;
	if (!offer(task)) {
		/* Not only unread: a hang-up would be reported again and again. */
		loop_unwatch(task->output_watch);
		task->output_watch = NULL;
		return;
	}
	if (read_output(task))
		(void)offer(task);
}

static void
errors_ready(void *argument, unsigned events)
{
	(void)events;
	(void)read_errors(argument);
}

static void
input_ready(void *argument, unsigned events)
{
	struct task *task = argument;
	ssize_t written;

	written = 0;
	if ((events & LOOP_WRITE) == 0) {
		buffer_free(&task->waiting);
		task->input_open = false;
	} else if (task->waiting.length > 0) {
		written = write(task->input, buffer_data(&task->waiting), task->waiting.length);
		if (written < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		/* Nobody reads any more: the script's end says why. */
		buffer_consume(
		    &task->waiting, written < 0 ? task->waiting.length : (size_t)written);
	}
	if (task->waiting.length == 0 && !task->input_open)
		stop_watching(&task->input_watch, &task->input);
	else if (task->waiting.length == 0)
		loop_watch_change(task->input_watch, 0);
	if (written > 0 && task->input_open && task->events != NULL && task->events->hungry != NULL)
		task->events->hungry(task->argument);
}

/* Takes "error CODE TEXT" out of a script's stderr; false when there is none. */
static bool
take_error(char *text, struct error *err)
{
	static const char mark[] = "\nerror ";
	char *line, *word;

	if (strncmp(text, mark + 1, strlen(mark + 1)) == 0) {
		word = text + strlen(mark + 1);
	} else {
		line = strstr(text, mark);
		if (line == NULL)
			return false;
		word = line + strlen(mark);
	}
	word[strcspn(word, "\n")] = '\0';
	line = word + strcspn(word, " ");
	if (*line != '\0')
		*line++ = '\0';
	if (error_code_parse(word) == ERROR_NONE)
		return false;
	error_set(err, error_code_parse(word), "%s", line);
	return true;
}

static void
explain(const struct task *task, struct error *err)
{
	char *text;

	text = memory_text_bounded(buffer_data(&task->complaints), task->complaints.length);
	if (!take_error(text, err)) {
		text[strcspn(text, "\n")] = '\0';
		error_set(err, ERROR_UNAVAILABLE, "%s in the sandbox: %s", task->script,
		    *text == '\0' ? "failed without a word" : text);
	}
	memory_free(text);
}

static int
judge(const struct task *task, struct error *err)
{
	if (task->too_much)
		return error_set(
		    err, ERROR_TOO_LARGE, "%s: the answer is over the limit", task->script);
	if (task->ending.failed) {
		*err = task->ending.failure;
		return -1;
	}
	if (task->ending.signaled || task->ending.status != 0) {
		explain(task, err);
		return -1;
	}
	return 0;
}

static void
settle_expired(void *argument)
{
	struct task *task = argument;
	struct error err;
	int result;

	if (!task->ended)
		return;
	do {
		if (!offer(task))
			return;
	} while (read_output(task));
	while (read_errors(task))
		continue;
	result = judge(task, &err);
	if (task->events != NULL)
		task->events->done(task->argument, &task->gathered, result == 0 ? NULL : &err);
	free_task(task);
}

static void
command_progress(void *argument, const char *text)
{
	struct task *task = argument;

	if (task->events != NULL && task->events->progress != NULL)
		task->events->progress(task->argument, text);
}

static void
command_started(void *argument, const struct driver_descriptors *descriptors)
{
	struct task *task = argument;
	struct loop *loop = workspace_loop(task->workspace);

	task->output = descriptors->output;
	task->errors = descriptors->errors;
	task->input = descriptors->input;
	(void)descriptor_nonblock(task->output, NULL);
	task->output_watch = loop_watch(loop, task->output, LOOP_READ, output_ready, task);
	if (task->errors >= 0) {
		(void)descriptor_nonblock(task->errors, NULL);
		task->errors_watch = loop_watch(loop, task->errors, LOOP_READ, errors_ready, task);
	}
	if (task->input >= 0) {
		(void)descriptor_nonblock(task->input, NULL);
		task->input_watch = loop_watch(loop, task->input,
		    task->waiting.length > 0 || !task->input_open ? LOOP_WRITE : 0, input_ready,
		    task);
	}
}

static void
command_ended(void *argument, const struct command_exit *ended)
{
	struct task *task = argument;

	task->ended = true;
	task->ending = *ended;
	task->ending.note = NULL;
	loop_timer_start(task->settle, 0);
}

static const struct command_events command_events = {
	.progress = command_progress,
	.started = command_started,
	.ended = command_ended,
};

struct task *
task_start(struct workspace *workspace, const struct task_setup *setup,
    const struct task_events *events, void *argument)
{
	struct command_request request = { 0 };
	char directory[] = ".";
	struct task *task;
	char **argv;

	task = memory_zeroed(1, sizeof(*task));
	task->workspace = workspace;
	task->events = events;
	task->argument = argument;
	task->script = memory_text(setup->script);
	task->output = task->errors = task->input = -1;
	task->input_open = setup->open;
	buffer_init(&task->gathered, events->output != NULL ? (size_t)CHUNK_SIZE * 2 : setup->max);
	buffer_init(&task->complaints, COMPLAINTS_MAX);
	buffer_init(&task->waiting,
	    setup->input_size > TASK_INPUT_MAX ? setup->input_size : TASK_INPUT_MAX);
	(void)buffer_append(&task->waiting, setup->input, setup->input_size);
	task->settle = loop_timer_new(workspace_loop(workspace), settle_expired, task);
	argv = script_argv(setup->script, setup->arguments);
	request.argv = argv;
	request.directory = directory;
	request.want_stdin = setup->open || setup->input_size > 0;
	request.internal = true;
	task->command = command_start(workspace, &request, &command_events, task);
	memory_list_free(argv);
	return task;
}

void
task_input(struct task *task, const void *data, size_t size, bool end)
{
	if (!task->input_open)
		return;
	(void)buffer_append(&task->waiting, data, size);
	if (end)
		task->input_open = false;
	if (task->input_watch != NULL)
		loop_watch_change(task->input_watch, LOOP_WRITE);
}

size_t
task_input_room(const struct task *task)
{
	return task->waiting.length >= TASK_INPUT_MAX ? 0 : TASK_INPUT_MAX - task->waiting.length;
}

void
task_resume(struct task *task)
{
	if (task->ended)
		loop_timer_start(task->settle, 0);
	else if (task->output >= 0 && task->output_watch == NULL)
		task->output_watch = loop_watch(
		    workspace_loop(task->workspace), task->output, LOOP_READ, output_ready, task);
}

void
task_abort(struct task *task)
{
	if (!task->ended)
		command_abort(task->command);
}

void
task_free(struct task *task)
{
	if (task == NULL)
		return;
	task->events = NULL;
	if (task->ended)
		free_task(task);
	else
		command_abort(task->command);
}
