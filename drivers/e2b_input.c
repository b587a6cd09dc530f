/* SPDX-License-Identifier: ISC */
/*
 * A command's input, strictly in order and never twice. Little goes with SendInput, a request a
 * piece. Much goes with StreamInput, whose pieces need no answer each: one such stream is a burst,
 * which ends with an answer once the client has nothing to say for a moment, so that it works even
 * through something that holds back a request until its end. What the first burst of a sandbox
 * sends is kept until its answer, because the server may not know StreamInput.
 */
#include <string.h>

#include "core/base/base64.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "core/pump.h"
#include "drivers/connect.h"
#include "drivers/e2b_driver.h"

/* Bytes from the descriptor that wait. */
#define SOURCE_MAX 262144
/* Bytes in one SendInput, and from which on a burst is worth its while. */
#define PIECE_MAX 65536
/* Bytes in one message of a burst; two of them in base64 fit into what http keeps. */
#define MESSAGE_MAX 32768
/* ms without anything to send after which a burst ends. */
#define BURST_LINGER 50
#define ANSWER_MAX 65536
/* What ends the input of a terminal in its usual mode: the character EOF. */
#define TERMINAL_END "\004"

enum input_stage {
	INPUT_IDLE,
	INPUT_SENDING, /* SendInput */
	INPUT_BURST,   /* StreamInput */
	INPUT_CLOSING, /* CloseStdin */
	INPUT_CLOSED,
};

struct e2b_input {
	struct driver_sandbox *sandbox;
	uint32_t pid;
	bool pty;
	void (*failed)(void *argument, const struct error *err);
	void *argument;
	struct pump_source *source; /* or NULL: */
	struct buffer data;
	struct loop_timer *soon;
	enum input_stage stage;
	struct http_request *request;
	size_t sent;     /* bytes at the front that are sent and not consumed */
	bool burst_over; /* no more is sent in it */
	bool
	    acknowledged; /* and the server took it all; its connection is about to be free again */
	struct loop_timer *linger;
};

static void advance(struct e2b_input *input);

static const struct buffer *
waiting(const struct e2b_input *input)
{
	return input->source != NULL ? pump_source_buffer(input->source) : &input->data;
}

static bool
has_ended(const struct e2b_input *input)
{
	return input->source == NULL || pump_source_has_ended(input->source);
}

static void
consume(struct e2b_input *input, size_t size)
{
	if (input->source != NULL)
		pump_source_consume(input->source, size);
	else
		buffer_consume(&input->data, size);
}

/* The command takes no more input: whoever writes finds that out as with a broken pipe. */
static void
stop(struct e2b_input *input)
{
	input->stage = INPUT_CLOSED;
	input->request = NULL;
	loop_timer_stop(input->linger);
	if (input->source != NULL)
		pump_source_close(input->source);
}

static void
fail(struct e2b_input *input, const struct error *reason)
{
	struct error err = *reason;

	stop(input);
	error_wrap(&err, "it is not known how much of the input arrived");
	input->failed(input->argument, &err);
}

/* {"stdin":"..."}, or "pty" for a terminal. */
static struct json_object *
make_piece(const struct e2b_input *input, const void *data, size_t size)
{
	struct json_object *piece;
	char *encoded;

	encoded = base64_text(data, size);
	piece = json_object_new_object();
	json_add_text(piece, input->pty ? "pty" : "stdin", encoded);
	explicit_bzero(encoded, BASE64_SIZE(size));
	memory_free(encoded);
	return piece;
}

static void
piece_sent(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct e2b_input *input = argument;

	input->request = NULL;
	if (err != NULL && e2b_is_rpc_error(answer)) {
		log_debug("e2b: process %u takes no input: %s", input->pid, err->message);
		stop(input);
		return;
	}
	if (err != NULL) {
		fail(input, err);
		return;
	}
	input->stage = INPUT_IDLE;
	consume(input, input->sent);
	input->sent = 0;
	advance(input);
}

static void
send_bytes(struct e2b_input *input, const void *data, size_t size)
{
	struct json_object *body;

	body = e2b_select(input->pid);
	json_object_object_add(body, "input", make_piece(input, data, size));
	input->stage = INPUT_SENDING;
	/* No deadline: it takes as long as the command does not read. */
	input->request = e2b_unary_call(
	    input->sandbox, "process.Process/SendInput", body, HTTP_ONCE, 0, piece_sent, input);
}

