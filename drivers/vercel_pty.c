/* SPDX-License-Identifier: ISC */
/*
 * A terminal of Vercel, which is a WebSocket to a server beside the sandbox: asked for with a
 * request, whose URL and token are good for one, and told the command in its first message. That is
 * core/scripts/ready.sh, so that nothing of the user's command is in it.
 *
 * What becomes of the program when the socket drops is not known (sheet, section 12). The safe
 * choice: it is taken to live on, and is sent a HUP by a request of its own.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/json.h"
#include "core/scripts.h"
#include "drivers/vercel_driver.h"
#include "drivers/websocket.h"

/* ms */
#define ASK_TIMEOUT 30000
#define HEALTH_TIMEOUT 10000
#define HEALTH_DELAY 100
#define HEALTH_ATTEMPTS 8
#define ANSWER_MAX 65536
#define NUMBER_MAX 24

struct vercel_pty {
	struct terminal terminal; /* first: it is one */
	char *url;                /* of the WebSocket, with its token: secret */
	char *health;             /* URL that answers once that server is there */
	struct loop_timer *again;
	unsigned attempts;
	char pid[NUMBER_MAX], started[NUMBER_MAX]; /* of what runs there; empty when not known */
};

static struct vercel_pty *
pty_of(struct terminal *terminal)
{
	return (struct vercel_pty *)terminal;
}

static void
broke(struct terminal *terminal)
{
	/* Another server may answer next time. */
	terminal->pool->sandbox->is_healthy = false;
	vercel_life_check(terminal->pool->sandbox);
}

static void
open_socket(struct terminal *terminal)
{
	static const char user_agent[] = "User-Agent: rwsd";
	char **headers;

	headers = memory_list_add(memory_zeroed(1, sizeof(*headers)), 0, user_agent);
	terminal_connect(terminal, pty_of(terminal)->url, headers, NULL);
	memory_list_free(headers);
}

static void ask_health(struct terminal *terminal);

static void
again_expired(void *argument)
{
	ask_health(argument);
}

static void
health_told(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct terminal *terminal = argument;
	struct vercel_pty *pty = pty_of(terminal);
	struct error err;

	(void)answer;
	terminal->request = NULL;
	if (reason == NULL) {
		terminal->pool->sandbox->is_healthy = true;
		open_socket(terminal);
		return;
	}
	if (++pty->attempts < HEALTH_ATTEMPTS) {
		loop_timer_start(pty->again, (int64_t)HEALTH_DELAY << pty->attempts);
		return;
	}
	err = *reason;
	err.code = ERROR_UNAVAILABLE;
	error_wrap(&err, "open a terminal: its server is not there");
	broke(terminal);
	terminal_fail(terminal, &err);
}

static void
ask_health(struct terminal *terminal)
{
	struct http_call call = { 0 };

	call.method = "GET";
	call.url = pty_of(terminal)->health;
	call.max_answer = ANSWER_MAX;
	call.total_timeout = HEALTH_TIMEOUT;
	call.done = health_told;
	call.argument = terminal;
	terminal->request = http_start(terminal->pool->sandbox->http, &call);
}

/* Makes the URLs out of "wss://HOST/PATH" and the token. */
static int
take_place(struct vercel_pty *pty, const struct json_object *object)
{
	const char *url, *token, *rest, *scheme;
	char *escaped;
	int host;

	url = json_text(object, "url");
	token = json_text(object, "token");
	if (url == NULL || token == NULL)
		return -1;
	if (strncmp(url, "wss://", 6) == 0)
		scheme = "https";
	else if (strncmp(url, "ws://", 5) == 0)
		scheme = "http";
	else
		return -1;
	rest = strstr(url, "://") + 3;
	host = (int)strcspn(rest, "/?#");
	if (host == 0 || strchr(rest, '#') != NULL)
		return -1;
	escaped = http_escape(token);
	pty->url = memory_text_format("%s://%s%s%ctoken=%s", scheme, rest,
	    rest[host] == '\0' ? "/" : "", strchr(rest, '?') == NULL ? '?' : '&', escaped);
	pty->health = memory_text_format("%s://%.*s/health", scheme, host, rest);
	memory_text_wipe(escaped);
	return 0;
}

