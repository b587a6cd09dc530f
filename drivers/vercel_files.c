/* SPDX-License-Identifier: ISC */
/*
 * Files in and out: fs/read gives them as they are, fs/write takes an archive.
 *
 * How much one fs/write takes is not known (sheet, section 12), and long requests are cut: so a big
 * file goes in parts. Nor is it known whether it takes anything but regular files, so it is never
 * given anything else.
 */
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "drivers/file_copy.h"
#include "drivers/vercel.h"
#include "drivers/vercel_driver.h"

/* Little enough to be sent again, and to be held in memory. */
#define PART_MAX ((uint64_t)3 * 1024 * 1024)

/* ms; without a byte, and for a whole part. */
#define IDLE_TIMEOUT 60000
#define CONNECT_TIMEOUT 15000
#define PART_TIMEOUT 240000

static bool
is_ready(const struct driver_sandbox *sandbox)
{
	return !sandbox->is_closing && vercel_check_usable(sandbox, NULL) == 0;
}

static struct http_request *
open_request(
    struct driver_sandbox *sandbox, const char *rest, char **headers, struct http_call *call)
{
	struct http_request *request;
	char *url;

	url = vercel_session_url(sandbox, rest);
	call->url = url;
	call->headers = headers;
	call->connect_timeout = CONNECT_TIMEOUT;
	request = http_start(sandbox->http, call);
	memory_list_free(headers);
	memory_free(url);
	return request;
}

static struct http_request *
fetch(struct driver_sandbox *sandbox, const char *path, struct http_call *call)
{
	struct http_request *request;
	struct json_object *body;

	body = json_object_new_object();
	json_add_text(body, "path", path);
	call->method = "POST";
	call->body = json_print(body);
	call->body_size = strlen(call->body);
	call->first_byte_timeout = call->idle_timeout = IDLE_TIMEOUT;
	request = open_request(
	    sandbox, "/fs/read", vercel_headers(sandbox, "application/json"), call);
	json_object_put(body);
	return request;
}

static struct http_request *
store_part(struct driver_sandbox *sandbox, const struct buffer *packed, struct http_call *call)
{
	char **headers;

	headers = vercel_headers(sandbox, "application/gzip");
	/* What the archive's names are relative to. */
	headers = memory_list_add(headers, 3, "X-Cwd: /");
	call->body = buffer_data(packed);
	call->body_size = packed->length;
	call->total_timeout = PART_TIMEOUT;
	return open_request(sandbox, "/fs/write", headers, call);
}

static void
suspect(struct driver_sandbox *sandbox, const struct http_answer *answer)
{
	if (vercel_is_suspicious(answer))
		vercel_life_check(sandbox);
}

static const struct file_interface file_interface = {
	.driver = &driver_vercel,
	.is_ready = is_ready,
	.fetch = fetch,
	.part_max = PART_MAX,
	.store_part = store_part,
	.suspect = suspect,
};

static struct file_copy_setup
copy_setup(struct driver_sandbox *sandbox)
{
	return (struct file_copy_setup){
		.interface = &file_interface,
		.sandbox = sandbox,
		.operations = &sandbox->operations,
		.loop = sandbox->context.loop,
	};
}

struct driver_operation *
vercel_read(struct driver_sandbox *sandbox, const char *path, uint64_t max, int sink,
    driver_done_fn *done, void *argument)
{
	struct file_copy_setup setup = copy_setup(sandbox);

	return file_copy_read(&setup, path, max, sink, done, argument);
}

struct driver_operation *
vercel_write(struct driver_sandbox *sandbox, const char *path, uint64_t size, int source,
    driver_done_fn *done, void *argument)
{
	struct file_copy_setup setup = copy_setup(sandbox);

	return file_copy_write(&setup, path, size, source, done, argument);
}
