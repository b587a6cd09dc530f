/* SPDX-License-Identifier: ISC */
/*
 * A multi handle of libcurl's on our loop: what drivers/http and drivers/socket have in common.
 * Nothing else includes this.
 */
#ifndef DRIVERS_HTTP_MULTI_H
#define DRIVERS_HTTP_MULTI_H

#include <curl/curl.h>

struct error;
struct http_multi;
struct http_setup;
struct loop;

/* Both are called from the loop, outside of libcurl: any of its functions may be called. */
struct http_multi_events {
	/* A transfer is over; its easy handle is still to be removed. */
	void (*done)(void *argument, CURL *easy, CURLcode code);
	/* A turn is over; may free the multi handle. May be NULL. */
	void (*turned)(void *argument);
};

/* events is kept, not copied. NULL when libcurl cannot be used. */
struct http_multi *http_multi_new(
    struct loop *loop, const struct http_multi_events *events, void *argument, struct error *err);

/* Closes the connections that are kept; all easy handles must have been removed. */
void http_multi_free(struct http_multi *multi);

/* Stops for good: nothing is watched, and no event comes any more. */
void http_multi_stop(struct http_multi *multi);

/* Begins a transfer with the next turn, and ends it without an event. */
void http_multi_add(struct http_multi *multi, CURL *easy);
void http_multi_remove(struct http_multi *multi, CURL *easy);

/*
 * Sets the options of a transfer that hold for every one: names, trust, proxies. Copies the texts.
 */
void http_multi_prepare(struct http_multi *multi, CURL *easy, const struct http_setup *setup);

#endif
