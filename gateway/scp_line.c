/* SPDX-License-Identifier: ISC */
/*
 * Control lines of scp's old protocol, read strictly:
 * a name is where a hostile one would hide a path.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "gateway/scp_line.h"

#define MODE_DIGITS 4
#define SIZE_MAX_HERE (INT64_MAX / 2)

/* The decimal number that text starts with, up to end, behind which *text moves. */
static int
get_number(const char **text, char end, int64_t *value)
{
	const char *stop;
	char *digits;
	int result;

	stop = strchr(*text, end);
	if (stop == NULL)
		return -1;
	digits = memory_text_bounded(*text, (size_t)(stop - *text));
	result = number_parse(digits, 0, SIZE_MAX_HERE, value, NULL);
	memory_free(digits);
	*text = stop + 1;
	return result;
}

static int
get_mode(const char **text, uint32_t *mode)
{
	int i;

	*mode = 0;
	for (i = 0; i < MODE_DIGITS; i++, (*text)++) {
		if (**text < '0' || **text > '7')
			return -1;
		*mode = *mode << 3 | (uint32_t)(**text - '0');
	}
	return *(*text)++ == ' ' ? 0 : -1;
}

static int
get_entry(const char *text, struct scp_line *line, struct error *err)
{
	int64_t size;

	if (get_mode(&text, &line->mode) != 0 || get_number(&text, ' ', &size) != 0)
		return error_set(err, ERROR_INVALID, "a malformed control line");
	if (*text == '\0' || strchr(text, '/') != NULL || strcmp(text, ".") == 0 ||
	    strcmp(text, "..") == 0)
		return error_set(err, ERROR_INVALID, "unexpected name %s", text);
	line->size = (uint64_t)size;
	line->name = memory_text(text);
	return 0;
}

static int
get_times(const char *text, struct scp_line *line, struct error *err)
{
	int64_t unused;
	char *whole;
	int result;

	/* The last number ends with the line. */
	whole = memory_text_format("%s ", text);
	text = whole;
	result = get_number(&text, ' ', &line->modified) != 0 ||
			 get_number(&text, ' ', &unused) != 0 ||
			 get_number(&text, ' ', &line->accessed) != 0 ||
			 get_number(&text, ' ', &unused) != 0 || *text != '\0' ||
			 line->modified > UINT32_MAX * INT64_C(2) ||
			 line->accessed > UINT32_MAX * INT64_C(2)
		     ? error_set(err, ERROR_INVALID, "malformed times")
		     : 0;
	memory_free(whole);
	return result;
}

int
scp_line_parse(const char *text, struct scp_line *line, struct error *err)
{
	memset(line, 0, sizeof(*line));
	line->type = text[0];
	if (line->type == 'C' || line->type == 'D')
		return get_entry(text + 1, line, err);
	if (line->type == 'T')
		return get_times(text + 1, line, err);
	if (line->type == 'E' && text[1] == '\0')
		return 0;
	return error_set(err, ERROR_INVALID, "an unknown control line");
}

void
scp_line_free(struct scp_line *line)
{
	memory_free(line->name);
	line->name = NULL;
}
