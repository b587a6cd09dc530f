/* SPDX-License-Identifier: ISC */
/* Snapshots that are made, listed, deleted and sent; restore and import have files of their own. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/archive.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/snapshot.h"
#include "core/snapshot_record.h"
#include "core/snapshot_state.h"
#include "core/task.h"
#include "core/workspace.h"

/* As much of skipped names as a listing may have, and records besides. */
#define OUTPUT_MAX ((size_t)64 << 20)
/* The most that a verb of the script takes behind the snapshot's id. */
#define ARGUMENTS_MAX 5

static const struct task_setup gathered = { .max = OUTPUT_MAX };
const struct task_setup snapshot_quiet = { .max = SNAPSHOT_QUIET_MAX };

static void
free_snapshot(struct snapshot *snapshot)
{
	task_free(snapshot->task);
	archive_copy_free(snapshot->copy);
	loop_timer_free(snapshot->later);
	snapshot_record_free(&snapshot->record);
	snapshot_exclude_free(&snapshot->exclude);
	snapshot_plan_free(&snapshot->plan);
	if (snapshot->entries != NULL)
		buffer_free(snapshot->entries);
	memory_free(snapshot->entries);
	memory_free(snapshot);
}

static void
later_expired(void *argument)
{
	struct snapshot *snapshot = argument;

	snapshot_finish(snapshot, NULL, &snapshot->failure);
}

struct snapshot *
snapshot_new(struct workspace *workspace, const struct snapshot_events *events, void *argument)
{
	struct snapshot *snapshot;

	snapshot = memory_zeroed(1, sizeof(*snapshot));
	snapshot->workspace = workspace;
	snapshot->events = events;
	snapshot->argument = argument;
	snapshot->later = loop_timer_new(workspace_loop(workspace), later_expired, snapshot);
	return snapshot;
}

void
snapshot_finish(
    struct snapshot *snapshot, const struct snapshot_outcome *outcome, const struct error *err)
{
	if (snapshot->events != NULL)
		snapshot->events->done(snapshot->argument, outcome, err);
	free_snapshot(snapshot);
}

void
snapshot_fail_later(struct snapshot *snapshot)
{
	loop_timer_start(snapshot->later, 0);
}

void
snapshot_progress(void *argument, const char *text)
{
	struct snapshot *snapshot = argument;

	if (snapshot->events != NULL && snapshot->events->progress != NULL)
		snapshot->events->progress(snapshot->argument, text);
}

/* The terminated text of what a task gathered; new. */
static char *
gathered_text(const struct buffer *output)
{
	return memory_text_bounded(buffer_data(output), output->length);
}

bool
snapshot_take_id(struct snapshot *snapshot, const char *id)
{
	if (!snapshot_id_valid(id)) {
		error_set(&snapshot->failure, ERROR_NOT_FOUND, "there is no snapshot %.64s", id);
		snapshot_fail_later(snapshot);
		return false;
	}
	memcpy(snapshot->record.id, id, strlen(id));
	return true;
}

void
snapshot_run(struct snapshot *snapshot, const char *verb, char *const *more,
    const struct task_setup *setup, const struct task_events *events)
{
	char root[] = ".", *word, *arguments[3 + ARGUMENTS_MAX + 1];
	struct task_setup whole = *setup;
	size_t i;

	word = memory_text(verb);
	arguments[0] = word;
	arguments[1] = root;
	arguments[2] = snapshot->record.id;
	for (i = 0; more != NULL && more[i] != NULL && i < ARGUMENTS_MAX; i++)
		arguments[3 + i] = more[i];
	arguments[3 + i] = NULL;
	whole.script = "snapshot";
	whole.arguments = arguments;
	snapshot->task = task_start(snapshot->workspace, &whole, events, snapshot);
	memory_free(word);
}

/* After its first line, what the script printed is a list of names. */
static void
tell_record(struct snapshot *snapshot, struct buffer *output)
{
	struct snapshot_outcome outcome = { 0 };
	const char *data = (const char *)buffer_data(output), *end;

	end = memchr(data, '\n', output->length);
	outcome.records = &snapshot->record;
	outcome.count = 1;
	outcome.skipped.data = end + 1;
	outcome.skipped.size = output->length - (size_t)(end + 1 - data);
	snapshot_finish(snapshot, &outcome, NULL);
}

