/* SPDX-License-Identifier: ISC */
/*
 * A server on the test's own loop that answers what a test tells it to: enough of HTTP/1.1 to
 * misbehave exactly.
 */
#ifndef TESTS_UNIT_HTTP_SERVER_H
#define TESTS_UNIT_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>

struct http_server;
struct loop;

/* One request, and what becomes of it. */
struct http_exchange {
	const char *head; /* from the request line to the empty line */
	const void *body; /* chunked ones decoded no further than that they are complete */
	size_t body_size;
	unsigned number;        /* of all requests, from 1 */
	unsigned on_connection; /* of this connection, from 1 */
};

/*
 * Decides: the bytes of a whole answer (kept by the test), or NULL to say nothing. Then the
 * connection is closed if *close is set.
 */
typedef const char *http_answer_fn(
    void *argument, const struct http_exchange *exchange, size_t *size, bool *close);

struct http_server *http_server_new(struct loop *loop, http_answer_fn *answer, void *argument);
void http_server_free(struct http_server *server);

/* http://127.0.0.1:PORT */
const char *http_server_url(const struct http_server *server);
unsigned http_server_requests(const struct http_server *server);
unsigned http_server_connections(const struct http_server *server);

/* Bytes of answers that the clients have not taken yet. */
size_t http_server_backlog(const struct http_server *server);

#endif
