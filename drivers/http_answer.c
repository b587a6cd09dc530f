/* SPDX-License-Identifier: ISC */
/*
 * One line from any answer. Providers answer with their own JSON, proxies before them with HTML,
 * text or nothing; whatever it is, it is hostile and goes to a terminal.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/utf8.h"
#include "core/json.h"
#include "drivers/http.h"
#include "drivers/http_answer.h"

/* Longer explanations are cut. */
#define TEXT_MAX 240
/* What more of a body is not looked at. */
#define BODY_MAX 65536

/* What RFC 9110 section 15 calls the statuses that providers and proxies give without a word. */
static const struct {
	int status;
	const char *text;
} reasons[] = {
	{ 400, "bad request" },
	{ 401, "unauthorized" },
	{ 403, "forbidden" },
	{ 404, "not found" },
	{ 405, "method not allowed" },
	{ 408, "request timeout" },
	{ 409, "conflict" },
	{ 413, "content too large" },
	{ 415, "unsupported media type" },
	{ 429, "too many requests" },
	{ 500, "internal server error" },
	{ 501, "not implemented" },
	{ 502, "bad gateway" },
	{ 503, "service unavailable" },
	{ 504, "gateway timeout" },
	{ 507, "insufficient storage" },
};

/* Copies at most size bytes of text: one line, blanks folded, nothing a terminal would act on. */
static void
clean(char out[TEXT_MAX], const char *text, size_t size)
{
	size_t i, step, used;
	bool blank;

	used = 0;
	blank = false;
	for (i = 0; i < size && text[i] != '\0'; i += step) {
		step = utf8_sequence(text + i, size - i);
		if (step == 0 || (step == 1 && !isgraph((unsigned char)text[i]))) {
			step = 1;
			blank = used > 0;
			continue;
		}
		if (used + step + 6 > TEXT_MAX)
			break;
		if (blank)
			out[used++] = ' ';
		blank = false;
		/* C1 control characters, U+0080 to U+009F. */
		if (step == 2 && (unsigned char)text[i] == 0xc2 &&
		    (unsigned char)text[i + 1] < 0xa0)
			continue;
		memcpy(out + used, text + i, step);
		used += step;
	}
	if (i < size && text[i] != '\0') {
		memcpy(out + used, "...", 3);
		used += 3;
	}
	out[used] = '\0';
}

/* The usual places for a message in an error object. */
static const char *
find_message(const struct json_object *object)
{
	static const char *const names[] = { "message", "error", "detail", "error_description",
		"title" };
	struct json_object *inner;
	const char *text;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		text = json_text(object, names[i]);
		if (text != NULL && text[0] != '\0')
			return text;
	}
	inner = json_member(object, "error", json_type_object);
	if (inner == NULL)
		return NULL;
	text = json_text(inner, "message");
	return text != NULL ? text : json_text(inner, "code");
}

static bool
explain_json(char out[TEXT_MAX], const char *body, size_t size)
{
	struct json_object *object;
	const char *text;

	object = json_parse_object(body, size, NULL);
	text = object == NULL ? NULL : find_message(object);
	if (text != NULL)
		clean(out, text, strlen(text));
	json_object_put(object);
	return text != NULL && out[0] != '\0';
}

/* What stands between <tag> and the next "<". */
static bool
explain_tag(char out[TEXT_MAX], const char *body, const char *tag)
{
	const char *start;

	start = strcasestr(body, tag);
	if (start == NULL)
		return false;
	start += strlen(tag);
	clean(out, start, strcspn(start, "<"));
	return out[0] != '\0';
}

static void
explain_status(char out[TEXT_MAX], int status)
{
	size_t i;

	out[0] = '\0';
	for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			(void)snprintf(out, TEXT_MAX, "%s", reasons[i].text);
	if (out[0] == '\0')
		(void)snprintf(out, TEXT_MAX, "%s", "no explanation was given");
}

static void
explain_body(char out[TEXT_MAX], int status, const unsigned char *body, size_t size)
{
	char *text;

	out[0] = '\0';
	text = memory_text_bounded(body, size > BODY_MAX ? BODY_MAX : size);
	if (text[strspn(text, " \t\r\n")] == '<') {
		if (!explain_tag(out, text, "<title>"))
			(void)explain_tag(out, text, "<h1>");
	} else if (!explain_json(out, text, strlen(text)) && text[0] != '{' && text[0] != '[') {
		clean(out, text, strlen(text));
	}
	if (out[0] == '\0')
		explain_status(out, status);
	memory_free(text);
}

static enum error_code
code_of(int status)
{
	switch (status) {
	case 400:
		return ERROR_INVALID;
	case 404:
		return ERROR_NOT_FOUND;
	case 413:
		return ERROR_TOO_LARGE;
	case 408:
	case 504:
		return ERROR_TIMEOUT;
	default:
		return ERROR_UNAVAILABLE;
	}
}

int
http_answer_explain(int status, const unsigned char *body, size_t size, struct error *err)
{
	char text[TEXT_MAX];

	explain_body(text, status, body, size);
	return error_set(err, code_of(status), "%d: %s", status, text);
}

int
http_answer_quote(struct error *err, enum error_code code, const char *text)
{
	char cleaned[TEXT_MAX];

	clean(cleaned, text, strlen(text));
	return error_set(err, code, "%s", cleaned);
}

struct json_object *
http_answer_object(const struct http_answer *answer, struct error *err)
{
	struct json_object *object;

	object = json_parse_object(answer->body, answer->size, err);
	if (object == NULL && answer->size > 0 && answer->body[0] == '<')
		error_set(err, ERROR_INVALID, "a web page answered: is api_url right?");
	return object;
}

bool
http_answer_may_repeat(
    enum http_repeat repeat, const struct http_answer *answer, bool is_replayable)
{
	if (answer->outcome == HTTP_DONE || !is_replayable)
		return false;
	if (answer->outcome == HTTP_UNSENT)
		return true;
	if (answer->outcome == HTTP_REFUSED && answer->status == 429 && answer->retry_after >= 0)
		return true;
	if (repeat != HTTP_IDEMPOTENT)
		return false;
	return answer->outcome == HTTP_UNKNOWN || answer->status == 502 || answer->status == 503 ||
	       answer->status == 504;
}
