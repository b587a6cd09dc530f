/* SPDX-License-Identifier: ISC */
/* Numbers, durations and sizes: parsed strictly, printed so that they parse back. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/number.h"

struct unit {
	const char *name;
	int64_t factor;
};

/* Largest first, which is the order a duration is written and printed in. */
static const struct unit durations[] = {
	{ "d", 86400000 },
	{ "h", 3600000 },
	{ "m", 60000 },
	{ "s", 1000 },
	{ "ms", 1 },
};

/* Those that a size is printed in come first, the largest before the others. */
#define SIZES_PRINTED 4
static const struct unit sizes[] = {
	{ "TiB", INT64_C(1) << 40 },
	{ "GiB", 1 << 30 },
	{ "MiB", 1 << 20 },
	{ "KiB", 1 << 10 },
	{ "T", INT64_C(1) << 40 },
	{ "G", 1 << 30 },
	{ "M", 1 << 20 },
	{ "K", 1 << 10 },
	{ "B", 1 },
};

/* Digits up to the first other character; -1 for none or for more than an int64_t holds. */
static int
parse_digits(const char **text, int64_t *value)
{
	const char *at;

	*value = 0;
	for (at = *text; *at >= '0' && *at <= '9'; at++) {
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, *at - '0', value))
			return -1;
	}
	if (at == *text)
		return -1;
	*text = at;
	return 0;
}

int
number_parse(const char *text, int64_t min, int64_t max, int64_t *value, struct error *err)
{
	const char *at;

	at = text;
	if (*at == '-')
		at++;
	if (parse_digits(&at, value) != 0 || *at != '\0')
		return error_set(err, ERROR_INVALID, "\"%s\" is not a number", text);
	if (*text == '-')
		*value = -*value;
	if (*value < min || *value > max)
		return error_set(err, ERROR_INVALID, "%s is not between %" PRId64 " and %" PRId64,
		    text, min, max);
	return 0;
}

/* The unit at the start of text with the longest name; NULL when there is none. */
static const struct unit *
find_unit(const struct unit *units, size_t count, const char *text)
{
	const struct unit *found;
	size_t i;

	found = NULL;
	for (i = 0; i < count; i++)
		if (strncmp(text, units[i].name, strlen(units[i].name)) == 0 &&
		    (found == NULL || strlen(units[i].name) > strlen(found->name)))
			found = &units[i];
	return found;
}

int
number_parse_duration(const char *text, int64_t *milliseconds, struct error *err)
{
	const struct unit *unit;
	const char *at, *start;
	int64_t value;

	*milliseconds = 0;
	at = text;
	do {
		start = at;
		if (parse_digits(&at, &value) != 0)
			return error_set(err, ERROR_INVALID,
			    "\"%s\" is not a duration such as 90s or 1h30m", text);
		unit = find_unit(durations, sizeof(durations) / sizeof(durations[0]), at);
		if (unit == NULL && (*at != '\0' || start != text))
			return error_set(err, ERROR_INVALID,
			    "\"%s\" has no unit of time (ms, s, m, h, d)", text);
		if (unit != NULL)
			at += strlen(unit->name);
		if (__builtin_mul_overflow(value, unit == NULL ? 1000 : unit->factor, &value) ||
		    __builtin_add_overflow(*milliseconds, value, milliseconds))
			return error_set(err, ERROR_INVALID, "\"%s\" is too long a time", text);
	} while (*at != '\0');
	return 0;
}

int
number_parse_size(const char *text, int64_t *bytes, struct error *err)
{
	const struct unit *unit;
	const char *at;

	at = text;
	if (parse_digits(&at, bytes) != 0)
		return error_set(
		    err, ERROR_INVALID, "\"%s\" is not a size such as 64KiB or 10MiB", text);
	if (*at == '\0')
		return 0;
	unit = find_unit(sizes, sizeof(sizes) / sizeof(sizes[0]), at);
	if (unit == NULL || at[strlen(unit->name)] != '\0')
		return error_set(
		    err, ERROR_INVALID, "\"%s\" has no unit of size (B, KiB, MiB, GiB, TiB)", text);
	if (__builtin_mul_overflow(*bytes, unit->factor, bytes))
		return error_set(err, ERROR_INVALID, "\"%s\" is too large", text);
	return 0;
}

const char *
number_format_duration(char out[NUMBER_TEXT_MAX], int64_t milliseconds)
{
	size_t i;

	for (i = 0; i < sizeof(durations) / sizeof(durations[0]); i++)
		if (milliseconds != 0 && milliseconds % durations[i].factor == 0)
			break;
	if (i == sizeof(durations) / sizeof(durations[0]))
		(void)snprintf(out, NUMBER_TEXT_MAX, "%" PRId64 "s", milliseconds / 1000);
	else
		(void)snprintf(out, NUMBER_TEXT_MAX, "%" PRId64 "%s",
		    milliseconds / durations[i].factor, durations[i].name);
	return out;
}

const char *
number_format_size(char out[NUMBER_TEXT_MAX], int64_t bytes)
{
	size_t i;

	for (i = 0; i < SIZES_PRINTED; i++)
		if (bytes != 0 && bytes % sizes[i].factor == 0)
			break;
	if (i == SIZES_PRINTED)
		(void)snprintf(out, NUMBER_TEXT_MAX, "%" PRId64, bytes);
	else
		(void)snprintf(
		    out, NUMBER_TEXT_MAX, "%" PRId64 "%s", bytes / sizes[i].factor, sizes[i].name);
	return out;
}

const char *
number_describe_size(char out[NUMBER_TEXT_MAX], int64_t bytes)
{
	size_t i;

	for (i = 0; i < SIZES_PRINTED; i++)
		if (bytes >= sizes[i].factor)
			break;
	if (i == SIZES_PRINTED)
		(void)snprintf(out, NUMBER_TEXT_MAX, "%" PRId64 " bytes", bytes);
	else if (bytes % sizes[i].factor == 0)
		(void)snprintf(
		    out, NUMBER_TEXT_MAX, "%" PRId64 " %s", bytes / sizes[i].factor, sizes[i].name);
	else
		(void)snprintf(out, NUMBER_TEXT_MAX, "%.1f %s",
		    (double)bytes / (double)sizes[i].factor, sizes[i].name);
	return out;
}
