/* SPDX-License-Identifier: ISC */
/* Reading the script's output. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/files_reply.h"

#define LINE_MAX_SIZE 1024U
#define FAILURE_MAX 8192U
#define FIELDS_MAX 12
#define BILLION INT64_C(1000000000)

/* A line taken apart at its blanks. */
struct fields {
	char *values[FIELDS_MAX];
	size_t count;
};

void
files_reply_init(struct files_reply_reader *reader)
{
	memset(reader, 0, sizeof(*reader));
	buffer_init(&reader->line, FAILURE_MAX);
}

void
files_reply_free(struct files_reply_reader *reader)
{
	buffer_free(&reader->line);
}

static int
part_fields(char *text, struct fields *fields)
{
	fields->count = 0;
	for (;;) {
		if (fields->count == FIELDS_MAX || *text == '\0')
			return -1;
		fields->values[fields->count++] = text;
		text += strcspn(text, " ");
		if (*text == '\0')
			return 0;
		*text++ = '\0';
	}
}

static int
get_number(const char *text, unsigned base, uint64_t max, uint64_t *value)
{
	unsigned digit;

	*value = 0;
	if (*text == '\0')
		return -1;
	for (; *text != '\0'; text++) {
		if (*text >= '0' && *text <= '9')
			digit = (unsigned)(*text - '0');
		else if (*text >= 'a' && *text <= 'f')
			digit = (unsigned)(*text - 'a') + 10;
		else
			return -1;
		if (digit >= base || *value > (max - digit) / base)
			return -1;
		*value = *value * base + digit;
	}
	return 0;
}

static int
get_u32(const char *text, unsigned base, uint32_t *value)
{
	uint64_t wide;

	if (get_number(text, base, UINT32_MAX, &wide) != 0)
		return -1;
	*value = (uint32_t)wide;
	return 0;
}

/*
 * Seconds with a fraction, maybe before 1970, as nanoseconds. Before 1970 stat says -5.5 and find,
 * of the same time, -6.5: the second below it, and half a second on.
 */
static int
get_time(const char *text, bool from_find, int64_t *value)
{
	uint64_t whole, part = 0;
	const char *dot;
	char *seconds;
	int digits, result;
	bool negative;

	negative = *text == '-';
	text += negative;
	dot = strchr(text, '.');
	seconds = memory_text_bounded(text, dot == NULL ? strlen(text) : (size_t)(dot - text));
	result = get_number(seconds, 10, INT64_MAX / BILLION / 2, &whole);
	memory_free(seconds);
	if (result != 0)
		return -1;
	for (digits = 0; digits < 9; digits++) {
		part *= 10;
		if (dot != NULL && dot[1] >= '0' && dot[1] <= '9')
			part += (uint64_t)(*++dot - '0');
	}
	*value = (int64_t)whole * BILLION;
	if (negative)
		*value = from_find ? (int64_t)part - *value : -*value - (int64_t)part;
	else
		*value += (int64_t)part;
	return 0;
}

/* USER GROUP LINKS SIZE DEVICE INODE ACCESSED MODIFIED */
static int
get_attributes(char *const *fields, bool from_find, struct file_attributes *attributes)
{
	return get_u32(fields[0], 10, &attributes->user) != 0 ||
		       get_u32(fields[1], 10, &attributes->group) != 0 ||
		       get_u32(fields[2], 10, &attributes->links) != 0 ||
		       get_number(fields[3], 10, INT64_MAX, &attributes->size) != 0 ||
		       get_number(fields[4], 10, UINT64_MAX, &attributes->device) != 0 ||
		       get_number(fields[5], 10, UINT64_MAX, &attributes->inode) != 0 ||
		       get_time(fields[6], from_find, &attributes->accessed) != 0 ||
		       get_time(fields[7], from_find, &attributes->modified) != 0
		   ? -1
		   : 0;
}

static int
get_volume(char *const *fields, struct file_volume *volume)
{
	/* What an unprivileged user may have of the file numbers, stat does not say. */
	uint64_t *const values[] = { &volume->block_size, &volume->fragment_size, &volume->blocks,
		&volume->blocks_free, &volume->blocks_available, &volume->files,
		&volume->files_free };
	size_t i;

	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (get_number(fields[i], 10, UINT64_MAX, values[i]) != 0)
			return -1;
	volume->files_available = volume->files_free;
	return get_number(fields[7], 16, UINT64_MAX, &volume->id) != 0 ||
		       get_number(fields[8], 10, UINT32_MAX, &volume->name_max) != 0
		   ? -1
		   : 0;
}

static int
read_line(char *text, struct files_reply_line *line)
{
	struct fields fields;
	const char *word;

	memset(line, 0, sizeof(*line));
	if (part_fields(text, &fields) != 0 || fields.count < 2 ||
	    get_u32(fields.values[1], 10, &line->number) != 0)
		return -1;
	word = fields.values[0];
	if (strcmp(word, "ok") == 0 && fields.count == 2) {
		line->kind = FILES_REPLY_OK;
		return 0;
	}
	if (strcmp(word, "fail") == 0 && fields.count == 4) {
		line->kind = FILES_REPLY_FAIL;
		line->failure.code = error_code_parse(fields.values[2]);
		return get_number(fields.values[3], 10, FAILURE_MAX - 1, &line->size);
	}
	if (strcmp(word, "attr") == 0 && fields.count == 11) {
		line->kind = FILES_REPLY_ATTRIBUTES;
		if (get_u32(fields.values[2], 16, &line->attributes.mode) != 0)
			return -1;
		return get_attributes(fields.values + 3, false, &line->attributes);
	}
	if (strcmp(word, "vfs") == 0 && fields.count == 11) {
		line->kind = FILES_REPLY_VOLUME;
		return get_volume(fields.values + 2, &line->volume);
	}
	line->kind = FILES_REPLY_DATA;
	return strcmp(word, "data") == 0 && fields.count == 3
		   ? get_number(fields.values[2], 10, INT64_MAX, &line->size)
		   : -1;
}

