/* SPDX-License-Identifier: ISC */
/*
 * Files in and out through the toolbox, which reads and writes in place and makes what directories
 * are missing. core/scripts/file.sh adds what that lacks: rights are checked before a read, and a
 * write goes to a private file beside its target and is moved over it when it is complete.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/base64.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/pump.h"
#include "core/scripts.h"
#include "drivers/daytona_driver.h"

/* Bytes that wait for the reader of a read, and from the writer of a write. */
#define PUMP_MAX ((size_t)2 * HTTP_STREAM_ROOM)
#define ANSWER_MAX 65536
#define OUTPUT_MAX 4096

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
	struct driver_operation operation; /* first: a copy is an operation */
	struct loop_timer *soon;           /* tells what failed within the call */
	struct error err;
	struct http_request *request;
	char *path;
	driver_done_fn *done;
	void *argument;
	uint64_t left;              /* bytes to be moved */
	struct pump_sink *sink;     /* of a read */
	struct pump_source *source; /* of a write */
	struct driver_operation *script;
	void (*after)(
	    struct daytona_copy *copy, const char *output); /* goes on once the script said ok */
	char *temp;                                         /* of a write, while it is there */
	bool tail_sent, is_complete;
};

/* Runs file.sh; nobody waits for the outcome when done is NULL. */
static struct driver_operation *
run_script(struct driver_sandbox *sandbox, const char *mode, char *first, char *second,
    driver_result_fn *done, void *argument)
{
	struct driver_operation *operation;
	char *arguments[4] = { NULL, first, second, NULL }, **argv;

	arguments[0] = memory_text(mode);
	argv = script_argv("file", arguments);
	operation = daytona_run(sandbox, argv, NULL, 0, OUTPUT_MAX, done, argument);
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

/* A write was given up while its private file was made: nobody else knows the name. */
static void
drop_prepared(void *argument, const struct driver_result *result, const struct error *err)
{
	struct driver_sandbox *sandbox = argument;
	char *output, *temp;

	if (err != NULL)
		return;
	output = memory_text_bounded(result->output, result->output_size);
	temp = read_temp(output);
	if (temp != NULL)
		(void)run_script(sandbox, "drop", temp, NULL, NULL, NULL);
	memory_free(temp);
	memory_free(output);
}

static void send_file(struct daytona_copy *copy, const char *output);

static void
destroy(struct driver_operation *operation)
{
	struct daytona_copy *copy = (struct daytona_copy *)operation;

	http_cancel(copy->request);
	if (copy->script != NULL && copy->after == send_file && !operation->sandbox->is_closing)
		daytona_run_redirect(copy->script, drop_prepared, operation->sandbox);
	else if (copy->script != NULL)
		operation_cancel(copy->script);
	if (copy->temp != NULL && !operation->sandbox->is_lost && !operation->sandbox->is_closing)
		(void)run_script(operation->sandbox, "drop", copy->temp, NULL, NULL, NULL);
	memory_free(copy->temp);
	pump_sink_free(copy->sink);
	pump_source_free(copy->source);
	loop_timer_free(copy->soon);
	memory_free(copy->path);
	memory_free(copy);
}

static void
report(struct daytona_copy *copy, const struct error *err)
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
	struct daytona_copy *copy = argument;

	report(copy, &copy->err);
}

static struct daytona_copy *
new_copy(struct driver_sandbox *sandbox, const char *path, driver_done_fn *done, void *argument)
{
	struct daytona_copy *copy;

	copy = memory_zeroed(1, sizeof(*copy));
	copy->path = memory_text(path);
	copy->done = done;
	copy->argument = argument;
	copy->soon = loop_timer_new(sandbox->context.loop, soon_expired, copy);
	operation_link(&copy->operation, &sandbox->operations, sandbox, destroy);
	if (sandbox->base == NULL || sandbox->is_lost)
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
	struct daytona_copy *copy = argument;
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
begin_script(struct daytona_copy *copy, const char *mode, char *first, char *second,
    void (*after)(struct daytona_copy *, const char *))
{
	copy->after = after;
	copy->script = run_script(copy->operation.sandbox, mode, first, second, script_done, copy);
}

/* Starts a request of the file interface; call has its own part filled in. */
static void
open_request(
    struct daytona_copy *copy, const char *rest, struct http_call *call, const char *const *headers)
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

/* Fails, asking whether the sandbox is still there when something before envd answered. */
static void
fail(struct daytona_copy *copy, const struct http_answer *answer, const struct error *reason,
    const char *what)
{
	struct driver_sandbox *sandbox = copy->operation.sandbox;
	struct error err = *reason;

	error_wrap(&err, "%s", what);
	if (daytona_is_suspicious(answer))
		daytona_life_check(sandbox);
	report(copy, &err);
}

/* Moves what was received on to the reader, up to the limit; true when that is reached. */
static bool
drain(struct daytona_copy *copy)
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
end_read(struct daytona_copy *copy)
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
	struct daytona_copy *copy = argument;

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
	struct daytona_copy *copy = argument;

	copy->request = NULL;
	if (err == NULL)
		end_read(copy);
	else
		fail(copy, answer, err, "read file");
}