static void
created(void *argument, struct buffer *output, const struct error *err)
{
	struct snapshot *snapshot = argument;
	struct error damaged;
	const char *at;
	char *line;
	int result;

	snapshot->task = NULL;
	if (err != NULL) {
		snapshot_finish(snapshot, NULL, err);
		return;
	}
	at = line = gathered_text(output);
	result = snapshot_read_number(&at, ' ', &snapshot->record.files);
	if (result == 0)
		result = snapshot_read_number(&at, '\n', &snapshot->record.bytes);
	memory_free(line);
	if (result == 0) {
		tell_record(snapshot, output);
		return;
	}
	error_set(&damaged, ERROR_UNAVAILABLE, "the sandbox does not say what the snapshot holds");
	snapshot_finish(snapshot, NULL, &damaged);
}

static const struct task_events create_events = { .progress = snapshot_progress, .done = created };

struct snapshot *
snapshot_create(struct workspace *workspace, const struct snapshot_request *request,
    const struct snapshot_events *events, void *argument)
{
	char max_file[32], max_total[32], *arguments[5], *text;
	struct task_setup setup = { .max = OUTPUT_MAX };
	struct snapshot *snapshot;

	snapshot = snapshot_new(workspace, events, argument);
	snapshot_record_make(&snapshot->record, request);
	if (snapshot_exclude_make(&snapshot->exclude, request->exclude, &snapshot->failure) != 0) {
		snapshot_fail_later(snapshot);
		return snapshot;
	}
	(void)snprintf(max_file, sizeof(max_file), "%" PRIu64, request->max_file_bytes);
	(void)snprintf(max_total, sizeof(max_total), "%" PRId64,
	    settings_number(workspace_settings(workspace), "max_snapshot_bytes"));
	arguments[0] = max_file;
	arguments[1] = max_total;
	arguments[2] = snapshot->exclude.exclude;
	arguments[3] = snapshot->exclude.hold;
	arguments[4] = NULL;
	text = snapshot_record_print(&snapshot->record);
	setup.input = text;
	setup.input_size = strlen(text);
	snapshot_run(snapshot, "create", arguments, &setup, &create_events);
	memory_free(text);
	return snapshot;
}

static void
free_records(struct snapshot_record *records, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		snapshot_record_free(&records[i]);
	memory_free(records);
}

/*
 * One that cannot be read is left out:
 * a command may have changed it, and the others are still good.
 */
static void
listed(void *argument, struct buffer *output, const struct error *err)
{
	struct snapshot *snapshot = argument;
	struct snapshot_outcome outcome = { 0 };
	struct snapshot_record *records;
	char *text, *line, *end;
	size_t count;

	snapshot->task = NULL;
	if (err != NULL) {
		snapshot_finish(snapshot, NULL, err);
		return;
	}
	records = NULL;
	count = 0;
	text = gathered_text(output);
	for (line = text; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		records = memory_resize(records, count + 1, sizeof(*records));
		if (snapshot_record_read(&records[count], line, NULL) == 0)
			count++;
		else
			snapshot_record_free(&records[count]);
	}
	outcome.records = records;
	outcome.count = count;
	snapshot_finish(snapshot, &outcome, NULL);
	free_records(records, count);
	memory_free(text);
}

static const struct task_events list_events = { .progress = snapshot_progress, .done = listed };

struct snapshot *
snapshot_list(struct workspace *workspace, const struct snapshot_events *events, void *argument)
{
	struct snapshot *snapshot;

	snapshot = snapshot_new(workspace, events, argument);
	snapshot_run(snapshot, "list", NULL, &gathered, &list_events);
	return snapshot;
}

static void
shown(void *argument, struct buffer *output, const struct error *err)
{
	struct snapshot *snapshot = argument;
	struct error damaged;
	char *line;

	snapshot->task = NULL;
	if (err != NULL) {
		snapshot_finish(snapshot, NULL, err);
		return;
	}
	line = gathered_text(output);
	line[strcspn(line, "\n")] = '\0';
	snapshot_record_free(&snapshot->record);
	if (snapshot_record_read(&snapshot->record, line, &damaged) == 0)
		tell_record(snapshot, output);
	else
		snapshot_finish(snapshot, NULL, &damaged);
	memory_free(line);
}

