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

#include "core/base/base64.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/pump.h"
#include "core/scripts.h"
#include "drivers/file_copy.h"
#include "drivers/operation.h"
#include "drivers/pack.h"

/* Bytes that wait for the reader of a read, and from the writer of a write. */
#define PUMP_MAX ((size_t)2 * HTTP_STREAM_ROOM)
#define ANSWER_MAX 65536
#define OUTPUT_MAX 4096

struct file_copy {
	struct driver_operation operation; /* first: a copy is an operation */
	struct file_copy_setup setup;
	struct loop_timer *soon; /* tells what failed within the call */
	struct error err;
	struct http_request *request;
	char *path;
	driver_done_fn *done;
	void *argument;
	uint64_t left;              /* bytes to be moved */
	struct pump_sink *sink;     /* of a read */
	struct pump_source *source; /* of a write */
	struct driver_operation *script;
	/* Goes on once the script said ok. */
	void (*after)(struct file_copy *copy, const char *output);
	char *temp;       /* of a write, while it is there */
	const char *tail; /* of a write's request */
	bool tail_sent, is_complete;
	struct pack *part;  /* that is filled, or under way */
	uint64_t part_left; /* bytes that it still takes */
	bool is_later;      /* it is not the first one */
};

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

static void drop_prepared(struct file_copy *copy, const char *output);
static void store(struct file_copy *copy, const char *output);

