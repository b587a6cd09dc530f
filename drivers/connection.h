/* SPDX-License-Identifier: ISC */
/*
 * A byte stream to the host of a URL, made by libcurl as for drivers/http: names, TLS, proxies and
 * trust are its affair. Nothing blocks.
 */
#ifndef DRIVERS_CONNECTION_H
#define DRIVERS_CONNECTION_H

#include <stddef.h>

struct curl_connection_stream;
struct error;
struct http_setup;

/* Called once, from the loop; with err it came to nothing, and not a byte was sent. May free the
 * stream. */
typedef void connection_opened_fn(void *argument, const struct error *err);

/* Begins to connect; waits for as long as it takes. Never NULL. */
struct curl_connection_stream *curl_connection_open(
    const struct http_setup *setup, const char *url, connection_opened_fn *opened, void *argument);
void curl_connection_free(struct curl_connection_stream *stream); /* accepts NULL */

/* Once it is open: to be watched, and nothing else. TLS may hold bytes that it does not tell of. */
int curl_connection_fd(const struct curl_connection_stream *stream);

enum connection_result {
	CONNECTION_DONE,
	CONNECTION_AGAIN, /* nothing for now */
	CONNECTION_ENDED, /* received only */
	CONNECTION_FAILED,
};

/* Moves at most size bytes, and says how many in *moved. */
enum connection_result curl_connection_send(struct curl_connection_stream *stream, const void *data,
    size_t size, size_t *moved, struct error *err);
enum connection_result curl_connection_receive(struct curl_connection_stream *stream, void *data,
    size_t size, size_t *moved, struct error *err);

/* The host, with the port that was given, and the path with its query; new texts. -1 when it is no
 * URL. */
int connection_split_url(const char *url, char **host, char **path, struct error *err);

#endif
