/* SPDX-License-Identifier: ISC */
/* Glob patterns into the regular expressions of GNU find's posix-extended. */
#include <stdbool.h>
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/snapshot_exclude.h"

/* Linux gives one argument 128 KiB. */
#define EXPRESSION_MAX 98304U
/* Deeper braces are taken as they are written. */
#define BRACES_MAX 8

static const char always[] = "(.*/)?(\\.rws|node_modules|\\.git)";

/* A state of the translation of one pattern. */
struct translation {
	const char *at, *end;
	unsigned braces;
	struct buffer out;
};

static void
put_literal(struct translation *translation, char byte)
{
	if (strchr(".[](){}*+?^$|\\", byte) != NULL)
		(void)buffer_append(&translation->out, "\\", 1);
	(void)buffer_append(&translation->out, &byte, 1);
}

/* "[a-z]" or "[!a-z]"; a bracket that is never closed is a byte like any other. */
static void
put_class(struct translation *translation)
{
	const char *from = translation->at + 1, *close;

	if (from < translation->end && (*from == '!' || *from == '^'))
		from++;
	close = from;
	if (close < translation->end && *close == ']')
		close++;
	while (close < translation->end && *close != ']')
		close++;
	if (close >= translation->end) {
		put_literal(translation, '[');
		translation->at++;
		return;
	}
	(void)buffer_append_text(&translation->out, from > translation->at + 1 ? "[^" : "[");
	(void)buffer_append(&translation->out, from, (size_t)(close - from) + 1);
	translation->at = close + 1;
}

/* Is there a part "**" with a slash after it here, at the start of a part? */
static bool
at_any_depth(const struct translation *translation, const char *start)
{
	const char *at = translation->at;

	return (at == start || at[-1] == '/') && translation->end - at >= 3 &&
	       strncmp(at, "**/", 3) == 0;
}

static void
put_special(struct translation *translation)
{
	switch (*translation->at) {
	case '*':
		while (translation->at + 1 < translation->end && translation->at[1] == '*')
			translation->at++;
		(void)buffer_append_text(&translation->out, "[^/]*");
		break;
	case '?':
		(void)buffer_append_text(&translation->out, "[^/]");
		break;
	case '{':
		translation->braces++;
		(void)buffer_append_text(&translation->out, "(");
		break;
	case '}':
		translation->braces--;
		(void)buffer_append_text(&translation->out, ")");
		break;
	default:
		(void)buffer_append_text(&translation->out, "|");
		break;
	}
	translation->at++;
}

static bool
is_special(const struct translation *translation)
{
	size_t left;

	switch (*translation->at) {
	case '*':
	case '?':
		return true;
	case '{':
		left = (size_t)(translation->end - translation->at);
		return translation->braces < BRACES_MAX &&
		       memchr(translation->at, '}', left) != NULL;
	case '}':
	case ',':
		return translation->braces > 0;
	default:
		return false;
	}
}

/* Appends the expression for length bytes of a pattern; -1 when it grew too long. */
static int
translate(struct buffer *out, const char *pattern, size_t length)
{
	struct translation translation = { .at = pattern, .end = pattern + length };
	int result;

	buffer_init(&translation.out, EXPRESSION_MAX);
	while (translation.at < translation.end) {
		if (at_any_depth(&translation, pattern)) {
			(void)buffer_append_text(&translation.out, "(.*/)?");
			translation.at += 3;
		} else if (*translation.at == '[') {
			put_class(&translation);
		} else if (is_special(&translation)) {
			put_special(&translation);
		} else {
			if (*translation.at == '\\' && translation.at + 1 < translation.end)
				translation.at++;
			put_literal(&translation, *translation.at++);
		}
	}
	while (translation.braces-- > 0)
		(void)buffer_append_text(&translation.out, ")");
	result = buffer_append(out, buffer_data(&translation.out), translation.out.length);
	if (translation.out.length > EXPRESSION_MAX / 2)
		result = -1;
	buffer_free(&translation.out);
	return result;
}

static int
add_pattern(struct buffer *exclude, struct buffer *hold, const char *pattern, struct error *err)
{
	struct buffer *out = exclude;
	size_t length;
	int result;

	while (strncmp(pattern, "./", 2) == 0)
		pattern += 2;
	length = strlen(pattern);
	while (length > 0 && pattern[length - 1] == '/')
		length--;
	if (length > 3 && strncmp(pattern + length - 3, "/**", 3) == 0) {
		length -= 3;
		out = hold;
	}
	if (length == 0 || *pattern == '/' || memchr(pattern, '\n', length) != NULL)
		return error_set(
		    err, ERROR_INVALID, "exclude must be a pattern below the root: %.64s", pattern);
	if (out->length > 0)
		(void)buffer_append_text(out, "|");
	/* A pattern "**" is everything. */
	if (length == 2 && strncmp(pattern, "**", 2) == 0)
		result = buffer_append_text(out, ".*");
	else
		result = translate(out, pattern, length);
	if (result != 0)
		return error_set(err, ERROR_INVALID, "the excludes are too long");
	return 0;
}

/* "./(A|B)", or "" which matches no path. */
static char *
whole(const struct buffer *alternatives)
{
	if (alternatives->length == 0)
		return memory_text("");
	return memory_text_format(
	    "\\./(%.*s)", (int)alternatives->length, (const char *)buffer_data(alternatives));
}

int
snapshot_exclude_make(struct snapshot_exclude *exclude, char *const *patterns, struct error *err)
{
	struct buffer out, hold;
	int result;

	buffer_init(&out, EXPRESSION_MAX);
	buffer_init(&hold, EXPRESSION_MAX);
	(void)buffer_append_text(&out, always);
	result = 0;
	for (; patterns != NULL && *patterns != NULL && result == 0; patterns++)
		result = add_pattern(&out, &hold, *patterns, err);
	exclude->exclude = whole(&out);
	exclude->hold = whole(&hold);
	if (result != 0)
		snapshot_exclude_free(exclude);
	buffer_free(&out);
	buffer_free(&hold);
	return result;
}

char *
snapshot_expression(const char *pattern, struct error *err)
{
	struct buffer out;
	char *text;

	text = NULL;
	buffer_init(&out, EXPRESSION_MAX);
	if (strchr(pattern, '\n') != NULL || translate(&out, pattern, strlen(pattern)) != 0)
		error_set(err, ERROR_INVALID, "the pattern is too long");
	else
		text = whole(&out);
	buffer_free(&out);
	return text;
}

void
snapshot_exclude_free(struct snapshot_exclude *exclude)
{
	memory_free(exclude->exclude);
	memory_free(exclude->hold);
	exclude->exclude = exclude->hold = NULL;
}
