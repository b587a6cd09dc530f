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
start_call(struct driver_sandbox *sandbox, const char *base, const struct daytona_call *request,
    http_done_fn *done, void *argument)
{
	static const char *const with_body[] = { "Accept: application/json",
		"Content-Type: application/json", NULL };
	static const char *const without_body[] = { "Accept: application/json", NULL };
	struct http_call call = { 0 };
	struct http_request *started;
	char *url, **headers;

	url = memory_text_format("%s%s", base, request->path);
	headers = daytona_headers(sandbox, request->body == NULL ? without_body : with_body);
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
	call.max_answer = request->max_answer > 0 ? request->max_answer : ANSWER_MAX;
	call.connect_timeout = CONNECT_TIMEOUT;
	call.total_timeout = request->timeout;
	call.done = done;
	call.argument = argument;
	started = http_start(sandbox->http, &call);
	memory_list_free(headers);
	memory_free(url);
	json_object_put(request->body);
	return started;
}

struct http_request *
daytona_control_call(struct driver_sandbox *sandbox, const struct daytona_call *call,
    http_done_fn *done, void *argument)
{
	return start_call(sandbox, sandbox->api, call, done, argument);
}

struct http_request *
daytona_toolbox_call(struct driver_sandbox *sandbox, const struct daytona_call *call,
    http_done_fn *done, void *argument)
{
	return start_call(sandbox, sandbox->base, call, done, argument);
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
	chore->request = daytona_toolbox_call(sandbox,
	    &(struct daytona_call){ .method = method,
		.path = path,
		.repeat = HTTP_IDEMPOTENT,
		.timeout = CHORE_TIMEOUT,
		.max_answer = ANSWER_MAX },
	    chore_done, chore);
}

void
daytona_chore_free_all(struct driver_sandbox *sandbox)
{
	while (sandbox->chores != NULL)
		free_chore(sandbox->chores);
}
