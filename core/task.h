/* SPDX-License-Identifier: ISC */
/*
 * A script in the sandbox as a part of an operation of ours: its output streamed or gathered, its
 * input streamed or given at once, and stopped when the operation is. The workspace is not busy for
 * it.
 */
#ifndef CORE_TASK_H
#define CORE_TASK_H

#include <stdbool.h>
#include <stddef.h>

struct buffer;
struct error;
struct task;
struct workspace;

struct task_events {
	/*
	 * May be NULL: output is gathered. Else it is given as it comes, and returns how much was
	 * taken: when not all, the rest comes again after task_resume.
	 */
	size_t (*output)(void *argument, const unsigned char *data, size_t size);
	/* May be NULL: bytes of task_input were taken, and more may be given. */
	void (*hungry)(void *argument);
	/* May be NULL: for a person who waits. */
	void (*progress)(void *argument, const char *text);
	/*
	 * Once and last, and the task is gone: err NULL when the script ended with 0. What was
	 * gathered is in output (empty when it was streamed). A line "error CODE TEXT" on its
	 * stderr becomes err.
	 */
	void (*done)(void *argument, struct buffer *output, const struct error *err);
};

/*
 * Runs core/scripts/NAME.sh with a NULL-ended list of arguments, once the workspace is ready. input
 * (copied, may be NULL) is its stdin; with open more comes by task_input. At most max bytes are
 * gathered: more is TOO_LARGE.
 */
struct task_setup {
	const char *script;
	char *const *arguments;
	const void *input;
	size_t input_size;
	bool open;
	size_t max;
};
struct task *task_start(struct workspace *workspace, const struct task_setup *setup,
    const struct task_events *events, void *argument);

/* The bytes (not over TASK_INPUT_MAX in all that wait) are copied; end ends stdin. */
#define TASK_INPUT_MAX (16U * 1024U * 1024U)
void task_input(struct task *task, const void *data, size_t size, bool end);
size_t task_input_room(const struct task *task);

/* The owner can take output again. */
void task_resume(struct task *task);

/* Stops the script with TERM, then KILL: done is told ABORTED. */
void task_abort(struct task *task);

/*
 * The same, but done is not told. Its stdin stays open until the script has ended: an end would be taken for
 * that of whole input. Accepts NULL.
 */
void task_free(struct task *task);

#endif
