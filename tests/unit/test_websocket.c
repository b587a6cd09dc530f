/* SPDX-License-Identifier: ISC */
/* A client and a server of a few lines on one loop: what the server says is in the test. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/base64.h"
#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "drivers/http.h"
#include "drivers/websocket.h"
#include "drivers/websocket_frame.h"

#define PATIENCE 20000
#define MAX 65536

struct fixture {
	struct loop *loop;
	struct websocket *websocket;
	/* the server */
	int listener, connection;
	struct loop_watch *listening, *reading;
	struct buffer heard;
	bool is_open, is_closed; /* the handshake is over; the client is gone */
	const char *refusal;     /* instead of an upgrade */
	const char *extra;       /* header lines of the upgrade */
	bool wrong_accept, silent;
	char *url;
	/* the client */
	bool opened, ended, frees_in_received;
	unsigned received, sent;
	struct buffer content;
	struct websocket_end end;
	struct error failure;
	bool has_failure;
};

static struct fixture fixture;

static void
dispatch(const bool *flag)
{
	int64_t until;

	until = loop_now() + PATIENCE;
	while (!*flag) {
		if (loop_now() > until)
			fail_msg("waited in vain");
		assert_int_equal(loop_dispatch(fixture.loop, 1000, NULL), 0);
	}
}

static void
dispatch_until(const unsigned *counter, unsigned value)
{
	int64_t until;

	until = loop_now() + PATIENCE;
	while (*counter < value) {
		if (loop_now() > until || fixture.ended)
			fail_msg("waited in vain: %s", fixture.failure.message);
		assert_int_equal(loop_dispatch(fixture.loop, 1000, NULL), 0);
	}
}

static void
say(const void *data, size_t size)
{
	assert_int_equal(descriptor_write(fixture.connection, data, size, NULL), 0);
}

static void
say_text(const char *text)
{
	say(text, strlen(text));
}

/* As RFC 6455 section 4.2.2 has it. */
static void
answer_upgrade(const char *request)
{
	unsigned char digest[HASH_SHA1_SIZE];
	char *key, *accept, *joined, *text;
	const char *found;

	found = strstr(request, "Sec-WebSocket-Key: ");
	assert_non_null(found);
	key = memory_text_bounded(found + 19, 24);
	joined = memory_text_format("%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
	hash_sha1(digest, joined, strlen(joined));
	accept = base64_text(digest, sizeof(digest));
	if (fixture.wrong_accept)
		accept[0] = accept[0] == 'A' ? 'B' : 'A';
	text = memory_text_format("HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\n"
				  "connection: upgrade\r\nsec-websocket-accept:%s \r\n%s\r\n",
	    accept, fixture.extra == NULL ? "" : fixture.extra);
	say_text(text);
	memory_free(text);
	memory_free(accept);
	memory_free(joined);
	memory_free(key);
}

static void
take_request(void)
{
	const char *end;
	char *request;

	end = memmem(buffer_data(&fixture.heard), fixture.heard.length, "\r\n\r\n", 4);
	if (end == NULL || fixture.silent)
		return;
	request = memory_text_bounded(buffer_data(&fixture.heard), fixture.heard.length);
	if (fixture.refusal != NULL)
		say_text(fixture.refusal);
	else
		answer_upgrade(request);
	memory_free(request);
	if (fixture.refusal == NULL)
		buffer_consume(&fixture.heard, fixture.heard.length);
	fixture.is_open = true;
}

static void
connection_ready(void *argument, unsigned events)
{
	unsigned char chunk[65536];
	ssize_t got;

	(void)argument;
	(void)events;
	got = read(fixture.connection, chunk, sizeof(chunk));
	if (got <= 0) {
		fixture.is_closed = true;
		loop_unwatch(fixture.reading);
		fixture.reading = NULL;
		return;
	}
	assert_int_equal(buffer_append(&fixture.heard, chunk, (size_t)got), 0);
	if (!fixture.is_open)
		take_request();
}

static void
client_came(void *argument, unsigned events)
{
	(void)argument;
	(void)events;
	/* One at a time: that of a client before this one is over. */
	loop_unwatch(fixture.reading);
	descriptor_close(&fixture.connection);
	fixture.connection = accept(fixture.listener, NULL, NULL);
	assert_true(fixture.connection >= 0);
	fixture.reading = loop_watch(
	    fixture.loop, fixture.connection, LOOP_READ, connection_ready, NULL);
}

static int
open_server(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);

	(void)state;
	memset(&fixture, 0, sizeof(fixture));
	fixture.connection = -1;
	fixture.loop = loop_new(NULL);
	buffer_init(&fixture.heard, 8 * MAX);
	buffer_init(&fixture.content, 64 * MAX);
	fixture.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fixture.loop == NULL || fixture.listener < 0 ||
	    bind(fixture.listener, (struct sockaddr *)&address, size) != 0 ||
	    listen(fixture.listener, 1) != 0 ||
	    getsockname(fixture.listener, (struct sockaddr *)&address, &size) != 0)
		return -1;
	fixture.url = memory_text_format("http://127.0.0.1:%d/a/b?c=d", ntohs(address.sin_port));
	fixture.listening = loop_watch(
	    fixture.loop, fixture.listener, LOOP_READ, client_came, NULL);
	return 0;
}