/* The code that a complaint of a program stands for: the script runs them in the C locale. */
static enum error_code
read_complaint(const char *text)
{
	static const struct {
		const char *text;
		enum error_code code;
	} complaints[] = {
		{ "No such file or directory", ERROR_NOT_FOUND },
		{ "File exists", ERROR_EXISTS },
		{ "Directory not empty", ERROR_NOT_EMPTY },
		{ "Is a directory", ERROR_IS_DIRECTORY },
		{ "with non-directory", ERROR_IS_DIRECTORY },
		{ "Not a directory", ERROR_NOT_DIRECTORY },
		{ "with directory", ERROR_NOT_DIRECTORY },
		{ "Permission denied", ERROR_DENIED },
		{ "Operation not permitted", ERROR_DENIED },
		{ "Read-only file system", ERROR_DENIED },
		{ "File too large", ERROR_TOO_LARGE },
		{ "File name too long", ERROR_INVALID },
		{ "Invalid argument", ERROR_INVALID },
		{ "Too many levels of symbolic links", ERROR_INVALID },
		{ "Operation not supported", ERROR_UNSUPPORTED },
		{ "Invalid cross-device link", ERROR_UNSUPPORTED },
	};
	size_t i;

	for (i = 0; i < sizeof(complaints) / sizeof(complaints[0]); i++)
		if (strstr(text, complaints[i].text) != NULL)
			return complaints[i].code;
	return ERROR_UNAVAILABLE;
}

/* The text of a failure is whole. */
static int
end_failure(struct files_reply_reader *reader, const struct files_reply_events *events,
    void *argument, struct error *err)
{
	struct files_reply_line *line = &reader->current;
	enum error_code code = line->failure.code;
	char *text, *end;

	text = memory_text_bounded(buffer_data(&reader->line), reader->line.length);
	buffer_consume(&reader->line, reader->line.length);
	for (end = text + strlen(text); end > text && end[-1] == '\n';)
		*--end = '\0';
	error_set(&line->failure, code == ERROR_NONE ? read_complaint(text) : code, "%s", text);
	memory_free(text);
	return events->line(argument, line, err);
}

/* Takes bytes that follow a line; how many. */
static int
take_bytes(struct files_reply_reader *reader, const unsigned char *data, size_t size,
    const struct files_reply_events *events, void *argument, struct error *err)
{
	reader->left -= size;
	if (reader->current.kind == FILES_REPLY_DATA)
		return events->data(argument, reader->current.number, data, size, err);
	(void)buffer_append(&reader->line, data, size);
	return reader->left > 0 ? 0 : end_failure(reader, events, argument, err);
}

static int
end_line(struct files_reply_reader *reader, const struct files_reply_events *events, void *argument,
    struct error *err)
{
	char *text;
	int result;

	text = memory_text_bounded(buffer_data(&reader->line), reader->line.length);
	buffer_consume(&reader->line, reader->line.length);
	result = read_line(text, &reader->current);
	memory_free(text);
	if (result != 0)
		return error_set(err, ERROR_INVALID, "the script's reply makes no sense");
	reader->left = reader->current.size;
	if (reader->current.kind != FILES_REPLY_FAIL)
		return events->line(argument, &reader->current, err);
	return reader->left > 0 ? 0 : end_failure(reader, events, argument, err);
}

int
files_reply_feed(struct files_reply_reader *reader, const unsigned char *data, size_t size,
    const struct files_reply_events *events, void *argument, struct error *err)
{
	const unsigned char *end;
	size_t part;

	for (; size > 0; data += part, size -= part) {
		if (reader->left > 0) {
			part = reader->left < size ? (size_t)reader->left : size;
			if (take_bytes(reader, data, part, events, argument, err) != 0)
				return -1;
			continue;
		}
		end = memchr(data, '\n', size);
		part = end == NULL ? size : (size_t)(end - data);
		if (reader->line.length + part > LINE_MAX_SIZE)
			return error_set(err, ERROR_INVALID, "the script's reply is too long");
		(void)buffer_append(&reader->line, data, part);
		if (end == NULL)
			continue;
		part++;
		if (end_line(reader, events, argument, err) != 0)
			return -1;
	}
	return 0;
}

/* The letters of find's %y. */
static uint32_t
type_bits(char letter)
{
	static const char letters[] = "fdlpcbs";
	static const uint32_t bits[] = { S_IFREG, S_IFDIR, S_IFLNK, S_IFIFO, S_IFCHR, S_IFBLK,
		S_IFSOCK };
	const char *found;

	found = letter == '\0' ? NULL : strchr(letters, letter);
	return found == NULL ? 0 : bits[found - letters];
}

int
files_reply_entry(char *text, struct file_entry *entry, struct error *err)
{
	struct fields fields;
	uint32_t mode;
	char *end;

	memset(entry, 0, sizeof(*entry));
	end = strstr(text, "//");
	if (end == NULL || end == text || (size_t)(end - text) > FILE_PATH_MAX ||
	    part_fields(end + 2, &fields) != 0 || fields.count != 10 ||
	    get_u32(fields.values[1], 8, &mode) != 0 || mode > 07777 ||
	    get_attributes(fields.values + 2, true, &entry->attributes) != 0)
		return error_set(err, ERROR_INVALID, "the script's listing makes no sense");
	*end = '\0';
	entry->path = text;
	entry->attributes.mode = type_bits(fields.values[0][0]) | mode;
	return 0;
}
