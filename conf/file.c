/* SPDX-License-Identifier: ISC */
/* Takes the file apart line by line. What the names mean is not known here. */
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "conf/file.h"
#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/login.h"

static const char blanks[] = " \t\r";

/* What may follow a backslash inside quotes, and what it stands for. */
static const char escape_letters[] = "nrt\"\\";
static const char escape_values[] = "\n\r\t\"\\";

int
conf_file_blame(const struct conf_file *file, const struct conf_entry *entry, const char *reason,
    struct error *err)
{
	if (entry->line == 0)
		return error_set(err, ERROR_INVALID, "-o %s: %s", entry->name, reason);
	return error_set(
	    err, ERROR_INVALID, "%s:%u: %s: %s", file->path, entry->line, entry->name, reason);
}

/* Cuts blanks off both ends of a text, in place. */
static char *
trim(char *text)
{
	size_t length;

	text += strspn(text, blanks);
	for (length = strlen(text); length > 0 && strchr(blanks, text[length - 1]) != NULL;
	     length--)
		text[length - 1] = '\0';
	return text;
}

/* Takes a value out of its quotes, in place, when it has any. Returns what is wrong, or NULL. */
static const char *
unquote(char *text)
{
	const char *escape;
	char *in, *out;

	if (*text != '"')
		return NULL;
	out = text;
	for (in = text + 1; *in != '"'; in++) {
		if (*in == '\0')
			return "the closing quote is missing";
		if (*in != '\\') {
			*out++ = *in;
			continue;
		}
		in++;
		escape = *in == '\0' ? NULL : strchr(escape_letters, *in);
		if (escape == NULL)
			return "a backslash in quotes takes one of n r t \" \\";
		*out++ = escape_values[escape - escape_letters];
	}
	if (in[1] != '\0')
		return "there is text after the closing quote (quotes go around a whole value)";
	*out = '\0';
	return NULL;
}

static struct conf_entry *
add_entry(struct conf_block *block, const char *name, const char *text, unsigned line)
{
	struct conf_entry *entry;

	block->entries = memory_resize(block->entries, block->count + 1, sizeof(*block->entries));
	entry = &block->entries[block->count++];
	entry->name = memory_text(name);
	entry->text = memory_text(text);
	entry->line = line;
	return entry;
}

static struct conf_block *
find_block(const struct conf_file *file, const char *name)
{
	size_t i;

	for (i = 1; i < file->count; i++)
		if (strcmp(file->blocks[i].name, name) == 0)
			return &file->blocks[i];
	return NULL;
}

static void
add_block(struct conf_file *file, const char *name, unsigned line)
{
	struct conf_block *block;

	file->blocks = memory_resize(file->blocks, file->count + 1, sizeof(*file->blocks));
	block = &file->blocks[file->count++];
	memset(block, 0, sizeof(*block));
	block->name = name == NULL ? NULL : memory_text(name);
	block->line = line;
}

/* Takes "[login NAME]". */
static int
parse_header(struct conf_file *file, char *text, unsigned line, struct error *err)
{
	const struct conf_block *other;
	size_t length;
	char *name;

	length = strlen(text);
	if (text[length - 1] != ']')
		return error_set(
		    err, ERROR_INVALID, "%s:%u: the closing ] is missing", file->path, line);
	text[length - 1] = '\0';
	name = trim(text + 1);
	if (strncmp(name, "login", 5) != 0 || name[5] == '\0' || strchr(blanks, name[5]) == NULL)
		return error_set(err, ERROR_INVALID, "%s:%u: [%s]: a block is written [login NAME]",
		    file->path, line, name);
	name = trim(name + 5);
	if (!login_name_valid(name))
		return error_set(err, ERROR_INVALID,
		    "%s:%u: login %s: a name is 1 to %d of A-Z a-z 0-9 . _ -", file->path, line,
		    name, LOGIN_NAME_LENGTH);
	other = find_block(file, name);
	if (other != NULL)
		return error_set(err, ERROR_INVALID,
		    "%s:%u: login %s: there is one already, in line %u", file->path, line, name,
		    other->line);
	if (file->count > CONF_LOGINS_MAX)
		return error_set(err, ERROR_TOO_LARGE, "%s:%u: more than %u logins", file->path,
		    line, CONF_LOGINS_MAX);
	add_block(file, name, line);
	return 0;
}

/* Cuts "NAME = VALUE" in two, in place. Returns what is wrong, or NULL. */
static const char *
split(char *text, char **name, char **value)
{
	char *equals;

	*name = text;
	equals = strchr(text, '=');
	if (equals == NULL)
		return "an option is written NAME = VALUE";
	*equals = '\0';
	*name = trim(text);
	*value = trim(equals + 1);
	if (**name == '\0')
		return "there is no name before the =";
	return unquote(*value);
}

