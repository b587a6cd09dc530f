/* SPDX-License-Identifier: ISC */
/*
 * A process and its stream of events. Three ends are told apart:
 *
 *	an end event        the process ended; all its output came before
 *	a proper end of the stream without one: the end is asked for, by connecting to the pid again
 *	a broken stream     output may be lost, because envd drops what nobody is connected for
 *
 * After a broken stream a terminal is connected to again, as its user sees for himself what is
 *missing. Any other command fails: a gap in its output could pass for output.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "drivers/connect.h"
#include "drivers/e2b_driver.h"
#include "drivers/e2b_start.h"

/* Times a broken stream is connected to again, and ms before that, doubled each time. */
#define CONNECTS_MAX 4
#define CONNECT_DELAY 300

/* ms for the stream to end after the event that ends the process. */
#define END_WAIT 1000

#define TAG_SIZE 37

/* Silence is broken that often within the time after which a stream is given up; in s at most. */
#define KEEPALIVES 3
#define KEEPALIVE_MAX 50

enum e2b_process_stage {
	STAGE_STARTING, /* no start event yet */
	STAGE_RUNNING,
	STAGE_CONNECTING, /* again, after its stream ended */
	STAGE_JUDGING,    /* waits for what the control plane says of the sandbox */
	STAGE_ENDED,
};

struct e2b_process {
	struct e2b_process *next;
	struct driver_sandbox *sandbox;
	const struct e2b_process_events *events;
	void *argument;
	enum e2b_process_stage stage;
	struct http_request *request;
	char tag[TAG_SIZE];
	bool pty;
	uint32_t pid;
	struct e2b_event pending; /* output for which there is no room yet */
	bool has_end;             /* the end event came */
	struct driver_exit exit;
	bool stream_ended; /* the envelope that ends the stream came */
	unsigned connects;
	bool was_not_begun; /* for sure: nobody took the request to start it */
	struct loop_timer *again;
	struct error err; /* why it fails, while judging or after a broken stream */
	bool is_taking;   /* frames, so that it must not be freed */
	bool is_dead;     /* but was */
};

static void open_stream(struct e2b_process *process, const char *method, struct json_object *body);

static void
stop_stream(struct e2b_process *process)
{
	http_cancel(process->request);
	process->request = NULL;
	loop_timer_stop(process->again);
	e2b_event_free(&process->pending);
}

static void
tell_ended(struct e2b_process *process, const struct driver_exit *ended, const struct error *err)
{
	stop_stream(process);
	process->stage = STAGE_ENDED;
	process->events->ended(process->argument, ended, err);
}

/* Fails once it is known whether the sandbox is still there, which is the better reason if not. */
static void
fail_judged(struct e2b_process *process, const struct error *err)
{
	process->err = *err;
	stop_stream(process);
	process->stage = STAGE_JUDGING;
	e2b_life_check(process->sandbox);
}

/* Of one that is in no list any more. */
static void
destroy(struct e2b_process *process)
{
	loop_timer_free(process->again);
	memory_free(process);
}

static void
again_expired(void *argument)
{
	struct e2b_process *process = argument;

	if (process->has_end) {
		tell_ended(process, &process->exit, NULL);
		return;
	}
	if (process->stage == STAGE_STARTING) {
		tell_ended(process, NULL, &process->err);
		return;
	}
	process->stream_ended = false;
	open_stream(process, "process.Process/Connect", e2b_select(process->pid));
}

/* Connects again, or fails when that does not help. */
static void
connect_again(struct e2b_process *process)
{
	process->stage = STAGE_CONNECTING;
	if (process->connects >= CONNECTS_MAX) {
		fail_judged(process, &process->err);
		return;
	}
	loop_timer_start(process->again, (int64_t)CONNECT_DELAY << process->connects);
	process->connects++;
}

