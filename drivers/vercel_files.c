/* SPDX-License-Identifier: ISC */
/*
 * The bytes of files: fs/read gives them as they are, fs/write takes an archive. file_copy.h has the
 * rest.
 *
 * How much one fs/write takes is not known (sheet, section 12), and long requests are cut: so a big
 * file goes in parts, each a request that can be sent again, and a script puts them together. Only
 * one part is ever in memory.
 */
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/utf8.h"
#include "core/json.h"
#include "core/pump.h"
#include "drivers/file_copy.h"
#include "drivers/vercel_driver.h"
#include "drivers/vercel_tar.h"

#define ANSWER_MAX 65536
#define PART_MAX ((uint64_t)8 * 1024 * 1024)

/* ms; without a byte, and for a whole part. */
#define IDLE_TIMEOUT 60000
#define CONNECT_TIMEOUT 15000
#define PART_TIMEOUT 240000

struct vercel_copy {
	struct file_copy copy;  /* first: it is one */
	struct vercel_tar *tar; /* of the part that is filled, or sent */
	uint64_t part_left;     /* bytes that it still takes */
	bool is_first;          /* it is the private file itself, not something to add to it */
};

static struct vercel_copy *
copy_of(struct file_copy *copy)
{
	return (struct vercel_copy *)copy;
}

static void
fetch(struct file_copy *copy)
{
	struct driver_sandbox *sandbox = copy->operation.sandbox;
	struct http_call call = { 0 };
	struct json_object *body;
	struct error err;
	char *url, **headers;

	if (!utf8_valid(copy->path, strlen(copy->path))) {
		error_set(&err, ERROR_UNSUPPORTED, "Vercel reads no file whose name is not UTF-8");
		file_copy_fail(copy, NULL, &err, "read file");
		return;
	}
	body = json_object_new_object();
	json_add_text(body, "path", copy->path);
	url = vercel_session_url(sandbox, "/fs/read");
	headers = vercel_headers(sandbox, "application/json");
	call.method = "POST";
	call.url = url;
	call.headers = headers;
	/* It only reads. */
	call.repeat = HTTP_IDEMPOTENT;
	call.body = json_print(body);
	call.body_size = strlen(call.body);
	call.connect_timeout = CONNECT_TIMEOUT;
	call.first_byte_timeout = call.idle_timeout = IDLE_TIMEOUT;
	call.received = file_copy_received;
	call.done = file_copy_fetched;
	call.argument = copy;
	copy->request = http_start(sandbox->http, &call);
	json_object_put(body);
	memory_list_free(headers);
	memory_free(url);
}

static void fill(struct file_copy *copy);

/* A part is where it belongs: goes on with the next one. */
static void
go_on(struct file_copy *copy)
{
	vercel_tar_free(copy_of(copy)->tar);
	copy_of(copy)->tar = NULL;
	copy_of(copy)->is_first = false;
	if (copy->left == 0)
		file_copy_sent(copy);
	else
		fill(copy);
}

static void
appended(struct file_copy *copy, const char *output)
{
	(void)output;
	go_on(copy);
}

static void
part_sent(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct file_copy *copy = argument;

	copy->request = NULL;
	if (err != NULL)
		file_copy_fail(copy, answer, err, "write file");
	else if (copy_of(copy)->is_first)
		go_on(copy);
	else
		file_copy_run(copy, "append", copy->temp, NULL, appended);
}

static void
send_part(struct file_copy *copy)
{
	struct driver_sandbox *sandbox = copy->operation.sandbox;
	const struct buffer *archive;
	struct http_call call = { 0 };
	char *url, **headers;
	struct error err;

	archive = vercel_tar_finish(copy_of(copy)->tar, &err);
	if (archive == NULL) {
		file_copy_fail(copy, NULL, &err, "write file");
		return;
	}
	url = vercel_session_url(sandbox, "/fs/write");
	headers = vercel_headers(sandbox, "application/gzip");
	headers = memory_list_add(headers, 3, "X-Cwd: /");
	call.method = "POST";
	call.url = url;
	call.headers = headers;
	/* The same file again is the same file. */
	call.repeat = HTTP_IDEMPOTENT;
	call.body = buffer_data(archive);
	call.body_size = archive->length;
	call.max_answer = ANSWER_MAX;
	call.connect_timeout = CONNECT_TIMEOUT;
	call.total_timeout = PART_TIMEOUT;
	call.done = part_sent;
	call.argument = copy;
	copy->request = http_start(sandbox->http, &call);
	memory_list_free(headers);
	memory_free(url);
}