static void
sink_has_room(void *argument)
{
	struct daytona_copy *copy = argument;

	if (copy->is_complete && pump_sink_is_done(copy->sink))
		report(copy, NULL);
	else if (copy->request != NULL)
		http_hold(copy->request, false);
}

static void
fetch(struct daytona_copy *copy, const char *output)
{
	static const char *const headers[] = { NULL };
	struct http_call call = { 0 };
	char *path, *rest;

	(void)output;
	call.method = "GET";
	call.repeat = HTTP_IDEMPOTENT;
	call.received = read_received;
	call.done = read_done;
	path = http_escape(copy->path);
	rest = memory_text_format("download?path=%s", path);
	open_request(copy, rest, &call, headers);
	memory_free(rest);
	memory_free(path);
}

struct driver_operation *
daytona_read(struct driver_sandbox *sandbox, const char *path, uint64_t max, int sink,
    driver_done_fn *done, void *argument)
{
	struct daytona_copy *copy;

	copy = new_copy(sandbox, path, done, argument);
	copy->sink = pump_sink_new(sandbox->context.loop, sink, PUMP_MAX, sink_has_room, copy);
	copy->left = max == UINT64_MAX ? max : max + 1;
	if (copy->err.code == ERROR_NONE)
		begin_script(copy, "check", copy->path, NULL, fetch);
	return &copy->operation;
}

static void
placed(struct daytona_copy *copy, const char *output)
{
	(void)output;
	memory_free(copy->temp);
	copy->temp = NULL;
	report(copy, NULL);
}

static void
write_done(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct daytona_copy *copy = argument;

	copy->request = NULL;
	if (err == NULL)
		begin_script(copy, "place", copy->temp, copy->path, placed);
	else
		fail(copy, answer, err, "write file");
}

/* The source has less than it said: the request cannot be completed. */
static void
fail_short(struct daytona_copy *copy)
{
	struct error err;

	error_set(&err, ERROR_INVALID, "write file: %llu bytes less came than were announced",
	    (unsigned long long)copy->left);
	report(copy, &err);
}

/* Moves what the writer gave on into the request. */
static void
fill(struct daytona_copy *copy)
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
	if (room < strlen(FORM_TAIL))
		return;
	http_send(copy->request, FORM_TAIL, strlen(FORM_TAIL));
	copy->tail_sent = true;
	http_send_end(copy->request);
}

static void
source_ready(void *argument)
{
	struct daytona_copy *copy = argument;

	if (copy->request != NULL && !copy->tail_sent)
		fill(copy);
}

static void
send_file(struct daytona_copy *copy, const char *output)
{
	static const char *const form[] = { "Content-Type: multipart/form-data; boundary=" BOUNDARY,
		"Accept: application/json", NULL };
	struct http_call call = { 0 };
	struct error err;

	copy->temp = read_temp(output);
	if (copy->temp == NULL) {
		error_set(&err, ERROR_UNAVAILABLE, "no private file was made");
		report(copy, &err);
		return;
	}
	call.method = "POST";
	/* Not again by itself: what the writer gave is gone. */
	call.repeat = HTTP_ONCE;
	call.wants_more = source_ready;
	call.body_length = (int64_t)copy->left + (int64_t)(strlen(FORM_PATH) + strlen(copy->temp) +
							   strlen(FORM_FILE) + strlen(FORM_TAIL));
	call.max_answer = ANSWER_MAX;
	call.done = write_done;
	open_request(copy, "bulk-upload", &call, form);
	/* The path has to come before the file. */
	http_send(copy->request, FORM_PATH, strlen(FORM_PATH));
	http_send(copy->request, copy->temp, strlen(copy->temp));
	http_send(copy->request, FORM_FILE, strlen(FORM_FILE));
	fill(copy);
}

struct driver_operation *
daytona_write(struct driver_sandbox *sandbox, const char *path, uint64_t size, int source,
    driver_done_fn *done, void *argument)
{
	struct daytona_copy *copy;

	copy = new_copy(sandbox, path, done, argument);
	copy->source = pump_source_new(sandbox->context.loop, source, PUMP_MAX, source_ready, copy);
	copy->left = size;
	if (copy->err.code == ERROR_NONE)
		begin_script(copy, "prepare", copy->path, NULL, send_file);
	return &copy->operation;
}
