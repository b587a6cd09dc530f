/* SPDX-License-Identifier: ISC */
/*
 * Requests to the two planes of E2B: the control plane (REST, X-API-Key) and the sandbox's envd
 * (Connect RPC with JSON, and files), which is reached through E2B's proxy.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "drivers/e2b_driver.h"

/* ms; the far side of a connection answers in less or not at all. */
#define CONNECT_TIMEOUT 15000
/* A sandbox, a page of a list, a process list. */
#define ANSWER_MAX ((size_t)1024 * 1024)

/*
 * A name with "mozilla", "opera" and the like in it, such as "operator", would get errors as HTML;
 * Accept guards against that too.
 */
#define USER_AGENT "User-Agent: rwsd"
#define ACCEPT "Accept: application/json"
#define JSON_BODY "Content-Type: application/json"
#define PORT_HEADER "E2b-Sandbox-Port: 49983"

struct e2b_chore {
	struct e2b_chore *next;
	struct driver_sandbox *sandbox;
	struct http_request *request;
	char *what;
	char *tag; /* of a process to be ended, or NULL */
};

int64_t
e2b_connect_timeout(const struct driver_sandbox *sandbox)
{
	return sandbox->request_timeout < CONNECT_TIMEOUT ? sandbox->request_timeout
							  : CONNECT_TIMEOUT;
}

/* Fills in the body, which lives as long as object. */
static void
set_json(struct http_call *call, struct json_object *object)
{
	if (object == NULL)
		return;
	call->body = json_print(object);
	call->body_size = strlen(call->body);
}

/* Sends call, which has its method, time and callback, to path; puts body. */
static struct http_request *
ask_control(struct driver_sandbox *sandbox, struct http_call *call, const char *path,
    struct json_object *body)
{
	char agent[] = USER_AGENT, accept[] = ACCEPT, type[] = JSON_BODY;
	char *headers[5] = { sandbox->key_header, agent, accept, body == NULL ? NULL : type, NULL };
	struct http_request *request;
	char *url;

	url = memory_text_format("%s%s", sandbox->api, path);
	call->url = url;
	call->headers = headers;
	set_json(call, body);
	call->max_answer = ANSWER_MAX;
	call->connect_timeout = e2b_connect_timeout(sandbox);
	request = http_start(sandbox->http, call);
	memory_free(url);
	json_object_put(body);
	return request;
}

struct http_request *
e2b_control_call(struct driver_sandbox *sandbox, const char *method, const char *path,
    struct json_object *body, int64_t timeout, http_done_fn *done, void *argument)
{
	struct http_call call = { 0 };

	call.method = method;
	call.repeat = HTTP_IDEMPOTENT;
	call.total_timeout = timeout;
	call.done = done;
	call.argument = argument;
	return ask_control(sandbox, &call, path, body);
}

struct http_request *
e2b_create_call(struct driver_sandbox *sandbox, struct json_object *body, int64_t timeout,
    http_done_fn *done, void *argument)
{
	struct http_call call = { 0 };

	call.method = "POST";
	call.repeat = HTTP_ONCE;
	call.total_timeout = timeout;
	call.done = done;
	call.argument = argument;
	return ask_control(sandbox, &call, "/sandboxes", body);
}

