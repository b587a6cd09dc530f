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
#include "drivers/connection.h"
#include "drivers/http.h"

/* What libcurl wants watched while it connects. */
struct curl_connection_descriptor {
	struct curl_connection_descriptor *next;
	struct curl_connection_stream *stream;
	int fd;
	struct loop_watch *watch;
};

struct curl_connection_stream {
	struct loop *loop;
	CURLM *multi;
	CURL *easy;
	char complaint[CURL_ERROR_SIZE];
	struct curl_connection_descriptor *descriptors;
	struct loop_timer *timer; /* libcurl's */
	struct loop_timer *soon;  /* to tell from the loop, not from within libcurl */
	bool is_over;
	struct error failure;
	int fd;
	connection_opened_fn *opened;
	void *argument;
};

static void
explain(
    const struct curl_connection_stream *stream, CURLcode code, const char *what, struct error *err)
{
	error_set(err, ERROR_UNAVAILABLE, "%s: %s", what,
	    stream->complaint[0] != '\0' ? stream->complaint : curl_easy_strerror(code));
}

static void
free_descriptor(struct curl_connection_descriptor *descriptor)
{
	struct curl_connection_descriptor **place;

	for (place = &descriptor->stream->descriptors; *place != descriptor;
	     place = &(*place)->next)
		continue;
	*place = descriptor->next;
	loop_unwatch(descriptor->watch);
	memory_free(descriptor);
}

static void
soon_expired(void *argument)
{
	struct curl_connection_stream *stream = argument;

	/* The owner may free the stream in here. */
	stream->opened(
	    stream->argument, stream->failure.code == ERROR_NONE ? NULL : &stream->failure);
}

/* libcurl is through with connecting: from here on the socket is not its to watch. */
static void
finish(struct curl_connection_stream *stream, CURLcode code)
{
	curl_socket_t fd = CURL_SOCKET_BAD;

	stream->is_over = true;
	if (code == CURLE_OK)
		code = curl_easy_getinfo(stream->easy, CURLINFO_ACTIVESOCKET, &fd);
	if (code != CURLE_OK || fd == CURL_SOCKET_BAD)
		explain(stream, code, "connect", &stream->failure);
	stream->fd = (int)fd;
	(void)curl_multi_setopt(stream->multi, CURLMOPT_SOCKETFUNCTION, NULL);
	(void)curl_multi_setopt(stream->multi, CURLMOPT_TIMERFUNCTION, NULL);
	loop_timer_stop(stream->timer);
	while (stream->descriptors != NULL)
		free_descriptor(stream->descriptors);
	loop_timer_start(stream->soon, 0);
}

static void
advance(struct curl_connection_stream *stream, curl_socket_t fd, int events)
{
	CURLMsg *message;
	int count;

	(void)curl_multi_socket_action(stream->multi, fd, events, &count);
	while ((message = curl_multi_info_read(stream->multi, &count)) != NULL)
		if (message->msg == CURLMSG_DONE && !stream->is_over)
			finish(stream, message->data.result);
}

static void
timer_expired(void *argument)
{
	advance(argument, CURL_SOCKET_TIMEOUT, 0);
}

static void
descriptor_ready(void *argument, unsigned events)
{
	struct curl_connection_descriptor *descriptor = argument;
	int bits = 0;

	if ((events & LOOP_READ) != 0)
		bits |= CURL_CSELECT_IN;
	if ((events & LOOP_WRITE) != 0)
		bits |= CURL_CSELECT_OUT;
	if ((events & LOOP_HANGUP) != 0)
		bits |= CURL_CSELECT_ERR;
	advance(descriptor->stream, descriptor->fd, bits);
}

static int
watch_descriptor(CURL *easy, curl_socket_t fd, int what, void *argument, void *assigned)
{
	struct curl_connection_descriptor *descriptor = assigned;
	struct curl_connection_stream *stream = argument;
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
	descriptor->stream = stream;
	descriptor->fd = (int)fd;
	descriptor->watch = loop_watch(
	    stream->loop, descriptor->fd, events, descriptor_ready, descriptor);
	descriptor->next = stream->descriptors;
	stream->descriptors = descriptor;
	(void)curl_multi_assign(stream->multi, fd, descriptor);
	return 0;
}

