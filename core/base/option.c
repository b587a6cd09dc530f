/* SPDX-License-Identifier: ISC */
/* Settings: values for the rows of option tables, checked when they are set. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/number.h"
#include "core/base/option.h"

#define VALUE_ENTRIES_MAX 1024

struct value {
	const struct option *option;
	bool is_set;
	char *text;     /* single values, as written */
	int64_t number; /* booleans, numbers, durations, sizes */
	char **list;    /* lists, pairs and lines */
	size_t entries;
};

struct settings {
	struct value *values;
	size_t count;
};

static const struct {
	const char *word;
	bool value;
} booleans[] = {
	{ "on", true },
	{ "yes", true },
	{ "true", true },
	{ "off", false },
	{ "no", false },
	{ "false", false },
};

bool
option_is_list(const struct option *option)
{
	return option->type == OPTION_LIST || option->type == OPTION_PAIRS ||
	       option->type == OPTION_LINES || option->type == OPTION_PATHS;
}

static bool
is_number(const struct option *option)
{
	return option->type == OPTION_BOOLEAN || option->type == OPTION_NUMBER ||
	       option->type == OPTION_DURATION || option->type == OPTION_SIZE;
}

static struct value *
find_value(const struct settings *settings, const char *name)
{
	size_t i;

	for (i = 0; i < settings->count; i++)
		if (strcmp(settings->values[i].option->name, name) == 0)
			return &settings->values[i];
	return NULL;
}

static int
parse_boolean(const char *text, int64_t *number, struct error *err)
{
	size_t i;

	for (i = 0; i < sizeof(booleans) / sizeof(booleans[0]); i++) {
		if (strcmp(text, booleans[i].word) == 0) {
			*number = booleans[i].value;
			return 0;
		}
	}
	return error_set(err, ERROR_INVALID, "\"%s\" is neither on nor off", text);
}

static int
check_bounds(const struct option *option, const char *text, int64_t number, struct error *err)
{
	char low[NUMBER_TEXT_MAX], high[NUMBER_TEXT_MAX];

	if (number >= option->min && number <= option->max)
		return 0;
	if (option->type == OPTION_DURATION)
		return error_set(err, ERROR_INVALID, "%s is not between %s and %s", text,
		    number_format_duration(low, option->min),
		    number_format_duration(high, option->max));
	return error_set(err, ERROR_INVALID, "%s is not between %s and %s", text,
	    number_format_size(low, option->min), number_format_size(high, option->max));
}

static int
parse_number(const struct option *option, const char *text, int64_t *number, struct error *err)
{
	switch (option->type) {
	case OPTION_BOOLEAN:
		return parse_boolean(text, number, err);
	case OPTION_DURATION:
		if (number_parse_duration(text, number, err) != 0)
			return -1;
		return check_bounds(option, text, *number, err);
	case OPTION_SIZE:
		if (number_parse_size(text, number, err) != 0)
			return -1;
		return check_bounds(option, text, *number, err);
	default:
		return number_parse(text, option->min, option->max, number, err);
	}
}

/* Is word one of the words of list, which are parted by single spaces? */
static bool
has_word(const char *list, const char *word)
{
	const char *at;
	size_t length;

	length = strlen(word);
	if (strchr(word, ' ') != NULL)
		return false;
	for (at = list; length > 0 && (at = strstr(at, word)) != NULL; at += length)
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
			return true;
	return false;
}

static int
check_text(const struct option *option, const char *text, struct error *err)
{
	const char *equals;

	if (option->type == OPTION_CHOICE && !has_word(option->choices, text))
		return error_set(
		    err, ERROR_INVALID, "\"%s\" is none of: %s", text, option->choices);
	if (option->type == OPTION_PAIRS) {
		equals = strchr(text, '=');
		if (equals == NULL || equals == text)
			return error_set(
			    err, ERROR_INVALID, "\"%s\" is not of the form NAME=VALUE", text);
	}
	if (*text == '\0')
		return error_set(err, ERROR_INVALID, "there is no value");
	return 0;
}

static void
free_value(struct value *value)
{
	size_t i;

	for (i = 0; i < value->entries; i++)
		memory_text_wipe(value->list[i]);
	memory_free(value->list);
	memory_text_wipe(value->text);
	value->list = memory_zeroed(1, sizeof(*value->list));
	value->text = NULL;
	value->number = 0;
	value->entries = 0;
	value->is_set = false;
}

