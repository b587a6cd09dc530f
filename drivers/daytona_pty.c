/* SPDX-License-Identifier: ISC */
/*
 * A terminal of Daytona is a login shell of whatever kind, with its greetings and its line editor.
 * One line typed into it makes it raw and replaces the shell by one of ours that reads
 * core/scripts/launch.sh. That takes three trips, or two with newer daemons.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "core/scripts.h"
#include "drivers/daytona_driver.h"
#include "drivers/websocket.h"

/* ms */
#define CREATE_TIMEOUT 30000
#define ANSWER_MAX 65536

struct daytona_pty {
	struct terminal terminal; /* first: it is one */
	bool in_one_trip;
	bool exists; /* it may be there, and has to be deleted */
};

static struct daytona_pty *
pty_of(struct terminal *terminal)
{
	return (struct daytona_pty *)terminal;
}

/* Everything in it is ours: the names are hexadecimal, and quotes keep the shell from the rest. */
static void
type_line(struct terminal *terminal)
{
	char *script, *line;

	pty_of(terminal)->exists = true;
	script = script_text("launch");
	/* The mark's first character is said by the shell: what the terminal echoes of this line is
	 * not the mark. */
	line = memory_text_format(" unset HISTFILE TERM; stty raw -echo; printf '\\036%s\\n'; "
				  "exec sh -c 'eval \"$(head -c %zu)\"' rws-launch 3<&0\n",
	    terminal->mark + 1, strlen(script));
	websocket_send(terminal->websocket, line, strlen(line));
	memory_free(line);
	memory_free(script);
}

/* The terminal is raw: the script that waits for a command. */
static void
send_script(struct terminal *terminal, const struct buffer *noise)
{
	char *script;

	(void)noise;
	script = script_text("launch");
	terminal_send(terminal, script, strlen(script));
	memory_free(script);
}

/* "connected", "error" or "exited"; also what the close frame has as its reason. */
static void
take_control(struct terminal *terminal, const void *data, size_t size)
{
	struct json_object *object;
	const char *status, *text;
	struct error err;
	int64_t code;

	object = json_parse_object(data, size, NULL);
	status = json_text(object, "status");
	code = json_number(object, "exitCode", INT32_MIN, INT32_MAX, INT64_MIN);
	if (code != INT64_MIN)
		terminal_set_exit(terminal, code);
	if (status != NULL && strcmp(status, "error") == 0) {
		text = json_text(object, "error");
		error_set(&err, ERROR_UNAVAILABLE, "%.200s", text == NULL ? "no terminal" : text);
		terminal_fail(terminal, &err);
	}
	json_object_put(object);
}

static void
broke(struct terminal *terminal)
{
	if (!terminal->pool->sandbox->is_lost)
		daytona_life_check(terminal->pool->sandbox);
}

static void
open_socket(struct terminal *terminal, const char *path)
{
	static const char *const none[] = { NULL };
	struct driver_sandbox *sandbox = terminal->pool->sandbox;
	char *url, **headers;

	url = memory_text_format("%s%s", sandbox->base, path);
	headers = daytona_headers(sandbox, none);
	terminal_connect(terminal, url, headers, "X-Daytona-Pty-Exit-Control");
	memory_list_free(headers);
	memory_free(url);
}

static void
created(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct terminal *terminal = argument;
	struct error err;
	char *path;

	terminal->request = NULL;
	if (reason != NULL) {
		err = *reason;
		error_wrap(&err, "make a terminal");
		if (daytona_is_suspicious(answer)) {
			err.code = ERROR_UNAVAILABLE;
			daytona_life_check(terminal->pool->sandbox);
		}
		if (answer->outcome == HTTP_REFUSED || answer->outcome == HTTP_UNSENT)
			pty_of(terminal)->exists = false;
		terminal_fail(terminal, &err);
		return;
	}
	path = memory_text_format("/process/pty/%s/connect", terminal->name);
	open_socket(terminal, path);
	memory_free(path);
}

/* Output before the connect is lost, so the shell waits for it. */
static void
create(struct terminal *terminal)
{
	struct json_object *body;

	pty_of(terminal)->in_one_trip = false;
	pty_of(terminal)->exists = true;
	body = json_object_new_object();
	json_add_text(body, "id", terminal->name);
	json_add_text(body, "cwd", "/");
	json_object_object_add(body, "lazyStart", json_object_new_boolean(1));
	terminal->request = daytona_toolbox_call(terminal->pool->sandbox,
	    &(struct daytona_call){ .method = "POST",
		.path = "/process/pty",
		.body = body,
		.timeout = CREATE_TIMEOUT,
		.max_answer = ANSWER_MAX },
	    created, terminal);
}

/* Did it take the path for that of a terminal with this name? Then it is an older daemon, or nobody
 * at all. */
static bool
try_two_trips(struct terminal *terminal, const struct websocket_end *end)
{
	if (!pty_of(terminal)->in_one_trip || end->http_status != 404)
		return false;
	terminal->pool->sandbox->no_create_connect = true;
	terminal_disconnect(terminal);
	create(terminal);
	return true;
}

static void
open_pty(struct terminal *terminal)
{
	char *path;

	if (terminal->pool->sandbox->no_create_connect) {
		create(terminal);
		return;
	}
	pty_of(terminal)->in_one_trip = true;
	path = memory_text_format(
	    "/process/pty/create-connect?id=%s&cols=80&rows=24&cwd=%%2F", terminal->name);
	open_socket(terminal, path);
	memory_free(path);
}

static void
delete_pty(struct terminal *terminal)
{
	struct driver_sandbox *sandbox = terminal->pool->sandbox;
	char *path;

	if (!pty_of(terminal)->exists || terminal->has_exit || sandbox->is_lost)
		return;
	path = memory_text_format("/process/pty/%s", terminal->name);
	daytona_chore(sandbox, "DELETE", path);
	memory_free(path);
}

const struct terminal_kind daytona_pty = {
	.provider = "Daytona",
	.size = sizeof(struct daytona_pty),
	.open = open_pty,
	.begin = type_line,
	.marked = send_script,
	.told = take_control,
	.reopen = try_two_trips,
	.broke = broke,
	.release = delete_pty,
};
