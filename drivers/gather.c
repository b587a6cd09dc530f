/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>

#include "core/base/base64.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/scripts.h"
#include "drivers/gather.h"

/* Bytes of stdin in one argument, below Linux's limit of 128 KiB in base64. */
#define PIECE ((size_t)72 * 1024)
#define ANSWER_MIN ((size_t)256 * 1024)

static const char answer_start[] = "rws-result ";

void
gather_init(struct gather *gather, size_t max_output)
{
	char token[MARKER_TOKEN_SIZE];

	marker_make_token(token);
	(void)snprintf(gather->work, sizeof(gather->work), "%s%s", GATHER_WORK, token);
	gather->max_output = max_output;
}

int
gather_check(char *const *argv, size_t input_size, struct error *err)
{
	size_t count;

	for (count = input_size; *argv != NULL; argv++)
		count += strlen(*argv) + 4;
	if (count > GATHER_INPUT_MAX)
		return error_set(err, ERROR_TOO_LARGE, "a script's arguments are too long");
	return 0;
}

static char **
add_base64(char **list, size_t count, const char *before, const void *data, size_t size)
{
	char *encoded, *text;

	encoded = base64_text(data, size);
	text = memory_text_format("%s%s", before, encoded);
	list = memory_list_add(list, count, text);
	memory_free(text);
	memory_free(encoded);
	return list;
}

static char **
add_number(char **list, size_t count, size_t number)
{
	char *text;

	text = memory_text_format("%zu", number);
	list = memory_list_add(list, count, text);
	memory_free(text);
	return list;
}

char **
gather_arguments(const struct gather *gather, char *const *argv, const void *input, size_t size)
{
	const unsigned char *at = input;
	size_t count, piece;
	char **list;

	list = memory_zeroed(1, sizeof(*list));
	list = memory_list_add(list, 0, gather->work);
	list = add_number(list, 1, gather->max_output);
	list = add_number(list, 2, (size + PIECE - 1) / PIECE);
	for (count = 3; size > 0; size -= piece, at += piece) {
		piece = size < PIECE ? size : PIECE;
		list = add_base64(list, count++, "", at, piece);
	}
	for (; *argv != NULL; argv++)
		list = add_base64(list, count++, "=", *argv, strlen(*argv));
	return list;
}

char **
gather_cancel_argv(const struct gather *gather)
{
	char *arguments[2] = { NULL, NULL }, **argv;

	arguments[0] = memory_text(gather->work);
	argv = script_argv("gather_cancel", arguments);
	memory_free(arguments[0]);
	return argv;
}

size_t
gather_answer_max(const struct gather *gather)
{
	return ANSWER_MIN + 4 * gather->max_output;
}

/* The next word of a line; moves line behind it. */
static char *
take_word(const char **line)
{
	size_t length;
	char *word;

	length = strcspn(*line, " \n");
	word = memory_text_bounded(*line, length);
	*line += length + ((*line)[length] == ' ' ? 1 : 0);
	return word;
}

/* One output: a dot, then base64. A new piece of memory. */
static unsigned char *
take_output(const char **line, size_t *size)
{
	unsigned char *bytes;
	char *word;

	word = take_word(line);
	bytes = NULL;
	if (word[0] == '.') {
		bytes = memory_allocate(strlen(word));
		if (base64_decode(bytes, size, word + 1, strlen(word + 1)) != 0) {
			memory_free(bytes);
			bytes = NULL;
		}
	}
	memory_free(word);
	return bytes;
}

static const char *
find_line(const char *text)
{
	const char *found, *at;

	found = NULL;
	for (at = text; (at = strstr(at, answer_start)) != NULL; at++)
		if (at == text || at[-1] == '\n')
			found = at + strlen(answer_start);
	return found;
}

bool
gather_is_complete(const char *text)
{
	const char *line;

	line = find_line(text);
	return line != NULL && strchr(line, '\n') != NULL;
}

static int
take_answer(const char *line, struct gather_answer *answer)
{
	struct driver_result *result = &answer->result;
	char *kind, *status, *cut;
	int64_t number;
	bool is_number;

	kind = take_word(&line);
	status = take_word(&line);
	cut = take_word(&line);
	answer->output = take_output(&line, &result->output_size);
	answer->errors = take_output(&line, &result->errors_size);
	is_number = number_parse(status, 0, 255, &number, NULL) == 0;
	if (is_number) {
		result->ended.signaled = strcmp(kind, "signaled") == 0;
		result->ended.status = (int)number;
		result->truncated = strcmp(cut, "1") == 0;
		result->output = answer->output;
		result->errors = answer->errors;
	}
	memory_free(kind);
	memory_free(status);
	memory_free(cut);
	return is_number && answer->output != NULL && answer->errors != NULL ? 0 : -1;
}

int
gather_read(const char *text, struct gather_answer *answer, struct error *err)
{
	const char *line;

	memset(answer, 0, sizeof(*answer));
	line = find_line(text);
	if (line == NULL)
		return error_set(
		    err, ERROR_UNAVAILABLE, "the sandbox's script gave no answer: %.200s", text);
	if (take_answer(line, answer) != 0)
		return error_set(
		    err, ERROR_UNAVAILABLE, "the sandbox's script gave a malformed answer");
	return 0;
}

void
gather_answer_free(struct gather_answer *answer)
{
	memory_free(answer->output);
	memory_free(answer->errors);
	memset(answer, 0, sizeof(*answer));
}
