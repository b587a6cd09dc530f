/* SPDX-License-Identifier: ISC */
/*
 * File requests and replies as values, and listings: records in a file, so that neither end holds a
 * long one in memory. A record is nine numbers and the path's length, big-endian, then the path.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/file.h"

#define RECORD_SIZE 64U
#define READ_SIZE 65536U

struct file_list {
	int fd;
	struct buffer input;
	char path[FILE_PATH_MAX + 1];
};

void
file_request_init(struct file_request *request, enum file_verb verb)
{
	memset(request, 0, sizeof(*request));
	request->verb = verb;
	request->fd = -1;
}

void
file_request_free(struct file_request *request)
{
	memory_free(request->path);
	memory_free(request->other);
	memory_free(request->algorithm);
	memory_free(request->glob);
	memory_list_free(request->skip);
	memory_free(request->numbers);
	descriptor_close(&request->fd);
	file_request_init(request, request->verb);
}

void
file_reply_init(struct file_reply *reply)
{
	memset(reply, 0, sizeof(*reply));
	reply->fd = -1;
}

void
file_reply_free(struct file_reply *reply)
{
	memory_free(reply->text);
	memory_free(reply->bytes);
	memory_list_free(reply->names);
	descriptor_close(&reply->fd);
	file_reply_init(reply);
}

int
file_too_large(struct error *err, uint64_t size, uint64_t limit)
{
	char is[NUMBER_TEXT_MAX], may[NUMBER_TEXT_MAX];

	return error_set(err, ERROR_TOO_LARGE, "%s is over max_file_bytes (%s)",
	    number_describe_size(is, size > INT64_MAX ? INT64_MAX : (int64_t)size),
	    number_describe_size(may, limit > INT64_MAX ? INT64_MAX : (int64_t)limit));
}

int
file_content(const void *data, size_t size, struct error *err)
{
	int fd;

	fd = memfd_create("rws-content", MFD_CLOEXEC);
	if (fd < 0)
		return error_system(err, errno, "memfd_create");
	if (descriptor_write(fd, data, size, err) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

unsigned char *
file_content_read(int fd, size_t max, size_t *size, struct error *err)
{
	unsigned char *data, *place;
	struct buffer content;
	ssize_t got;

	buffer_init(&content, max + READ_SIZE);
	do {
		place = buffer_reserve(&content, READ_SIZE);
		got = place == NULL ? 0 : pread(fd, place, READ_SIZE, (off_t)content.length);
		if (got > 0)
			buffer_extend(&content, (size_t)got);
	} while (content.length <= max && (got > 0 || (got < 0 && errno == EINTR)));
	data = NULL;
	if (got < 0)
		error_system(err, errno, "read the content");
	else if (content.length > max)
		file_too_large(err, content.length, max);
	else
		data = (unsigned char *)memory_text_bounded(buffer_data(&content), content.length);
	*size = content.length;
	buffer_free(&content);
	return data;
}

static unsigned char *
put_number(unsigned char *at, uint64_t value, unsigned size)
{
	unsigned i;

	for (i = size; i-- > 0; value >>= 8)
		at[i] = (unsigned char)value;
	return at + size;
}

static uint64_t
get_number(const unsigned char **at, unsigned size)
{
	uint64_t value = 0;

	while (size-- > 0)
		value = value << 8 | *(*at)++;
	return value;
}

int
file_list_put(struct buffer *buffer, const struct file_entry *entry)
{
	const struct file_attributes *attributes = &entry->attributes;
	unsigned char record[RECORD_SIZE], *at;
	size_t length;

	length = strlen(entry->path);
	if (buffer_room(buffer) < sizeof(record) + length)
		return -1;
	at = put_number(record, length, 4);
	at = put_number(at, attributes->mode, 4);
	at = put_number(at, attributes->user, 4);
	at = put_number(at, attributes->group, 4);
	at = put_number(at, attributes->links, 4);
	at = put_number(at, 0, 4);
	at = put_number(at, attributes->size, 8);
	at = put_number(at, attributes->device, 8);
	at = put_number(at, attributes->inode, 8);
	at = put_number(at, (uint64_t)attributes->accessed, 8);
	(void)put_number(at, (uint64_t)attributes->modified, 8);
	(void)buffer_append(buffer, record, sizeof(record));
	return buffer_append(buffer, entry->path, length);
}

struct file_list *
file_list_open(int fd)
{
	struct file_list *list;

	list = memory_zeroed(1, sizeof(*list));
	list->fd = fd;
	buffer_init(&list->input, 2 * READ_SIZE);
	return list;
}

void
file_list_free(struct file_list *list)
{
	if (list == NULL)
		return;
	descriptor_close(&list->fd);
	buffer_free(&list->input);
	memory_free(list);
}

/* Reads until size bytes are there: 1, 0 when the file ends before the first of them, else -1. */
static int
fill(struct file_list *list, size_t size, struct error *err)
{
	unsigned char *place;
	ssize_t got;

	while (list->input.length < size) {
		place = buffer_reserve(&list->input, READ_SIZE);
		got = read(list->fd, place, READ_SIZE);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_system(err, errno, "read the listing");
		if (got == 0 && list->input.length == 0)
			return 0;
		if (got == 0)
			return error_set(err, ERROR_INVALID, "the listing ends within an entry");
		buffer_extend(&list->input, (size_t)got);
	}
	return 1;
}

int
file_list_next(struct file_list *list, struct file_entry *entry, struct error *err)
{
	struct file_attributes *attributes = &entry->attributes;
	const unsigned char *at;
	size_t length;
	int result;

	result = fill(list, RECORD_SIZE, err);
	if (result <= 0)
		return result;
	at = buffer_data(&list->input);
	length = (size_t)get_number(&at, 4);
	if (length == 0 || length > FILE_PATH_MAX)
		return error_set(err, ERROR_INVALID, "the listing has a path of %zu bytes", length);
	if (fill(list, RECORD_SIZE + length, err) != 1)
		return -1;
	at = buffer_data(&list->input) + 4;
	attributes->mode = (uint32_t)get_number(&at, 4);
	attributes->user = (uint32_t)get_number(&at, 4);
	attributes->group = (uint32_t)get_number(&at, 4);
	attributes->links = (uint32_t)get_number(&at, 4);
	(void)get_number(&at, 4);
	attributes->size = get_number(&at, 8);
	attributes->device = get_number(&at, 8);
	attributes->inode = get_number(&at, 8);
	attributes->accessed = (int64_t)get_number(&at, 8);
	attributes->modified = (int64_t)get_number(&at, 8);
	memcpy(list->path, at, length);
	list->path[length] = '\0';
	buffer_consume(&list->input, RECORD_SIZE + length);
	entry->path = list->path;
	if (strlen(list->path) != length)
		return error_set(err, ERROR_INVALID, "the listing has a NUL within a path");
	return 1;
}