static int
begin_part(struct file_copy *copy, struct error *err)
{
	struct vercel_copy *own = copy_of(copy);
	char *path;

	own->part_left = copy->left < PART_MAX ? copy->left : PART_MAX;
	path = memory_text_format("%s%s", copy->temp, own->is_first ? "" : ".part");
	own->tar = vercel_tar_new(path, (size_t)own->part_left, err);
	memory_free(path);
	return own->tar == NULL ? -1 : 0;
}

/* Packs what the writer gave, and sends the part when it is full. */
static void
fill(struct file_copy *copy)
{
	struct vercel_copy *own = copy_of(copy);
	const struct buffer *bytes = pump_source_buffer(copy->source);
	struct error err;
	size_t size;
	int result;

	result = own->tar == NULL ? begin_part(copy, &err) : 0;
	size = bytes->length < own->part_left ? bytes->length : (size_t)own->part_left;
	if (result == 0 && size > 0) {
		result = vercel_tar_put(own->tar, buffer_data(bytes), size, &err);
		pump_source_consume(copy->source, size);
		copy->left -= size;
		own->part_left -= size;
	}
	if (result != 0)
		file_copy_fail(copy, NULL, &err, "write file");
	else if (own->part_left == 0)
		send_part(copy);
	else if (bytes->length == 0 && pump_source_has_ended(copy->source))
		file_copy_fail_short(copy);
}

static void
send_file(struct file_copy *copy)
{
	copy_of(copy)->is_first = true;
	fill(copy);
}

/* What comes while a part is on its way, or is added, waits. */
static void
more(struct file_copy *copy)
{
	if (copy_of(copy)->tar != NULL && copy->request == NULL && copy->script == NULL)
		fill(copy);
}

static void
release(struct file_copy *copy)
{
	vercel_tar_free(copy_of(copy)->tar);
}

static bool
is_usable(const struct driver_sandbox *sandbox)
{
	return !sandbox->is_closing && !sandbox->is_lost;
}

/* A file that is not there is no reason to doubt the session. */
static void
doubt(struct driver_sandbox *sandbox, const struct http_answer *answer)
{
	if (vercel_is_suspicious(answer))
		vercel_life_check(sandbox);
}

static void abandon(struct driver_operation *operation);

static const struct file_copy_kind file_kind = {
	.size = sizeof(struct vercel_copy),
	.run = vercel_run,
	.abandon = abandon,
	.fetch = fetch,
	.send = send_file,
	.more = more,
	.release = release,
	.is_usable = is_usable,
	.doubt = doubt,
};

static void
orphaned(void *argument, const struct driver_result *result, const struct error *err)
{
	if (err == NULL)
		file_copy_orphaned(&file_kind, argument, result);
}

static void
abandon(struct driver_operation *operation)
{
	vercel_run_redirect(operation, orphaned, operation->sandbox);
}

static void
set_up(struct driver_sandbox *sandbox, struct file_copy_setup *setup, struct error *refusal)
{
	setup->kind = &file_kind;
	setup->sandbox = sandbox;
	setup->list = &sandbox->operations;
	setup->loop = sandbox->context.loop;
	if (vercel_check_usable(sandbox, refusal) != 0)
		setup->refusal = refusal;
}

struct driver_operation *
vercel_read(struct driver_sandbox *sandbox, const char *path, uint64_t max, int sink,
    driver_done_fn *done, void *argument)
{
	struct file_copy_setup setup = { 0 };
	struct error refusal;

	set_up(sandbox, &setup, &refusal);
	return file_copy_read(&setup, path, max, sink, done, argument);
}

struct driver_operation *
vercel_write(struct driver_sandbox *sandbox, const char *path, uint64_t size, int source,
    driver_done_fn *done, void *argument)
{
	struct file_copy_setup setup = { 0 };
	struct error refusal;

	set_up(sandbox, &setup, &refusal);
	return file_copy_write(&setup, path, size, source, done, argument);
}
