/* SPDX-License-Identifier: ISC */
/*
 * Reads, writes and runs of the local driver. A read or write hands its descriptor to init, so its
 * bytes never pass here; a run is a command whose output is gathered.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "drivers/local_driver.h"
#include "drivers/local_protocol.h"

#define CHUNK_SIZE 65536U

/* Reads in one go from a pipe that somebody may keep filling. */
#define CHUNKS_A_ROUND 32

/* Between TERM and KILL for what a run leaves behind: it has no business to. */
#define RUN_GRACE 200

/* One output of a run. */
struct gathering {
	struct driver_operation *operation;
	int fd;
	struct loop_watch *watch;
	struct buffer content;
};

struct driver_operation {
	struct driver_operation *next;
	struct driver_sandbox *sandbox;
	uint32_t id;          /* of a copy init knows of, else 0 */
	struct error failure; /* why it could not be sent */
	struct loop_timer *failed;
	driver_done_fn *done;     /* of a read or write */
	driver_result_fn *result; /* of a run */
	void *argument;
	struct driver_stream *stream;
	int input;
	struct loop_watch *input_watch;
	struct buffer input_left;
	struct gathering output, errors;
	bool truncated;
	bool ended;
	struct driver_exit exit;
};

static void
stop_gathering(struct gathering *gathering)
{
	loop_unwatch(gathering->watch);
	gathering->watch = NULL;
	descriptor_close(&gathering->fd);
}

static void
stop_input(struct driver_operation *operation)
{
	loop_unwatch(operation->input_watch);
	operation->input_watch = NULL;
	descriptor_close(&operation->input);
}

static void
free_operation(struct driver_operation *operation)
{
	struct driver_operation **place;

	for (place = &operation->sandbox->operations; *place != operation; place = &(*place)->next)
		continue;
	*place = operation->next;
	stop_input(operation);
	stop_gathering(&operation->output);
	stop_gathering(&operation->errors);
	buffer_wipe(&operation->input_left);
	buffer_wipe(&operation->output.content);
	buffer_wipe(&operation->errors.content);
	loop_timer_free(operation->failed);
	memory_free(operation);
}

/* Ends the operation with err, NULL for the success of a read or write, and frees it. */
static void
report(struct driver_operation *operation, const struct error *err)
{
	driver_result_fn *result = operation->result;
	driver_done_fn *done = operation->done;
	void *argument = operation->argument;

	if (operation->stream != NULL)
		local_stream_close(operation->stream);
	free_operation(operation);
	if (result != NULL)
		result(argument, NULL, err);
	else
		done(argument, err);
}

static void
report_failure(void *argument)
{
	struct driver_operation *operation = argument;
	struct error failure = operation->failure;

	report(operation, &failure);
}

static struct driver_operation *
new_operation(struct driver_sandbox *sandbox, void *argument)
{
	struct driver_operation *operation;

	operation = memory_zeroed(1, sizeof(*operation));
	operation->sandbox = sandbox;
	operation->argument = argument;
	operation->input = operation->output.fd = operation->errors.fd = -1;
	operation->failed = loop_timer_new(sandbox->context.loop, report_failure, operation);
	operation->next = sandbox->operations;
	sandbox->operations = operation;
	return operation;
}

static int
check_copy(const struct driver_sandbox *sandbox, const char *path, struct error *err)
{
	if (sandbox->state != LOCAL_RUNNING)
		return error_set(err, ERROR_UNAVAILABLE, "the sandbox does not run");
	if (path[0] != '/' || strlen(path) >= PATH_MAX)
		return error_set(err, ERROR_INVALID, "not an absolute path, or too long a one");
	return 0;
}

static struct driver_operation *
start_copy(struct driver_sandbox *sandbox, struct local_copy *copy, const char *path, int fd,
    driver_done_fn *done, void *argument)
{
	struct driver_operation *operation;
	struct message message;

	operation = new_operation(sandbox, argument);
	operation->done = done;
	if (check_copy(sandbox, path, &operation->failure) != 0) {
		(void)close(fd);
		loop_timer_start(operation->failed, 0);
		return operation;
	}
	copy->id = operation->id = local_next_id(sandbox);
	copy->path = memory_text(path);
	local_copy_encode(&message, copy);
	local_copy_free(copy);
	message.fd = fd;
	peer_send(sandbox->init, &message);
	return operation;
}

struct driver_operation *
local_read(struct driver_sandbox *sandbox, const char *path, uint64_t max, int sink,
    driver_done_fn *done, void *argument)
{
	struct local_copy copy = { .size = max == UINT64_MAX ? max : max + 1 };

	return start_copy(sandbox, &copy, path, sink, done, argument);
}

struct driver_operation *
local_write(struct driver_sandbox *sandbox, const char *path, uint64_t size, int source,
    driver_done_fn *done, void *argument)
{
	struct local_copy copy = { .write = true, .size = size };

	return start_copy(sandbox, &copy, path, source, done, argument);
}

int
local_done_take(void *argument, struct message *message, struct error *err)
{
	struct driver_sandbox *sandbox = argument;
	struct driver_operation *operation;
	struct local_done done;

	if (local_done_decode(message, &done, err) != 0)
		return -1;
	for (operation = sandbox->operations; operation != NULL; operation = operation->next)
		if (operation->id == done.id && done.id != 0)
			break;
	if (operation != NULL)
		report(operation, done.failure.code == ERROR_NONE ? NULL : &done.failure);
	return 0;
}

