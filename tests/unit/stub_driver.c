/* SPDX-License-Identifier: ISC */
/* Every callback comes from a timer of the loop, as the interface promises. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/conf.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/driver.h"
#include "core/workspace.h"
#include "gateway/worker.h"
#include "tests/unit/stub_driver.h"

struct driver_sandbox {
	struct loop *loop;
	struct driver_operation *operations;
	struct driver_stream *streams;
};

/* One callback that is due. */
struct driver_operation {
	struct driver_operation *next;
	struct driver_sandbox *sandbox;
	struct loop_timer *timer;
	driver_connected_fn *connected;
	driver_done_fn *done;
	driver_result_fn *result;
	void *argument;
};

struct driver_stream {
	struct driver_stream *next;
	struct driver_sandbox *sandbox;
	struct loop_timer *timer;
	const struct driver_stream_events *events;
	void *argument;
};

static void
stub_cancel(struct driver_operation *operation)
{
	struct driver_operation **place;

	for (place = &operation->sandbox->operations; *place != operation; place = &(*place)->next)
		continue;
	*place = operation->next;
	loop_timer_free(operation->timer);
	memory_free(operation);
}

static void
due(void *argument)
{
	static const char check[] = "root /root\nshell /bin/sh\n";
	struct driver_connected connected = { .id = "stub-1", .directory = "/root" };
	struct driver_operation *operation = argument, copy = *operation;
	struct driver_result result = { 0 };
	struct error err;

	stub_cancel(operation);
	result.output = (const unsigned char *)check;
	result.output_size = strlen(check);
	if (copy.connected != NULL)
		copy.connected(copy.argument, &connected, NULL);
	else if (copy.result != NULL)
		copy.result(copy.argument, &result, NULL);
	else
		copy.done(copy.argument, (error_set(&err, ERROR_UNSUPPORTED, "a stub"), &err));
}

static struct driver_operation *
later(struct driver_sandbox *sandbox, void *argument)
{
	struct driver_operation *operation;

	operation = memory_zeroed(1, sizeof(*operation));
	operation->sandbox = sandbox;
	operation->argument = argument;
	operation->next = sandbox->operations;
	sandbox->operations = operation;
	operation->timer = loop_timer_new(sandbox->loop, due, operation);
	loop_timer_start(operation->timer, 0);
	return operation;
}

static struct driver_sandbox *
stub_open(const struct driver_context *context, struct error *err)
{
	struct driver_sandbox *sandbox;

	(void)err;
	sandbox = memory_zeroed(1, sizeof(*sandbox));
	sandbox->loop = context->loop;
	return sandbox;
}

static void
stub_close_stream(struct driver_stream *stream)
{
	struct driver_stream **place;

	for (place = &stream->sandbox->streams; *place != stream; place = &(*place)->next)
		continue;
	*place = stream->next;
	loop_timer_free(stream->timer);
	memory_free(stream);
}

static void
stub_close(struct driver_sandbox *sandbox)
{
	while (sandbox->operations != NULL)
		stub_cancel(sandbox->operations);
	while (sandbox->streams != NULL)
		stub_close_stream(sandbox->streams);
	memory_free(sandbox);
}

static void
stub_connect(struct driver_sandbox *sandbox, const struct driver_target *target,
    driver_connected_fn *done, void *argument)
{
	(void)target;
	later(sandbox, argument)->connected = done;
}

static void
stub_release(struct driver_sandbox *sandbox, enum driver_release release, driver_done_fn *done,
    void *argument)
{
	(void)release;
	later(sandbox, argument)->done = done;
}

static void
stub_extend(struct driver_sandbox *sandbox, driver_done_fn *done, void *argument)
{
	later(sandbox, argument)->done = done;
}

static struct driver_operation *
stub_copy(struct driver_sandbox *sandbox, const char *path, uint64_t size, int fd,
    driver_done_fn *done, void *argument)
{
	struct driver_operation *operation = later(sandbox, argument);

	(void)path;
	(void)size;
	(void)close(fd);
	operation->done = done;
	return operation;
}

static struct driver_operation *
stub_run(struct driver_sandbox *sandbox, char *const *argv, const void *input, size_t input_size,
    size_t max_output, driver_result_fn *done, void *argument)
{
	struct driver_operation *operation = later(sandbox, argument);

	(void)argv;
	(void)input;
	(void)input_size;
	(void)max_output;
	operation->result = done;
	return operation;
}

static void
not_started(void *argument)
{
	struct driver_stream *stream = argument;
	struct error err;

	error_set(&err, ERROR_UNAVAILABLE, "a stub runs nothing");
	stream->events->exited(stream->argument, NULL, &err);
}

static struct driver_stream *
stub_start(struct driver_sandbox *sandbox, const struct driver_command *command,
    const struct driver_stream_events *events, void *argument)
{
	struct driver_stream *stream;

	(void)command;
	stream = memory_zeroed(1, sizeof(*stream));
	stream->sandbox = sandbox;
	stream->events = events;
	stream->argument = argument;
	stream->next = sandbox->streams;
	sandbox->streams = stream;
	stream->timer = loop_timer_new(sandbox->loop, not_started, stream);
	loop_timer_start(stream->timer, 0);
	return stream;
}

static void
stub_signal(struct driver_stream *stream, int number)
{
	(void)stream;
	(void)number;
}

static const struct option no_options[] = { { .name = NULL } };

static const struct driver_kind stub_kind = {
	.name = "stub",
	.supports = DRIVER_STDIN | DRIVER_END_OF_STDIN | DRIVER_STDERR | DRIVER_BINARY |
		    DRIVER_EXIT | DRIVER_GROUP | DRIVER_FLOW,
	.options = no_options,
	.standard_dispose = "keep",
};

static const struct driver stub_driver = {
	.kind = &stub_kind,
	.open = stub_open,
	.close = stub_close,
	.connect = stub_connect,
	.release = stub_release,
	.extend = stub_extend,
	.read = stub_copy,
	.write = stub_copy,
	.run = stub_run,
	.cancel = stub_cancel,
	.start = stub_start,
	.signal = stub_signal,
	.close_stream = stub_close_stream,
};

void
stub_worker_open(struct worker *worker)
{
	static const struct option *const tables[] = { conf_options, no_options, NULL };
	struct workspace_setup setup = { 0 };
	struct error err;

	memset(worker, 0, sizeof(*worker));
	worker->loop = loop_new(&err);
	worker->settings = settings_new(tables);
	setup.loop = worker->loop;
	setup.driver = &stub_driver;
	setup.settings = worker->settings;
	setup.login = setup.name = "stub";
	setup.instance = "test stub";
	setup.directory = -1;
	worker->workspace = worker->loop == NULL ? NULL : workspace_new(&setup);
	if (worker->workspace == NULL)
		abort();
}

void
stub_worker_close(struct worker *worker)
{
	workspace_free(worker->workspace);
	settings_free(worker->settings);
	loop_free(worker->loop);
}