/* The stream is over and no end event came; err says how, NULL for a proper end. */
static void
stream_over(struct e2b_process *process, const struct error *err)
{
	if (process->stage == STAGE_CONNECTING && err != NULL) {
		/* envd knows for a while how a process ended, but not for ever. */
		if (err->code == ERROR_NOT_FOUND)
			fail_judged(process, &process->err);
		else
			connect_again(process);
		return;
	}
	if (err == NULL) {
		error_set(&process->err, ERROR_UNAVAILABLE, "the command ended without a result");
		connect_again(process);
		return;
	}
	process->err = *err;
	error_wrap(&process->err, "the command's stream broke, and output may be lost");
	log_debug("e2b: process %" PRIu32 ": %s", process->pid, process->err.message);
	if (!process->pty) {
		fail_judged(process, &process->err);
		return;
	}
	if (process->events->gap != NULL)
		process->events->gap(process->argument);
	connect_again(process);
}

/*
 * Is it the proxy that answers, for want of a sandbox behind it? What it says then names the sandbox,
 * and nobody else's 502 does (e2b.md section 2.5).
 */
static bool
is_from_proxy(const struct http_answer *answer)
{
	struct json_object *object;
	bool is_its;

	if (answer->outcome != HTTP_REFUSED || answer->status != 502)
		return false;
	object = json_parse(answer->body, answer->size, NULL);
	is_its = json_text(object, "sandboxId") != NULL;
	json_object_put(object);
	return is_its;
}

/* A start that failed. Whether it was done after all is not asked: it is undone. */
static void
start_failed(
    struct e2b_process *process, const struct http_answer *answer, const struct error *reason)
{
	struct error err = *reason;

	error_wrap(&err, "start command");
	process->was_not_begun = answer->outcome == HTTP_UNSENT || is_from_proxy(answer);
	if (answer->outcome == HTTP_UNKNOWN || answer->outcome == HTTP_BROKEN ||
	    answer->status >= 500)
		e2b_chore_reap(process->sandbox, process->tag);
	if (answer->outcome == HTTP_REFUSED && answer->status != 502)
		tell_ended(process, NULL, &err);
	else
		fail_judged(process, &err);
}

static void
stream_done(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct e2b_process *process = argument;
	struct error err;

	process->request = NULL;
	if (process->has_end) {
		tell_ended(process, &process->exit, NULL);
	} else if (process->stage == STAGE_STARTING) {
		if (reason == NULL) {
			error_set(&err, ERROR_UNAVAILABLE, "the answer ended before its start");
			reason = &err;
		}
		start_failed(process, answer, reason);
	} else if (reason == NULL && !process->stream_ended) {
		error_set(&err, ERROR_UNAVAILABLE, "it ended without an end of stream");
		stream_over(process, &err);
	} else {
		stream_over(process, reason);
	}
}

static void
take_start(struct e2b_process *process, uint32_t pid)
{
	enum e2b_process_stage stage = process->stage;

	process->stage = STAGE_RUNNING;
	if (stage == STAGE_STARTING) {
		process->pid = pid;
		process->events->started(process->argument, pid);
	} else {
		log_info("e2b: connected to process %" PRIu32 " again", pid);
		process->connects = 0;
	}
}

static bool
is_output(const struct e2b_event *event)
{
	return event->kind == E2B_EVENT_OUTPUT || event->kind == E2B_EVENT_ERRORS ||
	       event->kind == E2B_EVENT_TERMINAL;
}

/* Hands output on, or holds the stream until there is room for it. */
static void
take_output(struct e2b_process *process)
{
	struct e2b_event event = process->pending;

	if (!process->events->has_room(process->argument, event.kind)) {
		http_hold(process->request, true);
		return;
	}
	memset(&process->pending, 0, sizeof(process->pending));
	process->events->output(process->argument, event.kind, event.data, event.size);
	e2b_event_free(&event);
}

/* The stream says what makes no sense. */
static void
refuse_stream(struct e2b_process *process, const struct error *err)
{
	struct error copy = *err;

	error_wrap(&copy, "the stream of events");
	if (process->stage == STAGE_STARTING)
		e2b_chore_reap(process->sandbox, process->tag);
	tell_ended(process, NULL, &copy);
}

