/* SPDX-License-Identifier: ISC */
/*
 * Finding markers. Only bytes that could be the start of a marker are ever held back, so output
 * is not delayed: the first byte is a control character, and the token differs at once.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/base/random.h"
#include "core/driver.h"
#include "core/marker.h"

#define MARKER_BYTE 036

void
marker_make_token(char token[MARKER_TOKEN_SIZE])
{
	random_hex(token, (MARKER_TOKEN_SIZE - 1) / 2);
}

void
marker_init(struct marker *marker, const char token[MARKER_TOKEN_SIZE], bool without_start)
{
	memset(marker, 0, sizeof(*marker));
	memcpy(marker->token, token, MARKER_TOKEN_SIZE);
	marker->without_start = without_start;
	marker->stage = without_start ? MARKER_RUNNING : MARKER_BEFORE;
}

/* Is held the start of "\036rws:TOKEN ", or that and more? */
static bool
may_be_marker(const struct marker *marker)
{
	char prefix[8 + MARKER_TOKEN_SIZE];
	size_t length;

	length = (size_t)snprintf(prefix, sizeof(prefix), "%crws:%s ", MARKER_BYTE, marker->token);
	if (length > marker->held_size)
		length = marker->held_size;
	return memcmp(prefix, marker->held, length) == 0;
}

/* The number at the start of text, up to a space or the end; moves text behind it. */
static int
take_number(const char **text, int64_t max, int64_t *value)
{
	struct error err;
	size_t length;
	char *word;
	int result;

	length = strcspn(*text, " ");
	word = memory_text_bounded(*text, length);
	result = number_parse(word, 0, max, value, &err);
	memory_free(word);
	*text += length + ((*text)[length] == ' ' ? 1 : 0);
	return result;
}

static int
take_start(struct marker *marker, const char *text)
{
	int64_t pid, start_time;

	if (marker->stage != MARKER_BEFORE || take_number(&text, INT32_MAX, &pid) != 0 ||
	    take_number(&text, INT64_MAX, &start_time) != 0 || *text != '\0' || pid == 0)
		return -1;
	marker->stage = MARKER_RUNNING;
	marker->pid = (uint32_t)pid;
	marker->start_time = (uint64_t)start_time;
	return 0;
}

static int
take_end(struct marker *marker, const char *text)
{
	int64_t number, max;

	if (marker->stage != MARKER_RUNNING)
		return -1;
	marker->signaled = strncmp(text, "signaled ", 9) == 0;
	if (!marker->signaled && strncmp(text, "exited ", 7) != 0)
		return -1;
	text += marker->signaled ? 9 : 7;
	max = marker->signaled ? DRIVER_SIGNAL_MAX : DRIVER_STATUS_MAX;
	if (take_number(&text, max, &number) != 0 || *text != '\0' ||
	    (marker->signaled && number == 0))
		return -1;
	marker->stage = MARKER_ENDED;
	marker->number = (uint32_t)number;
	return 0;
}

/* Of transports only: a command does not know its transport's token. */
static int
take_turn(struct marker *marker)
{
	if (marker->stage == MARKER_BEFORE)
		return -1;
	marker->turns++;
	return 0;
}

/* A whole line is held: "\036rws:TOKEN start ..." or "... end ...". */
static int
take_marker(struct marker *marker, struct error *err)
{
	const char *text;
	char *line;
	int result;

	/* A pty ends its lines with a carriage return as well. */
	if (marker->held[marker->held_size - 1] == '\r')
		marker->held_size--;
	line = memory_text_bounded(marker->held, marker->held_size);
	text = line + strlen("?rws:") + MARKER_TOKEN_SIZE;
	result = -1;
	if (strlen(line) != marker->held_size)
		error_set(err, ERROR_INVALID, "a marker with a NUL byte");
	else if (strncmp(text, "start ", 6) == 0)
		result = take_start(marker, text + 6);
	else if (strncmp(text, "end ", 4) == 0)
		result = take_end(marker, text + 4);
	else if (strcmp(text, "turn") == 0)
		result = take_turn(marker);
	if (result != 0)
		error_set(err, ERROR_INVALID, "a malformed marker");
	explicit_bzero(line, strlen(line));
	memory_free(line);
	marker->held_size = 0;
	return result;
}

/* Bytes that are no marker: output between the markers, else noise. */
static int
put_output(struct marker *marker, const unsigned char *data, size_t size, struct buffer *output,
    struct error *err)
{
	if (marker->stage == MARKER_RUNNING || (marker->stage == MARKER_ENDED && marker->follows)) {
		if (buffer_append(output, data, size) != 0)
			return error_set(err, ERROR_TOO_LARGE, "no room for output");
		return 0;
	}
	marker->noise += size;
	if (marker->stage == MARKER_BEFORE && marker->noise > MARKER_NOISE_MAX)
		return error_set(
		    err, ERROR_UNAVAILABLE, "the command's shell says too much before it starts");
	return 0;
}

/* Takes one byte behind a held beginning; flushes what turns out to be no marker. */
static int
take_held_byte(struct marker *marker, unsigned char byte, struct buffer *output, struct error *err)
{
	unsigned char flushed[sizeof(marker->held)];
	size_t size;

	if (byte == '\n' && marker->held_size > strlen("?rws:") + MARKER_TOKEN_SIZE)
		return take_marker(marker, err);
	if (marker->held_size == sizeof(marker->held))
		return error_set(err, ERROR_INVALID, "a marker that does not end");
	marker->held[marker->held_size++] = byte;
	if (may_be_marker(marker))
		return 0;
	/*
	 * No proper prefix of a marker has its first byte inside,
	 * so only the last byte may begin one.
	 */
	size = marker->held_size - (byte == MARKER_BYTE ? 1 : 0);
	memcpy(flushed, marker->held, size);
	marker->held_size -= size;
	if (marker->held_size == 1)
		marker->held[0] = byte;
	return put_output(marker, flushed, size, output, err);
}

int
marker_decode(
    struct marker *marker, const void *data, size_t size, struct buffer *output, struct error *err)
{
	const unsigned char *at, *found;
	size_t length;

	at = data;
	while (size > 0) {
		if (marker->held_size > 0) {
			if (take_held_byte(marker, *at, output, err) != 0)
				return -1;
			at++;
			size--;
			continue;
		}
		found = memchr(at, MARKER_BYTE, size);
		length = found == NULL ? size : (size_t)(found - at);
		if (put_output(marker, at, length, output, err) != 0)
			return -1;
		at += length;
		size -= length;
		if (found != NULL) {
			marker->held[marker->held_size++] = MARKER_BYTE;
			at++;
			size--;
		}
	}
	return 0;
}

int
marker_finish(struct marker *marker, struct buffer *output, struct error *err)
{
	size_t size;

	size = marker->held_size;
	marker->held_size = 0;
	return put_output(marker, marker->held, size, output, err);
}
