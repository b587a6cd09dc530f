/* SPDX-License-Identifier: ISC */
/*
 * Results for people. What the table says of a result's fields is enough for most: lists of objects
 * are tables, lists of paths are paths under a heading, the rest is a line each.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "core/base/base64.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/base/utf8.h"
#include "gateway/cli.h"
#include "gateway/operation_table.h"
#include "gateway/rpc_json.h"

#define COLUMNS_MAX 12

void
cli_put_text(FILE *file, const char *text, size_t size)
{
	size_t length, i;

	for (i = 0; i < size; i += length) {
		length = utf8_sequence(text + i, size - i);
		/* C1 controls are two bytes of UTF-8 that begin with 0xc2. */
		if (length == 0 || (unsigned char)text[i] < ' ' || text[i] == 0x7f ||
		    (length == 2 && (unsigned char)text[i] == 0xc2 &&
			(unsigned char)text[i + 1] < 0xa0)) {
			(void)fprintf(file, "\\x%02x", (unsigned char)text[i]);
			length = 1;
			continue;
		}
		(void)fwrite(text + i, 1, length, file);
	}
}

void
cli_show_progress(uint64_t done, uint64_t total, bool last)
{
	static time_t shown;
	char is[NUMBER_TEXT_MAX], all[NUMBER_TEXT_MAX];
	unsigned percent, i;

	if (!isatty(STDERR_FILENO) || (!last && time(NULL) == shown))
		return;
	shown = time(NULL);
	if (total == 0) {
		(void)fprintf(stderr, "\r%s ", number_describe_size(is, (int64_t)done));
	} else {
		percent = (unsigned)(done >= total ? 100 : done * 100 / total);
		(void)fputs("\r[", stderr);
		for (i = 0; i < 25; i++)
			(void)fputc(i * 4 < percent ? '#' : ' ', stderr);
		(void)fprintf(stderr, "] %3u%% %s of %s ", percent,
		    number_describe_size(is, (int64_t)done),
		    number_describe_size(all, (int64_t)total));
	}
	if (last)
		(void)fputc('\n', stderr);
}

static void
format_time(char *out, size_t size, int64_t seconds)
{
	time_t when = (time_t)seconds;
	struct tm local;

	if (localtime_r(&when, &local) == NULL ||
	    strftime(out, size, "%Y-%m-%d %H:%M:%S", &local) == 0)
		out[0] = '\0';
}