static void
placed(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct terminal *terminal = argument;
	struct json_object *object;
	struct error err;

	terminal->request = NULL;
	if (reason != NULL) {
		err = *reason;
		error_wrap(&err, "make a terminal");
		/* One that somebody else made, with neither its command line nor ours. */
		if (answer->status == 400) {
			err.code = ERROR_UNSUPPORTED;
			error_wrap(&err,
			    "sandbox %s was not made to have terminals, which commands need",
			    terminal->pool->sandbox->name);
		}
		if (vercel_is_suspicious(answer)) {
			err.code = ERROR_UNAVAILABLE;
			vercel_life_check(terminal->pool->sandbox);
		}
		terminal_fail(terminal, &err);
		return;
	}
	object = json_parse_object(answer->body, answer->size, NULL);
	if (take_place(pty_of(terminal), object) != 0) {
		error_set(
		    &err, ERROR_UNAVAILABLE, "make a terminal: the answer tells no place of it");
		terminal_fail(terminal, &err);
	} else if (terminal->pool->sandbox->is_healthy) {
		open_socket(terminal);
	} else {
		ask_health(terminal);
	}
	json_object_put(object);
}

static void
ask_place(struct terminal *terminal)
{
	pty_of(terminal)->again = loop_timer_new(terminal->pool->loop, again_expired, terminal);
	/* Whatever it makes goes with the session, or by itself: asking twice does no harm. */
	terminal->request = vercel_session_call(terminal->pool->sandbox, "/interactive",
	    &(struct vercel_call){ .method = "POST",
		.body = json_object_new_object(),
		.repeat = HTTP_IDEMPOTENT,
		.timeout = ASK_TIMEOUT,
		.done = placed,
		.argument = terminal });
}

static void
say_start(struct terminal *terminal)
{
	struct json_object *start, *list;
	char *arguments[3] = { NULL, NULL, NULL }, **argv;
	size_t i;

	arguments[0] = memory_text(terminal->mark + 1);
	arguments[1] = script_text("launch");
	argv = script_argv("ready", arguments);
	list = json_object_new_array();
	for (i = 1; argv[i] != NULL; i++)
		json_object_array_add(list, json_object_new_string(argv[i]));
	start = json_object_new_object();
	json_add_text(start, "type", "start");
	json_add_text(start, "command", argv[0]);
	json_object_object_add(start, "args", list);
	json_object_object_add(start, "env", json_object_new_array());
	json_add_text(start, "cwd", "/");
	json_object_object_add(start, "cols", json_object_new_int(80));
	json_object_object_add(start, "rows", json_object_new_int(24));
	websocket_send_text(terminal->websocket, json_print(start));
	json_object_put(start);
	memory_list_free(argv);
	memory_free(arguments[0]);
	memory_free(arguments[1]);
}

/* The line before the mark says who runs there. */
static void
take_process(struct terminal *terminal, const struct buffer *noise)
{
	struct vercel_pty *pty = pty_of(terminal);
	char pid[NUMBER_MAX], started[NUMBER_MAX], *text, *line;

	text = memory_text_bounded(buffer_data(noise), noise->length);
	line = strstr(text, terminal->mark);
	if (line != NULL && line > text) {
		*--line = '\0';
		line = strrchr(text, '\n');
		line = line == NULL ? text : line + 1;
		if (sscanf(line, "%23[0-9] %23[0-9]", pid, started) == 2) {
			memcpy(pty->pid, pid, sizeof(pid));
			memcpy(pty->started, started, sizeof(started));
		}
	}
	memory_free(text);
}

/* {"type":"exit","code":0}: all output came before it. */
static void
take_control(struct terminal *terminal, const void *data, size_t size)
{
	struct json_object *object;
	const char *type;
	struct error err;
	int64_t code;

	object = json_parse_object(data, size, NULL);
	type = json_text(object, "type");
	code = json_number(object, "code", INT32_MIN, INT32_MAX, INT64_MIN);
	if (type != NULL && strcmp(type, "exit") == 0 && code != INT64_MIN) {
		terminal_set_exit(terminal, code);
		terminal_disconnect(terminal);
		error_set(&err, ERROR_UNAVAILABLE, "the terminal's program has ended (%lld)",
		    (long long)code);
		terminal_fail(terminal, &err);
	}
	json_object_put(object);
}

static void
release(struct terminal *terminal)
{
	struct vercel_pty *pty = pty_of(terminal);
	struct driver_sandbox *sandbox = terminal->pool->sandbox;
	char hangup[] = "HUP", *arguments[4] = { pty->pid, pty->started, hangup, NULL }, **argv;

	if (pty->pid[0] != '\0' && !terminal->has_exit && !sandbox->is_closing &&
	    vercel_check_usable(sandbox, NULL) == 0) {
		argv = script_argv("signal", arguments);
		(void)vercel_run(sandbox, argv, NULL, 0, 0, NULL, NULL);
		memory_list_free(argv);
	}
	loop_timer_free(pty->again);
	memory_text_wipe(pty->url);
	memory_free(pty->health);
}

const struct terminal_kind vercel_pty = {
	.provider = "Vercel",
	.size = sizeof(struct vercel_pty),
	.open = ask_place,
	.begin = say_start,
	.marked = take_process,
	.told = take_control,
	.broke = broke,
	.release = release,
};
