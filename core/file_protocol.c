/* SPDX-License-Identifier: ISC */
/* Encode and decode of file operations; each decode stands below its encode. */
#include <string.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/file.h"
#include "core/file_protocol.h"

static void
put_change(struct message *message, const struct file_change *change)
{
	message_put_u8(message, (uint8_t)change->fields);
	message_put_u32(message, change->mode);
	message_put_u32(message, change->user);
	message_put_u32(message, change->group);
	message_put_i64(message, change->accessed);
	message_put_i64(message, change->modified);
	message_put_u64(message, change->size);
}

static void
get_change(struct message *message, struct file_change *change)
{
	change->fields = message_get_u8(message);
	change->mode = message_get_u32(message);
	change->user = message_get_u32(message);
	change->group = message_get_u32(message);
	change->accessed = message_get_i64(message);
	change->modified = message_get_i64(message);
	change->size = message_get_u64(message);
}

static void
put_numbers(struct message *message, const struct file_request *request)
{
	uint32_t i;

	message_put_u32(message, request->user_count);
	message_put_u32(message, request->number_count);
	for (i = 0; i < request->number_count; i++)
		message_put_u32(message, request->numbers[i]);
}

static int
get_numbers(struct message *message, struct file_request *request, struct error *err)
{
	uint32_t i, count;

	request->user_count = message_get_u32(message);
	count = message_get_u32(message);
	if (count > FILE_NUMBERS_MAX || request->user_count > count)
		return error_set(err, ERROR_INVALID, "%u numbers at once", count);
	request->numbers = count == 0 ? NULL : memory_zeroed(count, sizeof(*request->numbers));
	request->number_count = count;
	for (i = 0; i < count; i++)
		request->numbers[i] = message_get_u32(message);
	return 0;
}

void
file_request_encode(struct message *message, uint32_t id, struct file_request *request)
{
	message_start(message, MESSAGE_FILE_REQUEST);
	message_put_u32(message, id);
	message_put_u8(message, (uint8_t)request->verb);
	message_put_u32(message, request->flags);
	message_put_text(message, request->path);
	message_put_text(message, request->other);
	put_change(message, &request->change);
	message_put_u64(message, request->offset);
	message_put_u64(message, request->size);
	message_put_u32(message, request->block);
	message_put_text(message, request->algorithm);
	message_put_u32(message, request->limit);
	message_put_text(message, request->glob);
	message_put_list(message, request->skip);
	put_numbers(message, request);
	message->fd = request->fd;
	request->fd = -1;
}

static int
get_request(struct message *message, struct file_request *request, struct error *err)
{
	request->verb = (enum file_verb)message_get_u8(message);
	request->flags = message_get_u32(message);
	request->path = message_get_text(message);
	request->other = message_get_text(message);
	get_change(message, &request->change);
	request->offset = message_get_u64(message);
	request->size = message_get_u64(message);
	request->block = message_get_u32(message);
	request->algorithm = message_get_text(message);
	request->limit = message_get_u32(message);
	request->glob = message_get_text(message);
	request->skip = message_get_list(message);
	if (get_numbers(message, request, err) != 0)
		return -1;
	request->fd = message_take_fd(message);
	return message_end(message, err);
}

static int
check_request(const struct file_request *request, struct error *err)
{
	bool two;

	two = request->verb == FILE_RENAME || request->verb == FILE_SYMLINK ||
	      request->verb == FILE_LINK || request->verb == FILE_COPY;
	if (request->verb < FILE_RESOLVE || request->verb >= FILE_VERBS)
		return error_set(err, ERROR_INVALID, "unknown file operation %u", request->verb);
	if ((request->flags & ~(unsigned)FILE_FLAGS_ALL) != 0 ||
	    (request->change.fields & ~(unsigned)FILE_CHANGE_ALL) != 0)
		return error_set(err, ERROR_INVALID, "unknown flags of a file operation");
	if ((request->path == NULL && request->verb != FILE_NAMES) ||
	    (two && request->other == NULL) ||
	    (request->verb == FILE_HASH && request->algorithm == NULL) ||
	    (request->verb == FILE_COMMIT && request->fd < 0))
		return error_set(
		    err, ERROR_INVALID, "file operation %u lacks a part", request->verb);
	return 0;
}

int
file_request_decode(
    struct message *message, uint32_t *id, struct file_request *request, struct error *err)
{
	file_request_init(request, FILE_STAT);
	*id = message_get_u32(message);
	if (get_request(message, request, err) == 0 && check_request(request, err) == 0)
		return 0;
	file_request_free(request);
	return -1;
}

static void
put_attributes(struct message *message, const struct file_attributes *attributes)
{
	message_put_u32(message, attributes->mode);
	message_put_u32(message, attributes->user);
	message_put_u32(message, attributes->group);
	message_put_u32(message, attributes->links);
	message_put_u64(message, attributes->size);
	message_put_u64(message, attributes->device);
	message_put_u64(message, attributes->inode);
	message_put_i64(message, attributes->accessed);
	message_put_i64(message, attributes->modified);
}

