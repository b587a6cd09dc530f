/* SPDX-License-Identifier: ISC */
/* libcurl's multi handle on our loop, and the sweep that calls users back. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/socket.h>

#include <curl/curl.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "drivers/http.h"
#include "drivers/http_private.h"

/* Idle connections kept. */
#define CONNECTIONS_KEPT 16L

/*
 * A descriptor of libcurl's that it wants to be watched. libcurl 7.88 closes one that is still
 * connecting before it says so, or opens the next one under its number without a word; so what is
 * watched is a duplicate, which is renewed when its number is given out again.
 */
struct http_socket {
	struct http *http;
	struct http_socket *next;
	int fd;        /* libcurl's */
	int duplicate; /* ours */
	unsigned events;
	struct loop_watch *watch;
};

/* Tells one user one thing; false when there is nothing to tell. */
static bool
tell_one(struct http *http)
{
	struct http_request *request;

	for (request = http->requests; request != NULL; request = request->next) {
		if (request->held)
			continue;
		if (request->has_news) {
			request->has_news = false;
			request->call.received(request->call.argument);
			return true;
		}
		if (request->wants_told && !request->finished) {
			request->wants_told = false;
			request->call.wants_more(request->call.argument);
			return true;
		}
		if (request->finished) {
			http_request_tell_done(request);
			return true;
		}
	}
	return false;
}

static void
free_socket(struct http_socket *watched)
{
	struct http_socket **place;

	for (place = &watched->http->sockets; *place != watched; place = &(*place)->next)
		continue;
	*place = watched->next;
	loop_unwatch(watched->watch);
	descriptor_close(&watched->duplicate);
	memory_free(watched);
}

static void
destroy(struct http *http)
{
	while (http->sockets != NULL)
		free_socket(http->sockets);
	(void)curl_multi_cleanup(http->multi);
	loop_timer_free(http->timer);
	loop_timer_free(http->soon);
	memory_free(http->ca_file);
	memory_text_wipe(http->proxy);
	memory_free(http->no_proxy);
	memory_free(http);
	curl_global_cleanup();
}

static void
sweep(struct http *http)
{
	http->is_sweeping = true;
	while (!http->is_dead && tell_one(http))
		continue;
	http->is_sweeping = false;
	if (http->is_dead)
		destroy(http);
}

static void
soon_expired(void *argument)
{
	struct http *http = argument;
	struct http_request *request;

	for (request = http->requests; request != NULL; request = request->next)
		http_transfer_unpause(request);
	sweep(http);
}

static void
advance(struct http *http, curl_socket_t fd, int events)
{
	struct http_request *request;
	CURLMsg *message;
	int count;

	(void)curl_multi_socket_action(http->multi, fd, events, &count);
	while ((message = curl_multi_info_read(http->multi, &count)) != NULL) {
		if (message->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&request);
		http_request_end(request, message->data.result);
	}
	sweep(http);
}

static void
timer_expired(void *argument)
{
	advance(argument, CURL_SOCKET_TIMEOUT, 0);
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
	advance(watched->http, watched->fd, bits);
}

static void
start_watch(struct http_socket *watched)
{
	watched->duplicate = fcntl(watched->fd, F_DUPFD_CLOEXEC, 0);
	if (watched->duplicate < 0)
		log_fatal("cannot duplicate a socket: errno %d", errno);
	watched->watch = loop_watch(
	    watched->http->loop, watched->duplicate, watched->events, socket_ready, watched);
}

static int
watch_socket(CURL *easy, curl_socket_t fd, int what, void *argument, void *assigned)
{
	struct http_socket *watched = assigned;
	struct http *http = argument;
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
	watched->http = http;
	watched->fd = fd;
	watched->events = events;
	start_watch(watched);
	watched->next = http->sockets;
	http->sockets = watched;
	(void)curl_multi_assign(http->multi, fd, watched);
	return 0;
}

/* libcurl's wish for a socket. */
curl_socket_t
http_open_socket(void *argument, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct http_socket *watched;
	struct http *http = argument;
	int fd;

	(void)purpose;
	fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	for (watched = http->sockets; fd >= 0 && watched != NULL; watched = watched->next) {
		if (watched->fd != fd)
			continue;
		loop_unwatch(watched->watch);
		descriptor_close(&watched->duplicate);
		start_watch(watched);
	}
	return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static int
set_timer(CURLM *multi, long milliseconds, void *argument)
{
	struct http *http = argument;

	(void)multi;
	if (milliseconds < 0)
		loop_timer_stop(http->timer);
	else
		loop_timer_start(http->timer, milliseconds);
	return 0;
}

struct http *
http_new(const struct http_setup *setup, struct error *err)
{
	struct http *http;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		error_set(err, ERROR_UNAVAILABLE, "libcurl cannot be used");
		return NULL;
	}
	http = memory_zeroed(1, sizeof(*http));
	http->loop = setup->loop;
	http->ca_file = setup->ca_file == NULL ? NULL : memory_text(setup->ca_file);
	http->proxy = setup->proxy == NULL ? NULL : memory_text(setup->proxy);
	http->no_proxy = setup->no_proxy == NULL ? NULL : memory_text(setup->no_proxy);
	http->timer = loop_timer_new(http->loop, timer_expired, http);
	http->soon = loop_timer_new(http->loop, soon_expired, http);
	http->multi = curl_multi_init();
	if (http->multi == NULL)
		log_fatal("out of memory");
	(void)curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
	(void)curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
	(void)curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	(void)curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
	(void)curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_KEPT);
	return http;
}

void
http_free(struct http *http)
{
	if (http == NULL)
		return;
	while (http->requests != NULL)
		http_cancel(http->requests);
	/* Closing connections must not find what is freed first. */
	(void)curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, NULL);
	http->is_dead = true;
	if (!http->is_sweeping)
		destroy(http);
}