/* The server's word that the stream is over. */
static void
take_end_of_stream(struct e2b_process *process, const struct connect_frame *frame)
{
	struct error err;

	process->stream_ended = true;
	if (connect_decode_end(frame, &err) == 0 || process->has_end)
		return; /* the rest is for stream_done, once the connection is free again */
	if (process->stage == STAGE_STARTING) {
		error_wrap(&err, "start command");
		tell_ended(process, NULL, &err);
		return;
	}
	http_cancel(process->request);
	process->request = NULL;
	stream_over(process, &err);
}

static void
take_frame(struct e2b_process *process, const struct connect_frame *frame)
{
	struct e2b_event event;
	struct error err;
	size_t size = CONNECT_HEADER_SIZE + frame->size;

	if (frame->is_end) {
		take_end_of_stream(process, frame);
		if (process->request != NULL)
			http_consume(process->request, size);
		return;
	}
	if (e2b_event_decode(frame->payload, frame->size, &event, &err) != 0) {
		refuse_stream(process, &err);
		return;
	}
	http_consume(process->request, size);
	if (process->stage == STAGE_STARTING &&
	    (is_output(&event) || event.kind == E2B_EVENT_END)) {
		e2b_event_free(&event);
		error_set(&err, ERROR_UNAVAILABLE, "it does not begin with a start");
		refuse_stream(process, &err);
	} else if (event.kind == E2B_EVENT_START) {
		take_start(process, event.pid);
	} else if (event.kind == E2B_EVENT_END) {
		/* The connection is of use again after the stream's end, but that is not waited for
		 * long. */
		process->has_end = true;
		process->exit = event.ended;
		loop_timer_start(process->again, END_WAIT);
	} else if (is_output(&event)) {
		process->pending = event;
		take_output(process);
	}
}

/* Takes frames until there are none, no room for their output, or no stream any more. */
static void
stream_received(void *argument)
{
	struct e2b_process *process = argument;
	const struct buffer *received;
	struct connect_frame frame;
	struct error err;
	size_t needed;
	int result;

	process->is_taking = true;
	do {
		received = http_received(process->request);
		result = connect_decode(
		    buffer_data(received), received->length, &frame, &needed, &err);
		if (result > 0)
			take_frame(process, &frame);
		else if (result < 0)
			refuse_stream(process, &err);
		else
			http_expect(process->request, needed);
	} while (result > 0 && process->request != NULL && process->pending.data == NULL);
	process->is_taking = false;
	if (process->is_dead)
		destroy(process);
}

static char **
stream_headers(const struct driver_sandbox *sandbox)
{
	char keepalive[48];
	const char *const headers[] = { "Content-Type: application/connect+json",
		"Connect-Protocol-Version: 1", keepalive, NULL };
	int64_t seconds;

	seconds = sandbox->request_timeout / 1000 / KEEPALIVES;
	if (seconds > KEEPALIVE_MAX)
		seconds = KEEPALIVE_MAX;
	/* 0 would make envd's timer panic. */
	(void)snprintf(keepalive, sizeof(keepalive), "Keepalive-Ping-Interval: %" PRId64,
	    seconds < 1 ? 1 : seconds);
	return e2b_envd_headers(sandbox, headers);
}

/* Starts a streaming call; puts body. */
static void
open_stream(struct e2b_process *process, const char *method, struct json_object *body)
{
	struct driver_sandbox *sandbox = process->sandbox;
	struct http_call call = { 0 };
	struct buffer envelope;
	const char *text;
	char **headers, *url;

	text = json_print(body);
	buffer_init(&envelope, CONNECT_HEADER_SIZE + CONNECT_PAYLOAD_MAX);
	/* e2b_start_body refuses what is longer. */
	(void)connect_encode(&envelope, text, strlen(text));
	headers = stream_headers(sandbox);
	url = memory_text_format("%s/%s", sandbox->base, method);
	call.method = "POST";
	call.url = url;
	call.headers = headers;
	call.repeat = HTTP_ONCE;
	call.body = buffer_data(&envelope);
	call.body_size = envelope.length;
	call.received = stream_received;
	call.connect_timeout = e2b_connect_timeout(sandbox);
	call.first_byte_timeout = call.idle_timeout = sandbox->request_timeout;
	call.done = stream_done;
	call.argument = process;
	process->request = http_start(sandbox->http, &call);
	memory_free(url);
	memory_list_free(headers);
	buffer_wipe(&envelope);
	json_object_put(body);
}

