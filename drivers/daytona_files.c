/* SPDX-License-Identifier: ISC */
/* Files in and out through the toolbox, which makes what directories are missing. */
#include <string.h>

#include "core/base/memory.h"
#include "drivers/daytona.h"
#include "drivers/daytona_driver.h"
#include "drivers/file_copy.h"

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

static bool
is_ready(const struct driver_sandbox *sandbox)
{
	return sandbox->base != NULL && !sandbox->is_lost && !sandbox->is_closing;
}

/* Starts a request of the file interface; call has its own part filled in. */
static struct http_request *
open_request(struct driver_sandbox *sandbox, const char *rest, struct http_call *call,
    const char *const *headers)
{
	struct http_request *request;
	char *url, **list;

	url = memory_text_format("%s/files/%s", sandbox->base, rest);
	list = daytona_headers(sandbox, headers);
	call->url = url;
	call->headers = list;
	call->connect_timeout = CONNECT_TIMEOUT;
	call->first_byte_timeout = call->idle_timeout = IDLE_TIMEOUT;
	request = http_start(sandbox->http, call);
	memory_list_free(list);
	memory_free(url);
	return request;
}

static struct http_request *
fetch(struct driver_sandbox *sandbox, const char *path, struct http_call *call)
{
	static const char *const headers[] = { NULL };
	struct http_request *request;
	char *escaped, *rest;

	escaped = http_escape(path);
	rest = memory_text_format("download?path=%s", escaped);
	request = open_request(sandbox, rest, call, headers);
	memory_free(rest);
	memory_free(escaped);
	return request;
}

static struct http_request *
store(struct driver_sandbox *sandbox, const char *path, struct http_call *call, const char **tail)
{
	static const char *const form[] = { "Content-Type: multipart/form-data; boundary=" BOUNDARY,
		"Accept: application/json", NULL };
	struct http_request *request;

	call->body_length += (int64_t)(strlen(FORM_PATH) + strlen(path) + strlen(FORM_FILE) +
				       strlen(FORM_TAIL));
	request = open_request(sandbox, "bulk-upload", call, form);
	/* The path has to come before the file. */
	http_send(request, FORM_PATH, strlen(FORM_PATH));
	http_send(request, path, strlen(path));
	http_send(request, FORM_FILE, strlen(FORM_FILE));
	*tail = FORM_TAIL;
	return request;
}

static void
suspect(struct driver_sandbox *sandbox, const struct http_answer *answer)
{
	if (daytona_is_suspicious(answer))
		daytona_life_check(sandbox);
}

static const struct file_interface file_interface = {
	.driver = &driver_daytona,
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
daytona_read(struct driver_sandbox *sandbox, const char *path, uint64_t max, int sink,
    driver_done_fn *done, void *argument)
{
	struct file_copy_setup setup = copy_setup(sandbox);

	return file_copy_read(&setup, path, max, sink, done, argument);
}

struct driver_operation *
daytona_write(struct driver_sandbox *sandbox, const char *path, uint64_t size, int source,
    driver_done_fn *done, void *argument)
{
	struct file_copy_setup setup = copy_setup(sandbox);

	return file_copy_write(&setup, path, size, source, done, argument);
}
