/* SPDX-License-Identifier: ISC */
/* Restore: look at the archive's list and the tree as it is, make the plan, and carry it out. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/memory.h"
#include "core/snapshot_record.h"
#include "core/snapshot_state.h"
#include "core/task.h"

/* Two lists of a listing's size, and a margin. */
#define LOOK_MAX ((size_t)160 << 20)

static void
tell_plan(struct snapshot *snapshot)
{
	const struct snapshot_plan *plan = &snapshot->plan;
	struct snapshot_outcome outcome = { 0 };

	outcome.records = &snapshot->record;
	outcome.count = 1;
	outcome.restored.data = (const char *)buffer_data(&plan->restored);
	outcome.restored.size = plan->restored.length;
	outcome.deleted.data = (const char *)buffer_data(&plan->deleted);
	outcome.deleted.size = plan->deleted.length;
	outcome.kept.data = (const char *)buffer_data(&plan->kept);
	outcome.kept.size = plan->kept.length;
	snapshot_finish(snapshot, &outcome, NULL);
}

static void
applied(void *argument, struct buffer *output, const struct error *err)
{
	struct snapshot *snapshot = argument;
	struct error failure;

	(void)output;
	snapshot->task = NULL;
	snapshot->changing = false;
	if (err == NULL) {
		tell_plan(snapshot);
		return;
	}
	failure = *err;
	error_wrap(&failure, "restore of %s", snapshot->record.id);
	snapshot_finish(snapshot, NULL, &failure);
}

static const struct task_events apply_events = { .done = applied };

static void
apply(struct snapshot *snapshot)
{
	char sizes[3][24], *arguments[4];
	struct snapshot_plan *plan = &snapshot->plan;
	const struct buffer *lists[3];
	struct task_setup setup = snapshot_quiet;
	struct buffer input;
	size_t i;

	lists[0] = &plan->remove_files;
	lists[1] = &plan->remove_directories;
	lists[2] = &plan->names;
	buffer_init(&input, lists[0]->length + lists[1]->length + lists[2]->length);
	for (i = 0; i < 3; i++) {
		(void)buffer_append(&input, buffer_data(lists[i]), lists[i]->length);
		(void)snprintf(sizes[i], sizeof(sizes[i]), "%zu", lists[i]->length);
		arguments[i] = sizes[i];
	}
	arguments[3] = NULL;
	setup.input = buffer_data(&input);
	setup.input_size = input.length;
	snapshot->changing = true;
	snapshot_run(snapshot, "apply", arguments, &setup, &apply_events);
	buffer_free(&input);
}

/* The parts of the script's answer: three sizes on a line, three parts of these, and the tree. */
static int
split(const struct buffer *output, struct snapshot_list parts[4])
{
	const char *data = (const char *)buffer_data(output), *at;
	uint64_t sizes[3];
	size_t i, left;
	char *line;
	int result;

	/* The first of it as a text, which ends: the numbers and no more are read there. */
	at = line = memory_text_bounded(data, output->length < 80 ? output->length : 80);
	result = snapshot_read_number(&at, ' ', &sizes[0]);
	if (result == 0)
		result = snapshot_read_number(&at, ' ', &sizes[1]);
	if (result == 0)
		result = snapshot_read_number(&at, '\n', &sizes[2]);
	data += at - line;
	left = output->length - (size_t)(at - line);
	memory_free(line);
	if (result != 0)
		return -1;
	at = data;
	for (i = 0; i < 3; i++) {
		if (sizes[i] > left)
			return -1;
		parts[i].data = at;
		parts[i].size = (size_t)sizes[i];
		at += sizes[i];
		left -= (size_t)sizes[i];
	}
	parts[3].data = at;
	parts[3].size = left;
	return 0;
}

static int
make_plan(struct snapshot *snapshot, const struct buffer *output, struct error *err)
{
	struct snapshot_list parts[4];
	char *text;
	int result;

	if (split(output, parts) != 0)
		return error_set(err, ERROR_INVALID, "snapshot %s is damaged", snapshot->record.id);
	text = memory_text_bounded(parts[0].data, parts[0].size);
	result = snapshot_record_parse(&snapshot->record, text, err);
	memory_free(text);
	if (result != 0)
		return -1;
	return snapshot_plan_make(
	    &snapshot->plan, &parts[1], &parts[2], &parts[3], snapshot->record.max_file_bytes, err);
}

static void
looked(void *argument, struct buffer *output, const struct error *err)
{
	struct snapshot *snapshot = argument;
	struct error damaged;

	snapshot->task = NULL;
	if (err != NULL)
		snapshot_finish(snapshot, NULL, err);
	else if (make_plan(snapshot, output, &damaged) != 0)
		snapshot_finish(snapshot, NULL, &damaged);
	else if (snapshot->dry_run)
		tell_plan(snapshot);
	else
		apply(snapshot);
}

static const struct task_events look_events = { .progress = snapshot_progress, .done = looked };

struct snapshot *
snapshot_restore(struct workspace *workspace, const char *id, bool dry_run,
    const struct snapshot_events *events, void *argument)
{
	static const struct task_setup looks = { .max = LOOK_MAX };
	struct snapshot *snapshot;

	snapshot = snapshot_new(workspace, events, argument);
	snapshot->dry_run = dry_run;
	if (snapshot_take_id(snapshot, id))
		snapshot_run(snapshot, "look", NULL, &looks, &look_events);
	return snapshot;
}
