/* SPDX-License-Identifier: ISC */
/*
 * A terminal of Daytona is a login shell of whatever kind, with its greetings and its line editor.
 * One line typed into it makes it raw and replaces the shell by one of ours that reads
 * core/scripts/launch.sh and then waits to be told a command. That takes three trips, or two with
 * newer daemons, so after the first use some are kept ready.
 *
 * A terminal's program is never slowed down by us: Daytona cuts off whoever is 256 pieces behind.
 * That is for our user to know (core/transport).
 */
#include <stdio.h>
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "core/marker.h"
#include "core/scripts.h"
#include "drivers/daytona_driver.h"
#include "drivers/websocket.h"
#include "drivers/websocket_frame.h"

/* ms; a login shell may read much before it asks for its first line. */
#define OPEN_TIMEOUT 30000
#define READY_TIMEOUT 60000
/* What is sent in one message: the daemon keeps up to 1024 of them for a program that does not
 * read. */
#define MESSAGE_MAX 4096
#define RECEIVED_MAX ((size_t)256 * 1024)
#define NOISE_MAX 65536
#define ANSWER_MAX 65536
/* Terminals kept ready, two for a command, and for how long. */
#define SPARES 2
#define SPARE_TIME 300000

enum stage {
	STAGE_CREATING, /* in a request of its own, for older daemons */
	STAGE_OPENING,
	STAGE_TYPED, /* the line was typed, and not yet obeyed */
	STAGE_READY,
	STAGE_ENDED,
};

struct daytona_pty {
	struct daytona_pty *next; /* of the spares */
	struct driver_sandbox *sandbox;
	const struct daytona_pty_events *events; /* NULL: a spare */
	void *argument;
	char name[MARKER_TOKEN_SIZE];
	char mark[MARKER_TOKEN_SIZE + 8]; /* what the terminal says when it is ready */
	enum stage stage;
	bool in_one_trip;
	struct http_request *creating;
	struct websocket *websocket;
	struct loop_timer *deadline, *soon;
	struct buffer noise;
	bool exists; /* it may be there, and has to be deleted */
	struct driver_exit exit;
	bool has_exit;
	struct error failure;
};

static void
unlink_spare(struct daytona_pty *pty)
{
	struct daytona_pty **place;

	for (place = &pty->sandbox->spares; *place != NULL; place = &(*place)->next) {
		if (*place == pty) {
			*place = pty->next;
			return;
		}
	}
}

void
daytona_pty_free(struct daytona_pty *pty)
{
	char *path;

	if (pty == NULL)
		return;
	unlink_spare(pty);
	http_cancel(pty->creating);
	websocket_free(pty->websocket);
	if (pty->exists && !pty->sandbox->is_lost) {
		path = memory_text_format("/process/pty/%s", pty->name);
		daytona_chore(pty->sandbox, "DELETE", path);
		memory_free(path);
	}
	loop_timer_free(pty->deadline);
	loop_timer_free(pty->soon);
	buffer_free(&pty->noise);
	memory_free(pty);
}

/* Tells the owner from the loop; a spare goes without a word. */
static void
soon_expired(void *argument)
{
	struct daytona_pty *pty = argument;

	if (pty->events == NULL) {
		if (pty->stage == STAGE_ENDED)
			daytona_pty_free(pty);
	} else if (pty->stage == STAGE_READY) {
		pty->events->ready(pty->argument);
	} else if (pty->stage == STAGE_ENDED) {
		pty->events->ended(pty->argument, pty->has_exit ? &pty->exit : NULL, &pty->failure);
	}
}

static void
end(struct daytona_pty *pty, const struct error *err)
{
	if (pty->stage == STAGE_ENDED)
		return;
	pty->stage = STAGE_ENDED;
	if (err != NULL)
		pty->failure = *err;
	loop_timer_stop(pty->deadline);
	loop_timer_start(pty->soon, 0);
}

static void
deadline_expired(void *argument)
{
	struct daytona_pty *pty = argument;
	struct error err;

	error_set(&err, ERROR_TIMEOUT, "the terminal's shell does not take a command%s",
	    pty->noise.length == 0 ? ": it says nothing" : "");
	end(pty, &err);
}

/* Everything in it is ours: the names are hexadecimal, and quotes keep the shell from the rest. */
static void
type_line(struct daytona_pty *pty)
{
	char *script, *line;

	script = script_text("launch");
	line = memory_text_format(" unset HISTFILE TERM; stty raw -echo; printf '\\036%s\\n'; "
				  "exec sh -c 'eval \"$(head -c %zu)\"' rws-launch 3<&0\n",
	    pty->mark + 1, strlen(script));
	websocket_send(pty->websocket, line, strlen(line));
	pty->stage = STAGE_TYPED;
	loop_timer_start(pty->deadline, READY_TIMEOUT);
	memory_free(line);
	memory_free(script);
}