static void
send_piece(struct e2b_input *input)
{
	const struct buffer *bytes = waiting(input);

	input->sent = bytes->length < PIECE_MAX ? bytes->length : PIECE_MAX;
	send_bytes(input, buffer_data(bytes), input->sent);
}

static void
input_closed(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct e2b_input *input = argument;

	if (err != NULL && !e2b_is_rpc_error(answer))
		fail(input, err);
	else
		stop(input);
}

static void
close_input(struct e2b_input *input)
{
	if (input->pty) {
		send_bytes(input, TERMINAL_END, strlen(TERMINAL_END));
		input->sent = 0;
		if (input->source != NULL)
			pump_source_close(input->source);
		input->burst_over = true;
		return;
	}
	input->stage = INPUT_CLOSING;
	input->request = e2b_unary_call(input->sandbox, "process.Process/CloseStdin",
	    e2b_select(input->pid), HTTP_IDEMPOTENT, 0, input_closed, input);
}

/* Appends a message to the burst; puts body. */
static void
send_message(struct e2b_input *input, struct json_object *body)
{
	struct buffer envelope;
	const char *text;

	text = json_print(body);
	buffer_init(&envelope, CONNECT_HEADER_SIZE + CONNECT_PAYLOAD_MAX);
	(void)connect_encode(&envelope, text, strlen(text));
	http_send(input->request, buffer_data(&envelope), envelope.length);
	buffer_wipe(&envelope);
	json_object_put(body);
}

static void
end_burst(struct e2b_input *input)
{
	loop_timer_stop(input->linger);
	if (input->burst_over)
		return;
	input->burst_over = true;
	http_send_end(input->request);
}

static void burst_acknowledged(struct e2b_input *input);

static void
linger_expired(void *argument)
{
	struct e2b_input *input = argument;

	if (!input->acknowledged) {
		end_burst(input);
		return;
	}
	http_cancel(input->request);
	burst_acknowledged(input);
}

/* One message of what waits behind what is sent already. */
static void
send_next(struct e2b_input *input)
{
	const struct buffer *bytes = waiting(input);
	struct json_object *body, *data;
	size_t size;

	size = bytes->length - input->sent;
	if (size > MESSAGE_MAX)
		size = MESSAGE_MAX;
	data = json_object_new_object();
	json_object_object_add(
	    data, "input", make_piece(input, buffer_data(bytes) + input->sent, size));
	body = json_object_new_object();
	json_object_object_add(body, "data", data);
	send_message(input, body);
	if (input->sandbox->stream_input_works)
		consume(input, size);
	else
		input->sent += size;
}

/* Fills the burst as far as it takes more. */
static void
feed_burst(struct e2b_input *input)
{
	size_t message = CONNECT_HEADER_SIZE + BASE64_SIZE(MESSAGE_MAX) + 64;

	while (!input->burst_over && waiting(input)->length > input->sent &&
	       http_send_room(input->request) >= message) {
		loop_timer_stop(input->linger);
		send_next(input);
	}
	if (waiting(input)->length > input->sent || input->burst_over)
		return;
	if (has_ended(input) || !input->sandbox->stream_input_works)
		end_burst(input);
	else if (!loop_timer_running(input->linger))
		loop_timer_start(input->linger, BURST_LINGER);
}

static void
burst_wants_more(void *argument)
{
	feed_burst(argument);
}

static void
burst_acknowledged(struct e2b_input *input)
{
	loop_timer_stop(input->linger);
	input->request = NULL;
	input->sandbox->stream_input_works = true;
	input->stage = INPUT_IDLE;
	consume(input, input->sent);
	input->sent = 0;
	advance(input);
}

/* The server does not know the method, and so has not taken anything. */
static void
burst_unknown(struct e2b_input *input)
{
	log_info("e2b: envd of sandbox %s takes input piece by piece only", input->sandbox->id);
	input->sandbox->no_stream_input = true;
	input->stage = INPUT_IDLE;
	input->sent = 0;
	advance(input);
}

static void
burst_done(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct e2b_input *input = argument;
	struct error broken;
	bool is_unknown;

	input->request = NULL;
	if (input->acknowledged) {
		burst_acknowledged(input);
		return;
	}
	is_unknown = answer->status == 404 || answer->status == 405 || answer->status == 415 ||
		     answer->status == 501;
	if (is_unknown && !input->sandbox->stream_input_works) {
		burst_unknown(input);
		return;
	}
	error_set(&broken, ERROR_UNAVAILABLE, "its stream ended without an answer");
	fail(input, err != NULL ? err : &broken);
}

