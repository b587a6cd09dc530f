/* SPDX-License-Identifier: ISC */
/* Commands that are run to their end, with their output gathered. */
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "drivers/e2b_driver.h"
#include "drivers/operation.h"

struct e2b_run {
	struct driver_operation operation; /* first: a run is an operation */
	struct e2b_process *process;
	struct e2b_input *input;
	unsigned char *data; /* for stdin */
	size_t size;
	struct buffer output, errors;
	bool truncated;
	driver_result_fn *done; /* NULL: nobody cares */
	void *argument;
};

static void
destroy(struct driver_operation *operation)
{
	struct e2b_run *run = (struct e2b_run *)operation;

	e2b_input_free(run->input);
	e2b_process_free(run->process);
	buffer_wipe(&run->output);
	buffer_wipe(&run->errors);
	if (run->data != NULL)
		explicit_bzero(run->data, run->size);
	memory_free(run->data);
	memory_free(run);
}

static void
input_failed(void *argument, const struct error *err)
{
	struct e2b_run *run = argument;

	e2b_process_fail(run->process, err);
}

static void
run_started(void *argument, uint32_t pid)
{
	struct e2b_input_setup setup = { 0 };
	struct e2b_run *run = argument;

	if (run->size == 0)
		return;
	setup.sandbox = run->operation.sandbox;
	setup.pid = pid;
	setup.source = -1;
	setup.data = run->data;
	setup.size = run->size;
	setup.failed = input_failed;
	setup.argument = run;
	run->input = e2b_input_new(&setup);
}

/* What does not fit is dropped: the command is never held up. */
static bool
run_has_room(void *argument, enum e2b_event_kind kind)
{
	(void)argument;
	(void)kind;
	return true;
}

static void
run_output(void *argument, enum e2b_event_kind kind, const unsigned char *data, size_t size)
{
	struct e2b_run *run = argument;
	struct buffer *buffer = kind == E2B_EVENT_ERRORS ? &run->errors : &run->output;
	size_t room = buffer_room(buffer);

	if (size > room)
		run->truncated = true;
	(void)buffer_append(buffer, data, size < room ? size : room);
}

static void
run_ended(void *argument, const struct driver_exit *ended, const struct error *err)
{
	struct e2b_run *run = argument;
	struct buffer output = run->output, errors = run->errors;
	struct driver_result result = { 0 };
	driver_result_fn *done = run->done;
	void *done_argument = run->argument;
	struct error failure;

	/* It may be the process's own, which goes first. */
	if (ended != NULL)
		result.ended = *ended;
	else
		failure = *err;
	result.output = buffer_data(&output);
	result.output_size = output.length;
	result.errors = buffer_data(&errors);
	result.errors_size = errors.length;
	result.truncated = run->truncated;
	/* The callback must not find the operation under way any more, but its output. */
	buffer_init(&run->output, 0);
	buffer_init(&run->errors, 0);
	operation_cancel(&run->operation);
	if (done != NULL)
		done(
		    done_argument, ended == NULL ? NULL : &result, ended == NULL ? &failure : NULL);
	buffer_wipe(&output);
	buffer_wipe(&errors);
}

static const struct e2b_process_events run_events = {
	.started = run_started,
	.has_room = run_has_room,
	.output = run_output,
	.ended = run_ended,
};

struct driver_operation *
e2b_run_command(struct driver_sandbox *sandbox, const struct driver_command *command,
    const void *input, size_t input_size, size_t max_output, driver_result_fn *done, void *argument)
{
	struct e2b_run *run;

	run = memory_zeroed(1, sizeof(*run));
	run->done = done;
	run->argument = argument;
	buffer_init(&run->output, max_output);
	buffer_init(&run->errors, max_output);
	if (input_size > 0) {
		run->size = input_size;
		run->data = memory_allocate(input_size);
		memcpy(run->data, input, input_size);
	}
	operation_link(&run->operation, sandbox, &sandbox->operations, destroy);
	run->process = e2b_process_start(sandbox, command, &run_events, run);
	return &run->operation;
}

/* Not in the default directory, without which nothing could be run in the sandbox any more. */
struct driver_operation *
e2b_run(struct driver_sandbox *sandbox, char *const *argv, const void *input, size_t input_size,
    size_t max_output, driver_result_fn *done, void *argument)
{
	struct driver_command command = {
		.argv = argv, .directory = "/", .want_stdin = input_size > 0
	};

	return e2b_run_command(sandbox, &command, input, input_size, max_output, done, argument);
}
