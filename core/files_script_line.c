/* SPDX-License-Identifier: ISC */
/* Request lines: fields with one blank between, texts escaped so that they hold none. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/file_glob.h"
#include "core/files_script.h"

#define LINE_MAX_SIZE (512U * 1024U)
#define BILLION INT64_C(1000000000)
#define UMASK 022U
#define STANDARD_MODE 0777U

static void
put(struct buffer *line, const char *text)
{
	if (buffer_append_text(line, text) != 0)
		log_fatal("files: a request is too long");
}

static void
put_field(struct buffer *line, const char *text)
{
	put(line, " ");
	put(line, text);
}

static void
put_number(struct buffer *line, uint64_t value)
{
	char text[32];

	(void)snprintf(text, sizeof(text), " %" PRIu64, value);
	put(line, text);
}

/* "=" and the text, with what a shell or a terminal may take for something else as \0ooo. */
static void
put_text(struct buffer *line, const char *text)
{
	char escaped[8];

	put(line, " =");
	for (; *text != '\0'; text++) {
		if (*text > ' ' && *text < 127 && strchr("\\*?[", *text) == NULL) {
			escaped[0] = *text;
			escaped[1] = '\0';
		} else {
			(void)snprintf(escaped, sizeof(escaped), "\\0%03o", (unsigned char)*text);
		}
		put(line, escaped);
	}
}

/* The text as a pattern of find that matches nothing else. */
static void
put_literal_pattern(struct buffer *line, const char *text)
{
	struct buffer pattern;
	char *whole;

	buffer_init(&pattern, 2 * FILE_NAME_LENGTH_MAX + 2);
	for (; *text != '\0'; text++) {
		if (strchr("*?[\\", *text) != NULL)
			(void)buffer_append(&pattern, "\\", 1);
		(void)buffer_append(&pattern, text, 1);
	}
	whole = memory_text_bounded(buffer_data(&pattern), pattern.length);
	put_text(line, whole);
	memory_free(whole);
	buffer_free(&pattern);
}

static void
put_time(struct buffer *line, bool set, int64_t value)
{
	char text[48];
	int64_t seconds = value / BILLION, part = value % BILLION;

	if (!set) {
		put_field(line, "-");
		return;
	}
	if (part < 0) {
		seconds--;
		part += BILLION;
	}
	(void)snprintf(text, sizeof(text), " %" PRId64 ".%09" PRId64, seconds, part);
	put(line, text);
}

static void
put_mode(struct buffer *line, bool set, uint32_t mode)
{
	char text[16];

	(void)snprintf(text, sizeof(text), " %o", mode & 07777U);
	put(line, set ? text : " -");
}

static void
put_owner(struct buffer *line, const struct file_change *change)
{
	char text[32];

	(void)snprintf(text, sizeof(text), " %u:%u", change->user, change->group);
	put(line, (change->fields & FILE_CHANGE_OWNER) != 0 ? text : " -");
}

