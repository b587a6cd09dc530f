/* SPDX-License-Identifier: ISC */
/*
 * A copy is a script, then a request, and for a write another script:
 *
 *	read    check PATH, fetch
 *	write   prepare PATH, store into what it made, place it
 *	        or, where a big file is too much for one request, store its first part into what
 *	        it made and the others beside that, append each, place it
 *
 * A write that is given up while its private file is made goes on until it knows the file's name,
 * which nobody else does, and then removes it.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/pump.h"
#include "core/scripts.h"
#include "drivers/file_copy.h"
#include "drivers/file_copy_private.h"
#include "drivers/operation.h"
#include "drivers/pack.h"

#define OUTPUT_MAX 4096

/* Runs file.sh; nobody waits for the outcome when done is NULL. */
static struct driver_operation *
run_script(const struct file_copy_setup *setup, const char *mode, char *first, char *second,
    driver_result_fn *done, void *argument)
{
	struct driver_operation *operation;
	char *arguments[4] = { NULL, first, second, NULL }, **argv;

	arguments[0] = memory_text(mode);
	argv = script_argv("file", arguments);
	operation = setup->interface->driver->run(
	    setup->sandbox, argv, NULL, 0, OUTPUT_MAX, done, argument);
	memory_list_free(argv);
	memory_free(arguments[0]);
	return operation;
}

static void
free_copy(struct file_copy *copy)
{
	if (copy->script != NULL)
		copy->setup.interface->driver->cancel(copy->script);
	if (copy->temp != NULL && copy->setup.interface->is_ready(copy->setup.sandbox))
		(void)run_script(&copy->setup, "drop", copy->temp, NULL, NULL, NULL);
	pack_free(copy->part);
	memory_free(copy->temp);
	pump_sink_free(copy->sink);
	pump_source_free(copy->source);
	loop_timer_free(copy->soon);
	memory_free(copy->path);
	memory_free(copy);
}

static void
destroy(struct driver_operation *operation)
{
	struct file_copy *copy = (struct file_copy *)operation;

	http_cancel(copy->request);
	copy->request = NULL;
	if (!file_copy_is_preparing(copy) ||
	    !copy->setup.interface->is_ready(copy->setup.sandbox)) {
		free_copy(copy);
		return;
	}
	file_copy_abandon(copy);
	operation_link(operation, copy->setup.sandbox, copy->setup.operations, destroy);
}

static void
soon_expired(void *argument)
{
	struct file_copy *copy = argument;

	file_copy_report(copy, &copy->err);
}

static int
read_outcome(const char *output, struct error *err)
{
	enum error_code code;
	char *word;

	if (strncmp(output, "ok", 2) == 0)
		return 0;
	word = memory_text_bounded(output, strcspn(output, " \n"));
	code = error_code_parse(word);
	output += strlen(word);
	memory_free(word);
	if (code == ERROR_NONE || *output != ' ')
		return error_set(err, ERROR_UNAVAILABLE, "the sandbox's script gave no answer");
	return error_set(err, code, "%.*s", (int)strcspn(output + 1, "\n"), output + 1);
}

static void
script_done(void *argument, const struct driver_result *result, const struct error *reason)
{
	struct file_copy *copy = argument;
	struct error err;
	char *output;

	copy->script = NULL;
	if (reason != NULL) {
		file_copy_report(copy, reason);
		return;
	}
	output = memory_text_bounded(result->output, result->output_size);
	if (read_outcome(output, &err) == 0)
		copy->after(copy, output);
	else
		file_copy_report(copy, &err);
	memory_free(output);
}

struct file_copy *
file_copy_new(
    const struct file_copy_setup *setup, const char *path, driver_done_fn *done, void *argument)
{
	struct file_copy *copy;

	copy = memory_zeroed(1, sizeof(*copy));
	copy->setup = *setup;
	copy->path = memory_text(path);
	copy->done = done;
	copy->argument = argument;
	copy->soon = loop_timer_new(setup->loop, soon_expired, copy);
	operation_link(&copy->operation, setup->sandbox, setup->operations, destroy);
	if (!setup->interface->is_ready(setup->sandbox))
		error_set(&copy->err, ERROR_UNAVAILABLE, "the sandbox does not run");
	else if (path[0] != '/')
		error_set(&copy->err, ERROR_INVALID, "not an absolute path");
	if (copy->err.code != ERROR_NONE)
		loop_timer_start(copy->soon, 0);
	return copy;
}

void
file_copy_begin_script(
    struct file_copy *copy, const char *mode, char *first, char *second, file_copy_after_fn *after)
{
	copy->after = after;
	copy->script = run_script(&copy->setup, mode, first, second, script_done, copy);
}

void
file_copy_report(struct file_copy *copy, const struct error *err)
{
	driver_done_fn *done = copy->done;
	void *argument = copy->argument;
	struct error reason;

	if (err != NULL) {
		reason = *err;
		err = &reason;
	}
	operation_cancel(&copy->operation);
	if (done != NULL)
		done(argument, err);
}

void
file_copy_fail(struct file_copy *copy, const struct http_answer *answer, const struct error *reason,
    const char *what)
{
	struct error err = *reason;

	error_wrap(&err, "%s", what);
	copy->setup.interface->suspect(copy->setup.sandbox, answer);
	file_copy_report(copy, &err);
}
