/* SPDX-License-Identifier: ISC */
/* SFTP packets: values in and out. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "gateway/sftp_packet.h"

#define BILLION INT64_C(1000000000)
/* Half a year: "ls -l" shows the time of what is younger, the year of what is older. */
#define RECENT (182 * 86400)

/* Section 5 */
enum {
	ATTRIBUTE_SIZE = 1,
	ATTRIBUTE_OWNER = 2,
	ATTRIBUTE_MODE = 4,
	ATTRIBUTE_TIMES = 8,
};
#define ATTRIBUTE_EXTENDED 0x80000000U

static uint64_t
get_number(struct sftp_input *input, size_t size)
{
	uint64_t value = 0;

	if (input->failed || input->left < size) {
		input->failed = true;
		return 0;
	}
	input->left -= size;
	while (size-- > 0)
		value = value << 8 | *input->at++;
	return value;
}

uint8_t
sftp_get_u8(struct sftp_input *input)
{
	return (uint8_t)get_number(input, 1);
}

uint32_t
sftp_get_u32(struct sftp_input *input)
{
	return (uint32_t)get_number(input, 4);
}

uint64_t
sftp_get_u64(struct sftp_input *input)
{
	return get_number(input, 8);
}

const unsigned char *
sftp_get_string(struct sftp_input *input, size_t *size)
{
	const unsigned char *data;

	*size = sftp_get_u32(input);
	if (input->failed || input->left < *size) {
		input->failed = true;
		*size = 0;
		return input->at;
	}
	data = input->at;
	input->at += *size;
	input->left -= *size;
	return data;
}

char *
sftp_get_text(struct sftp_input *input)
{
	const unsigned char *data;
	size_t size;

	data = sftp_get_string(input, &size);
	if (size > 0 && memchr(data, '\0', size) != NULL) {
		input->failed = true;
		size = 0;
	}
	return memory_text_bounded(data, size);
}

char *
sftp_get_path(struct sftp_input *input)
{
	char *path;

	path = sftp_get_text(input);
	if (*path != '\0')
		return path;
	memory_free(path);
	return memory_text(".");
}

void
sftp_get_change(struct sftp_input *input, struct file_change *change)
{
	uint32_t flags, count;
	size_t size;

	memset(change, 0, sizeof(*change));
	flags = sftp_get_u32(input);
	if ((flags & ATTRIBUTE_SIZE) != 0) {
		change->fields |= FILE_CHANGE_SIZE;
		change->size = sftp_get_u64(input);
	}
	if ((flags & ATTRIBUTE_OWNER) != 0) {
		change->fields |= FILE_CHANGE_OWNER;
		change->user = sftp_get_u32(input);
		change->group = sftp_get_u32(input);
	}
	if ((flags & ATTRIBUTE_MODE) != 0) {
		change->fields |= FILE_CHANGE_MODE;
		change->mode = sftp_get_u32(input) & 07777;
	}
	if ((flags & ATTRIBUTE_TIMES) != 0) {
		change->fields |= FILE_CHANGE_TIMES;
		change->accessed = sftp_get_u32(input) * BILLION;
		change->modified = sftp_get_u32(input) * BILLION;
	}
	count = (flags & ATTRIBUTE_EXTENDED) != 0 ? sftp_get_u32(input) : 0;
	while (count-- > 0 && !input->failed) {
		(void)sftp_get_string(input, &size);
		(void)sftp_get_string(input, &size);
	}
}

static void
put_number(struct buffer *output, uint64_t value, size_t size)
{
	unsigned char bytes[8];
	size_t i;

	for (i = size; i-- > 0; value >>= 8)
		bytes[i] = (unsigned char)value;
	if (buffer_append(output, bytes, size) != 0)
		log_fatal("sftp: a reply has no room");
}

static void
put_u8(struct buffer *output, uint8_t value)
{
	put_number(output, value, 1);
}

void
sftp_put_u32(struct buffer *output, uint32_t value)
{
	put_number(output, value, 4);
}

void
sftp_put_u64(struct buffer *output, uint64_t value)
{
	put_number(output, value, 8);
}

void
sftp_put_string(struct buffer *output, const void *data, size_t size)
{
	sftp_put_u32(output, (uint32_t)size);
	if (size > 0 && buffer_append(output, data, size) != 0)
		log_fatal("sftp: a reply has no room");
}

