/* SPDX-License-Identifier: ISC */
/*
 * A write: prepare PATH, store into what it made, place it; or, where a big file is too much for
 * one request, store its first part into what it made and the others beside that, append each,
 * place it.
 */
#include <string.h>

#include "core/base/base64.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/pump.h"
#include "drivers/file_copy.h"
#include "drivers/file_copy_private.h"
#include "drivers/pack.h"

#define ANSWER_MAX 65536

static void
placed(struct file_copy *copy, const char *output)
{
	(void)output;
	memory_free(copy->temp);
	copy->temp = NULL;
	file_copy_report(copy, NULL);
}

static void
write_done(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct file_copy *copy = argument;

	copy->request = NULL;
	if (err == NULL)
		file_copy_begin_script(copy, "place", copy->temp, copy->path, placed);
	else
		file_copy_fail(copy, answer, err, "write file");
}

/* The source has less than it said: the request cannot be completed. */
static void
fail_short(struct file_copy *copy)
{
	struct error err;

	error_set(&err, ERROR_INVALID, "write file: %llu bytes less came than were announced",
	    (unsigned long long)copy->left);
	file_copy_report(copy, &err);
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
		file_copy_begin_script(copy, "place", copy->temp, copy->path, placed);
	else
		fill_part(copy);
}

static void
part_done(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct file_copy *copy = argument;

	copy->request = NULL;
	if (err != NULL)
		file_copy_fail(copy, answer, err, "write file");
	else if (copy->is_later)
		file_copy_begin_script(copy, "append", copy->temp, NULL, end_part);
	else
		end_part(copy, NULL);
}

static void
fail_pack(struct file_copy *copy, const struct error *reason)
{
	struct error err = *reason;

	error_wrap(&err, "write file");
	file_copy_report(copy, &err);
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

/* The write was given up meanwhile: its end removes what has a name now. */
static void
drop_prepared(struct file_copy *copy, const char *output)
{
	struct error err;

	(void)take_temp(copy, output, &err);
	file_copy_report(copy, NULL);
}

static void
store(struct file_copy *copy, const char *output)
{
	struct http_call call = { 0 };
	struct error err;

	if (take_temp(copy, output, &err) != 0) {
		file_copy_report(copy, &err);
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

bool
file_copy_is_preparing(const struct file_copy *copy)
{
	return copy->script != NULL && copy->after == store;
}

void
file_copy_abandon(struct file_copy *copy)
{
	copy->done = NULL;
	copy->after = drop_prepared;
	pump_source_free(copy->source);
	copy->source = NULL;
}

struct driver_operation *
file_copy_write(const struct file_copy_setup *setup, const char *path, uint64_t size, int source,
    driver_done_fn *done, void *argument)
{
	struct file_copy *copy;

	copy = file_copy_new(setup, path, done, argument);
	copy->source = pump_source_new(setup->loop, source, FILE_COPY_PUMP_MAX, source_ready, copy);
	copy->left = size;
	if (copy->err.code == ERROR_NONE)
		file_copy_begin_script(copy, "prepare", copy->path, NULL, store);
	return &copy->operation;
}