/* One letter a flag, "-" for none. */
static void
put_flags(struct buffer *line, unsigned flags)
{
	static const struct {
		unsigned flag;
		char letter;
	} letters[] = {
		{ FILE_RECURSIVE, 'r' },
		{ FILE_HIDDEN, 'h' },
		{ FILE_TRASH, 't' },
		{ FILE_OVERWRITE, 'o' },
		{ FILE_PARENTS, 'p' },
		{ FILE_CREATE, 'c' },
		{ FILE_EXCLUSIVE, 'x' },
		{ FILE_ONLY_DIRECTORY, 'd' },
		{ FILE_ONLY_FILE, 'f' },
		{ FILE_UNLESS_BUSY, 'b' },
	};
	char text[16];
	size_t i, length = 0;

	for (i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if ((flags & letters[i].flag) != 0)
			text[length++] = letters[i].letter;
	if (length == 0)
		text[length++] = '-';
	text[length] = '\0';
	put_field(line, text);
}

static void
put_follow(struct buffer *line, const struct file_request *request)
{
	put_field(line, (request->flags & FILE_FOLLOW) != 0 ? "follow" : "-");
}

static void
put_list(struct buffer *line, const struct file_request *request)
{
	char *pattern;
	size_t i;

	put_flags(line, request->flags);
	/* With a pattern only we know which entries count. */
	put_number(line, request->glob == NULL ? request->limit : 0);
	pattern = request->glob == NULL ? memory_text("*") : glob_last(request->glob);
	put_text(line, pattern);
	memory_free(pattern);
	for (i = 0; request->skip != NULL && request->skip[i] != NULL; i++)
		put_literal_pattern(line, request->skip[i]);
}

static void
put_setstat(struct buffer *line, const struct file_request *request)
{
	const struct file_change *change = &request->change;

	put_follow(line, request);
	if ((change->fields & FILE_CHANGE_SIZE) != 0)
		put_number(line, change->size);
	else
		put_field(line, "-");
	put_owner(line, change);
	put_mode(line, (change->fields & FILE_CHANGE_MODE) != 0, change->mode);
	put_time(line, (change->fields & FILE_CHANGE_TIMES) != 0, change->accessed);
	put_time(line, (change->fields & FILE_CHANGE_TIMES) != 0, change->modified);
}

static void
put_commit(struct buffer *line, const struct file_request *request, uint32_t upload, uint64_t size)
{
	const struct file_change *change = &request->change;

	put_number(line, upload);
	put_number(line, size);
	put_flags(line, request->flags);
	put_mode(line, (change->fields & FILE_CHANGE_MODE) != 0, change->mode);
	put_time(line, (change->fields & FILE_CHANGE_TIMES) != 0, change->accessed);
	put_time(line, (change->fields & FILE_CHANGE_TIMES) != 0, change->modified);
	put_owner(line, change);
}

static void
put_names(struct buffer *line, const struct file_request *request)
{
	uint32_t i;

	put_number(line, request->user_count);
	for (i = 0; i < request->number_count; i++)
		put_number(line, request->numbers[i]);
}

static const char *const words[FILE_VERBS] = {
	[FILE_RESOLVE] = "resolve",
	[FILE_STAT] = "stat",
	[FILE_LIST] = "list",
	[FILE_OPEN] = "open",
	[FILE_EDIT] = "edit",
	[FILE_COMMIT] = "put",
	[FILE_MKDIR] = "mkdir",
	[FILE_REMOVE] = "remove",
	[FILE_RENAME] = "rename",
	[FILE_SYMLINK] = "symlink",
	[FILE_READLINK] = "readlink",
	[FILE_LINK] = "link",
	[FILE_SETSTAT] = "setstat",
	[FILE_STATVFS] = "statvfs",
	[FILE_COPY] = "copy",
	[FILE_HASH] = "hash",
	[FILE_NAMES] = "names",
};

/* What comes after the verb and its paths. */
static void
put_rest(struct buffer *line, const struct file_request *request, uint32_t upload, uint64_t size,
    uint64_t limit)
{
	uint32_t fields = request->change.fields, mode;

	mode = (fields & FILE_CHANGE_MODE) != 0 ? request->change.mode : STANDARD_MODE;
	switch (request->verb) {
	case FILE_STAT:
		put_follow(line, request);
		break;
	case FILE_LIST:
		put_list(line, request);
		break;
	case FILE_OPEN:
		put_number(line, limit);
		put_number(line, FILES_PIECE);
		break;
	case FILE_COMMIT:
		put_commit(line, request, upload, size);
		break;
	case FILE_MKDIR:
		put_mode(line, true, mode & ~UMASK);
		put_flags(line, request->flags);
		break;
	case FILE_SETSTAT:
		put_setstat(line, request);
		break;
	case FILE_COPY:
		put_flags(line, request->flags);
		put_mode(line, (fields & FILE_CHANGE_MODE) != 0, request->change.mode);
		break;
	case FILE_HASH:
		put_field(line, request->algorithm);
		put_number(line, request->offset);
		put_number(line, request->size);
		put_number(line, request->block);
		break;
	case FILE_NAMES:
		put_names(line, request);
		break;
	case FILE_EDIT:
	case FILE_REMOVE:
	case FILE_RENAME:
	case FILE_LINK:
		put_flags(line, request->flags);
		break;
	default:
		break;
	}
}

char *
files_script_line(uint32_t number, const struct file_request *request, uint32_t upload,
    uint64_t size, uint64_t limit)
{
	struct buffer line;
	char *text;

	buffer_init(&line, LINE_MAX_SIZE);
	(void)buffer_append_format(&line, "%u %s", number, words[request->verb]);
	if (request->path != NULL && request->verb != FILE_NAMES)
		put_text(&line, request->path);
	if (request->other != NULL)
		put_text(&line, request->other);
	put_rest(&line, request, upload, size, limit);
	text = memory_text_bounded(buffer_data(&line), line.length);
	buffer_free(&line);
	return text;
}

char *
files_script_get_line(uint32_t number, const char *path, uint64_t offset, uint64_t size,
    const struct file_attributes *attributes)
{
	struct buffer line;
	char *text;

	buffer_init(&line, LINE_MAX_SIZE);
	(void)buffer_append_format(&line, "%u get", number);
	put_text(&line, path);
	put_number(&line, offset);
	put_number(&line, size);
	put_number(&line, attributes->device);
	put_number(&line, attributes->inode);
	text = memory_text_bounded(buffer_data(&line), line.length);
	buffer_free(&line);
	return text;
}
