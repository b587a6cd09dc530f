/* SPDX-License-Identifier: ISC */
/*
 * What is in an answer, and what follows from one that is not what was asked for: one clear line
 * from any kind of body, and whether the request may be sent again.
 */
#ifndef DRIVERS_HTTP_ANSWER_H
#define DRIVERS_HTTP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"
#include "drivers/http.h"

struct json_object;

/*
 * Fills err for a status that is not 2xx: the status, and what the body (JSON, HTML, text or
 * nothing) says, on one line without control characters. Returns -1.
 */
int http_answer_explain(int status, const unsigned char *body, size_t size, struct error *err);

/* Fills err with a text from outside, on one line without control characters. Returns -1. */
int http_answer_quote(struct error *err, enum error_code code, const char *text);

/*
 * The object that an answer's body is, for the caller to put; NULL when it is none. A page that is
 * HTML comes from a web site, not from an API, and err says so.
 */
struct json_object *http_answer_object(const struct http_answer *answer, struct error *err);

/*
 * The one rule of what is sent again, as enum http_repeat describes it. is_replayable: its body
 * is still there.
 */
bool http_answer_may_repeat(
    enum http_repeat repeat, const struct http_answer *answer, bool is_replayable);

#endif