static int
close_server(void **state)
{
	(void)state;
	websocket_free(fixture.websocket);
	loop_unwatch(fixture.listening);
	loop_unwatch(fixture.reading);
	descriptor_close(&fixture.listener);
	descriptor_close(&fixture.connection);
	buffer_free(&fixture.heard);
	buffer_free(&fixture.content);
	memory_free(fixture.url);
	loop_free(fixture.loop);
	return 0;
}

static void
client_opened(void *argument)
{
	(void)argument;
	fixture.opened = true;
}

static void
client_received(void *argument, const struct websocket_message *message)
{
	(void)argument;
	fixture.received++;
	assert_int_equal(buffer_append(&fixture.content, message->data, message->size), 0);
	if (fixture.frees_in_received) {
		websocket_free(fixture.websocket);
		fixture.websocket = NULL;
	}
}

static void
client_sent(void *argument)
{
	(void)argument;
	fixture.sent++;
}

static void
client_ended(void *argument, const struct websocket_end *end, const struct error *err)
{
	(void)argument;
	assert_false(fixture.ended);
	fixture.ended = true;
	fixture.end = *end;
	fixture.has_failure = err != NULL;
	if (err != NULL)
		fixture.failure = *err;
}

static const struct websocket_events events = { client_opened, client_received, client_sent,
	client_ended };

static void
start(void)
{
	char first[] = "X-First: 1", *headers[] = { first, NULL };
	struct http_setup setup = { .loop = fixture.loop };
	struct websocket_call call = { .url = fixture.url,
		.headers = headers,
		.protocols = "p",
		.max_message = MAX,
		.open_timeout = PATIENCE,
		.events = &events };

	fixture.websocket = websocket_open(&setup, &call);
}

static void
must_open(void)
{
	start();
	dispatch(&fixture.opened);
}

static void
the_request_is_as_the_rfc_wants_it(void **state)
{
	char *request;

	(void)state;
	fixture.refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
	start();
	dispatch(&fixture.ended);
	request = memory_text_bounded(buffer_data(&fixture.heard), fixture.heard.length);
	assert_ptr_equal(strstr(request, "GET /a/b?c=d HTTP/1.1\r\nHost: 127.0.0.1:"), request);
	assert_non_null(strstr(request, "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"));
	assert_non_null(strstr(request, "\r\nSec-WebSocket-Version: 13\r\n"));
	assert_non_null(strstr(request, "\r\nSec-WebSocket-Protocol: p\r\n"));
	assert_non_null(strstr(request, "\r\nX-First: 1\r\n\r\n"));
	assert_null(strstr(request, "Extensions"));
	memory_free(request);
}

static void
a_refusal_is_explained(void **state)
{
	(void)state;
	fixture.refusal = "HTTP/1.1 404 Not Found\r\nContent-Length: 32\r\n\r\n"
			  "{\"error\":\"PTY session not found\"}";
	start();
	dispatch(&fixture.ended);
	assert_false(fixture.opened);
	assert_int_equal(fixture.end.http_status, 404);
	assert_non_null(strstr(fixture.failure.message, "404: PTY session not found"));
}