/* The terminal is raw: the script that waits for a command. */
static void
send_script(struct daytona_pty *pty)
{
	char *script;

	script = script_text("launch");
	pty->stage = STAGE_READY;
	daytona_pty_send(pty, script, strlen(script));
	memory_free(script);
	loop_timer_stop(pty->deadline);
	loop_timer_start(pty->soon, 0);
}

/* What the shell says before it obeys is noise. */
static void
take_noise(struct daytona_pty *pty, const unsigned char *data, size_t size)
{
	struct error err;

	if (size > buffer_room(&pty->noise)) {
		error_set(&err, ERROR_UNAVAILABLE,
		    "the terminal's shell says too much before it takes a command");
		end(pty, &err);
		return;
	}
	(void)buffer_append(&pty->noise, data, size);
	if (memmem(buffer_data(&pty->noise), pty->noise.length, pty->mark, strlen(pty->mark)) ==
	    NULL)
		return;
	buffer_free(&pty->noise);
	send_script(pty);
}

/* "connected", "error" or "exited"; also what the close frame has as its reason. */
static void
take_control(struct daytona_pty *pty, const void *data, size_t size)
{
	struct json_object *object;
	const char *status, *text;
	struct error err;
	int64_t code;

	object = json_parse_object(data, size, NULL);
	status = json_text(object, "status");
	code = json_number(object, "exitCode", INT32_MIN, INT32_MAX, INT64_MIN);
	if (code != INT64_MIN) {
		pty->has_exit = true;
		/* -1 is a shell that was killed, by nobody says which signal. */
		pty->exit.status = code < 0 ? 255 : (int)(code & 255);
	}
	if (status != NULL && strcmp(status, "error") == 0) {
		text = json_text(object, "error");
		error_set(&err, ERROR_UNAVAILABLE, "%.200s", text == NULL ? "no terminal" : text);
		end(pty, &err);
	}
	json_object_put(object);
}

static void
socket_opened(void *argument)
{
	struct daytona_pty *pty = argument;

	pty->exists = true;
	type_line(pty);
}

static void
socket_received(void *argument, const struct websocket_message *message)
{
	struct daytona_pty *pty = argument;

	if (message->opcode == WEBSOCKET_TEXT)
		take_control(pty, message->data, message->size);
	else if (pty->stage == STAGE_TYPED)
		take_noise(pty, message->data, message->size);
	else if (pty->stage == STAGE_READY && pty->events != NULL)
		pty->events->received(pty->argument, message->data, message->size);
}

static void
socket_sent(void *argument)
{
	struct daytona_pty *pty = argument;

	if (pty->stage == STAGE_READY && pty->events != NULL)
		pty->events->sent(pty->argument);
}

static void create(struct daytona_pty *pty);

static void
socket_ended(void *argument, const struct websocket_end *ending, const struct error *reason)
{
	struct daytona_pty *pty = argument;
	struct error err;

	if (pty->stage == STAGE_OPENING && pty->in_one_trip && ending->http_status == 404) {
		/* It took the path for that of a terminal with this name: it is an older daemon, or
		 * nobody at all. */
		pty->sandbox->no_create_connect = true;
		websocket_free(pty->websocket);
		pty->websocket = NULL;
		create(pty);
		return;
	}
	if (reason != NULL) {
		err = *reason;
		pty->has_exit = false;
		if (pty->stage != STAGE_READY)
			error_wrap(&err, "open a terminal");
	} else {
		take_control(pty, ending->reason, strlen(ending->reason));
		error_set(&err, ERROR_UNAVAILABLE, "the terminal was closed (%u%s%.100s)",
		    ending->status, ending->reason[0] == '\0' ? "" : ": ", ending->reason);
	}
	if (pty->has_exit)
		pty->exists = false;
	else if (!pty->sandbox->is_lost)
		daytona_life_check(pty->sandbox);
	end(pty, &err);
}

static const struct websocket_events socket_events = {
	.opened = socket_opened,
	.received = socket_received,
	.sent = socket_sent,
	.ended = socket_ended,
};

static void
open_socket(struct daytona_pty *pty, const char *path)
{
	static const char *const none[] = { NULL };
	struct websocket_call call = { 0 };
	char *url, **headers;

	pty->stage = STAGE_OPENING;
	url = memory_text_format("%s%s", pty->sandbox->base, path);
	headers = daytona_headers(pty->sandbox, none);
	call.url = url;
	call.headers = headers;
	call.protocols = "X-Daytona-Pty-Exit-Control";
	call.max_message = RECEIVED_MAX;
	call.open_timeout = OPEN_TIMEOUT;
	call.events = &socket_events;
	call.argument = pty;
	pty->websocket = websocket_open(&pty->sandbox->setup, &call);
	memory_list_free(headers);
	memory_free(url);
}