static int
set_timer(CURLM *multi, long milliseconds, void *argument)
{
	struct curl_connection_stream *stream = argument;

	(void)multi;
	if (milliseconds < 0)
		loop_timer_stop(stream->timer);
	else
		loop_timer_start(stream->timer, milliseconds);
	return 0;
}

static void
set_options(struct curl_connection_stream *stream, const struct http_setup *setup, const char *url)
{
	CURL *easy = stream->easy;

	(void)curl_easy_setopt(easy, CURLOPT_URL, url);
	(void)curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, stream->complaint);
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

struct curl_connection_stream *
curl_connection_open(
    const struct http_setup *setup, const char *url, connection_opened_fn *opened, void *argument)
{
	struct curl_connection_stream *stream;

	stream = memory_zeroed(1, sizeof(*stream));
	stream->loop = setup->loop;
	stream->fd = -1;
	stream->opened = opened;
	stream->argument = argument;
	stream->timer = loop_timer_new(setup->loop, timer_expired, stream);
	stream->soon = loop_timer_new(setup->loop, soon_expired, stream);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		log_fatal("libcurl cannot be used");
	stream->multi = curl_multi_init();
	stream->easy = curl_easy_init();
	if (stream->multi == NULL || stream->easy == NULL)
		log_fatal("out of memory");
	set_options(stream, setup, url);
	(void)curl_multi_setopt(stream->multi, CURLMOPT_SOCKETFUNCTION, watch_descriptor);
	(void)curl_multi_setopt(stream->multi, CURLMOPT_SOCKETDATA, stream);
	(void)curl_multi_setopt(stream->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	(void)curl_multi_setopt(stream->multi, CURLMOPT_TIMERDATA, stream);
	(void)curl_multi_add_handle(stream->multi, stream->easy);
	return stream;
}

void
curl_connection_free(struct curl_connection_stream *stream)
{
	if (stream == NULL)
		return;
	(void)curl_multi_setopt(stream->multi, CURLMOPT_SOCKETFUNCTION, NULL);
	(void)curl_multi_setopt(stream->multi, CURLMOPT_TIMERFUNCTION, NULL);
	while (stream->descriptors != NULL)
		free_descriptor(stream->descriptors);
	(void)curl_multi_remove_handle(stream->multi, stream->easy);
	curl_easy_cleanup(stream->easy);
	(void)curl_multi_cleanup(stream->multi);
	curl_global_cleanup();
	loop_timer_free(stream->timer);
	loop_timer_free(stream->soon);
	memory_free(stream);
}

int
curl_connection_fd(const struct curl_connection_stream *stream)
{
	return stream->fd;
}

static enum connection_result
result_of(
    const struct curl_connection_stream *stream, CURLcode code, const char *what, struct error *err)
{
	if (code == CURLE_OK)
		return CONNECTION_DONE;
	if (code == CURLE_AGAIN)
		return CONNECTION_AGAIN;
	explain(stream, code, what, err);
	return CONNECTION_FAILED;
}

enum connection_result
curl_connection_send(struct curl_connection_stream *stream, const void *data, size_t size,
    size_t *moved, struct error *err)
{
	*moved = 0;
	return result_of(stream, curl_easy_send(stream->easy, data, size, moved), "send", err);
}

enum connection_result
curl_connection_receive(struct curl_connection_stream *stream, void *data, size_t size,
    size_t *moved, struct error *err)
{
	CURLcode code;

	*moved = 0;
	code = curl_easy_recv(stream->easy, data, size, moved);
	if (code == CURLE_OK && *moved == 0)
		return CONNECTION_ENDED;
	return result_of(stream, code, "receive", err);
}

int
connection_split_url(const char *url, char **host, char **path, struct error *err)
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