static int
add_entry(struct value *value, const char *text, struct error *err)
{
	if (check_text(value->option, text, err) != 0)
		return -1;
	if (!value->is_set)
		free_value(value); /* the default */
	if (value->entries == VALUE_ENTRIES_MAX)
		return error_set(err, ERROR_TOO_LARGE, "more than %d entries", VALUE_ENTRIES_MAX);
	value->list = memory_list_add(value->list, value->entries, text);
	value->entries++;
	value->is_set = true;
	return 0;
}

/* No entries at all, not even those of the default. */
static int
set_empty(struct value *value)
{
	free_value(value);
	value->is_set = true;
	return 0;
}

/* Adds each word of a line to a list. */
static int
add_words(struct value *value, const char *text, struct error *err)
{
	const char *end;
	char *word;
	int result;

	do {
		text += strspn(text, " \t");
		end = text + strcspn(text, " \t");
		word = memory_text_bounded(text, (size_t)(end - text));
		result = add_entry(value, word, err);
		memory_free(word);
		text = end + strspn(end, " \t");
	} while (result == 0 && *text != '\0');
	return result;
}

/* Gives the value its default; a default that does not parse is a mistake in the table. */
static void
set_standard(struct value *value)
{
	struct error err;

	if (value->option->standard == NULL)
		return;
	if (is_number(value->option)) {
		if (parse_number(value->option, value->option->standard, &value->number, &err) != 0)
			log_fatal("option %s: default: %s", value->option->name, err.message);
	} else if (option_is_list(value->option)) {
		if (add_words(value, value->option->standard, &err) != 0)
			log_fatal("option %s: default: %s", value->option->name, err.message);
		value->is_set = false;
	} else {
		value->text = memory_text(value->option->standard);
	}
}

struct settings *
settings_new(const struct option *const *tables)
{
	const struct option *option;
	struct settings *settings;
	struct value *value;
	size_t i;

	settings = memory_zeroed(1, sizeof(*settings));
	for (i = 0; tables[i] != NULL; i++) {
		for (option = tables[i]; option->name != NULL; option++) {
			if (find_value(settings, option->name) != NULL)
				continue; /* two drivers may have an option in common */
			settings->values = memory_resize(
			    settings->values, settings->count + 1, sizeof(*value));
			value = &settings->values[settings->count++];
			memset(value, 0, sizeof(*value));
			value->option = option;
			value->list = memory_zeroed(1, sizeof(*value->list));
			set_standard(value);
		}
	}
	return settings;
}

void
settings_free(struct settings *settings)
{
	size_t i;

	if (settings == NULL)
		return;
	for (i = 0; i < settings->count; i++) {
		free_value(&settings->values[i]);
		memory_free(settings->values[i].list);
	}
	memory_free(settings->values);
	memory_free(settings);
}

const struct option *
settings_option(const struct settings *settings, const char *name)
{
	struct value *value;

	value = find_value(settings, name);
	return value == NULL ? NULL : value->option;
}

int
settings_each(const struct settings *settings,
    int (*visit)(void *argument, const struct option *option), void *argument)
{
	size_t i;
	int result;

	for (i = 0; i < settings->count; i++) {
		result = visit(argument, settings->values[i].option);
		if (result != 0)
			return result;
	}
	return 0;
}

int
settings_set(struct settings *settings, const char *name, const char *text, struct error *err)
{
	struct value *value;
	int64_t number;

	value = find_value(settings, name);
	if (value == NULL)
		return error_set(err, ERROR_NOT_FOUND, "unknown option \"%s\"", name);
	if (option_is_list(value->option) && *text == '\0')
		return set_empty(value);
	if (value->option->type == OPTION_LIST)
		return add_words(value, text, err);
	if (option_is_list(value->option))
		return add_entry(value, text, err);
	number = 0;
	if (is_number(value->option)) {
		if (parse_number(value->option, text, &number, err) != 0)
			return -1;
	} else if (check_text(value->option, text, err) != 0) {
		return -1;
	}
	free_value(value);
	value->is_set = true;
	value->number = number;
	value->text = memory_text(text);
	return 0;
}

/* A value that was set under the same option, as it was checked then. */
static void
copy_value(struct value *value, const struct value *from)
{
	free_value(value);
	memory_free(value->list);
	value->list = memory_list(from->list);
	value->entries = from->entries;
	value->text = from->text == NULL ? NULL : memory_text(from->text);
	value->number = from->number;
	value->is_set = true;
}