static const struct task_events show_events = { .progress = snapshot_progress, .done = shown };

struct snapshot *
snapshot_show(struct workspace *workspace, const char *id, const struct snapshot_events *events,
    void *argument)
{
	struct snapshot *snapshot;

	snapshot = snapshot_new(workspace, events, argument);
	if (snapshot_take_id(snapshot, id))
		snapshot_run(snapshot, "show", NULL, &gathered, &show_events);
	return snapshot;
}

static void
deleted(void *argument, struct buffer *output, const struct error *err)
{
	struct snapshot *snapshot = argument;
	struct snapshot_outcome outcome = { 0 };

	(void)output;
	snapshot->task = NULL;
	outcome.records = &snapshot->record;
	outcome.count = 1;
	snapshot_finish(snapshot, err == NULL ? &outcome : NULL, err);
}

static const struct task_events delete_events = { .progress = snapshot_progress, .done = deleted };

struct snapshot *
snapshot_delete(struct workspace *workspace, const char *id, const struct snapshot_events *events,
    void *argument)
{
	struct snapshot *snapshot;

	snapshot = snapshot_new(workspace, events, argument);
	if (snapshot_take_id(snapshot, id))
		snapshot_run(snapshot, "delete", NULL, &gathered, &delete_events);
	return snapshot;
}

/*
 * Reads the line that says how much there will be, digit by digit;
 * returns how many bytes were of it.
 */
static size_t
take_size(struct snapshot *snapshot, const unsigned char *data, size_t size)
{
	size_t i;

	for (i = 0; i < size && !snapshot->has_size; i++) {
		if (data[i] >= '0' && data[i] <= '9')
			snapshot->announced = snapshot->announced * 10 + (uint64_t)(data[i] - '0');
		else
			snapshot->has_size = true;
	}
	return i;
}

static size_t
send_archive(void *argument, const unsigned char *data, size_t size)
{
	struct snapshot *snapshot = argument;
	size_t head, taken;

	head = take_size(snapshot, data, size);
	if (snapshot->events == NULL || head == size)
		return size;
	taken = snapshot->events->output(snapshot->argument, data + head, size - head);
	snapshot->sent += taken;
	return head + taken;
}

static void
exported(void *argument, struct buffer *output, const struct error *err)
{
	struct snapshot *snapshot = argument;
	struct snapshot_outcome outcome = { 0 };
	struct error cut;

	(void)output;
	snapshot->task = NULL;
	outcome.records = &snapshot->record;
	outcome.count = 1;
	outcome.sent = snapshot->sent;
	if (err == NULL && (!snapshot->has_size || snapshot->sent != snapshot->announced)) {
		error_set(&cut, ERROR_UNAVAILABLE,
		    "the archive came to an end after %" PRIu64 " of %" PRIu64 " bytes",
		    snapshot->sent, snapshot->announced);
		err = &cut;
	}
	snapshot_finish(snapshot, err == NULL ? &outcome : NULL, err);
}

static const struct task_events export_events = {
	.output = send_archive,
	.progress = snapshot_progress,
	.done = exported,
};

struct snapshot *
snapshot_export(struct workspace *workspace, const char *id, const struct snapshot_events *events,
    void *argument)
{
	struct snapshot *snapshot;

	snapshot = snapshot_new(workspace, events, argument);
	if (snapshot_take_id(snapshot, id))
		snapshot_run(snapshot, "read", NULL, &gathered, &export_events);
	return snapshot;
}

void
snapshot_resume(struct snapshot *snapshot)
{
	if (snapshot->task != NULL)
		task_resume(snapshot->task);
}

void
snapshot_abort(struct snapshot *snapshot)
{
	if (snapshot->changing || loop_timer_running(snapshot->later))
		return;
	error_set(&snapshot->failure, ERROR_ABORTED, "stopped on request");
	task_free(snapshot->task);
	snapshot->task = NULL;
	snapshot_fail_later(snapshot);
}

void
snapshot_close(struct snapshot *snapshot)
{
	if (snapshot == NULL)
		return;
	snapshot->events = NULL;
	if (!snapshot->changing)
		free_snapshot(snapshot);
}
