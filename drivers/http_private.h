/* SPDX-License-Identifier: ISC */
/*
 * The parts of drivers/http: http.c has the requests under way, http_request.c the life of one,
 * http_transfer.c what libcurl is told of it and calls back; http_multi.c brings libcurl and the
 * loop together. Nothing else includes this.
 */
#ifndef DRIVERS_HTTP_PRIVATE_H
#define DRIVERS_HTTP_PRIVATE_H

#include <curl/curl.h>

#include "core/base/buffer.h"
#include "drivers/http.h"

struct http_multi;
struct loop_timer;

struct http {
	struct loop *loop;
	char *ca_file, *proxy, *no_proxy;
	struct http_multi *multi;
	struct loop_timer *soon; /* requests have something to do outside libcurl */
	struct http_request *requests;
	bool is_sweeping, is_dead; /* http_free came during a sweep, which frees it at its end */
};

struct http_request {
	struct http *http;
	struct http_request *next;
	struct http_call call;
	char *url;
	unsigned char *body;
	CURL *easy;
	struct curl_slist *headers;
	char complaint[CURL_ERROR_SIZE];
	unsigned attempts;
	struct loop_timer *deadline, *again;
	int64_t started, active; /* loop_now of the first attempt, and of the last byte */

	size_t body_sent;
	struct buffer sending;
	bool send_ended, send_paused, wants_told;

	struct buffer received;
	bool receive_paused, is_too_large, held, has_news;
	size_t expected;
	char *next_page;
	int64_t named_wait; /* ms, of a header "Retry-After-NAME"; -1 for none */

	bool finished;
	struct http_answer answer;
	struct error err;
};

/* http_transfer.c: makes the easy handle of a request. */
void http_transfer_prepare(struct http_request *request);

/* Lets libcurl go on with what it had to wait for. */
void http_transfer_unpause(struct http_request *request);

/* Is the answer one that is handed on piece by piece? */
bool http_transfer_is_streamed(const struct http_request *request);
bool http_transfer_is_success(int status);

/* http_request.c: libcurl is through with it; and the last callback. */
void http_request_end(struct http_request *request, CURLcode code);
void http_request_tell_done(struct http_request *request);

#endif
