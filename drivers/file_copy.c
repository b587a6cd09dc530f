/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "core/base/base64.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/pump.h"
#include "core/scripts.h"
#include "drivers/file_copy.h"
#include "drivers/http.h"

/* Bytes that wait for the reader of a read, and from the writer of a write. */
#define PUMP_MAX ((size_t)2 * HTTP_STREAM_ROOM)
#define OUTPUT_MAX 4096

/* Runs file.sh; nobody waits for the outcome when done is NULL. */
static struct driver_operation *
run_script(const struct file_copy_kind *kind, struct driver_sandbox *sandbox, const char *mode,
    char *const words[2], driver_result_fn *done, void *argument)
{
	struct driver_operation *operation;
	char *arguments[4] = { NULL, words[0], words[1], NULL }, **argv;

	arguments[0] = memory_text(mode);
	argv = script_argv("file", arguments);
	operation = kind->run(sandbox, argv, NULL, 0, OUTPUT_MAX, done, argument);
	memory_list_free(argv);
	memory_free(arguments[0]);
	return operation;
}

/* The name of the private file in what prepare said, "ok BASE64", as a new text; NULL for none. */
static char *
read_temp(const char *output)
{
	unsigned char *name;
	size_t size, length;
	char *temp;

	if (strncmp(output, "ok ", 3) != 0)
		return NULL;
	output += 3;
	length = strcspn(output, "\n");
	name = memory_allocate(length / 4 * 3 + 1);
	temp = NULL;
	if (base64_decode(name, &size, output, length) == 0 && size > 0 && name[0] == '/')
		temp = memory_text_bounded(name, size);
	memory_free(name);
	return temp;
}

static void
drop_temp(const struct file_copy_kind *kind, struct driver_sandbox *sandbox, char *temp)
{
	char *words[2] = { temp, NULL };

	(void)run_script(kind, sandbox, "drop", words, NULL, NULL);
}

void
file_copy_orphaned(const struct file_copy_kind *kind, struct driver_sandbox *sandbox,
    const struct driver_result *result)
{
	char *output, *temp;

	output = memory_text_bounded(result->output, result->output_size);
	temp = read_temp(output);
	if (temp != NULL)
		drop_temp(kind, sandbox, temp);
	memory_free(temp);
	memory_free(output);
}

static void begin_sending(struct file_copy *copy, const char *output);

static void
destroy(struct driver_operation *operation)
{
	struct file_copy *copy = (struct file_copy *)operation;
	const struct file_copy_kind *kind = copy->kind;
	bool is_usable = kind->is_usable(operation->sandbox);

	http_cancel(copy->request);
	if (kind->release != NULL)
		kind->release(copy);
	/* A write was given up while its private file was made: nobody else knows the name. */
	if (copy->script != NULL && copy->after == begin_sending && is_usable)
		kind->abandon(copy->script);
	else if (copy->script != NULL)
		operation_cancel(copy->script);
	if (copy->temp != NULL && is_usable)
		drop_temp(kind, operation->sandbox, copy->temp);
	memory_free(copy->temp);
	pump_sink_free(copy->sink);
	pump_source_free(copy->source);
	loop_timer_free(copy->soon);
	memory_free(copy->path);
	memory_free(copy);
}

static void
report(struct file_copy *copy, const struct error *err)
{
	driver_done_fn *done = copy->done;
	void *argument = copy->argument;
	struct error reason;

	if (err != NULL) {
		reason = *err;
		err = &reason;
	}
	operation_cancel(&copy->operation);
	done(argument, err);
}

static void
soon_expired(void *argument)
{
	struct file_copy *copy = argument;

	report(copy, &copy->err);
}