/* Takes one line, which it may change. */
static int
parse_line(struct conf_file *file, char *text, unsigned line, struct error *err)
{
	const char *wrong;
	char *name, *value;

	text = trim(text);
	if (*text == '\0' || *text == '#')
		return 0;
	if (*text == '[')
		return parse_header(file, text, line, err);
	wrong = split(text, &name, &value);
	if (wrong != NULL)
		return error_set(
		    err, ERROR_INVALID, "%s:%u: %.80s: %s", file->path, line, name, wrong);
	(void)add_entry(&file->blocks[file->count - 1], name, value, line);
	return 0;
}

static int
parse_text(struct conf_file *file, const char *text, size_t size, struct error *err)
{
	const char *end, *at;
	unsigned line;
	size_t length;
	char *copy;
	int result;

	result = 0;
	line = 1;
	for (at = text; at < text + size && result == 0; at = end + 1, line++) {
		end = memchr(at, '\n', (size_t)(text + size - at));
		if (end == NULL)
			end = text + size;
		length = (size_t)(end - at);
		if (length > CONF_LINE_MAX)
			return error_set(err, ERROR_TOO_LARGE, "%s:%u: the line is over %u bytes",
			    file->path, line, CONF_LINE_MAX);
		if (memchr(at, '\0', length) != NULL)
			return error_set(
			    err, ERROR_INVALID, "%s:%u: there is a NUL byte", file->path, line);
		copy = memory_text_bounded(at, length);
		result = parse_line(file, copy, line, err);
		explicit_bzero(copy, length);
		memory_free(copy);
	}
	return result;
}

int
conf_file_read(struct conf_file *file, const char *path, struct error *err)
{
	size_t size;
	char *text;
	int result;

	memset(file, 0, sizeof(*file));
	text = descriptor_read_file(AT_FDCWD, path, CONF_FILE_SIZE_MAX, &size, err);
	if (text == NULL)
		return -1;
	file->path = memory_text(path);
	add_block(file, NULL, 0);
	result = parse_text(file, text, size, err);
	explicit_bzero(text, size);
	memory_free(text);
	return result;
}

static void
free_entry(struct conf_entry *entry)
{
	memory_free(entry->name);
	memory_text_wipe(entry->text);
}

/* Forgets what the file said about a name; what -o said before stays. */
static void
drop_entries(struct conf_block *block, const char *name)
{
	size_t i, kept;

	for (i = kept = 0; i < block->count; i++) {
		if (block->entries[i].line != 0 && strcmp(block->entries[i].name, name) == 0)
			free_entry(&block->entries[i]);
		else
			block->entries[kept++] = block->entries[i];
	}
	block->count = kept;
}

int
conf_file_override(struct conf_file *file, const char *override, struct error *err)
{
	struct conf_block *block;
	char *copy, *name, *value, *dot;
	const char *wrong;
	int result;

	result = -1;
	copy = memory_text(override);
	wrong = split(copy, &name, &value);
	if (wrong != NULL) {
		error_set(err, ERROR_INVALID, "-o %.80s: %s", name, wrong);
		goto out;
	}
	block = &file->blocks[0];
	dot = strrchr(name, '.'); /* the last: a login's name may have dots, an option's has none */
	if (dot != NULL) {
		*dot = '\0';
		block = find_block(file, name);
		if (block == NULL) {
			error_set(err, ERROR_NOT_FOUND, "-o %s.%s: %s has no [login %s]", name,
			    dot + 1, file->path, name);
			goto out;
		}
		name = dot + 1;
	}
	drop_entries(block, name);
	(void)add_entry(block, name, value, 0);
	result = 0;
out:
	memory_text_wipe(copy);
	return result;
}

void
conf_file_free(struct conf_file *file)
{
	size_t i, entry;

	for (i = 0; i < file->count; i++) {
		for (entry = 0; entry < file->blocks[i].count; entry++)
			free_entry(&file->blocks[i].entries[entry]);
		memory_free(file->blocks[i].entries);
		memory_free(file->blocks[i].name);
	}
	memory_free(file->blocks);
	memory_free(file->path);
	memset(file, 0, sizeof(*file));
}

static bool
needs_quotes(const char *text)
{
	size_t length;

	length = strlen(text);
	if (length == 0 || *text == '"' || strpbrk(text, "\n\r") != NULL)
		return true;
	return strchr(blanks, text[0]) != NULL || strchr(blanks, text[length - 1]) != NULL;
}

char *
conf_file_quote(const char *text)
{
	struct buffer out;
	const char *value;
	char *quoted;

	if (!needs_quotes(text))
		return memory_text(text);
	buffer_init(&out, 2 * strlen(text) + 2);
	buffer_append_text(&out, "\"");
	for (; *text != '\0'; text++) {
		value = strchr(escape_values, *text);
		if (value != NULL)
			buffer_append_format(&out, "\\%c", escape_letters[value - escape_values]);
		else
			buffer_append(&out, text, 1);
	}
	buffer_append_text(&out, "\"");
	quoted = memory_text_bounded(buffer_data(&out), out.length);
	buffer_wipe(&out);
	return quoted;
}