char **
e2b_envd_headers(const struct driver_sandbox *sandbox, const char *const *headers)
{
	const char *const common[] = { USER_AGENT, ACCEPT, PORT_HEADER, sandbox->id_header,
		sandbox->token_header };
	char **list;
	size_t i, count;

	list = memory_zeroed(1, sizeof(*list));
	count = 0;
	for (i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		if (common[i] != NULL)
			list = memory_list_add(list, count++, common[i]);
	for (i = 0; headers[i] != NULL; i++)
		list = memory_list_add(list, count++, headers[i]);
	return list;
}

struct http_request *
e2b_unary_call(struct driver_sandbox *sandbox, const char *method, struct json_object *body,
    enum http_repeat repeat, int64_t timeout, http_done_fn *done, void *argument)
{
	static const char *const headers[] = { JSON_BODY, "Connect-Protocol-Version: 1", NULL };
	struct http_call call = { 0 };
	struct http_request *request;
	char *url, **list;

	list = e2b_envd_headers(sandbox, headers);
	url = memory_text_format("%s/%s", sandbox->base, method);
	call.method = "POST";
	call.url = url;
	call.headers = list;
	call.repeat = repeat;
	set_json(&call, body);
	call.max_answer = ANSWER_MAX;
	call.connect_timeout = e2b_connect_timeout(sandbox);
	call.total_timeout = timeout;
	call.done = done;
	call.argument = argument;
	request = http_start(sandbox->http, &call);
	memory_list_free(list);
	memory_free(url);
	json_object_put(body);
	return request;
}

bool
e2b_is_rpc_error(const struct http_answer *answer)
{
	struct json_object *object;
	bool result;

	if (answer->outcome != HTTP_REFUSED)
		return false;
	/* The proxy's errors carry a number there. */
	object = json_parse_object(answer->body, answer->size, NULL);
	result = json_text(object, "code") != NULL;
	json_object_put(object);
	return result;
}

struct json_object *
e2b_select(uint32_t pid)
{
	struct json_object *message, *selector;

	message = json_object_new_object();
	selector = json_object_new_object();
	json_object_object_add(selector, "pid", json_object_new_int64(pid));
	json_object_object_add(message, "process", selector);
	return message;
}

static void
free_chore(struct e2b_chore *chore)
{
	struct e2b_chore **place;

	for (place = &chore->sandbox->chores; *place != chore; place = &(*place)->next)
		continue;
	*place = chore->next;
	http_cancel(chore->request);
	memory_free(chore->what);
	memory_free(chore->tag);
	memory_free(chore);
}

static struct e2b_chore *
new_chore(struct driver_sandbox *sandbox, const char *what, const char *tag)
{
	struct e2b_chore *chore;

	chore = memory_zeroed(1, sizeof(*chore));
	chore->sandbox = sandbox;
	chore->what = memory_text(what);
	chore->tag = tag == NULL ? NULL : memory_text(tag);
	chore->next = sandbox->chores;
	sandbox->chores = chore;
	return chore;
}

static void
chore_done(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct e2b_chore *chore = argument;

	/* What a process that ended meanwhile has to do with it is over too. */
	if (err != NULL && !e2b_is_rpc_error(answer))
		log_info("e2b: %s: %s", chore->what, err->message);
	chore->request = NULL;
	free_chore(chore);
}

void
e2b_chore(struct driver_sandbox *sandbox, const char *method, struct json_object *body)
{
	struct e2b_chore *chore;

	chore = new_chore(sandbox, method, NULL);
	chore->request = e2b_unary_call(
	    sandbox, method, body, HTTP_IDEMPOTENT, sandbox->request_timeout, chore_done, chore);
}

void
e2b_chore_destroy(struct driver_sandbox *sandbox)
{
	struct e2b_chore *chore;
	char *path;

	path = memory_text_format("/sandboxes/%s", sandbox->id);
	chore = new_chore(sandbox, "destroy a sandbox", NULL);
	chore->request = e2b_control_call(
	    sandbox, "DELETE", path, NULL, sandbox->request_timeout, chore_done, chore);
	memory_free(path);
}

/* The pid of the process with this tag in an answer of List, or 0. */
static uint32_t
find_tag(const struct http_answer *answer, const char *tag)
{
	struct json_object *object, *list, *process;
	const char *text;
	uint32_t pid;
	size_t i;

	pid = 0;
	object = json_parse_object(answer->body, answer->size, NULL);
	list = json_member(object, "processes", json_type_array);
	for (i = 0; list != NULL && i < json_object_array_length(list); i++) {
		process = json_object_array_get_idx(list, i);
		text = json_text(process, "tag");
		if (text != NULL && strcmp(text, tag) == 0)
			pid = (uint32_t)json_number(process, "pid", 1, UINT32_MAX, 0);
	}
	json_object_put(object);
	return pid;
}

static void
processes_listed(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct e2b_chore *chore = argument;
	struct driver_sandbox *sandbox = chore->sandbox;
	struct json_object *body;
	uint32_t pid;

	chore->request = NULL;
	pid = err == NULL ? find_tag(answer, chore->tag) : 0;
	free_chore(chore);
	if (pid == 0)
		return;
	body = e2b_select(pid);
	json_add_text(body, "signal", "SIGNAL_SIGKILL");
	e2b_chore(sandbox, "process.Process/SendSignal", body);
}

void
e2b_chore_reap(struct driver_sandbox *sandbox, const char *tag)
{
	struct e2b_chore *chore;

	chore = new_chore(sandbox, "process.Process/List", tag);
	chore->request = e2b_unary_call(sandbox, "process.Process/List", json_object_new_object(),
	    HTTP_IDEMPOTENT, sandbox->request_timeout, processes_listed, chore);
}

void
e2b_chore_free_all(struct driver_sandbox *sandbox)
{
	while (sandbox->chores != NULL)
		free_chore(sandbox->chores);
}