static void
get_attributes(struct message *message, struct file_attributes *attributes)
{
	attributes->mode = message_get_u32(message);
	attributes->user = message_get_u32(message);
	attributes->group = message_get_u32(message);
	attributes->links = message_get_u32(message);
	attributes->size = message_get_u64(message);
	attributes->device = message_get_u64(message);
	attributes->inode = message_get_u64(message);
	attributes->accessed = message_get_i64(message);
	attributes->modified = message_get_i64(message);
}

static void
put_volume(struct message *message, const struct file_volume *volume)
{
	message_put_u64(message, volume->block_size);
	message_put_u64(message, volume->fragment_size);
	message_put_u64(message, volume->blocks);
	message_put_u64(message, volume->blocks_free);
	message_put_u64(message, volume->blocks_available);
	message_put_u64(message, volume->files);
	message_put_u64(message, volume->files_free);
	message_put_u64(message, volume->files_available);
	message_put_u64(message, volume->id);
	message_put_u64(message, volume->flags);
	message_put_u64(message, volume->name_max);
}

static void
get_volume(struct message *message, struct file_volume *volume)
{
	volume->block_size = message_get_u64(message);
	volume->fragment_size = message_get_u64(message);
	volume->blocks = message_get_u64(message);
	volume->blocks_free = message_get_u64(message);
	volume->blocks_available = message_get_u64(message);
	volume->files = message_get_u64(message);
	volume->files_free = message_get_u64(message);
	volume->files_available = message_get_u64(message);
	volume->id = message_get_u64(message);
	volume->flags = message_get_u64(message);
	volume->name_max = message_get_u64(message);
}

static void
put_content(struct message *message, const struct file_reply *reply)
{
	message_put_bool(message, reply->more);
	put_attributes(message, &reply->attributes);
	message_put_u64(message, reply->arrived);
	message_put_u64(message, reply->limit);
	message_put_u64(message, reply->count);
	put_volume(message, &reply->volume);
	message_put_text(message, reply->text);
	message_put_bytes(message, reply->bytes, reply->bytes_size);
	message_put_list(message, reply->names);
}

static void
get_content(struct message *message, struct file_reply *reply)
{
	const unsigned char *bytes;

	reply->more = message_get_bool(message);
	get_attributes(message, &reply->attributes);
	reply->arrived = message_get_u64(message);
	reply->limit = message_get_u64(message);
	reply->count = message_get_u64(message);
	get_volume(message, &reply->volume);
	reply->text = message_get_text(message);
	bytes = message_get_bytes(message, &reply->bytes_size);
	if (reply->bytes_size > 0) {
		reply->bytes = memory_allocate(reply->bytes_size);
		memcpy(reply->bytes, bytes, reply->bytes_size);
	}
	reply->names = message_get_list(message);
}

void
file_reply_encode(
    struct message *message, uint32_t id, struct file_reply *reply, const struct error *failure)
{
	message_start(message, MESSAGE_FILE_REPLY);
	message_put_u32(message, id);
	message_put_error(message, failure);
	if (failure->code != ERROR_NONE)
		return;
	put_content(message, reply);
	message->fd = reply->fd;
	reply->fd = -1;
}

int
file_reply_decode(struct message *message, uint32_t *id, struct file_reply *reply,
    struct error *failure, struct error *err)
{
	file_reply_init(reply);
	*id = message_get_u32(message);
	message_get_error(message, failure);
	if (failure->code == ERROR_NONE) {
		get_content(message, reply);
		reply->fd = message_take_fd(message);
	}
	if (message->lost) {
		file_reply_free(reply);
		error_set(failure, ERROR_UNAVAILABLE, "too many files are open");
		message->lost = false;
	}
	if (message_end(message, err) == 0)
		return 0;
	file_reply_free(reply);
	return -1;
}

void
file_cancel_encode(struct message *message, uint32_t id)
{
	message_start(message, MESSAGE_FILE_CANCEL);
	message_put_u32(message, id);
}

int
file_cancel_decode(struct message *message, uint32_t *id, struct error *err)
{
	*id = message_get_u32(message);
	return message_end(message, err);
}

void
file_serve_encode(struct message *message, const struct file_serve *serve)
{
	message_start(message, MESSAGE_FILE_SERVE);
	message_put_text(message, serve->root);
	message_put_u64(message, serve->limit);
	message_put_u32(message, serve->leftover_age);
}

int
file_serve_decode(struct message *message, struct file_serve *serve, struct error *err)
{
	serve->root = message_get_text(message);
	serve->limit = message_get_u64(message);
	serve->leftover_age = message_get_u32(message);
	if (message_end(message, err) == 0) {
		if (serve->root != NULL && serve->root[0] == '/')
			return 0;
		error_set(err, ERROR_INVALID, "a root that is not absolute");
	}
	file_serve_free(serve);
	return -1;
}

void
file_serve_free(struct file_serve *serve)
{
	memory_free(serve->root);
	memset(serve, 0, sizeof(*serve));
}
