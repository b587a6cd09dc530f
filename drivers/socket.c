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
#include "drivers/socket.h"

/* What libcurl wants watched while it connects. */
struct socket_descriptor {
	struct socket_descriptor *next;
	struct socket *socket;
	int fd;
	struct loop_watch *watch;
};

struct socket {
	struct loop *loop;
	CURLM *multi;
	CURL *easy;
	char complaint[CURL_ERROR_SIZE];
	struct socket_descriptor *descriptors;
	struct loop_timer *timer; /* libcurl's */
	struct loop_timer *soon;  /* to tell from the loop, not from within libcurl */
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
free_descriptor(struct socket_descriptor *descriptor)
{
	struct socket_descriptor **place;

	for (place = &descriptor->socket->descriptors; *place != descriptor;
	     place = &(*place)->next)
		continue;
	*place = descriptor->next;
	loop_unwatch(descriptor->watch);
	memory_free(descriptor);
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
finish(struct socket *socket, CURLcode code)
{
	curl_socket_t fd = CURL_SOCKET_BAD;

	socket->is_over = true;
	if (code == CURLE_OK)
		code = curl_easy_getinfo(socket->easy, CURLINFO_ACTIVESOCKET, &fd);
	if (code != CURLE_OK || fd == CURL_SOCKET_BAD)
		explain(socket, code, "connect", &socket->failure);
	socket->fd = (int)fd;
	(void)curl_multi_setopt(socket->multi, CURLMOPT_SOCKETFUNCTION, NULL);
	(void)curl_multi_setopt(socket->multi, CURLMOPT_TIMERFUNCTION, NULL);
	loop_timer_stop(socket->timer);
	while (socket->descriptors != NULL)
		free_descriptor(socket->descriptors);
	loop_timer_start(socket->soon, 0);
}

static void
advance(struct socket *socket, curl_socket_t fd, int events)
{
	CURLMsg *message;
	int count;

	(void)curl_multi_socket_action(socket->multi, fd, events, &count);
	while ((message = curl_multi_info_read(socket->multi, &count)) != NULL)
		if (message->msg == CURLMSG_DONE && !socket->is_over)
			finish(socket, message->data.result);
}

static void
timer_expired(void *argument)
{
	advance(argument, CURL_SOCKET_TIMEOUT, 0);
}

static void
descriptor_ready(void *argument, unsigned events)
{
	struct socket_descriptor *descriptor = argument;
	int bits = 0;

	if ((events & LOOP_READ) != 0)
		bits |= CURL_CSELECT_IN;
	if ((events & LOOP_WRITE) != 0)
		bits |= CURL_CSELECT_OUT;
	if ((events & LOOP_HANGUP) != 0)
		bits |= CURL_CSELECT_ERR;
	advance(descriptor->socket, descriptor->fd, bits);
}

static int
watch_descriptor(CURL *easy, curl_socket_t fd, int what, void *argument, void *assigned)
{
	struct socket_descriptor *descriptor = assigned;
	struct socket *socket = argument;
	unsigned events;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (descriptor != NULL)
			free_descriptor(descriptor);
		return 0;
	}
	events = ((what & CURL_POLL_IN) != 0 ? (unsigned)LOOP_READ : 0) |
		 ((what & CURL_POLL_OUT) != 0 ? (unsigned)LOOP_WRITE : 0);
	if (descriptor != NULL) {
		loop_watch_change(descriptor->watch, events);
		return 0;
	}
	descriptor = memory_zeroed(1, sizeof(*descriptor));
	descriptor->socket = socket;
	descriptor->fd = (int)fd;
	descriptor->watch = loop_watch(
	    socket->loop, descriptor->fd, events, descriptor_ready, descriptor);
	descriptor->next = socket->descriptors;
	socket->descriptors = descriptor;
	(void)curl_multi_assign(socket->multi, fd, descriptor);
	return 0;
}

static int
set_timer(CURLM *multi, long milliseconds, void *argument)
{
	struct socket *socket = argument;

	(void)multi;
	if (milliseconds < 0)
		loop_timer_stop(socket->timer);
	else
		loop_timer_start(socket->timer, milliseconds);
	return 0;
}

static void
set_options(struct socket *socket, const struct http_setup *setup, const char *url)
{
	CURL *easy = socket->easy;

	(void)curl_easy_setopt(easy, CURLOPT_URL, url);
	(void)curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, socket->complaint);
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	(void)curl_easy_setopt(easy, CURLOPT_PROXY, setup->proxy == NULL ? "" : setup->proxy);
	(void)curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	if (setup->no_proxy != NULL)
		(void)curl_easy_setopt(easy, CURLOPT_NOPROXY, setup->no_proxy);
	if (setup->ca_file != NULL)
		(void)curl_easy_setopt(easy, CURLOPT_CAINFO, setup->ca_file);
}

struct socket *
socket_open(
    const struct http_setup *setup, const char *url, socket_opened_fn *opened, void *argument)
{
	struct socket *socket;

	socket = memory_zeroed(1, sizeof(*socket));
	socket->loop = setup->loop;
	socket->fd = -1;
	socket->opened = opened;
	socket->argument = argument;
	socket->timer = loop_timer_new(setup->loop, timer_expired, socket);
	socket->soon = loop_timer_new(setup->loop, soon_expired, socket);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		log_fatal("libcurl cannot be used");
	socket->multi = curl_multi_init();
	socket->easy = curl_easy_init();
	if (socket->multi == NULL || socket->easy == NULL)
		log_fatal("out of memory");
	set_options(socket, setup, url);
	(void)curl_multi_setopt(socket->multi, CURLMOPT_SOCKETFUNCTION, watch_descriptor);
	(void)curl_multi_setopt(socket->multi, CURLMOPT_SOCKETDATA, socket);
	(void)curl_multi_setopt(socket->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	(void)curl_multi_setopt(socket->multi, CURLMOPT_TIMERDATA, socket);
	(void)curl_multi_add_handle(socket->multi, socket->easy);
	return socket;
}

void
socket_free(struct socket *socket)
{
	if (socket == NULL)
		return;
	(void)curl_multi_setopt(socket->multi, CURLMOPT_SOCKETFUNCTION, NULL);
	(void)curl_multi_setopt(socket->multi, CURLMOPT_TIMERFUNCTION, NULL);
	while (socket->descriptors != NULL)
		free_descriptor(socket->descriptors);
	(void)curl_multi_remove_handle(socket->multi, socket->easy);
	curl_easy_cleanup(socket->easy);
	(void)curl_multi_cleanup(socket->multi);
	curl_global_cleanup();
	loop_timer_free(socket->timer);
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
		error_set(err, ERROR_INVALID, "this is no URL: %.100s", url);
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