static struct file_copy *
new_copy(
    const struct file_copy_setup *setup, const char *path, driver_done_fn *done, void *argument)
{
	struct file_copy *copy;

	copy = memory_zeroed(1, setup->kind->size);
	copy->kind = setup->kind;
	copy->path = memory_text(path);
	copy->done = done;
	copy->argument = argument;
	copy->soon = loop_timer_new(setup->loop, soon_expired, copy);
	operation_link(&copy->operation, setup->list, setup->sandbox, destroy);
	if (setup->refusal != NULL)
		copy->err = *setup->refusal;
	else if (path[0] != '/')
		error_set(&copy->err, ERROR_INVALID, "not an absolute path");
	if (copy->err.code != ERROR_NONE)
		loop_timer_start(copy->soon, 0);
	return copy;
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
		report(copy, reason);
		return;
	}
	output = memory_text_bounded(result->output, result->output_size);
	if (read_outcome(output, &err) == 0)
		copy->after(copy, output);
	else
		report(copy, &err);
	memory_free(output);
}

void
file_copy_run(struct file_copy *copy, const char *mode, char *first, char *second,
    void (*after)(struct file_copy *copy, const char *output))
{
	char *words[2] = { first, second };

	copy->after = after;
	copy->script = run_script(
	    copy->kind, copy->operation.sandbox, mode, words, script_done, copy);
}

void
file_copy_fail(struct file_copy *copy, const struct http_answer *answer, const struct error *reason,
    const char *what)
{
	struct error err = *reason;

	error_wrap(&err, "%s", what);
	if (answer != NULL)
		copy->kind->doubt(copy->operation.sandbox, answer);
	report(copy, &err);
}

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
		report(copy, NULL);
}

void
file_copy_received(void *argument)
{
	struct file_copy *copy = argument;

	if (drain(copy)) {
		http_cancel(copy->request);
		end_read(copy);
		return;
	}
	http_hold(copy->request, http_received(copy->request)->length > 0);
}

void
file_copy_fetched(void *argument, const struct http_answer *answer, const struct error *err)
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
		report(copy, NULL);
	else if (copy->request != NULL)
		http_hold(copy->request, false);
}

static void
fetch(struct file_copy *copy, const char *output)
{
	(void)output;
	copy->kind->fetch(copy);
}

struct driver_operation *
file_copy_read(const struct file_copy_setup *setup, const char *path, uint64_t max, int sink,
    driver_done_fn *done, void *argument)
{
	struct file_copy *copy;

	copy = new_copy(setup, path, done, argument);
	copy->sink = pump_sink_new(setup->loop, sink, PUMP_MAX, sink_has_room, copy);
	copy->left = max == UINT64_MAX ? max : max + 1;
	if (copy->err.code == ERROR_NONE)
		file_copy_run(copy, "check", copy->path, NULL, fetch);
	return &copy->operation;
}

static void
placed(struct file_copy *copy, const char *output)
{
	(void)output;
	memory_free(copy->temp);
	copy->temp = NULL;
	report(copy, NULL);
}

void
file_copy_sent(struct file_copy *copy)
{
	file_copy_run(copy, "place", copy->temp, copy->path, placed);
}

void
file_copy_fail_short(struct file_copy *copy)
{
	struct error err;

	error_set(&err, ERROR_INVALID, "%llu bytes less came than were announced",
	    (unsigned long long)copy->left);
	file_copy_fail(copy, NULL, &err, "write file");
}

static void
source_ready(void *argument)
{
	struct file_copy *copy = argument;

	copy->kind->more(copy);
}

static void
begin_sending(struct file_copy *copy, const char *output)
{
	struct error err;

	copy->temp = read_temp(output);
	if (copy->temp == NULL) {
		error_set(&err, ERROR_UNAVAILABLE, "no private file was made");
		report(copy, &err);
		return;
	}
	copy->kind->send(copy);
}

struct driver_operation *
file_copy_write(const struct file_copy_setup *setup, const char *path, uint64_t size, int source,
    driver_done_fn *done, void *argument)
{
	struct file_copy *copy;

	copy = new_copy(setup, path, done, argument);
	copy->source = pump_source_new(setup->loop, source, PUMP_MAX, source_ready, copy);
	copy->left = size;
	if (copy->err.code == ERROR_NONE)
		file_copy_run(copy, "prepare", copy->path, NULL, begin_sending);
	return &copy->operation;
}
