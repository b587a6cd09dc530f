/* SPDX-License-Identifier: ISC */
/*
 * Requests to the two planes of Daytona: the control plane, and the toolbox of a sandbox behind
 * Daytona's proxy. Both take the same key.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "drivers/daytona_driver.h"

/* ms; the far side of a connection answers in less or not at all. */
#define CONNECT_TIMEOUT 15000
#define CHORE_TIMEOUT 60000
/* A sandbox, or a page of a list. */
#define ANSWER_MAX ((size_t)1024 * 1024)

struct daytona_chore {
	struct daytona_chore *next;
	struct driver_sandbox *sandbox;
	struct http_request *request;
	char *what;
};

char **
daytona_headers(const struct driver_sandbox *sandbox, const char *const *headers)
{
	char **list;
	size_t i, count;

	list = memory_zeroed(1, sizeof(*list));
	count = 0;
	list = memory_list_add(list, count++, sandbox->auth_header);
	list = memory_list_add(list, count++, "User-Agent: rwsd");
	list = memory_list_add(list, count++, "X-Daytona-Source: rwsd");
	for (i = 0; headers[i] != NULL; i++)
		list = memory_list_add(list, count++, headers[i]);
	return list;
}

static struct http_request *
call_json(struct driver_sandbox *sandbox, struct http_call *call, const char *base,
    const char *path, struct json_object *body)
{
	static const char *const with_body[] = { "Accept: application/json",
		"Content-Type: application/json", NULL };
	static const char *const without_body[] = { "Accept: application/json", NULL };
	struct http_request *request;
	char *url, **headers;

	url = memory_text_format("%s%s", base, path);
	headers = daytona_headers(sandbox, body == NULL ? without_body : with_body);
	call->url = url;
	call->headers = headers;
	if (body != NULL) {
		call->body = json_print(body);
		call->body_size = strlen(call->body);
	} else if (strcmp(call->method, "POST") == 0) {
		call->body = "";
	}
	call->connect_timeout = CONNECT_TIMEOUT;
	request = http_start(sandbox->http, call);
	memory_list_free(headers);
	memory_free(url);
	json_object_put(body);
	return request;
}

struct http_request *
daytona_control_call(struct driver_sandbox *sandbox, const char *method, const char *path,
    struct json_object *body, enum http_repeat repeat, int64_t timeout, http_done_fn *done,
    void *argument)
{
	struct http_call call = { 0 };

	call.method = method;
	call.repeat = repeat;
	call.max_answer = ANSWER_MAX;
	call.total_timeout = timeout;
	call.done = done;
	call.argument = argument;
	return call_json(sandbox, &call, sandbox->api, path, body);
}

struct http_request *
daytona_toolbox_call(struct driver_sandbox *sandbox, const char *method, const char *path,
    struct json_object *body, enum http_repeat repeat, int64_t timeout, size_t max_answer,
    http_done_fn *done, void *argument)
{
	struct http_call call = { 0 };

	call.method = method;
	call.repeat = repeat;
	call.max_answer = max_answer;
	call.total_timeout = timeout;
	call.done = done;
	call.argument = argument;
	return call_json(sandbox, &call, sandbox->base, path, body);
}

static void
free_chore(struct daytona_chore *chore)
{
	struct daytona_chore **place;

	for (place = &chore->sandbox->chores; *place != chore; place = &(*place)->next)
		continue;
	*place = chore->next;
	http_cancel(chore->request);
	memory_free(chore->what);
	memory_free(chore);
}

static void
chore_done(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct daytona_chore *chore = argument;

	/* What is not there any more needs nothing done to it. */
	if (err != NULL && answer->status != 404)
		log_info("daytona: %s: %s", chore->what, err->message);
	chore->request = NULL;
	free_chore(chore);
}

static struct daytona_chore *
new_chore(struct driver_sandbox *sandbox, const char *method, const char *path)
{
	struct daytona_chore *chore;

	chore = memory_zeroed(1, sizeof(*chore));
	chore->sandbox = sandbox;
	chore->what = memory_text_format("%s %s", method, path);
	chore->next = sandbox->chores;
	sandbox->chores = chore;
	return chore;
}

void
daytona_chore(struct driver_sandbox *sandbox, const char *method, const char *path)
{
	struct daytona_chore *chore;

	chore = new_chore(sandbox, method, path);
	chore->request = daytona_toolbox_call(sandbox, method, path, NULL, HTTP_IDEMPOTENT,
	    CHORE_TIMEOUT, ANSWER_MAX, chore_done, chore);
}

void
daytona_chore_destroy(struct driver_sandbox *sandbox)
{
	struct daytona_chore *chore;
	char *path;

	path = memory_text_format("/sandbox/%s", sandbox->id);
	chore = new_chore(sandbox, "DELETE", path);
	chore->request = daytona_control_call(
	    sandbox, "DELETE", path, NULL, HTTP_IDEMPOTENT, CHORE_TIMEOUT, chore_done, chore);
	memory_free(path);
}

void
daytona_chore_free_all(struct driver_sandbox *sandbox)
{
	while (sandbox->chores != NULL)
		free_chore(sandbox->chores);
}