static void
an_upgrade_that_is_none_is_refused(void **state)
{
	(void)state;
	fixture.wrong_accept = true;
	start();
	dispatch(&fixture.ended);
	assert_false(fixture.opened);
	assert_int_equal(fixture.failure.code, ERROR_UNAVAILABLE);
}

static void
an_extension_nobody_asked_for_is_refused(void **state)
{
	(void)state;
	fixture.extra = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
	start();
	dispatch(&fixture.ended);
	assert_false(fixture.opened);
}

static void
messages_arrive(void **state)
{
	(void)state;
	must_open();
	say("\x82\x03"
	    "abc\x81\x01"
	    "d",
	    8);
	dispatch_until(&fixture.received, 2);
	assert_memory_equal(buffer_data(&fixture.content), "abcd", 4);
}

/* The one frame that the server heard, unmasked; a new text. */
static char *
heard_frame(size_t size)
{
	unsigned char *data;
	size_t i;
	char *text;

	while (fixture.heard.length < 6 + size)
		assert_int_equal(loop_dispatch(fixture.loop, 1000, NULL), 0);
	data = buffer_data(&fixture.heard);
	assert_int_equal(data[1], 0x80 | size);
	text = memory_zeroed(size + 1, 1);
	for (i = 0; i < size; i++)
		text[i] = (char)(data[6 + i] ^ data[2 + (i & 3)]);
	return text;
}

static void
messages_are_sent_masked(void **state)
{
	char *text;

	(void)state;
	must_open();
	websocket_send(fixture.websocket, "hello", 5);
	text = heard_frame(5);
	assert_string_equal(text, "hello");
	assert_int_equal(buffer_data(&fixture.heard)[0], 0x82);
	memory_free(text);
}

static void
a_ping_is_answered_with_what_it_said(void **state)
{
	char *text;

	(void)state;
	must_open();
	say("\x89\x02hi", 4);
	text = heard_frame(2);
	assert_string_equal(text, "hi");
	assert_int_equal(buffer_data(&fixture.heard)[0], 0x8a);
	memory_free(text);
}

static void
a_close_is_told_with_its_reason_and_answered(void **state)
{
	char *text;

	(void)state;
	must_open();
	say("\x82\x01x\x88\x06\x03\xf0slow", 11);
	dispatch(&fixture.ended);
	assert_int_equal(fixture.received, 1);
	assert_false(fixture.has_failure);
	assert_int_equal(fixture.end.status, 1008);
	assert_string_equal(fixture.end.reason, "slow");
	text = heard_frame(2);
	assert_memory_equal(text, "\x03\xf0", 2);
	memory_free(text);
}

static void
a_broken_connection_is_a_failure(void **state)
{
	(void)state;
	must_open();
	(void)shutdown(fixture.connection, SHUT_RDWR);
	dispatch(&fixture.ended);
	assert_true(fixture.has_failure);
	assert_int_equal(fixture.end.status, 0);
}

static void
a_breach_of_the_protocol_ends_it_with_its_status(void **state)
{
	char *text;

	(void)state;
	must_open();
	say("\xf2\x00", 2);
	dispatch(&fixture.ended);
	assert_true(fixture.has_failure);
	text = heard_frame(2);
	assert_memory_equal(text, "\x03\xea", 2);
	memory_free(text);
}

static void
nobody_there_is_told_as_unsent(void **state)
{
	(void)state;
	loop_unwatch(fixture.listening);
	fixture.listening = NULL;
	descriptor_close(&fixture.listener);
	start();
	dispatch(&fixture.ended);
	assert_true(fixture.end.unsent);
}

static void
a_server_that_does_not_answer_is_given_up(void **state)
{
	struct http_setup setup = { .loop = fixture.loop };
	struct websocket_call call = {
		.url = fixture.url, .max_message = MAX, .open_timeout = 1, .events = &events
	};

	(void)state;
	fixture.silent = true;
	fixture.websocket = websocket_open(&setup, &call);
	dispatch(&fixture.ended);
	assert_int_equal(fixture.failure.code, ERROR_TIMEOUT);
}

