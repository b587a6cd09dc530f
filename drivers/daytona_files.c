/* SPDX-License-Identifier: ISC */
/* The bytes of files through the toolbox, which reads and writes in place. file_copy.h has the rest.
 */
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/pump.h"
#include "drivers/daytona_driver.h"
#include "drivers/file_copy.h"

#define ANSWER_MAX 65536

/* ms without a byte. */
#define IDLE_TIMEOUT 60000
#define CONNECT_TIMEOUT 15000

#define BOUNDARY "rws-4f1c07d29ab6"
#define FORM_PATH            \
	"--" BOUNDARY "\r\n" \
	"Content-Disposition: form-data; name=\"files[0].path\"\r\n\r\n"
#define FORM_FILE                                                                       \
	"\r\n--" BOUNDARY "\r\n"                                                        \
	"Content-Disposition: form-data; name=\"files[0].file\"; filename=\"file\"\r\n" \
	"Content-Type: application/octet-stream\r\n\r\n"
#define FORM_TAIL "\r\n--" BOUNDARY "--\r\n"

struct daytona_copy {
	struct file_copy copy; /* first: it is one */
	bool tail_sent;
};

/* Starts a request of the file interface; call has its own part filled in. */
static void
open_request(
    struct file_copy *copy, const char *rest, struct http_call *call, const char *const *headers)
{
	struct driver_sandbox *sandbox = copy->operation.sandbox;
	char *url, **list;

	url = memory_text_format("%s/files/%s", sandbox->base, rest);
	list = daytona_headers(sandbox, headers);
	call->url = url;
	call->headers = list;
	call->connect_timeout = CONNECT_TIMEOUT;
	call->first_byte_timeout = call->idle_timeout = IDLE_TIMEOUT;
	call->argument = copy;
	copy->request = http_start(sandbox->http, call);
	memory_list_free(list);
	memory_free(url);
}

static void
fetch(struct file_copy *copy)
{
	static const char *const headers[] = { NULL };
	struct http_call call = { 0 };
	char *path, *rest;

	call.method = "GET";
	call.repeat = HTTP_IDEMPOTENT;
	call.received = file_copy_received;
	call.done = file_copy_fetched;
	path = http_escape(copy->path);
	rest = memory_text_format("download?path=%s", path);
	open_request(copy, rest, &call, headers);
	memory_free(rest);
	memory_free(path);
}

static void
sent(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct file_copy *copy = argument;

	copy->request = NULL;
	if (err == NULL)
		file_copy_sent(copy);
	else
		file_copy_fail(copy, answer, err, "write file");
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
			file_copy_fail_short(copy);
		return;
	}
	if (room < strlen(FORM_TAIL))
		return;
	http_send(copy->request, FORM_TAIL, strlen(FORM_TAIL));
	((struct daytona_copy *)copy)->tail_sent = true;
	http_send_end(copy->request);
}

static void
more(struct file_copy *copy)
{
	if (copy->request != NULL && !((struct daytona_copy *)copy)->tail_sent)
		fill(copy);
}

static void
wants_more(void *argument)
{
	more(argument);
}

static void
send_file(struct file_copy *copy)
{
	static const char *const form[] = { "Content-Type: multipart/form-data; boundary=" BOUNDARY,
		"Accept: application/json", NULL };
	struct http_call call = { 0 };

	call.method = "POST";
	/* Not again by itself: what the writer gave is gone. */
	call.repeat = HTTP_ONCE;
	call.wants_more = wants_more;
	call.body_length = (int64_t)copy->left + (int64_t)(strlen(FORM_PATH) + strlen(copy->temp) +
							   strlen(FORM_FILE) + strlen(FORM_TAIL));
	call.max_answer = ANSWER_MAX;
	call.done = sent;
	open_request(copy, "bulk-upload", &call, form);
	/* The path has to come before the file. */
	http_send(copy->request, FORM_PATH, strlen(FORM_PATH));
	http_send(copy->request, copy->temp, strlen(copy->temp));
	http_send(copy->request, FORM_FILE, strlen(FORM_FILE));
	fill(copy);
}

static bool
is_usable(const struct driver_sandbox *sandbox)
{
	return !sandbox->is_closing && !sandbox->is_lost;
}

static void
doubt(struct driver_sandbox *sandbox, const struct http_answer *answer)
{
	if (daytona_is_suspicious(answer))
		daytona_life_check(sandbox);
}

static void abandon(struct driver_operation *operation);

static const struct file_copy_kind file_kind = {
	.size = sizeof(struct daytona_copy),
	.run = daytona_run,
	.abandon = abandon,
	.fetch = fetch,
	.send = send_file,
	.more = more,
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
	daytona_run_redirect(operation, orphaned, operation->sandbox);
}

static void
set_up(struct driver_sandbox *sandbox, struct file_copy_setup *setup, struct error *refusal)
{
	setup->kind = &file_kind;
	setup->sandbox = sandbox;
	setup->list = &sandbox->operations;
	setup->loop = sandbox->context.loop;
	if (sandbox->base == NULL || sandbox->is_lost) {
		error_set(refusal, ERROR_UNAVAILABLE, "the sandbox does not run");
		setup->refusal = refusal;
	}
}

struct driver_operation *
daytona_read(struct driver_sandbox *sandbox, const char *path, uint64_t max, int sink,
    driver_done_fn *done, void *argument)
{
	struct file_copy_setup setup = { 0 };
	struct error refusal;

	set_up(sandbox, &setup, &refusal);
	return file_copy_read(&setup, path, max, sink, done, argument);
}

struct driver_operation *
daytona_write(struct driver_sandbox *sandbox, const char *path, uint64_t size, int source,
    driver_done_fn *done, void *argument)
{
	struct file_copy_setup setup = { 0 };
	struct error refusal;

	set_up(sandbox, &setup, &refusal);
	return file_copy_write(&setup, path, size, source, done, argument);
}
