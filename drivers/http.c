/* SPDX-License-Identifier: ISC */
/* The requests under way, and the sweep that calls their users back. */
#include <curl/curl.h>

#include "core/base/loop.h"
#include "core/base/memory.h"
#include "drivers/http.h"
#include "drivers/http_multi.h"
#include "drivers/http_private.h"

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
destroy(struct http *http)
{
	http_multi_free(http->multi);
	loop_timer_free(http->soon);
	memory_free(http->ca_file);
	memory_text_wipe(http->proxy);
	memory_free(http->no_proxy);
	memory_free(http);
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
transfer_done(void *argument, CURL *easy, CURLcode code)
{
	struct http_request *request;

	(void)argument;
	(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&request);
	http_request_end(request, code);
}

static void
turned(void *argument)
{
	sweep(argument);
}

static const struct http_multi_events multi_events = { .done = transfer_done, .turned = turned };

struct http *
http_new(const struct http_setup *setup, struct error *err)
{
	struct http *http;

	http = memory_zeroed(1, sizeof(*http));
	http->multi = http_multi_new(setup->loop, &multi_events, http, err);
	if (http->multi == NULL) {
		memory_free(http);
		return NULL;
	}
	http->loop = setup->loop;
	http->ca_file = setup->ca_file == NULL ? NULL : memory_text(setup->ca_file);
	http->proxy = setup->proxy == NULL ? NULL : memory_text(setup->proxy);
	http->no_proxy = setup->no_proxy == NULL ? NULL : memory_text(setup->no_proxy);
	http->soon = loop_timer_new(http->loop, soon_expired, http);
	return http;
}

void
http_free(struct http *http)
{
	if (http == NULL)
		return;
	while (http->requests != NULL)
		http_cancel(http->requests);
	http->is_dead = true;
	if (!http->is_sweeping)
		destroy(http);
}