/* 128 bits that no other process of the sandbox has for a label. */
static void
make_tag(char tag[TAG_SIZE])
{
	unsigned char bytes[16];
	size_t i, at;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		log_fatal("getrandom failed");
	memcpy(tag, "rws-", 4);
	for (i = 0, at = 4; i < sizeof(bytes); i++, at += 2)
		(void)snprintf(tag + at, TAG_SIZE - at, "%02x", bytes[i]);
}

struct e2b_process *
e2b_process_start(struct driver_sandbox *sandbox, const struct driver_command *command,
    const struct e2b_process_events *events, void *argument)
{
	struct e2b_process *process;
	struct json_object *body;

	process = memory_zeroed(1, sizeof(*process));
	process->sandbox = sandbox;
	process->events = events;
	process->argument = argument;
	process->pty = command->pty;
	process->again = loop_timer_new(sandbox->context.loop, again_expired, process);
	make_tag(process->tag);
	process->next = sandbox->processes;
	sandbox->processes = process;
	body = NULL;
	if (sandbox->id == NULL || sandbox->is_lost)
		error_set(&process->err, ERROR_UNAVAILABLE, "the sandbox does not run");
	else
		body = e2b_start_body(command, process->tag, &process->err);
	if (body == NULL) {
		loop_timer_start(process->again, 0);
		return process;
	}
	e2b_life_use(sandbox);
	open_stream(process, "process.Process/Start", body);
	return process;
}

void
e2b_process_resume(struct e2b_process *process)
{
	if (process->pending.data == NULL)
		return;
	take_output(process);
	if (process->pending.data == NULL && process->request != NULL)
		http_hold(process->request, false);
}

void
e2b_process_fail(struct e2b_process *process, const struct error *err)
{
	if (process->stage != STAGE_JUDGING && process->stage != STAGE_ENDED)
		fail_judged(process, err);
}

uint32_t
e2b_process_pid(const struct e2b_process *process)
{
	return process->has_end || process->stage == STAGE_ENDED ? 0 : process->pid;
}

void
e2b_process_free(struct e2b_process *process)
{
	struct e2b_process **place;
	struct json_object *body;

	if (process == NULL)
		return;
	for (place = &process->sandbox->processes; *place != process; place = &(*place)->next)
		continue;
	*place = process->next;
	if (process->sandbox->is_closing || process->stage == STAGE_ENDED) {
		/* Nothing can be sent any more, or need be. */
	} else if (process->pid != 0 && !process->has_end && !process->sandbox->is_lost) {
		body = e2b_select(process->pid);
		json_add_text(body, "signal", "SIGNAL_SIGKILL");
		e2b_chore(process->sandbox, "process.Process/SendSignal", body);
	} else if (process->stage == STAGE_STARTING && process->request != NULL) {
		e2b_chore_reap(process->sandbox, process->tag);
	}
	stop_stream(process);
	process->stage = STAGE_ENDED;
	if (process->is_taking)
		process->is_dead = true;
	else
		destroy(process);
}

void
e2b_process_judge(struct driver_sandbox *sandbox, const struct error *gone)
{
	struct e2b_process *process;
	struct error reason;

	for (process = sandbox->processes; process != NULL;) {
		if (process->stage == STAGE_ENDED ||
		    (gone == NULL && process->stage != STAGE_JUDGING)) {
			process = process->next;
			continue;
		}
		reason = gone != NULL ? *gone : process->err;
		if (gone != NULL && process->was_not_begun)
			reason.code = ERROR_NOT_FOUND;
		tell_ended(process, NULL, &reason);
		process = sandbox->processes;
	}
}
