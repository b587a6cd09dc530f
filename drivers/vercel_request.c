/* SPDX-License-Identifier: ISC */
/*
 * Requests to Vercel. All go to one host; what concerns the running machine is addressed by its
 * session, what concerns the sandbox by its name.
 */
#include <string.h>
#include <time.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "drivers/vercel_driver.h"

/* ms; the far side of a connection answers in less or not at all. */
#define CONNECT_TIMEOUT 15000
/* ms without a byte of a stream. A command may well be silent for longer: it is then picked up again. */
#define SILENCE_MAX 30000
/* A sandbox, or a page of a list. */
#define ANSWER_MAX ((size_t)1024 * 1024)

char **
vercel_headers(const struct driver_sandbox *sandbox, const char *type)
{
	char **list, *header;

	header = memory_text_format("Content-Type: %s", type);
	list = memory_zeroed(1, sizeof(*list));
	list = memory_list_add(list, 0, sandbox->auth_header);
	list = memory_list_add(list, 1, "User-Agent: rwsd");
	list = memory_list_add(list, 2, header);
	memory_free(header);
	return list;
}

/* The team comes first in every query. */
static char *
make_url(const struct driver_sandbox *sandbox, const char *path, const char *query)
{
	return memory_text_format("%s%s?teamId=%s%s", sandbox->api, path, sandbox->credentials.team,
	    query == NULL ? "" : query);
}

char *
vercel_session_url(const struct driver_sandbox *sandbox, const char *rest)
{
	char *path, *url;

	path = memory_text_format("/v2/sandboxes/sessions/%s%s", sandbox->session, rest);
	url = make_url(sandbox, path, NULL);
	memory_free(path);
	return url;
}

struct http_request *
vercel_start_call(struct driver_sandbox *sandbox, const struct vercel_call *request)
{
	struct http_call call = { 0 };
	struct http_request *started;
	char *url, **headers;

	url = make_url(sandbox, request->path, request->query);
	headers = vercel_headers(sandbox, "application/json");
	call.method = request->method;
	call.url = url;
	call.headers = headers;
	call.repeat = request->repeat;
	if (request->body != NULL) {
		call.body = json_print(request->body);
		call.body_size = strlen(call.body);
	} else if (strcmp(call.method, "POST") == 0) {
		call.body = "";
	}
	call.received = request->received;
	call.max_answer = ANSWER_MAX;
	call.connect_timeout = CONNECT_TIMEOUT;
	call.total_timeout = request->timeout;
	if (request->received != NULL)
		call.first_byte_timeout = call.idle_timeout = SILENCE_MAX;
	call.done = request->done;
	call.argument = request->argument;
	started = http_start(sandbox->http, &call);
	memory_list_free(headers);
	memory_free(url);
	json_object_put(request->body);
	return started;
}

struct http_request *
vercel_session_call(
    struct driver_sandbox *sandbox, const char *rest, const struct vercel_call *request)
{
	struct vercel_call call = *request;
	struct http_request *started;
	char *path;

	path = memory_text_format("/v2/sandboxes/sessions/%s%s", sandbox->session, rest);
	call.path = path;
	started = vercel_start_call(sandbox, &call);
	memory_free(path);
	return started;
}

struct http_request *
vercel_name_call(
    struct driver_sandbox *sandbox, const char *name, const struct vercel_call *request)
{
	struct vercel_call call = *request;
	struct http_request *started;
	char *escaped, *path, *query;

	escaped = http_escape(name);
	path = memory_text_format("/v2/sandboxes/%s", escaped);
	query = memory_text_format("&projectId=%s%s", sandbox->credentials.project,
	    request->query == NULL ? "" : request->query);
	call.path = path;
	call.query = query;
	call.repeat = HTTP_IDEMPOTENT;
	started = vercel_start_call(sandbox, &call);
	memory_free(query);
	memory_free(path);
	memory_free(escaped);
	return started;
}

bool
vercel_is_code(const struct http_answer *answer, const char *code)
{
	struct json_object *object;
	const char *text;
	bool is_it;

	if (answer->outcome != HTTP_REFUSED || answer->size == 0)
		return false;
	object = json_parse_object(answer->body, answer->size, NULL);
	text = json_text(json_member(object, "error", json_type_object), "code");
	is_it = text != NULL && strcmp(text, code) == 0;
	json_object_put(object);
	return is_it;
}

bool
vercel_is_suspicious(const struct http_answer *answer)
{
	/* 404: no such session, 410: it is over, 422: it is being stopped or saved. */
	return answer->outcome == HTTP_UNKNOWN || answer->outcome == HTTP_BROKEN ||
	       answer->status == 404 || answer->status == 410 || answer->status == 422 ||
	       answer->status >= 500;
}

int
vercel_check_usable(const struct driver_sandbox *sandbox, struct error *err)
{
	if (sandbox->session == NULL || sandbox->is_lost)
		return error_set(err, ERROR_UNAVAILABLE, "the sandbox does not run");
	return vercel_credentials_check(&sandbox->credentials, (int64_t)time(NULL), err);
}
