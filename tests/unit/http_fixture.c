/* SPDX-License-Identifier: ISC */
/* What the tests of drivers/http share. */
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "drivers/http.h"
#include "tests/unit/http_fixture.h"
#include "tests/unit/http_server.h"

static const char *
follow_script(void *argument, const struct http_exchange *exchange, size_t *size, bool *close)
{
	struct http_fixture *fixture = argument;
	const struct script *step;
	size_t index = exchange->number - 1;

	memory_free(fixture->head);
	memory_free(fixture->body);
	fixture->head = memory_text(exchange->head);
	fixture->body = memory_text_bounded(exchange->body, exchange->body_size);
	fixture->body_size = exchange->body_size;
	if (index >= fixture->script_length)
		index = fixture->script_length - 1;
	step = &fixture->script[index];
	*size = step->size;
	*close = step->close;
	return step->answer;
}

int
http_fixture_setup(void **state)
{
	struct http_setup setup = { 0 };
	struct http_fixture *fixture;
	struct error err;

	fixture = memory_zeroed(1, sizeof(*fixture));
	fixture->loop = setup.loop = loop_new(&err);
	fixture->http = http_new(&setup, &err);
	assert_non_null(fixture->http);
	fixture->server = http_server_new(fixture->loop, follow_script, fixture);
	*state = fixture;
	return 0;
}

int
http_fixture_teardown(void **state)
{
	struct http_fixture *fixture = *state;

	http_free(fixture->http);
	http_server_free(fixture->server);
	loop_free(fixture->loop);
	memory_free(fixture->head);
	memory_free(fixture->body);
	memory_free(fixture);
	return 0;
}

static void
request_done(void *argument, const struct http_answer *answer, const struct error *err)
{
	struct http_fixture *fixture = argument;

	assert_false(fixture->done);
	fixture->done = true;
	fixture->request = NULL;
	fixture->outcome = answer->outcome;
	fixture->status = answer->status;
	error_clear(&fixture->err);
	if (err != NULL)
		fixture->err = *err;
	assert_true((err == NULL) == (answer->outcome == HTTP_DONE));
	snprintf(fixture->text, sizeof(fixture->text), "%.*s", (int)answer->size,
	    answer->body == NULL ? "" : (const char *)answer->body);
	if (fixture->frees) {
		http_free(fixture->http);
		fixture->http = NULL;
	}
}

void
http_fixture_received(void *argument)
{
	struct http_fixture *fixture = argument;
	size_t size = http_received(fixture->request)->length;

	fixture->notices++;
	if (fixture->holds) {
		http_hold(fixture->request, true);
		return;
	}
	fixture->received += size;
	http_consume(fixture->request, size);
	if (fixture->cancels) {
		http_cancel(fixture->request);
		fixture->request = NULL;
	}
}

void
http_fixture_follow(struct http_fixture *fixture, const struct script *script, size_t length)
{
	fixture->script = script;
	fixture->script_length = length;
}
struct http_call
http_fixture_call(struct http_fixture *fixture, const char *method)
{
	struct http_call call = { 0 };

	call.method = method;
	call.url = http_server_url(fixture->server);
	call.max_answer = 1000;
	call.connect_timeout = 20000;
	call.done = request_done;
	call.argument = fixture;
	if (strcmp(method, "POST") == 0) {
		call.body = "{\"a\":1}";
		call.body_size = 7;
	}
	return call;
}

void
http_fixture_wait(struct http_fixture *fixture, const bool *flag)
{
	int64_t end = loop_now() + 20000;

	while (!*flag) {
		assert_int_equal(loop_dispatch(fixture->loop, 1000, NULL), 0);
		if (loop_now() > end)
			fail_msg("waited in vain");
	}
}

/* Dispatches until nothing happens any more. */
void
http_fixture_settle(struct http_fixture *fixture)
{
	int i;

	for (i = 0; i < 300; i++)
		assert_int_equal(loop_dispatch(fixture->loop, 1, NULL), 0);
}

void
http_fixture_perform(struct http_fixture *fixture, const struct http_call *call)
{
	fixture->done = false;
	fixture->request = http_start(fixture->http, call);
	assert_false(fixture->done);
	http_fixture_wait(fixture, &fixture->done);
}