/* The end of the server's answer: it took all, or takes no more. */
static void
take_end(struct e2b_input *input, const struct connect_frame *frame)
{
	struct error err;
	bool succeeded;

	succeeded = connect_decode_end(frame, &err) == 0;
	if (succeeded && input->burst_over) {
		input->acknowledged = true;
		http_consume(input->request, CONNECT_HEADER_SIZE + frame->size);
		loop_timer_start(input->linger, BURST_LINGER);
		return;
	}
	http_cancel(input->request);
	input->request = NULL;
	loop_timer_stop(input->linger);
	if (!succeeded && err.code == ERROR_UNSUPPORTED && !input->sandbox->stream_input_works) {
		burst_unknown(input);
	} else {
		log_debug("e2b: process %u takes no input: %s", input->pid,
		    succeeded ? "its stream ended early" : err.message);
		stop(input);
	}
}

static void
burst_received(void *argument)
{
	struct e2b_input *input = argument;
	const struct buffer *received;
	struct connect_frame frame;
	struct error err;
	size_t needed;
	int result;

	for (;;) {
		received = http_received(input->request);
		result = connect_decode(
		    buffer_data(received), received->length, &frame, &needed, &err);
		if (result == 0)
			return;
		if (result < 0) {
			http_cancel(input->request);
			fail(input, &err);
			return;
		}
		if (frame.is_end) {
			take_end(input, &frame);
			return;
		}
		http_consume(input->request, CONNECT_HEADER_SIZE + frame.size);
	}
}

static void
begin_burst(struct e2b_input *input)
{
	static const char *const types[] = { "Content-Type: application/connect+json",
		"Connect-Protocol-Version: 1", NULL };
	struct http_call call = { 0 };
	struct json_object *start;
	char *url, **headers;

	headers = e2b_envd_headers(input->sandbox, types);
	url = memory_text_format("%s/process.Process/StreamInput", input->sandbox->base);
	call.method = "POST";
	call.url = url;
	call.headers = headers;
	call.repeat = HTTP_ONCE;
	call.wants_more = burst_wants_more;
	call.body_length = -1;
	call.received = burst_received;
	call.max_answer = ANSWER_MAX;
	call.connect_timeout = e2b_connect_timeout(input->sandbox);
	call.done = burst_done;
	call.argument = input;
	input->stage = INPUT_BURST;
	input->burst_over = input->acknowledged = false;
	input->sent = 0;
	input->request = http_start(input->sandbox->http, &call);
	start = json_object_new_object();
	json_object_object_add(start, "start", e2b_select(input->pid));
	send_message(input, start);
	memory_free(url);
	memory_list_free(headers);
	feed_burst(input);
}

static void
advance(struct e2b_input *input)
{
	if (input->stage == INPUT_BURST)
		feed_burst(input);
	if (input->stage != INPUT_IDLE)
		return;
	if (waiting(input)->length >= PIECE_MAX && !input->sandbox->no_stream_input)
		begin_burst(input);
	else if (waiting(input)->length > 0)
		send_piece(input);
	else if (has_ended(input) && !(input->pty && input->burst_over))
		close_input(input);
}

static void
source_ready(void *argument)
{
	advance(argument);
}

struct e2b_input *
e2b_input_new(const struct e2b_input_setup *setup)
{
	struct loop *loop = setup->sandbox->context.loop;
	struct e2b_input *input;

	input = memory_zeroed(1, sizeof(*input));
	input->sandbox = setup->sandbox;
	input->pid = setup->pid;
	input->pty = setup->pty;
	input->failed = setup->failed;
	input->argument = setup->argument;
	input->linger = loop_timer_new(loop, linger_expired, input);
	input->soon = loop_timer_new(loop, source_ready, input);
	buffer_init(&input->data, setup->size);
	if (setup->source >= 0) {
		input->source = pump_source_new(
		    loop, setup->source, SOURCE_MAX, source_ready, input);
	} else {
		(void)buffer_append(&input->data, setup->data, setup->size);
		loop_timer_start(input->soon, 0);
	}
	return input;
}

void
e2b_input_free(struct e2b_input *input)
{
	if (input == NULL)
		return;
	http_cancel(input->request);
	pump_source_free(input->source);
	buffer_wipe(&input->data);
	loop_timer_free(input->linger);
	loop_timer_free(input->soon);
	memory_free(input);
}
