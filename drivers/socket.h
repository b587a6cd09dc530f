/* SPDX-License-Identifier: ISC */
/*
 * A byte stream to the host of a URL, made by libcurl as for drivers/http: names, TLS, proxies and
 * trust are its affair. Nothing blocks.
 */
#ifndef DRIVERS_SOCKET_H
#define DRIVERS_SOCKET_H

#include <stddef.h>

struct socket;
struct error;
struct http_setup;

/*
 * Called once, from the loop; with err it came to nothing, and not a byte was sent.
 * May free the socket.
 */
typedef void socket_opened_fn(void *argument, const struct error *err);

/* Begins to connect; waits for as long as it takes. Never NULL. */
struct socket *socket_open(
    const struct http_setup *setup, const char *url, socket_opened_fn *opened, void *argument);
void socket_free(struct socket *socket); /* accepts NULL */

/* Once it is open: to be watched, and nothing else. TLS may hold bytes that it does not tell of. */
int socket_fd(const struct socket *socket);

enum socket_result {
	SOCKET_DONE,
	SOCKET_AGAIN, /* nothing for now */
	SOCKET_ENDED, /* received only */
	SOCKET_FAILED,
};

/* Moves at most size bytes, and says how many in *moved. */
enum socket_result socket_send(
    struct socket *socket, const void *data, size_t size, size_t *moved, struct error *err);
enum socket_result socket_receive(
    struct socket *socket, void *data, size_t size, size_t *moved, struct error *err);

/*
 * The host, with the port that was given, and the path with its query; new texts.
 * -1 when it is no URL.
 */
int socket_split_url(const char *url, char **host, char **path, struct error *err);

#endif