static void
created(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct daytona_pty *pty = argument;
	struct error err;
	char *path;

	pty->creating = NULL;
	if (reason != NULL) {
		err = *reason;
		error_wrap(&err, "make a terminal");
		if (daytona_is_suspicious(answer)) {
			err.code = ERROR_UNAVAILABLE;
			daytona_life_check(pty->sandbox);
		}
		if (answer->outcome == HTTP_REFUSED || answer->outcome == HTTP_UNSENT)
			pty->exists = false;
		end(pty, &err);
		return;
	}
	path = memory_text_format("/process/pty/%s/connect", pty->name);
	open_socket(pty, path);
	memory_free(path);
}

/* Output before the connect is lost, so the shell waits for it. */
static void
create(struct daytona_pty *pty)
{
	struct json_object *body;

	pty->stage = STAGE_CREATING;
	pty->in_one_trip = false;
	pty->exists = true;
	body = json_object_new_object();
	json_add_text(body, "id", pty->name);
	json_add_text(body, "cwd", "/");
	json_object_object_add(body, "lazyStart", json_object_new_boolean(1));
	pty->creating = daytona_toolbox_call(pty->sandbox,
	    &(struct daytona_call){ .method = "POST",
		.path = "/process/pty",
		.body = body,
		.timeout = OPEN_TIMEOUT,
		.max_answer = ANSWER_MAX },
	    created, pty);
}

static struct daytona_pty *
open_pty(struct driver_sandbox *sandbox)
{
	char token[MARKER_TOKEN_SIZE], *path;
	struct daytona_pty *pty;

	pty = memory_zeroed(1, sizeof(*pty));
	pty->sandbox = sandbox;
	marker_make_token(pty->name);
	marker_make_token(token);
	(void)snprintf(pty->mark, sizeof(pty->mark), "\036rws:%s\n", token);
	pty->mark[strlen(pty->mark) - 1] = '\0';
	buffer_init(&pty->noise, NOISE_MAX);
	pty->deadline = loop_timer_new(sandbox->context.loop, deadline_expired, pty);
	pty->soon = loop_timer_new(sandbox->context.loop, soon_expired, pty);
	if (sandbox->no_create_connect) {
		create(pty);
		return pty;
	}
	pty->in_one_trip = true;
	path = memory_text_format(
	    "/process/pty/create-connect?id=%s&cols=80&rows=24&cwd=%%2F", pty->name);
	open_socket(pty, path);
	memory_free(path);
	return pty;
}

static void
spares_expired(void *argument)
{
	daytona_pty_free_spares(argument);
}

/* As many as the next command needs. */
static void
make_spares(struct driver_sandbox *sandbox)
{
	struct daytona_pty *pty;
	size_t count;

	if (sandbox->spare_timer == NULL)
		sandbox->spare_timer = loop_timer_new(
		    sandbox->context.loop, spares_expired, sandbox);
	loop_timer_start(sandbox->spare_timer, SPARE_TIME);
	count = 0;
	for (pty = sandbox->spares; pty != NULL; pty = pty->next)
		count++;
	for (; count < SPARES; count++) {
		pty = open_pty(sandbox);
		pty->next = sandbox->spares;
		sandbox->spares = pty;
	}
}

void
daytona_pty_free_spares(struct driver_sandbox *sandbox)
{
	if (sandbox->spare_timer != NULL)
		loop_timer_stop(sandbox->spare_timer);
	while (sandbox->spares != NULL)
		daytona_pty_free(sandbox->spares);
}

/* A ready one, else one that is about to be, else none. */
static struct daytona_pty *
find_spare(const struct driver_sandbox *sandbox)
{
	struct daytona_pty *pty, *found;

	found = NULL;
	for (pty = sandbox->spares; pty != NULL; pty = pty->next)
		if (pty->stage != STAGE_ENDED && (found == NULL || pty->stage == STAGE_READY))
			found = pty;
	return found;
}

struct daytona_pty *
daytona_pty_take(
    struct driver_sandbox *sandbox, const struct daytona_pty_events *events, void *argument)
{
	struct daytona_pty *pty;

	pty = find_spare(sandbox);
	if (pty == NULL)
		pty = open_pty(sandbox);
	else
		unlink_spare(pty);
	pty->events = events;
	pty->argument = argument;
	loop_timer_start(pty->soon, 0);
	make_spares(sandbox);
	return pty;
}

size_t
daytona_pty_room(const struct daytona_pty *pty)
{
	return pty->stage == STAGE_READY ? websocket_room(pty->websocket) / 2 : 0;
}

void
daytona_pty_send(struct daytona_pty *pty, const void *data, size_t size)
{
	const char *at = data;
	size_t piece;

	for (; size > 0 && pty->stage == STAGE_READY; size -= piece, at += piece) {
		piece = size < MESSAGE_MAX ? size : MESSAGE_MAX;
		websocket_send(pty->websocket, at, piece);
	}
}

void
daytona_pty_hold(struct daytona_pty *pty, bool hold)
{
	if (pty->stage == STAGE_READY)
		websocket_hold(pty->websocket, hold);
}
