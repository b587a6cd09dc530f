/* SPDX-License-Identifier: ISC */
/* A read: check PATH, fetch. */
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/pump.h"
#include "drivers/file_copy.h"
#include "drivers/file_copy_private.h"

/* Moves what was received on to the reader, up to the limit; true when that is reached. */
static bool
drain(struct file_copy *copy)
{
	const struct buffer *received = http_received(copy->request);
	size_t size = received->length, room = pump_sink_room(copy->sink);

	if (size > room)
		size = room;
	if (size > copy->left)
		size = (size_t)copy->left;
	pump_sink_put(copy->sink, buffer_data(received), size);
	http_consume(copy->request, size);
	copy->left -= size;
	return copy->left == 0;
}

static void
end_read(struct file_copy *copy)
{
	copy->request = NULL;
	copy->is_complete = true;
	pump_sink_end(copy->sink);
	if (pump_sink_is_done(copy->sink))
		file_copy_report(copy, NULL);
}

static void
read_received(void *argument)
{
	struct file_copy *copy = argument;

	if (drain(copy)) {
		http_cancel(copy->request);
		end_read(copy);
		return;
	}
	http_hold(copy->request, http_received(copy->request)->length > 0);
}

static void
read_done(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct file_copy *copy = argument;

	copy->request = NULL;
	if (err == NULL)
		end_read(copy);
	else
		file_copy_fail(copy, answer, err, "read file");
}

static void
sink_has_room(void *argument)
{
	struct file_copy *copy = argument;

	if (copy->is_complete && pump_sink_is_done(copy->sink))
		file_copy_report(copy, NULL);
	else if (copy->request != NULL)
		http_hold(copy->request, false);
}

static void
fetch(struct file_copy *copy, const char *output)
{
	struct http_call call = { 0 };

	(void)output;
	call.method = "GET";
	call.repeat = HTTP_IDEMPOTENT;
	call.received = read_received;
	call.done = read_done;
	call.argument = copy;
	copy->request = copy->setup.interface->fetch(copy->setup.sandbox, copy->path, &call);
}

struct driver_operation *
file_copy_read(const struct file_copy_setup *setup, const char *path, uint64_t max, int sink,
    driver_done_fn *done, void *argument)
{
	struct file_copy *copy;

	copy = file_copy_new(setup, path, done, argument);
	copy->sink = pump_sink_new(setup->loop, sink, FILE_COPY_PUMP_MAX, sink_has_room, copy);
	copy->left = max == UINT64_MAX ? max : max + 1;
	if (copy->err.code == ERROR_NONE)
		file_copy_begin_script(copy, "check", copy->path, NULL, fetch);
	return &copy->operation;
}
