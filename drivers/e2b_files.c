/* SPDX-License-Identifier: ISC */
/* Files in and out through envd's /files, which reads as root and creates what is missing. */
#include <string.h>

#include "core/base/memory.h"
#include "drivers/e2b.h"
#include "drivers/e2b_driver.h"
#include "drivers/file_copy.h"

/* Takes files as they are since then; before, in a form as browsers send it. */
#define RAW_SINCE E2B_VERSION(0, 5, 7)
#define BOUNDARY "rws-8b5c9d1e7f3a"
#define FORM_HEAD                                                              \
	"--" BOUNDARY "\r\n"                                                   \
	"Content-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n" \
	"Content-Type: application/octet-stream\r\n\r\n"
#define FORM_TAIL "\r\n--" BOUNDARY "--\r\n"

static bool
is_ready(const struct driver_sandbox *sandbox)
{
	return sandbox->id != NULL && !sandbox->is_lost && !sandbox->is_closing;
}

/* Starts the request for the file; call has its own part filled in. */
static struct http_request *
open_request(struct driver_sandbox *sandbox, const char *path, struct http_call *call,
    const char *const *headers)
{
	struct http_request *request;
	char *escaped, *url, **list;

	escaped = http_escape(path);
	url = memory_text_format("%s/files?path=%s", sandbox->base, escaped);
	list = e2b_envd_headers(sandbox, headers);
	call->url = url;
	call->headers = list;
	call->connect_timeout = e2b_connect_timeout(sandbox);
	call->first_byte_timeout = call->idle_timeout = sandbox->request_timeout;
	request = http_start(sandbox->http, call);
	memory_list_free(list);
	memory_free(url);
	memory_free(escaped);
	return request;
}

static struct http_request *
fetch(struct driver_sandbox *sandbox, const char *path, struct http_call *call)
{
	static const char *const headers[] = { NULL };

	return open_request(sandbox, path, call, headers);
}

static struct http_request *
store(struct driver_sandbox *sandbox, const char *path, struct http_call *call, const char **tail)
{
	static const char *const raw[] = { "Content-Type: application/octet-stream", NULL };
	static const char *const form[] = { "Content-Type: multipart/form-data; boundary=" BOUNDARY,
		NULL };
	struct http_request *request;

	if (sandbox->version >= RAW_SINCE)
		return open_request(sandbox, path, call, raw);
	call->body_length += (int64_t)(strlen(FORM_HEAD) + strlen(FORM_TAIL));
	request = open_request(sandbox, path, call, form);
	http_send(request, FORM_HEAD, strlen(FORM_HEAD));
	*tail = FORM_TAIL;
	return request;
}

/* Asks whether the sandbox is still there when something before envd answered. */
static void
suspect(struct driver_sandbox *sandbox, const struct http_answer *answer)
{
	if (answer->status == 502 || answer->outcome == HTTP_BROKEN ||
	    answer->outcome == HTTP_UNKNOWN)
		e2b_life_check(sandbox);
}

static const struct file_interface file_interface = {
	.driver = &driver_e2b,
	.is_ready = is_ready,
	.fetch = fetch,
	.store = store,
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
e2b_read(struct driver_sandbox *sandbox, const char *path, uint64_t max, int sink,
    driver_done_fn *done, void *argument)
{
	struct file_copy_setup setup = copy_setup(sandbox);

	return file_copy_read(&setup, path, max, sink, done, argument);
}

struct driver_operation *
e2b_write(struct driver_sandbox *sandbox, const char *path, uint64_t size, int source,
    driver_done_fn *done, void *argument)
{
	struct file_copy_setup setup = copy_setup(sandbox);

	return file_copy_write(&setup, path, size, source, done, argument);
}