static void
destroy(struct driver_operation *operation)
{
	struct file_copy *copy = (struct file_copy *)operation;

	http_cancel(copy->request);
	copy->request = NULL;
	if (copy->script == NULL || copy->after != store ||
	    !copy->setup.interface->is_ready(copy->setup.sandbox)) {
		free_copy(copy);
		return;
	}
	copy->done = NULL;
	copy->after = drop_prepared;
	pump_source_free(copy->source);
	copy->source = NULL;
	operation_link(operation, copy->setup.sandbox, copy->setup.operations, destroy);
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
	if (done != NULL)
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

/* Runs file.sh and goes on with after. */
static void
begin_script(struct file_copy *copy, const char *mode, char *first, char *second,
    void (*after)(struct file_copy *, const char *))
{
	copy->after = after;
	copy->script = run_script(&copy->setup, mode, first, second, script_done, copy);
}

static void
fail(struct file_copy *copy, const struct http_answer *answer, const struct error *reason,
    const char *what)
{
	struct error err = *reason;

	error_wrap(&err, "%s", what);
	copy->setup.interface->suspect(copy->setup.sandbox, answer);
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
		fail(copy, answer, err, "read file");
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

	copy = new_copy(setup, path, done, argument);
	copy->sink = pump_sink_new(setup->loop, sink, PUMP_MAX, sink_has_room, copy);
	copy->left = max == UINT64_MAX ? max : max + 1;
	if (copy->err.code == ERROR_NONE)
		begin_script(copy, "check", copy->path, NULL, fetch);
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

static void
write_done(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct file_copy *copy = argument;

	copy->request = NULL;
	if (err == NULL)
		begin_script(copy, "place", copy->temp, copy->path, placed);
	else
		fail(copy, answer, err, "write file");
}

/* The source has less than it said: the request cannot be completed. */
static void
fail_short(struct file_copy *copy)
{
	struct error err;

	error_set(&err, ERROR_INVALID, "write file: %llu bytes less came than were announced",
	    (unsigned long long)copy->left);
	report(copy, &err);
}

/* Moves what the writer gave on into the request. */
static void
fill(struct file_copy *copy)
{
	const struct buffer *bytes = pump_source_buffer(copy->source);
	size_t size = bytes->length, room = http_send_room(copy->request);

	if (size > room)
		size = room;
	if (size > copy->left)
		size = (size_t)copy->left;
	if (size > 0) {
		http_send(copy->request, buffer_data(bytes), size);
		pump_source_consume(copy->source, size);
		copy->left -= size;
		room -= size;
	}
	if (copy->left > 0) {
		if (bytes->length == 0 && pump_source_has_ended(copy->source))
			fail_short(copy);
		return;
	}
	if (room < strlen(copy->tail))
		return;
	http_send(copy->request, copy->tail, strlen(copy->tail));
	copy->tail_sent = true;
	http_send_end(copy->request);
}

static void fill_part(struct file_copy *copy);

/* A part is where it belongs: goes on with the next one. */
static void
end_part(struct file_copy *copy, const char *output)
{
	(void)output;
	pack_free(copy->part);
	copy->part = NULL;
	copy->is_later = true;
	if (copy->left == 0)
		begin_script(copy, "place", copy->temp, copy->path, placed);
	else
		fill_part(copy);
}

static void
part_done(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct file_copy *copy = argument;

	copy->request = NULL;
	if (err != NULL)
		fail(copy, answer, err, "write file");
	else if (copy->is_later)
		begin_script(copy, "append", copy->temp, NULL, end_part);
	else
		end_part(copy, NULL);
}

static void
fail_pack(struct file_copy *copy, const struct error *reason)
{
	struct error err = *reason;

	error_wrap(&err, "write file");
	report(copy, &err);
}

static void
send_part(struct file_copy *copy)
{
	const struct buffer *packed;
	struct http_call call = { 0 };
	struct error err;

	packed = pack_finish(copy->part, &err);
	if (packed == NULL) {
		fail_pack(copy, &err);
		return;
	}
	call.method = "POST";
	/* The same part again is the same part. */
	call.repeat = HTTP_IDEMPOTENT;
	call.max_answer = ANSWER_MAX;
	call.done = part_done;
	call.argument = copy;
	copy->request = copy->setup.interface->store_part(copy->setup.sandbox, packed, &call);
}

static int
begin_part(struct file_copy *copy, struct error *err)
{
	uint64_t max = copy->setup.interface->part_max;
	char *path;

	copy->part_left = copy->left < max ? copy->left : max;
	path = memory_text_format("%s%s", copy->temp, copy->is_later ? ".part" : "");
	copy->part = pack_new(path, (size_t)copy->part_left, err);
	memory_free(path);
	return copy->part == NULL ? -1 : 0;
}

/* Packs what the writer gave, and sends the part when it is full. */
static void
fill_part(struct file_copy *copy)
{
	const struct buffer *bytes = pump_source_buffer(copy->source);
	struct error err;
	size_t size;
	int result;

	result = copy->part == NULL ? begin_part(copy, &err) : 0;
	size = bytes->length < copy->part_left ? bytes->length : (size_t)copy->part_left;
	if (result == 0 && size > 0) {
		result = pack_put(copy->part, buffer_data(bytes), size, &err);
		pump_source_consume(copy->source, size);
		copy->left -= size;
		copy->part_left -= size;
	}
	if (result != 0)
		fail_pack(copy, &err);
	else if (copy->part_left == 0)
		send_part(copy);
	else if (bytes->length == 0 && pump_source_has_ended(copy->source))
		fail_short(copy);
}

/* What comes while a part is under way waits. */
static void
source_ready(void *argument)
{
	struct file_copy *copy = argument;

	if (copy->part != NULL) {
		if (copy->request == NULL && copy->script == NULL)
			fill_part(copy);
	} else if (copy->request != NULL && !copy->tail_sent) {
		fill(copy);
	}
}

/* Takes the name of the private file from what prepare said: "ok BASE64". */
static int
take_temp(struct file_copy *copy, const char *output, struct error *err)
{
	unsigned char *name;
	size_t size, length;

	output += output[2] == ' ' ? 3 : 2;
	length = strcspn(output, "\n");
	name = memory_allocate(length / 4 * 3 + 1);
	if (base64_decode(name, &size, output, length) == 0 && size > 0 && name[0] == '/')
		copy->temp = memory_text_bounded(name, size);
	memory_free(name);
	return copy->temp == NULL ? error_set(err, ERROR_UNAVAILABLE, "no private file was made")
				  : 0;
}

/* The write was given up meanwhile: destroy removes what has a name now. */
static void
drop_prepared(struct file_copy *copy, const char *output)
{
	struct error err;

	(void)take_temp(copy, output, &err);
	report(copy, NULL);
}

static void
store(struct file_copy *copy, const char *output)
{
	struct http_call call = { 0 };
	struct error err;

	if (take_temp(copy, output, &err) != 0) {
		report(copy, &err);
		return;
	}
	if (copy->setup.interface->store == NULL) {
		fill_part(copy);
		return;
	}
	call.method = "POST";
	/* Not again by itself: what the writer gave is gone. */
	call.repeat = HTTP_ONCE;
	call.wants_more = source_ready;
	call.body_length = (int64_t)copy->left;
	call.max_answer = ANSWER_MAX;
	call.done = write_done;
	call.argument = copy;
	copy->tail = "";
	copy->request = copy->setup.interface->store(
	    copy->setup.sandbox, copy->temp, &call, &copy->tail);
	fill(copy);
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
		begin_script(copy, "prepare", copy->path, NULL, store);
	return &copy->operation;
}
