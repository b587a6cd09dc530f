/* SPDX-License-Identifier: ISC */
/* Opening a WebSocket, RFC 6455 section 4: the request as text, and the answer, read strictly. */
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "core/base/base64.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/base/random.h"
#include "drivers/websocket_handshake.h"

#define KEY_BYTES 16
/* RFC 6455 section 1.3. */
#define MAGIC "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

void
websocket_make_key(char key[WEBSOCKET_KEY_SIZE])
{
	unsigned char random[KEY_BYTES];

	random_bytes(random, sizeof(random));
	base64_encode(key, random, sizeof(random));
}

void
websocket_write_request(struct buffer *out, const char *path, const char *host, const char *key,
    char *const *headers, const char *protocols)
{
	(void)buffer_append_format(out,
	    "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n",
	    path, host, key);
	if (protocols != NULL)
		(void)buffer_append_format(out, "Sec-WebSocket-Protocol: %s\r\n", protocols);
	for (; headers != NULL && *headers != NULL; headers++)
		(void)buffer_append_format(out, "%s\r\n", *headers);
	(void)buffer_append_text(out, "\r\n");
}

/* What the server must answer to the key; a new text. */
static char *
expected_accept(const char *key)
{
	unsigned char digest[HASH_SHA1_SIZE];
	char *text;

	text = memory_text_format("%s%s", key, MAGIC);
	hash_sha1(digest, text, strlen(text));
	memory_free(text);
	return base64_text(digest, sizeof(digest));
}

/* The value of a header in the head, which ends with an empty line; a new text or NULL. */
static char *
find_header(const char *head, const char *name)
{
	const char *line, *end;
	size_t length;

	length = strlen(name);
	for (line = strstr(head, "\r\n") + 2; *line != '\r' && *line != '\0'; line = end + 2) {
		end = strstr(line, "\r\n");
		if (end == NULL)
			break;
		if (strncasecmp(line, name, length) != 0 || line[length] != ':')
			continue;
		for (line += length + 1; *line == ' ' || *line == '\t'; line++)
			continue;
		while (end > line && (end[-1] == ' ' || end[-1] == '\t'))
			end--;
		return memory_text_bounded(line, (size_t)(end - line));
	}
	return NULL;
}

static bool
header_is(const char *head, const char *name, const char *value)
{
	char *found;
	bool result;

	found = find_header(head, name);
	result = found != NULL && strcasecmp(found, value) == 0;
	memory_free(found);
	return result;
}

/*
 * Section 4.1: what a client must check of a 101. We asked for no extension, so there must be none.
 */
static int
check_upgrade(const char *head, const char *key, struct error *err)
{
	char *accept, *expected, *extensions;
	bool matches;

	accept = find_header(head, "Sec-WebSocket-Accept");
	extensions = find_header(head, "Sec-WebSocket-Extensions");
	expected = expected_accept(key);
	matches = accept != NULL && strcmp(accept, expected) == 0 && extensions == NULL &&
		  header_is(head, "Upgrade", "websocket") &&
		  header_is(head, "Connection", "Upgrade");
	memory_free(accept);
	memory_free(extensions);
	memory_free(expected);
	if (!matches)
		return error_set(
		    err, ERROR_UNAVAILABLE, "the server's upgrade to a WebSocket is wrong");
	return 0;
}

static size_t
announced_size(const char *head)
{
	int64_t size;
	char *text;

	text = find_header(head, "Content-Length");
	if (text == NULL || number_parse(text, 0, INT32_MAX, &size, NULL) != 0)
		size = -1;
	memory_free(text);
	return size < 0 ? SIZE_MAX : (size_t)size;
}

static int
read_head(const char *head, const char *key, struct websocket_answer *answer, struct error *err)
{
	int64_t status;
	char *digits;

	if (strncmp(head, "HTTP/1.", 7) != 0 || strlen(head) < 12 || head[8] != ' ')
		return error_set(err, ERROR_UNAVAILABLE, "the answer is not HTTP");
	digits = memory_text_bounded(head + 9, 3);
	if (number_parse(digits, 100, 599, &status, NULL) != 0)
		status = 0;
	memory_free(digits);
	if (status == 0)
		return error_set(err, ERROR_UNAVAILABLE, "the answer is not HTTP");
	answer->status = (int)status;
	answer->body_size = announced_size(head);
	return answer->status == 101 ? check_upgrade(head, key, err) : 0;
}

int
websocket_read_answer(const void *data, size_t size, const char *key,
    struct websocket_answer *answer, struct error *err)
{
	const char *end;
	char *head;
	int result;

	end = memmem(data, size, "\r\n\r\n", 4);
	if (end == NULL)
		return 0;
	answer->head_size = (size_t)(end - (const char *)data) + 4;
	head = memory_text_bounded(data, answer->head_size);
	if (strlen(head) != answer->head_size)
		result = error_set(err, ERROR_UNAVAILABLE, "the answer is not HTTP");
	else
		result = read_head(head, key, answer, err);
	memory_free(head);
	return result == 0 ? 1 : -1;
}