void
sftp_put_text(struct buffer *output, const char *text)
{
	sftp_put_string(output, text, strlen(text));
}

size_t
sftp_put_start(struct buffer *output, enum sftp_type type, uint32_t id)
{
	size_t start;

	start = output->length;
	sftp_put_u32(output, 0);
	put_u8(output, (uint8_t)type);
	sftp_put_u32(output, id);
	return start;
}

void
sftp_put_finish(struct buffer *output, size_t start)
{
	unsigned char *place;
	size_t length;
	int i;

	length = output->length - start - 4;
	place = buffer_data(output) + start;
	for (i = 3; i >= 0; i--, length >>= 8)
		place[i] = (unsigned char)length;
}

/* Seconds in 32 bits: what is before 1970 or after 2106 is shown as the nearest there is. */
static uint32_t
seconds(int64_t nanoseconds)
{
	int64_t value = nanoseconds / BILLION;

	if (value < 0)
		return 0;
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

void
sftp_put_attributes(struct buffer *output, const struct file_attributes *attributes)
{
	sftp_put_u32(output, ATTRIBUTE_SIZE | ATTRIBUTE_OWNER | ATTRIBUTE_MODE | ATTRIBUTE_TIMES);
	sftp_put_u64(output, attributes->size);
	sftp_put_u32(output, attributes->user);
	sftp_put_u32(output, attributes->group);
	sftp_put_u32(output, attributes->mode);
	sftp_put_u32(output, seconds(attributes->accessed));
	sftp_put_u32(output, seconds(attributes->modified));
}

static char
type_letter(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return 'd';
	case S_IFLNK:
		return 'l';
	case S_IFCHR:
		return 'c';
	case S_IFBLK:
		return 'b';
	case S_IFIFO:
		return 'p';
	case S_IFSOCK:
		return 's';
	default:
		return '-';
	}
}

static void
format_mode(uint32_t mode, char text[11])
{
	static const char letters[] = "rwxrwxrwx";
	int i;

	text[0] = type_letter(mode);
	for (i = 0; i < 9; i++)
		text[1 + i] = (mode & (0400U >> i)) != 0 ? letters[i] : '-';
	if ((mode & S_ISUID) != 0)
		text[3] = text[3] == 'x' ? 's' : 'S';
	if ((mode & S_ISGID) != 0)
		text[6] = text[6] == 'x' ? 's' : 'S';
	if ((mode & S_ISVTX) != 0)
		text[9] = text[9] == 'x' ? 't' : 'T';
	text[10] = '\0';
}

static char *
long_name(const char *name, const struct file_attributes *attributes)
{
	char mode[11], when[32];
	struct tm parts;
	time_t modified;

	modified = (time_t)(attributes->modified / BILLION);
	(void)gmtime_r(&modified, &parts);
	if (modified > time(NULL) - RECENT && modified <= time(NULL) + 86400)
		(void)strftime(when, sizeof(when), "%b %e %H:%M", &parts);
	else
		(void)strftime(when, sizeof(when), "%b %e  %Y", &parts);
	format_mode(attributes->mode, mode);
	return memory_text_format("%s %4u %-8u %-8u %8llu %s %s", mode, attributes->links,
	    attributes->user, attributes->group, (unsigned long long)attributes->size, when, name);
}

void
sftp_put_name(struct buffer *output, const char *name, const struct file_attributes *attributes)
{
	char *line;

	line = long_name(name, attributes);
	sftp_put_text(output, name);
	sftp_put_text(output, line);
	sftp_put_attributes(output, attributes);
	memory_free(line);
}

void
sftp_put_status(struct buffer *output, uint32_t id, enum sftp_status status, const char *text)
{
	size_t start;

	start = sftp_put_start(output, SFTP_STATUS, id);
	sftp_put_u32(output, status);
	sftp_put_text(output, text);
	sftp_put_text(output, "en");
	sftp_put_finish(output, start);
}

void
sftp_put_error(struct buffer *output, uint32_t id, const struct error *err)
{
	const struct error_kind *kind;
	char *text;

	kind = error_kind(err->code);
	text = memory_text_format("%s: %s", kind->name, err->message);
	sftp_put_status(output, id, (enum sftp_status)kind->sftp_status, text);
	memory_free(text);
}