/* Keeps what fits; the command is never held up by what does not. True when there may be more. */
static bool
gather_chunk(struct gathering *gathering)
{
	unsigned char chunk[CHUNK_SIZE];
	size_t kept;
	ssize_t got;

	got = read(gathering->fd, chunk, sizeof(chunk));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0) {
		stop_gathering(gathering);
		return false;
	}
	kept = buffer_room(&gathering->content);
	if (kept < (size_t)got)
		gathering->operation->truncated = true;
	else
		kept = (size_t)got;
	(void)buffer_append(&gathering->content, chunk, kept);
	return true;
}

/*
 * Tells the result once the command ended and said all;
 * what it left running may hold its output open.
 */
static void
finish_run(struct driver_operation *operation)
{
	driver_result_fn *done = operation->result;
	void *argument = operation->argument;
	struct driver_result result = { .ended = operation->exit };
	struct buffer output = operation->output.content, errors = operation->errors.content;

	result.output = buffer_data(&output);
	result.output_size = output.length;
	result.errors = buffer_data(&errors);
	result.errors_size = errors.length;
	result.truncated = operation->truncated;
	/* The texts outlive the operation, which the callback must not find under way any more. */
	buffer_init(&operation->output.content, 0);
	buffer_init(&operation->errors.content, 0);
	local_stream_close(operation->stream);
	free_operation(operation);
	done(argument, &result, NULL);
	buffer_wipe(&output);
	buffer_wipe(&errors);
}

static void
output_ready(void *argument, unsigned events)
{
	struct gathering *gathering = argument;
	struct driver_operation *operation = gathering->operation;

	(void)events;
	(void)gather_chunk(gathering);
	if (operation->ended && operation->output.fd < 0 && operation->errors.fd < 0)
		finish_run(operation);
}

static void
input_ready(void *argument, unsigned events)
{
	struct driver_operation *operation = argument;
	ssize_t written;

	if ((events & LOOP_WRITE) == 0) {
		stop_input(operation);
		return;
	}
	written = write(
	    operation->input, buffer_data(&operation->input_left), operation->input_left.length);
	if (written < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (written > 0)
		buffer_consume(&operation->input_left, (size_t)written);
	if (written < 0 || operation->input_left.length == 0)
		stop_input(operation);
}

static void
gather(struct driver_operation *operation, struct gathering *gathering, int fd)
{
	gathering->operation = operation;
	gathering->fd = fd;
	(void)descriptor_nonblock(fd, NULL);
	gathering->watch = loop_watch(
	    operation->sandbox->context.loop, fd, LOOP_READ, output_ready, gathering);
}

static void
run_started(void *argument, const struct driver_descriptors *descriptors, uint32_t pid)
{
	struct driver_operation *operation = argument;

	(void)pid;
	gather(operation, &operation->output, descriptors->output);
	gather(operation, &operation->errors, descriptors->errors);
	operation->input = descriptors->input;
	if (operation->input < 0)
		return;
	(void)descriptor_nonblock(operation->input, NULL);
	operation->input_watch = loop_watch(
	    operation->sandbox->context.loop, operation->input, LOOP_WRITE, input_ready, operation);
}

static void
run_exited(void *argument, const struct driver_exit *ended, const struct error *err)
{
	struct driver_operation *operation = argument;

	if (ended == NULL) {
		report(operation, err);
		return;
	}
	operation->ended = true;
	operation->exit = *ended;
	if (operation->output.fd < 0 && operation->errors.fd < 0)
		finish_run(operation);
}

static void
run_gone(void *argument)
{
	struct driver_operation *operation = argument;
	int i;

	for (i = 0; i < CHUNKS_A_ROUND && operation->output.fd >= 0; i++)
		if (!gather_chunk(&operation->output))
			break;
	for (i = 0; i < CHUNKS_A_ROUND && operation->errors.fd >= 0; i++)
		if (!gather_chunk(&operation->errors))
			break;
	finish_run(operation);
}

static const struct driver_stream_events run_events = {
	.started = run_started,
	.exited = run_exited,
	.gone = run_gone,
};

struct driver_operation *
local_run(struct driver_sandbox *sandbox, char *const *argv, const void *input, size_t input_size,
    size_t max_output, driver_result_fn *done, void *argument)
{
	struct driver_command command = { .argv = argv, .kill_grace = RUN_GRACE };
	struct driver_operation *operation;

	operation = new_operation(sandbox, argument);
	operation->result = done;
	buffer_init(&operation->input_left, input_size);
	(void)buffer_append(&operation->input_left, input, input_size);
	buffer_init(&operation->output.content, max_output);
	buffer_init(&operation->errors.content, max_output);
	command.want_stdin = input_size > 0;
	operation->stream = local_stream_start(sandbox, &command, &run_events, operation);
	return operation;
}

void
local_cancel(struct driver_operation *operation)
{
	struct message message;

	if (operation->id != 0 && operation->sandbox->state == LOCAL_RUNNING) {
		local_id_encode(&message, LOCAL_CANCEL, operation->id);
		peer_send(operation->sandbox->init, &message);
	}
	if (operation->stream != NULL)
		local_stream_close(operation->stream);
	free_operation(operation);
}

/* Runs are told by their streams. */
bool
local_operation_lose(struct driver_sandbox *sandbox, const struct error *err)
{
	struct driver_operation *operation;

	for (operation = sandbox->operations; operation != NULL; operation = operation->next) {
		if (operation->stream != NULL)
			continue;
		report(operation, err);
		return true;
	}
	return false;
}

void
local_operation_free_all(struct driver_sandbox *sandbox)
{
	while (sandbox->operations != NULL)
		free_operation(sandbox->operations);
}
