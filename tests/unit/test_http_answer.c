/* SPDX-License-Identifier: ISC */
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "drivers/http.h"
#include "drivers/http_answer.h"

static void
explain(int status, const char *body, const char *expected)
{
	struct error err;

	http_answer_explain(status, (const unsigned char *)body, strlen(body), &err);
	assert_string_equal(err.message, expected);
}

static void
any_refusal_becomes_one_line(void **state)
{
	char longest[2000], *end;
	struct error err;

	(void)state;
	explain(401, "{\"code\":401,\"message\":\"Invalid API key,\\n  please\"}",
	    "401: Invalid API key, please");
	explain(502, "<!DOCTYPE html>\n<html><TITLE>502 Server\nError</title>",
	    "502: 502 Server Error");
	explain(502, "<html><h1>Bad <b>", "502: Bad");
	explain(502, "<html>", "502: bad gateway");
	explain(503, "", "503: service unavailable");
	explain(599, "", "599: no explanation was given");
	explain(400, "plain text\r\n", "400: plain text");
	explain(400, "{\"error\":{\"message\":\"inner\"}}", "400: inner");
	explain(400, "{\"error\":\"flat\"}", "400: flat");
	explain(400, "{\"other\":1}", "400: bad request");
	explain(400, "{\"message\":\"\\u001b[31mred\\u0000hidden\"}", "400: bad request");
	explain(400,
	    "\x1b[2J\xc2\x9b"
	    "31mred \xff"
	    "blood",
	    "400: [2J31mred blood");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	http_answer_explain(400, (const unsigned char *)longest, sizeof(longest) - 1, &err);
	assert_true(strlen(err.message) < 260);
	end = err.message + strlen(err.message) - 3;
	assert_string_equal(end, "...");
}

static struct json_object *
read_object(const char *body, struct error *err)
{
	const struct http_answer answer = { .outcome = HTTP_DONE,
		.status = 200,
		.body = (const unsigned char *)body,
		.size = strlen(body) };

	return http_answer_object(&answer, err);
}

static void
an_object_is_read_and_a_web_page_told_as_one(void **state)
{
	struct json_object *object;
	struct error err;

	(void)state;
	object = read_object("{\"id\":\"a\"}", &err);
	assert_string_equal(json_text(object, "id"), "a");
	json_object_put(object);
	assert_null(read_object("<!DOCTYPE html>", &err));
	assert_string_equal(err.message, "a web page answered: is api_url right?");
	assert_null(read_object("[]", &err));
	assert_null(strstr(err.message, "web page"));
	assert_null(read_object("", &err));
	assert_null(strstr(err.message, "web page"));
}

static void
escaping_leaves_only_unreserved_characters(void **state)
{
	char *text;

	(void)state;
	text = http_escape("/a b/~\xff%&.-_");
	assert_string_equal(text, "%2Fa%20b%2F~%FF%25%26.-_");
	memory_free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_refusal_becomes_one_line),
		cmocka_unit_test(an_object_is_read_and_a_web_page_told_as_one),
		cmocka_unit_test(escaping_leaves_only_unreserved_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
