/* SPDX-License-Identifier: ISC */
/*
 * A multi handle of its own makes the connection (CURLOPT_CONNECT_ONLY); after that libcurl only
 * sends and receives for us.
 */
#include <string.h>

#include <curl/curl.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "drivers/http.h"
#include "drivers/http_multi.h"
#include "drivers/socket.h"

struct socket {
	struct http_multi *multi;
	CURL *easy;
	char complaint[CURL_ERROR_SIZE];
	struct loop_timer *soon; /* to tell from the loop, not from within libcurl */
	bool is_over;
	struct error failure;
	int fd;
	socket_opened_fn *opened;
	void *argument;
};

static void
explain(const struct socket *socket, CURLcode code, const char *what, struct error *err)
{
	error_set(err, ERROR_UNAVAILABLE, "%s: %s", what,
	    socket->complaint[0] != '\0' ? socket->complaint : curl_easy_strerror(code));
}

static void
soon_expired(void *argument)
{
	struct socket *socket = argument;

	/* The owner may free the socket in here. */
	socket->opened(
	    socket->argument, socket->failure.code == ERROR_NONE ? NULL : &socket->failure);
}

/* libcurl is through with connecting: from here on the socket is not its to watch. */
static void
connected(void *argument, CURL *easy, CURLcode code)
{
	struct socket *socket = argument;
	curl_socket_t fd = CURL_SOCKET_BAD;

	(void)easy;
	if (socket->is_over)
		return;
	socket->is_over = true;
	if (code == CURLE_OK)
		code = curl_easy_getinfo(socket->easy, CURLINFO_ACTIVESOCKET, &fd);
	if (code != CURLE_OK || fd == CURL_SOCKET_BAD)
		explain(socket, code, "connect", &socket->failure);
	socket->fd = (int)fd;
	http_multi_stop(socket->multi);
	loop_timer_start(socket->soon, 0);
}

static const struct http_multi_events multi_events = { .done = connected };

static void
set_options(struct socket *socket, const struct http_setup *setup, const char *url)
{
	CURL *easy = socket->easy;

	http_multi_prepare(socket->multi, easy, setup);
	(void)curl_easy_setopt(easy, CURLOPT_URL, url);
	(void)curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, socket->complaint);
	(void)curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

struct socket *
socket_open(
    const struct http_setup *setup, const char *url, socket_opened_fn *opened, void *argument)
{
	struct socket *socket;
	struct error err;

	socket = memory_zeroed(1, sizeof(*socket));
	socket->fd = -1;
	socket->opened = opened;
	socket->argument = argument;
	socket->soon = loop_timer_new(setup->loop, soon_expired, socket);
	socket->multi = http_multi_new(setup->loop, &multi_events, socket, &err);
	if (socket->multi == NULL)
		log_fatal("%s", err.message);
	socket->easy = curl_easy_init();
	if (socket->easy == NULL)
		log_fatal("out of memory");
	set_options(socket, setup, url);
	http_multi_add(socket->multi, socket->easy);
	return socket;
}

void
socket_free(struct socket *socket)
{
	if (socket == NULL)
		return;
	http_multi_stop(socket->multi);
	http_multi_remove(socket->multi, socket->easy);
	curl_easy_cleanup(socket->easy);
	http_multi_free(socket->multi);
	loop_timer_free(socket->soon);
	memory_free(socket);
}

int
socket_fd(const struct socket *socket)
{
	return socket->fd;
}

static enum socket_result
result_of(const struct socket *socket, CURLcode code, const char *what, struct error *err)
{
	if (code == CURLE_OK)
		return SOCKET_DONE;
	if (code == CURLE_AGAIN)
		return SOCKET_AGAIN;
	explain(socket, code, what, err);
	return SOCKET_FAILED;
}

enum socket_result
socket_send(struct socket *socket, const void *data, size_t size, size_t *moved, struct error *err)
{
	*moved = 0;
	return result_of(socket, curl_easy_send(socket->easy, data, size, moved), "send", err);
}

enum socket_result
socket_receive(struct socket *socket, void *data, size_t size, size_t *moved, struct error *err)
{
	CURLcode code;

	*moved = 0;
	code = curl_easy_recv(socket->easy, data, size, moved);
	if (code == CURLE_OK && *moved == 0)
		return SOCKET_ENDED;
	return result_of(socket, code, "receive", err);
}

int
socket_split_url(const char *url, char **host, char **path, struct error *err)
{
	char *name = NULL, *port = NULL, *way = NULL, *query = NULL;
	CURLU *parsed;
	int result = -1;

	parsed = curl_url();
	if (parsed == NULL)
		log_fatal("out of memory");
	if (curl_url_set(parsed, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    curl_url_get(parsed, CURLUPART_HOST, &name, 0) != CURLUE_OK ||
	    curl_url_get(parsed, CURLUPART_PATH, &way, 0) != CURLUE_OK) {
		/* The query may hold a secret. */
		error_set(err, ERROR_INVALID, "this is no URL: %.*s", (int)strcspn(url, "?"), url);
	} else {
		(void)curl_url_get(parsed, CURLUPART_PORT, &port, 0);
		(void)curl_url_get(parsed, CURLUPART_QUERY, &query, 0);
		*host = memory_text_format(
		    "%s%s%s", name, port == NULL ? "" : ":", port == NULL ? "" : port);
		*path = memory_text_format(
		    "%s%s%s", way, query == NULL ? "" : "?", query == NULL ? "" : query);
		result = 0;
	}
	curl_free(name);
	curl_free(port);
	curl_free(way);
	curl_free(query);
	curl_url_cleanup(parsed);
	return result;
}
