/* SPDX-License-Identifier: ISC */
/*
 * HTTP for drivers: one libcurl multi handle on the process's loop. A request's answer is either
 * gathered up to a limit or streamed with back-pressure; so is its body. No callback ever comes
 * from within a call of this module, nor from within libcurl: any of its functions may be called in
 * one.
 */
#ifndef DRIVERS_HTTP_H
#define DRIVERS_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

struct buffer;
struct http;
struct http_request;
struct loop;

/* All texts are copied; all but loop may be NULL. */
struct http_setup {
	struct loop *loop;
	const char *ca_file;  /* certificates that are trusted instead of the system's */
	const char *proxy;    /* URL; credentials in it are never logged */
	const char *no_proxy; /* hosts that are reached without it, as curl takes them */
};

/*
 * May the same request be sent again by this module, after a failure? What certainly did not reach
 * the server is repeated in any case, and so is what it refused with 429 and a Retry-After. The
 * rest only when doing it twice is no different from doing it once.
 */
enum http_repeat {
	HTTP_ONCE,       /* not when its outcome is unknown */
	HTTP_IDEMPOTENT, /* also after a broken connection, a timeout, 502, 503 and 504 */
};

enum http_outcome {
	HTTP_DONE,    /* the whole answer is there and its status is 2xx */
	HTTP_REFUSED, /* the server gave another status */
	HTTP_UNSENT,  /* no byte of it left: nothing happened */
	HTTP_BROKEN,  /* an answer began with 2xx and broke off, or is over the limit */
	HTTP_UNKNOWN, /* sent, and no answer: it may have been done */
};

struct http_answer {
	enum http_outcome outcome;
	int status; /* 0 when there was none */
	/* Of a gathered answer and of refusals; valid during the callback. */
	const unsigned char *body;
	size_t size;
	int64_t retry_after;   /* ms, -1 when the server did not say */
	const char *next_page; /* value of the answer's X-Next-Token header, or NULL */
};

/*
 * The last callback of a request, which is then gone. err is NULL for HTTP_DONE; otherwise it says
 * in one line what happened, beginning with the status where there is one: "401: invalid API key".
 */
typedef void http_done_fn(
    void *argument, const struct http_answer *answer, const struct error *err);
typedef void http_event_fn(void *argument);

struct http_call {
	const char *method; /* all texts are copied */
	const char *url;
	char *const *headers; /* "Name: value", NULL-ended; may be NULL */
	enum http_repeat repeat;

	const void *body; /* copied; or NULL */
	size_t body_size;
	/*
	 * Or a body that is given piece by piece with http_send;
	 * wants_more says when it takes more.
	 */
	http_event_fn *wants_more;
	int64_t body_length; /* of it, -1 when it is not known */

	/*
	 * Streams the answer: received says that http_received holds more. NULL: the answer is
	 * gathered, and more than max_answer bytes are an error.
	 */
	http_event_fn *received;
	size_t max_answer;

	/* ms, 0 for none. Not counted while the stream waits for us. */
	int64_t connect_timeout;
	int64_t first_byte_timeout; /* from the start, or from the end of a streamed body */
	int64_t idle_timeout;       /* without a byte in either direction, once one came */
	int64_t total_timeout;      /* repetitions included */

	http_done_fn *done;
	void *argument; /* of all callbacks */
};

/* NULL when libcurl cannot be used. */
struct http *http_new(const struct http_setup *setup, struct error *err);

/* Ends all requests without callbacks; accepts NULL. */
void http_free(struct http *http);

/* Never NULL: what is wrong with the call is told to done. */
struct http_request *http_start(struct http *http, const struct http_call *call);

/*
 * Gives up: no callback comes any more,
 * the connection is closed if the request was sent. Accepts NULL.
 */
void http_cancel(struct http_request *request);

/*
 * What was received of a streamed answer and not yet consumed; changes with any other call here.
 * The server is held up while there are HTTP_STREAM_ROOM bytes, or as many as http_expect asked
 * for.
 */
#define HTTP_STREAM_ROOM ((size_t)128 * 1024)
const struct buffer *http_received(const struct http_request *request);
void http_consume(struct http_request *request, size_t size);

/* The next thing in the stream is size bytes long: there must be room for it. */
void http_expect(struct http_request *request, size_t size);

/*
 * While held, neither received nor done is called: what was received waits for its consumer. After
 * the hold received is called again. Without a hold done comes even when not all was consumed.
 */
void http_hold(struct http_request *request, bool hold);

/* Bytes that http_send takes now. */
size_t http_send_room(const struct http_request *request);
void http_send(struct http_request *request, const void *data, size_t size);
void http_send_end(struct http_request *request);

/* A new text: text with all but unreserved characters as %XX (RFC 3986 section 2.3). */
char *http_escape(const char *text);

#endif
