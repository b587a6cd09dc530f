/* SPDX-License-Identifier: ISC */
/* What the tests of drivers/http share: a server that follows a script, and one request. */
#ifndef TESTS_UNIT_HTTP_FIXTURE_H
#define TESTS_UNIT_HTTP_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"
#include "drivers/http.h"

#define ANSWER(status, headers, length, body) \
	"HTTP/1.1 " status "\r\n" headers "Content-Length: " length "\r\n\r\n" body
#define HELLO ANSWER("200 OK", "", "5", "hello")

/* What the server does: script[N] to the Nth request, the last one to all that follow. */
struct script {
	const char *answer;
	size_t size;
	bool close;
};

struct http_fixture {
	struct loop *loop;
	struct http *http;
	struct http_server *server;
	const struct script *script;
	size_t script_length;
	char *head, *body; /* of the last request */
	size_t body_size;

	struct http_request *request;
	bool done, holds, cancels, frees;
	enum http_outcome outcome;
	int status;
	struct error err;
	char text[256]; /* of a gathered answer */
	size_t received, sent;
	unsigned notices;
};

int http_fixture_setup(void **state);
int http_fixture_teardown(void **state);

void http_fixture_follow(struct http_fixture *fixture, const struct script *script, size_t length);
#define FOLLOW(fixture, script) \
	http_fixture_follow(fixture, script, sizeof(script) / sizeof((script)[0]))

/* A call to the server whose answer is gathered; POST has a small body. */
struct http_call http_fixture_call(struct http_fixture *fixture, const char *method);

/* Consumes what was received, as the fixture says. */
void http_fixture_received(void *argument);

/* Starts a request and waits for its end. */
void http_fixture_perform(struct http_fixture *fixture, const struct http_call *call);

/* Dispatches until *flag, or until nothing happens any more. */
void http_fixture_wait(struct http_fixture *fixture, const bool *flag);
void http_fixture_settle(struct http_fixture *fixture);

#endif