/* Is it a time? The table has no type of its own for what people read as one. */
static bool
is_time(const char *name)
{
	static const char *const names[] = { "created", "started", "modified", "since",
		"last_used" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static char *
pairs_text(struct json_object *value)
{
	struct buffer text;
	char *result;

	buffer_init(&text, 65536);
	json_object_object_foreach(value, key, entry)
	{
		if (text.length > 0)
			(void)buffer_append_text(&text, " ");
		(void)buffer_append_text(&text, key);
		(void)buffer_append_text(&text, "=");
		(void)buffer_append_text(&text, json_object_get_string(entry));
	}
	result = memory_text_bounded(buffer_data(&text), text.length);
	buffer_free(&text);
	return result;
}

static char *
list_text(struct json_object *value)
{
	struct buffer text;
	char *result;
	size_t i;

	buffer_init(&text, 65536);
	for (i = 0; i < (size_t)json_object_array_length(value); i++)
		(void)buffer_append_format(&text, "%s%s", i == 0 ? "" : " ",
		    json_object_get_string(json_object_array_get_idx(value, i)));
	result = memory_text_bounded(buffer_data(&text), text.length);
	buffer_free(&text);
	return result;
}

/* A field as one line; new. Bytes that are no text are shown with their escapes. */
static char *
field_text(const struct operation_field *field, struct json_object *object)
{
	char text[NUMBER_TEXT_MAX];
	struct json_object *value;
	size_t size;
	char *bytes;

	bytes = field->type == OPERATION_PATH || field->type == OPERATION_BYTES
		    ? rpc_json_get_bytes(object, field->name, &size)
		    : NULL;
	if (bytes != NULL)
		return bytes;
	if (!json_object_object_get_ex(object, field->name, &value) || value == NULL)
		return memory_text("");
	if (is_time(field->name)) {
		format_time(text, sizeof(text), json_object_get_int64(value));
		return memory_text(text);
	}
	switch (field->type) {
	case OPERATION_BOOLEAN:
		return memory_text(json_object_get_boolean(value) ? "yes" : "no");
	case OPERATION_SIZE:
		return memory_text(number_describe_size(text, json_object_get_int64(value)));
	case OPERATION_DURATION:
		return memory_text(number_format_duration(text, json_object_get_int64(value)));
	case OPERATION_PAIRS:
		return pairs_text(value);
	case OPERATION_LIST:
		return list_text(value);
	default:
		return memory_text(json_object_get_string(value));
	}
}

/* The places that a text takes on a terminal, close enough for columns: one each character. */
static int
text_width(const char *text)
{
	int width;

	for (width = 0; *text != '\0'; text++)
		if (((unsigned char)*text & 0xc0) != 0x80)
			width += (unsigned char)*text < ' ' ? 4 : 1;
	return width;
}

static void
put_cell(const char *text, int width, bool right)
{
	int pad = width - text_width(text);

	if (right && pad > 0)
		(void)printf("%*s", pad, "");
	cli_put_text(stdout, text, strlen(text));
	if (!right && pad > 0)
		(void)printf("%*s", pad, "");
}

static bool
is_right(const struct operation_field *field)
{
	return (field->type == OPERATION_NUMBER && !is_time(field->name)) ||
	       field->type == OPERATION_SIZE || field->type == OPERATION_DURATION;
}

/* Lists stay out of tables: show has them. */
static unsigned
find_columns(
    const struct operation_field *fields, const struct operation_field *columns[COLUMNS_MAX])
{
	unsigned count;

	for (count = 0; fields->name != NULL && count < COLUMNS_MAX; fields++)
		if (fields->type != OPERATION_LIST && fields->type != OPERATION_PATHS)
			columns[count++] = fields;
	return count;
}

static void
show_row(const struct operation_field *const *columns, unsigned count, const int *widths,
    struct json_object *object)
{
	unsigned i;
	char *text;

	for (i = 0; i < count; i++) {
		text = object == NULL ? memory_text(columns[i]->name)
				      : field_text(columns[i], object);
		/* The last column is not filled up. */
		put_cell(text, i + 1 < count || is_right(columns[i]) ? widths[i] : 0,
		    is_right(columns[i]));
		(void)fputs(i + 1 < count ? "  " : "\n", stdout);
		memory_free(text);
	}
}

void
cli_show_table(
    const struct cli *cli, const struct operation_field *fields, struct json_object *list)
{
	const struct operation_field *columns[COLUMNS_MAX];
	int widths[COLUMNS_MAX], width;
	unsigned i, count;
	size_t row;
	char *text;

	if (json_object_array_length(list) == 0)
		return;
	count = find_columns(fields, columns);
	for (i = 0; i < count; i++) {
		widths[i] = text_width(columns[i]->name);
		for (row = 0; row < (size_t)json_object_array_length(list); row++) {
			text = field_text(columns[i], json_object_array_get_idx(list, row));
			width = text_width(text);
			if (width > widths[i])
				widths[i] = width;
			memory_free(text);
		}
	}
	if (cli->colours)
		(void)fputs("\033[1m", stdout);
	show_row(columns, count, widths, NULL);
	if (cli->colours)
		(void)fputs("\033[m", stdout);
	for (row = 0; row < (size_t)json_object_array_length(list); row++)
		show_row(columns, count, widths, json_object_array_get_idx(list, row));
}

static void
show_paths(const struct operation_field *field, struct json_object *list)
{
	size_t i, size;
	char *path;

	(void)printf("%s: %zu\n", field->name, (size_t)json_object_array_length(list));
	for (i = 0; i < (size_t)json_object_array_length(list); i++) {
		path = rpc_json_get_path(json_object_array_get_idx(list, i), &size);
		if (path == NULL)
			continue;
		(void)fputs("  ", stdout);
		cli_put_text(stdout, path, size);
		(void)fputc('\n', stdout);
		memory_free(path);
	}
}

void
cli_show_field(
    const struct cli *cli, const struct operation_field *field, struct json_object *result)
{
	struct json_object *value;
	char *text;

	value = NULL;
	(void)json_object_object_get_ex(result, field->name, &value);
	if (field->type == OPERATION_OBJECTS && value != NULL) {
		cli_show_table(cli, field->fields, value);
		return;
	}
	if (field->type == OPERATION_PATHS && value != NULL) {
		show_paths(field, value);
		return;
	}
	text = field_text(field, result);
	if (*text != '\0') {
		(void)printf("%s: ", field->name);
		cli_put_text(stdout, text, strlen(text));
		(void)fputc('\n', stdout);
	}
	memory_free(text);
}

/* Bytes as they are: what a command or a file says is not ours to change. */
static void
put_bytes(FILE *file, struct json_object *result, const char *name)
{
	size_t size;
	char *data;

	data = rpc_json_get_bytes(result, name, &size);
	if (data != NULL)
		(void)fwrite(data, 1, size, file);
	memory_free(data);
}

static void
show_command(struct json_object *result)
{
	put_bytes(stdout, result, "stdout");
	(void)fflush(stdout);
	put_bytes(stderr, result, "stderr");
	if (rpc_json_has(result, "note"))
		(void)fprintf(stderr, "rws: %s\n", rpc_json_get_text(result, "note", ""));
	if (rpc_json_get_boolean(result, "timed_out", false))
		(void)fputs("rws: stopped: it ran longer than its timeout\n", stderr);
	if (rpc_json_has(result, "job"))
		(void)fprintf(
		    stderr, "rws: job %" PRId64 "\n", rpc_json_get_number(result, "job", 0));
}

static void
show_matches(const struct cli *cli, struct json_object *matches)
{
	struct json_object *match;
	size_t i, size;
	char *path, *text;

	for (i = 0; i < (size_t)json_object_array_length(matches); i++) {
		match = json_object_array_get_idx(matches, i);
		path = rpc_json_get_bytes(match, "path", &size);
		(void)fputs(cli->colours ? "\033[35m" : "", stdout);
		cli_put_text(stdout, path == NULL ? "" : path, path == NULL ? 0 : size);
		(void)printf("%s:%" PRId64 ":", cli->colours ? "\033[m" : "",
		    rpc_json_get_number(match, "line", 0));
		text = rpc_json_get_bytes(match, "text", &size);
		cli_put_text(stdout, text == NULL ? "" : text, text == NULL ? 0 : size);
		(void)fputc('\n', stdout);
		memory_free(path);
		memory_free(text);
	}
}

void
cli_show(const struct cli *cli, struct json_object *result)
{
	const struct operation_field *field;
	const char *name = cli->operation->name;
	struct json_object *value;

	if (strcmp(name, "exec") == 0 || strcmp(name, "attach") == 0 || strcmp(name, "logs") == 0) {
		show_command(result);
	} else if (strcmp(name, "read") == 0) {
		put_bytes(stdout, result, "content");
	} else if (strcmp(name, "search") == 0 &&
		   json_object_object_get_ex(result, "matches", &value)) {
		show_matches(cli, value);
	} else if (strcmp(name, "snapshot.export") != 0) {
		for (field = cli->operation->result; field->name != NULL; field++)
			if (strcmp(field->name, "truncated") != 0)
				cli_show_field(cli, field, result);
	}
	if (strcmp(name, "exec") != 0 && rpc_json_get_boolean(result, "truncated", false))
		(void)fprintf(stderr, "rws: %s\n",
		    strcmp(name, "read") == 0 ? "this is a part of the file" : "there is more");
}
