/* SPDX-License-Identifier: ISC */
/* A server that misbehaves exactly. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "tests/unit/http_server.h"

struct connection {
	struct connection *next;
	struct http_server *server;
	int fd;
	struct loop_watch *watch;
	struct buffer in, out;
	unsigned requests;
	bool closing;
};

struct http_server {
	struct loop *loop;
	http_answer_fn *answer;
	void *argument;
	int fd;
	struct loop_watch *watch;
	char *url;
	struct connection *connections;
	unsigned requests, accepted;
};

static void
free_connection(struct connection *connection)
{
	struct connection **place;

	for (place = &connection->server->connections; *place != connection;
	     place = &(*place)->next)
		continue;
	*place = connection->next;
	loop_unwatch(connection->watch);
	(void)close(connection->fd);
	buffer_free(&connection->in);
	buffer_free(&connection->out);
	memory_free(connection);
}

/* The size of a complete request, 0 when there is more to come. */
static size_t
find_request(const struct buffer *in, size_t *head_size)
{
	const char *data = (const char *)buffer_data(in), *end, *length;
	size_t size;

	end = in->length == 0 ? NULL : memmem(data, in->length, "\r\n\r\n", 4);
	if (end == NULL)
		return 0;
	*head_size = (size_t)(end - data) + 4;
	length = memmem(data, *head_size, "Content-Length: ", 16);
	if (length != NULL) {
		size = *head_size + strtoul(length + 16, NULL, 10);
		return in->length >= size ? size : 0;
	}
	if (memmem(data, *head_size, "chunked", 7) == NULL)
		return *head_size;
	end = memmem(data + *head_size, in->length - *head_size, "\r\n0\r\n\r\n", 7);
	return end == NULL ? 0 : (size_t)(end - data) + 7;
}

static void
flush(struct connection *connection)
{
	ssize_t written;

	written = send(connection->fd, buffer_data(&connection->out), connection->out.length,
	    MSG_NOSIGNAL | MSG_DONTWAIT);
	if (written > 0)
		buffer_consume(&connection->out, (size_t)written);
	else if (written < 0 && errno != EAGAIN)
		connection->closing = true;
	loop_watch_change(
	    connection->watch, connection->out.length > 0 ? LOOP_READ | LOOP_WRITE : LOOP_READ);
}

static void
answer_request(struct connection *connection, size_t head_size, size_t size)
{
	struct http_server *server = connection->server;
	struct http_exchange exchange = { 0 };
	const char *bytes;
	size_t bytes_size = 0;
	char *head;

	head = memory_text_bounded(buffer_data(&connection->in), head_size);
	exchange.head = head;
	exchange.body = buffer_data(&connection->in) + head_size;
	exchange.body_size = size - head_size;
	exchange.number = ++server->requests;
	exchange.on_connection = ++connection->requests;
	bytes = server->answer(server->argument, &exchange, &bytes_size, &connection->closing);
	if (bytes != NULL)
		(void)buffer_append(
		    &connection->out, bytes, bytes_size == 0 ? strlen(bytes) : bytes_size);
	buffer_consume(&connection->in, size);
	memory_free(head);
	if (connection->out.length > 0)
		flush(connection);
}

static void
connection_ready(void *argument, unsigned events)
{
	struct connection *connection = argument;
	unsigned char *place;
	size_t size, head_size;
	ssize_t got;

	if ((events & LOOP_WRITE) != 0)
		flush(connection);
	if ((events & (LOOP_READ | LOOP_HANGUP)) != 0) {
		place = buffer_reserve(&connection->in, 65536);
		got = recv(connection->fd, place, 65536, MSG_DONTWAIT);
		if (got > 0)
			buffer_extend(&connection->in, (size_t)got);
		else if (got == 0 || errno != EAGAIN)
			connection->closing = true;
	}
	while (!connection->closing && (size = find_request(&connection->in, &head_size)) > 0)
		answer_request(connection, head_size, size);
	if (connection->closing && connection->out.length == 0)
		free_connection(connection);
}

static void
server_ready(void *argument, unsigned events)
{
	struct http_server *server = argument;
	struct connection *connection;
	int fd;

	(void)events;
	fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	server->accepted++;
	connection = memory_zeroed(1, sizeof(*connection));
	connection->server = server;
	connection->fd = fd;
	buffer_init(&connection->in, SIZE_MAX);
	buffer_init(&connection->out, SIZE_MAX);
	connection->next = server->connections;
	server->connections = connection;
	connection->watch = loop_watch(server->loop, fd, LOOP_READ, connection_ready, connection);
}

struct http_server *
http_server_new(struct loop *loop, http_answer_fn *answer, void *argument)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	struct http_server *server;

	server = memory_zeroed(1, sizeof(*server));
	server->loop = loop;
	server->answer = answer;
	server->argument = argument;
	server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(server->fd, (struct sockaddr *)&address, size) != 0 ||
	    listen(server->fd, 16) != 0 ||
	    getsockname(server->fd, (struct sockaddr *)&address, &size) != 0)
		log_fatal("no test server: errno %d", errno);
	server->url = memory_text_format("http://127.0.0.1:%u", ntohs(address.sin_port));
	server->watch = loop_watch(loop, server->fd, LOOP_READ, server_ready, server);
	return server;
}

void
http_server_free(struct http_server *server)
{
	while (server->connections != NULL)
		free_connection(server->connections);
	loop_unwatch(server->watch);
	(void)close(server->fd);
	memory_free(server->url);
	memory_free(server);
}

const char *
http_server_url(const struct http_server *server)
{
	return server->url;
}

unsigned
http_server_requests(const struct http_server *server)
{
	return server->requests;
}

unsigned
http_server_connections(const struct http_server *server)
{
	return server->accepted;
}

size_t
http_server_backlog(const struct http_server *server)
{
	const struct connection *connection;
	size_t size = 0;

	for (connection = server->connections; connection != NULL; connection = connection->next)
		size += connection->out.length;
	return size;
}
