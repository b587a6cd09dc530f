/* SPDX-License-Identifier: ISC */
/* libcurl says what is to be watched and when it wants to be called; each call is a turn. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <curl/curl.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "drivers/http.h"
#include "drivers/http_multi.h"

/* Idle connections kept. */
#define CONNECTIONS_KEPT 16L
/* Bytes that libcurl receives at once. */
#define RECEIVE_SIZE 65536L

/*
 * A descriptor of libcurl's that it wants to be watched. libcurl 7.88 closes one that is still
 * connecting before it says so, or opens the next one under its number without a word; so what is
 * watched is a duplicate, which is renewed when its number is given out again.
 */
struct http_socket {
	struct http_multi *multi;
	struct http_socket *next;
	int fd;        /* libcurl's */
	int duplicate; /* ours */
	unsigned events;
	struct loop_watch *watch;
};

struct http_multi {
	struct loop *loop;
	CURLM *handle;
	struct loop_timer *timer; /* libcurl's */
	struct http_socket *sockets;
	const struct http_multi_events *events;
	void *argument;
};

static void
free_socket(struct http_socket *watched)
{
	struct http_socket **place;

	for (place = &watched->multi->sockets; *place != watched; place = &(*place)->next)
		continue;
	*place = watched->next;
	loop_unwatch(watched->watch);
	descriptor_close(&watched->duplicate);
	memory_free(watched);
}

/* The last call of events may free the multi handle. */
static void
take_turn(struct http_multi *multi, curl_socket_t fd, int events)
{
	CURLMsg *message;
	int count;

	(void)curl_multi_socket_action(multi->handle, fd, events, &count);
	while ((message = curl_multi_info_read(multi->handle, &count)) != NULL)
		if (message->msg == CURLMSG_DONE)
			multi->events->done(
			    multi->argument, message->easy_handle, message->data.result);
	if (multi->events->turned != NULL)
		multi->events->turned(multi->argument);
}

static void
timer_expired(void *argument)
{
	take_turn(argument, CURL_SOCKET_TIMEOUT, 0);
}

static void
socket_ready(void *argument, unsigned events)
{
	struct http_socket *watched = argument;
	int bits = 0;

	if ((events & LOOP_READ) != 0)
		bits |= CURL_CSELECT_IN;
	if ((events & LOOP_WRITE) != 0)
		bits |= CURL_CSELECT_OUT;
	if ((events & LOOP_HANGUP) != 0)
		bits |= CURL_CSELECT_ERR;
	take_turn(watched->multi, watched->fd, bits);
}

static void
start_watch(struct http_socket *watched)
{
	watched->duplicate = descriptor_duplicate(watched->fd);
	watched->watch = loop_watch(
	    watched->multi->loop, watched->duplicate, watched->events, socket_ready, watched);
}

/* libcurl's wish for what is to be watched (CURLMOPT_SOCKETFUNCTION). */
static int
watch_socket(CURL *easy, curl_socket_t fd, int what, void *argument, void *assigned)
{
	struct http_socket *watched = assigned;
	struct http_multi *multi = argument;
	unsigned events;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (watched != NULL)
			free_socket(watched);
		return 0;
	}
	events = ((what & CURL_POLL_IN) != 0 ? (unsigned)LOOP_READ : 0) |
		 ((what & CURL_POLL_OUT) != 0 ? (unsigned)LOOP_WRITE : 0);
	if (watched != NULL) {
		watched->events = events;
		loop_watch_change(watched->watch, events);
		return 0;
	}
	watched = memory_zeroed(1, sizeof(*watched));
	watched->multi = multi;
	watched->fd = fd;
	watched->events = events;
	start_watch(watched);
	watched->next = multi->sockets;
	multi->sockets = watched;
	(void)curl_multi_assign(multi->handle, fd, watched);
	return 0;
}

/* libcurl's wish for a socket (CURLOPT_OPENSOCKETFUNCTION). */
static curl_socket_t
open_socket(void *argument, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct http_multi *multi = argument;
	struct http_socket *watched;
	int fd;

	(void)purpose;
	fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	for (watched = multi->sockets; fd >= 0 && watched != NULL; watched = watched->next) {
		if (watched->fd != fd)
			continue;
		loop_unwatch(watched->watch);
		descriptor_close(&watched->duplicate);
		start_watch(watched);
	}
	return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static int
set_timer(CURLM *handle, long milliseconds, void *argument)
{
	struct http_multi *multi = argument;

	(void)handle;
	if (milliseconds < 0)
		loop_timer_stop(multi->timer);
	else
		loop_timer_start(multi->timer, milliseconds);
	return 0;
}

struct http_multi *
http_multi_new(
    struct loop *loop, const struct http_multi_events *events, void *argument, struct error *err)
{
	struct http_multi *multi;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		error_set(err, ERROR_UNAVAILABLE, "libcurl cannot be used");
		return NULL;
	}
	multi = memory_zeroed(1, sizeof(*multi));
	multi->loop = loop;
	multi->events = events;
	multi->argument = argument;
	multi->timer = loop_timer_new(loop, timer_expired, multi);
	multi->handle = curl_multi_init();
	if (multi->handle == NULL)
		log_fatal("out of memory");
	(void)curl_multi_setopt(multi->handle, CURLMOPT_SOCKETFUNCTION, watch_socket);
	(void)curl_multi_setopt(multi->handle, CURLMOPT_SOCKETDATA, multi);
	(void)curl_multi_setopt(multi->handle, CURLMOPT_TIMERFUNCTION, set_timer);
	(void)curl_multi_setopt(multi->handle, CURLMOPT_TIMERDATA, multi);
	(void)curl_multi_setopt(multi->handle, CURLMOPT_MAXCONNECTS, CONNECTIONS_KEPT);
	return multi;
}

void
http_multi_stop(struct http_multi *multi)
{
	/* Closing connections must not find what is freed first. */
	(void)curl_multi_setopt(multi->handle, CURLMOPT_SOCKETFUNCTION, NULL);
	(void)curl_multi_setopt(multi->handle, CURLMOPT_TIMERFUNCTION, NULL);
	loop_timer_stop(multi->timer);
	while (multi->sockets != NULL)
		free_socket(multi->sockets);
}

void
http_multi_free(struct http_multi *multi)
{
	http_multi_stop(multi);
	(void)curl_multi_cleanup(multi->handle);
	loop_timer_free(multi->timer);
	memory_free(multi);
	curl_global_cleanup();
}

void
http_multi_add(struct http_multi *multi, CURL *easy)
{
	(void)curl_multi_add_handle(multi->handle, easy);
}

void
http_multi_remove(struct http_multi *multi, CURL *easy)
{
	(void)curl_multi_remove_handle(multi->handle, easy);
}

void
http_multi_prepare(struct http_multi *multi, CURL *easy, const struct http_setup *setup)
{
	(void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	(void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, multi);
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, RECEIVE_SIZE);
#if LIBCURL_VERSION_NUM >= 0x075500
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	/* "" keeps libcurl from looking into an environment that is not the gateway's. */
	(void)curl_easy_setopt(easy, CURLOPT_PROXY, setup->proxy == NULL ? "" : setup->proxy);
	if (setup->no_proxy != NULL)
		(void)curl_easy_setopt(easy, CURLOPT_NOPROXY, setup->no_proxy);
	if (setup->ca_file != NULL)
		(void)curl_easy_setopt(easy, CURLOPT_CAINFO, setup->ca_file);
}