static void
a_connection_that_is_made_as_the_deadline_comes_is_given_up_too(void **state)
{
	struct http_setup setup = { .loop = fixture.loop };
	struct websocket_call call = {
		.url = fixture.url, .max_message = MAX, .open_timeout = 1, .events = &events
	};
	int64_t until;
	int rounds;

	(void)state;
	fixture.silent = true;
	/* After each number of rounds, so that one of them meets the moment between both. */
	for (rounds = 0; rounds < 8; rounds++) {
		fixture.ended = false;
		fixture.websocket = websocket_open(&setup, &call);
		until = loop_now() + 3;
		for (int i = 0; i < rounds; i++)
			assert_int_equal(loop_dispatch(fixture.loop, 0, NULL), 0);
		while (loop_now() < until)
			continue;
		dispatch(&fixture.ended);
		assert_int_equal(fixture.failure.code, ERROR_TIMEOUT);
		websocket_free(fixture.websocket);
		fixture.websocket = NULL;
	}
}

static void
it_may_be_freed_in_a_callback(void **state)
{
	(void)state;
	must_open();
	fixture.frees_in_received = true;
	say("\x82\x01x\x82\x01y", 6);
	dispatch_until(&fixture.received, 1);
	dispatch(&fixture.is_closed);
	assert_int_equal(fixture.received, 1);
}

static void
while_held_the_server_has_to_wait(void **state)
{
	static unsigned char frame[4 + 60000] = { 0x82, 0x7e, 0xea, 0x60 };
	unsigned frames;

	(void)state;
	must_open();
	websocket_hold(fixture.websocket, true);
	assert_int_equal(descriptor_nonblock(fixture.connection, NULL), 0);
	/* As many whole frames as the network takes. */
	for (frames = 0; write(fixture.connection, frame, sizeof(frame)) == sizeof(frame);) {
		frames++;
		assert_int_equal(loop_dispatch(fixture.loop, 0, NULL), 0);
		if (frames > 1000)
			fail_msg("nothing holds the server up");
	}
	assert_int_equal(fixture.received, 0);
	websocket_hold(fixture.websocket, false);
	dispatch_until(&fixture.received, frames);
}

static void
what_the_server_does_not_read_takes_room(void **state)
{
	static unsigned char data[60000];
	size_t sent;

	(void)state;
	must_open();
	loop_unwatch(fixture.reading);
	fixture.reading = NULL;
	for (sent = 0; websocket_room(fixture.websocket) >= sizeof(data); sent += sizeof(data)) {
		websocket_send(fixture.websocket, data, sizeof(data));
		if (sent > (size_t)256 * 1024 * 1024)
			fail_msg("nothing holds the client up");
	}
	fixture.heard.limit = SIZE_MAX / 2;
	fixture.reading = loop_watch(
	    fixture.loop, fixture.connection, LOOP_READ, connection_ready, NULL);
	dispatch_until(&fixture.sent, 1);
	while (fixture.heard.length < sent)
		assert_int_equal(loop_dispatch(fixture.loop, 1000, NULL), 0);
	assert_true(websocket_room(fixture.websocket) >= sizeof(data));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_server, close_server)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_request_is_as_the_rfc_wants_it),
		TEST(a_refusal_is_explained),
		TEST(an_upgrade_that_is_none_is_refused),
		TEST(an_extension_nobody_asked_for_is_refused),
		TEST(messages_arrive),
		TEST(messages_are_sent_masked),
		TEST(a_ping_is_answered_with_what_it_said),
		TEST(a_close_is_told_with_its_reason_and_answered),
		TEST(a_broken_connection_is_a_failure),
		TEST(a_breach_of_the_protocol_ends_it_with_its_status),
		TEST(nobody_there_is_told_as_unsent),
		TEST(a_server_that_does_not_answer_is_given_up),
		TEST(a_connection_that_is_made_as_the_deadline_comes_is_given_up_too),
		TEST(it_may_be_freed_in_a_callback),
		TEST(while_held_the_server_has_to_wait),
		TEST(what_the_server_does_not_read_takes_room),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
