/* SPDX-License-Identifier: ISC */
/*
 * Import: the stream goes through core/archive.c, which checks and rewrites it, into the stdin of a
 * script; when both have ended well, a second one makes the snapshot whole.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/archive.h"
#include "core/base/buffer.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/snapshot_record.h"
#include "core/snapshot_state.h"
#include "core/task.h"
#include "core/workspace.h"

static void
dropped(void *argument, struct buffer *output, const struct error *err)
{
	struct snapshot *snapshot = argument;

	(void)output;
	(void)err;
	snapshot->task = NULL;
	snapshot_finish(snapshot, NULL, &snapshot->failure);
}

static const struct task_events drop_events = { .done = dropped };

/* What was received is of no use: the workspace is as it was. */
static void
drop_part(struct snapshot *snapshot)
{
	snapshot_run(snapshot, "drop", NULL, &snapshot_quiet, &drop_events);
}

static void
fail(struct snapshot *snapshot, const struct error *err)
{
	snapshot->failure = *err;
	error_wrap(&snapshot->failure, "import");
	if (snapshot->copy == NULL)
		drop_part(snapshot);
	else
		snapshot_fail_later(snapshot);
}

static void
finished(void *argument, struct buffer *output, const struct error *err)
{
	struct snapshot *snapshot = argument;
	struct snapshot_outcome outcome = { 0 };

	(void)output;
	snapshot->task = NULL;
	snapshot->changing = false;
	outcome.records = &snapshot->record;
	outcome.count = 1;
	snapshot_finish(snapshot, err == NULL ? &outcome : NULL, err);
}

static const struct task_events finish_events = { .done = finished };

static void
make_whole(struct snapshot *snapshot)
{
	char sizes[3][24], counts[64], *arguments[6], *record;
	struct task_setup setup = snapshot_quiet;
	struct buffer input;

	record = snapshot_record_print(&snapshot->record);
	(void)snprintf(counts, sizeof(counts), "%" PRIu64 " %" PRIu64 "\n", snapshot->record.files,
	    snapshot->record.bytes);
	(void)snprintf(sizes[0], sizeof(sizes[0]), "%zu", strlen(counts));
	(void)snprintf(sizes[1], sizeof(sizes[1]), "%zu", strlen(record));
	(void)snprintf(sizes[2], sizeof(sizes[2]), "%zu", snapshot->entries->length);
	buffer_init(&input, strlen(counts) + strlen(record) + snapshot->entries->length);
	(void)buffer_append_text(&input, counts);
	(void)buffer_append_text(&input, record);
	(void)buffer_append(&input, buffer_data(snapshot->entries), snapshot->entries->length);
	arguments[0] = snapshot->exclude.exclude;
	arguments[1] = snapshot->exclude.hold;
	arguments[2] = sizes[0];
	arguments[3] = sizes[1];
	arguments[4] = sizes[2];
	arguments[5] = NULL;
	setup.input = buffer_data(&input);
	setup.input_size = input.length;
	snapshot->changing = true;
	snapshot_run(snapshot, "finish", arguments, &setup, &finish_events);
	buffer_free(&input);
	memory_free(record);
}

/* The script has stored everything, or could not. */
static void
received(void *argument, struct buffer *output, const struct error *err)
{
	struct snapshot *snapshot = argument;
	struct error cut;

	(void)output;
	snapshot->task = NULL;
	if (snapshot->failure.code != ERROR_NONE) {
		drop_part(snapshot);
		return;
	}
	if (err == NULL && snapshot->entries == NULL) {
		error_set(&cut, ERROR_UNAVAILABLE, "the sandbox stopped taking the archive");
		err = &cut;
	}
	if (err != NULL)
		fail(snapshot, err);
	else
		make_whole(snapshot);
}

static void
task_hungry(void *argument)
{
	struct snapshot *snapshot = argument;

	if (snapshot->copy != NULL)
		archive_copy_resume(snapshot->copy);
}

static const struct task_events receive_events = {
	.hungry = task_hungry,
	.progress = snapshot_progress,
	.done = received,
};

static size_t
pass_on(void *argument, const unsigned char *data, size_t size)
{
	struct snapshot *snapshot = argument;
	size_t room;

	if (snapshot->task == NULL)
		return size;
	room = task_input_room(snapshot->task);
	if (size > room)
		size = room;
	task_input(snapshot->task, data, size, false);
	return size;
}

static void
copy_hungry(void *argument)
{
	struct snapshot *snapshot = argument;

	if (snapshot->events != NULL && snapshot->events->hungry != NULL)
		snapshot->events->hungry(snapshot->argument);
}

static void
copied(void *argument, const struct buffer *entries, uint64_t files, uint64_t bytes,
    const struct error *err)
{
	struct snapshot *snapshot = argument;

	snapshot->copy = NULL;
	if (err != NULL && snapshot->task == NULL) {
		fail(snapshot, err);
		return;
	}
	if (err != NULL) {
		/* What it leaves can be removed only once it has ended. */
		snapshot->failure = *err;
		error_wrap(&snapshot->failure, "import");
		task_abort(snapshot->task);
		return;
	}
	snapshot->record.files = files;
	snapshot->record.bytes = bytes;
	snapshot->entries = memory_zeroed(1, sizeof(*snapshot->entries));
	buffer_init(snapshot->entries, entries->length);
	(void)buffer_append(snapshot->entries, buffer_data(entries), entries->length);
	if (snapshot->task != NULL)
		task_input(snapshot->task, NULL, 0, true);
}

static const struct archive_events copy_events = { pass_on, copy_hungry, copied };

struct snapshot *
snapshot_import(struct workspace *workspace, const struct snapshot_request *request,
    const struct snapshot_events *events, void *argument)
{
	struct task_setup setup = snapshot_quiet;
	struct snapshot *snapshot;
	int64_t limit;

	snapshot = snapshot_new(workspace, events, argument);
	snapshot_record_make(&snapshot->record, request);
	limit = settings_number(workspace_settings(workspace), "max_snapshot_bytes");
	if (snapshot_exclude_make(&snapshot->exclude, request->exclude, &snapshot->failure) == 0)
		snapshot->copy = archive_copy_new(workspace_loop(workspace), (uint64_t)limit,
		    &copy_events, snapshot, &snapshot->failure);
	if (snapshot->copy == NULL) {
		snapshot_fail_later(snapshot);
		return snapshot;
	}
	setup.open = true;
	snapshot_run(snapshot, "receive", NULL, &setup, &receive_events);
	return snapshot;
}

size_t
snapshot_input(struct snapshot *snapshot, const void *data, size_t size, bool end)
{
	size_t taken;

	if (snapshot->copy == NULL)
		return size;
	taken = archive_copy_input(snapshot->copy, data, size);
	if (taken == size && end)
		archive_copy_end(snapshot->copy);
	return taken;
}
