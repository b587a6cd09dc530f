/* SPDX-License-Identifier: ISC */
/*
 * What Vercel, and the sandbox behind it, may say: answers with a sandbox in them, lists of those,
 * lines of a command, the answer of a script in their outputs, and the claims of a token.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "drivers/gather.h"
#include "drivers/vercel_control.h"
#include "drivers/vercel_credentials.h"
#include "drivers/vercel_event.h"

/* An id that gets into paths must not lead elsewhere. */
static void
check_id(const char *id)
{
	if (id != NULL && strpbrk(id, "/.?#%") != NULL)
		__builtin_trap();
}

static void
read_answers(const uint8_t *data, size_t size)
{
	struct driver_sandbox sandbox = { 0 };
	struct http_answer answer = { .outcome = HTTP_DONE, .status = 200 };
	struct vercel_look look;
	char *name, *cursor;
	struct error err;

	sandbox.context.instance = "gw/box";
	answer.body = data;
	answer.size = size;
	if (vercel_read_look(&sandbox, &answer, &look, &err) == 0) {
		check_id(look.session);
		if (look.timeout < 0 || look.began < 0 || look.word == NULL)
			__builtin_trap();
		vercel_look_clear(&look);
	}
	if (vercel_find_ours(&sandbox, &answer, &name, &cursor, &err) == 0) {
		memory_free(name);
		memory_free(cursor);
	}
	answer.outcome = HTTP_REFUSED;
	(void)vercel_is_code(&answer, "sandbox_stopped");
}

/* The lines of a command; what they print is an answer of the script's, or is not. */
static void
read_lines(const uint8_t *data, size_t size)
{
	const uint8_t *end;
	struct vercel_event event;
	struct gather_answer answer;
	struct buffer output;
	struct error err;
	char *text;

	buffer_init(&output, SIZE_MAX);
	while ((end = memchr(data, '\n', size)) != NULL) {
		if (vercel_event_decode(data, (size_t)(end - data), &event, &err) == 0) {
			check_id(event.id);
			if (event.kind == VERCEL_STDOUT)
				(void)buffer_append(&output, event.data, event.size);
			if (event.kind == VERCEL_FAULT && event.message == NULL)
				__builtin_trap();
		}
		vercel_event_free(&event);
		size -= (size_t)(end - data) + 1;
		data = end + 1;
	}
	text = memory_text_bounded(buffer_data(&output), output.length);
	if (gather_read(text, &answer, &err) == 0 &&
	    (answer.result.ended.status < 0 || answer.result.ended.status > 255))
		__builtin_trap();
	gather_answer_free(&answer);
	memory_free(text);
	buffer_free(&output);
}

static void
read_token(const uint8_t *data, size_t size)
{
	struct vercel_credentials credentials = { 0 };
	struct error err;
	char *token;

	token = memory_text_bounded(data, size);
	if (vercel_credentials_decode(token, &credentials, &err) == 0) {
		check_id(credentials.team);
		check_id(credentials.project);
		(void)vercel_credentials_check(&credentials, 1700000000, &err);
	}
	vercel_credentials_free(&credentials);
	memory_free(token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_answers(data, size);
	read_lines(data, size);
	read_token(data, size);
	return 0;
}