void
settings_inherit(struct settings *settings, const struct settings *base)
{
	const struct value *from;
	size_t i;

	for (i = 0; i < settings->count; i++) {
		from = find_value(base, settings->values[i].option->name);
		if (from != NULL && from->is_set && !settings->values[i].is_set &&
		    from->option == settings->values[i].option)
			copy_value(&settings->values[i], from);
	}
}

static struct value *
require_value(const struct settings *settings, const char *name)
{
	struct value *value;

	value = find_value(settings, name);
	if (value == NULL)
		log_fatal("no such option in the tables: %s", name);
	return value;
}

bool
settings_has(const struct settings *settings, const char *name)
{
	return require_value(settings, name)->is_set;
}

const char *
settings_text(const struct settings *settings, const char *name)
{
	struct value *value;

	value = require_value(settings, name);
	if (is_number(value->option) || option_is_list(value->option))
		log_fatal("option %s is not a text", name);
	return value->text;
}

bool
settings_boolean(const struct settings *settings, const char *name)
{
	return settings_number(settings, name) != 0;
}

int64_t
settings_number(const struct settings *settings, const char *name)
{
	struct value *value;

	value = require_value(settings, name);
	if (!is_number(value->option))
		log_fatal("option %s is not a number", name);
	return value->number;
}

char *const *
settings_list(const struct settings *settings, const char *name)
{
	struct value *value;

	value = require_value(settings, name);
	if (!option_is_list(value->option))
		log_fatal("option %s is not a list", name);
	return value->list;
}

void
settings_put(struct message *message, const struct settings *settings)
{
	const struct value *value;
	uint32_t count;
	size_t i, entry;

	count = 0;
	for (i = 0; i < settings->count; i++)
		if (settings->values[i].is_set)
			count += settings->values[i].entries > 1
				     ? (uint32_t)settings->values[i].entries
				     : 1;
	message_put_u32(message, count);
	for (i = 0; i < settings->count; i++) {
		value = &settings->values[i];
		if (!value->is_set)
			continue;
		if (value->entries == 0) {
			message_put_text(message, value->option->name);
			message_put_text(message, option_is_list(value->option) ? "" : value->text);
		}
		for (entry = 0; entry < value->entries; entry++) {
			message_put_text(message, value->option->name);
			message_put_text(message, value->list[entry]);
		}
	}
}

/* One name and text of a message; an entry of a list is added as it is, not split again. */
static int
get_value(struct settings *settings, const char *name, const char *text, struct error *err)
{
	struct value *value;

	if (name == NULL || text == NULL)
		return error_set(err, ERROR_INVALID, "a setting without name or value");
	value = find_value(settings, name);
	if (value != NULL && option_is_list(value->option) && *text != '\0')
		return add_entry(value, text, err);
	return settings_set(settings, name, text, err);
}

int
settings_get(struct message *message, struct settings *settings, struct error *err)
{
	char *name, *text;
	uint32_t count;
	int result;

	result = 0;
	for (count = message_get_u32(message); count > 0 && result == 0; count--) {
		name = message_get_text(message);
		text = message_get_text(message);
		result = get_value(settings, name, text, err);
		memory_free(name);
		memory_text_wipe(text);
	}
	return result;
}

static char *
print_number(const struct value *value)
{
	char text[NUMBER_TEXT_MAX];

	switch (value->option->type) {
	case OPTION_BOOLEAN:
		return memory_text(value->number != 0 ? "on" : "off");
	case OPTION_DURATION:
		return memory_text(number_format_duration(text, value->number));
	case OPTION_SIZE:
		return memory_text(number_format_size(text, value->number));
	default:
		return memory_text_format("%" PRId64, value->number);
	}
}

char *
settings_print(const struct settings *settings, const struct option *option, size_t index)
{
	const struct value *value;

	value = require_value(settings, option->name);
	if (option_is_list(option) && index == 0 && value->is_set && value->entries == 0)
		return memory_text("");
	if (option_is_list(option))
		return index < value->entries ? memory_text(value->list[index]) : NULL;
	if (index > 0 || (!value->is_set && option->standard == NULL))
		return NULL;
	if (is_number(option))
		return print_number(value);
	return memory_text(option->type == OPTION_SECRET ? "********" : value->text);
}
