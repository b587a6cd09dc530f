/* SPDX-License-Identifier: ISC */
/* read, write and edit: whole files, in one step each. */
#include <string.h>
#include <sys/stat.h>

#include <json-c/json.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/files.h"
#include "core/workspace.h"
#include "gateway/rpc_call.h"
#include "gateway/rpc_file.h"
#include "gateway/rpc_handlers.h"
#include "gateway/rpc_json.h"
#include "gateway/rpc_kind.h"
#include "gateway/worker.h"

/* An answer is one line; as base64 this much is still within it. */
#define CONTENT_MAX ((size_t)11 * 1024 * 1024)
#define MODE_TEXT_MAX 4U

static struct files *
files_of(const struct rpc_call *call)
{
	return workspace_files(call->rpc->worker->workspace);
}

struct file_call *
file_call_new(struct rpc_call *call, struct json_object *parameters)
{
	struct file_call *file;

	file = memory_zeroed(1, sizeof(*file));
	file->call = call;
	file->parameters = json_object_get(parameters);
	call->state = file;
	return file;
}

static void
done(void *argument, struct file_reply *reply, const struct error *err)
{
	struct file_call *file = argument;

	if (reply != NULL && reply->more)
		return;
	file->operation = NULL;
	if (err != NULL)
		file_call_error(file, err);
	else if (file->reply != NULL)
		file->reply(file, reply);
	else
		file_call_result(file, file_call_object(file));
}

void
file_call_send(struct file_call *file, struct file_request *request,
    void (*reply)(struct file_call *file, struct file_reply *reply))
{
	file->reply = reply;
	file->operation = files_start(files_of(file->call), request, done, file);
	file_request_free(request);
}

void
file_call_result(struct file_call *file, struct json_object *result)
{
	rpc_call_result(file->call, result);
}

void
file_call_error(struct file_call *file, const struct error *err)
{
	rpc_call_error(file->call, err);
}

/* Whether it is done all the same cannot be known: so only what changes nothing is given up. */
void
file_call_cancel(struct rpc_call *call)
{
	struct file_call *file = call->state;
	struct error err;

	if (file == NULL || file->operation == NULL)
		return;
	files_cancel(file->operation);
	file->operation = NULL;
	error_set(&err, ERROR_ABORTED, "stopped on request");
	rpc_call_error(call, &err);
}

void
file_call_drop(struct rpc_call *call)
{
	struct file_call *file = call->state;

	call->state = NULL;
	if (file == NULL)
		return;
	files_cancel(file->operation);
	json_object_put(file->parameters);
	memory_free(file);
}

char *
file_call_path(struct json_object *parameters, const char *name, const char *otherwise)
{
	size_t size;
	char *path;

	path = rpc_json_get_bytes(parameters, name, &size);
	return path == NULL && otherwise != NULL ? memory_text(otherwise) : path;
}

struct json_object *
file_call_object(const struct file_call *file)
{
	struct json_object *object;
	char *path;

	object = json_object_new_object();
	path = file_call_path(file->parameters, "path", ".");
	rpc_json_put_bytes(object, "path", path, strlen(path));
	memory_free(path);
	return object;
}

const char *
file_type_name(uint32_t mode)
{
	if (S_ISREG(mode))
		return "file";
	if (S_ISDIR(mode))
		return "directory";
	return S_ISLNK(mode) ? "symlink" : "other";
}

/* The part of a text from line first on, count lines of it. */
static void
cut_lines(const unsigned char **data, size_t *size, int64_t first, int64_t count)
{
	const unsigned char *at = *data, *end = *data + *size, *next;
	int64_t line;

	for (line = 1; line < first && at < end; line++) {
		next = memchr(at, '\n', (size_t)(end - at));
		at = next == NULL ? end : next + 1;
	}
	*data = at;
	for (line = 0; line < count && at < end; line++) {
		next = memchr(at, '\n', (size_t)(end - at));
		at = next == NULL ? end : next + 1;
	}
	*size = (size_t)(at - *data);
}

/* The part that is asked for. */
static void
cut_content(struct json_object *parameters, const unsigned char **data, size_t *size)
{
	int64_t offset, max;

	if (rpc_json_has(parameters, "first_line") || rpc_json_has(parameters, "max_lines"))
		cut_lines(data, size, rpc_json_get_number(parameters, "first_line", 1),
		    rpc_json_get_number(parameters, "max_lines", INT64_MAX));
	offset = rpc_json_get_number(parameters, "offset", 0);
	if (offset > (int64_t)*size)
		offset = (int64_t)*size;
	*data += offset;
	*size -= (size_t)offset;
	max = rpc_json_get_number(parameters, "max_bytes", CONTENT_MAX);
	if (*size > (size_t)max)
		*size = (size_t)max;
}

static void
read_reply(struct file_call *file, struct file_reply *reply)
{
	const unsigned char *data;
	struct json_object *result;
	unsigned char *content;
	struct error err;
	size_t size, whole;

	content = file_content_read(reply->fd, (size_t)reply->limit, &whole, &err);
	if (content == NULL) {
		file_call_error(file, &err);
		return;
	}
	data = content;
	size = whole;
	cut_content(file->parameters, &data, &size);
	result = file_call_object(file);
	rpc_json_put_text(result, "mime_type", content_kind(content, whole));
	rpc_json_put_number(result, "size", (int64_t)whole);
	rpc_json_put_boolean(result, "truncated", size < whole);
	if (strcmp(rpc_json_get_text(file->parameters, "encoding", "auto"), "base64") == 0)
		rpc_json_put_base64(result, "content", data, size);
	else
		rpc_json_put_bytes(result, "content", data, size);
	memory_free(content);
	file_call_result(file, result);
}

static void
read_start(struct rpc_call *call, struct json_object *parameters)
{
	struct file_call *file = file_call_new(call, parameters);
	struct file_request request;

	file_request_init(&request, FILE_OPEN);
	request.flags = FILE_WHOLE | FILE_FOLLOW;
	request.path = file_call_path(parameters, "path", NULL);
	file_call_send(file, &request, read_reply);
}

/* "644" or "0755". */
static int
parse_mode(const char *text, uint32_t *mode, struct error *err)
{
	if (*text == '0')
		text++;
	if (strspn(text, "01234567") != strlen(text) || strlen(text) > MODE_TEXT_MAX ||
	    *text == '\0')
		return error_set(err, ERROR_INVALID, "mode must be octal, as 644");
	for (*mode = 0; *text != '\0'; text++)
		*mode = *mode * 8 + (uint32_t)(*text - '0');
	return 0;
}

static void
write_reply(struct file_call *file, struct file_reply *reply)
{
	struct json_object *result;

	result = file_call_object(file);
	rpc_json_put_number(result, "size", (int64_t)reply->attributes.size);
	file_call_result(file, result);
}

/* Makes a COMMIT of these bytes; -1 when they are too many. */
static int
make_commit(struct file_call *file, const void *data, size_t size, struct file_request *request,
    struct error *err)
{
	uint64_t limit;

	limit = files_limit(files_of(file->call));
	if (size > limit)
		return file_too_large(err, size, limit);
	request->fd = file_content(data, size, err);
	request->path = file_call_path(file->parameters, "path", NULL);
	return request->fd < 0 ? -1 : 0;
}

static int
fill_write(struct file_call *file, struct file_request *request, struct error *err)
{
	const char *mode;
	size_t size;
	char *data;
	int result;

	mode = rpc_json_get_text(file->parameters, "mode", NULL);
	if (mode != NULL) {
		if (parse_mode(mode, &request->change.mode, err) != 0)
			return -1;
		request->change.fields = FILE_CHANGE_MODE;
	}
	if (rpc_json_get_boolean(file->parameters, "parents", true))
		request->flags |= FILE_PARENTS;
	if (!rpc_json_get_boolean(file->parameters, "overwrite", true))
		request->flags |= FILE_EXCLUSIVE;
	data = rpc_json_get_bytes(file->parameters, "content", &size);
	result = make_commit(file, data, size, request, err);
	memory_free(data);
	return result;
}

static void
write_start(struct rpc_call *call, struct json_object *parameters)
{
	struct file_call *file = file_call_new(call, parameters);
	struct file_request request;
	struct error err;

	file_request_init(&request, FILE_COMMIT);
	if (fill_write(file, &request, &err) == 0) {
		file_call_send(file, &request, write_reply);
		return;
	}
	file_request_free(&request);
	file_call_error(file, &err);
}

static void
edit_reply(struct file_call *file, struct file_reply *reply)
{
	struct json_object *result;

	result = file_call_object(file);
	rpc_json_put_number(result, "size", (int64_t)reply->attributes.size);
	rpc_json_put_number(result, "replaced", file->count);
	file_call_result(file, result);
}

/* content with every occurrence of old (its first only unless all) in it replaced; counts them. */
static void
replace(struct buffer *out, const unsigned char *content, size_t size,
    struct json_object *parameters, size_t *count)
{
	const unsigned char *at, *end = content + size, *found;
	size_t old_size, new_size;
	char *old, *new;

	old = rpc_json_get_bytes(parameters, "old", &old_size);
	new = rpc_json_get_bytes(parameters, "new", &new_size);
	*count = 0;
	for (at = content; old_size > 0; at = found + old_size) {
		found = memmem(at, (size_t)(end - at), old, old_size);
		if (found == NULL)
			break;
		(void)buffer_append(out, at, (size_t)(found - at));
		(void)buffer_append(out, new, new_size);
		++*count;
	}
	(void)buffer_append(out, at, (size_t)(end - at));
	memory_free(old);
	memory_free(new);
}

static int
check_count(struct json_object *parameters, size_t count, struct error *err)
{
	if (count == 0)
		return error_set(err, ERROR_INVALID, "old does not occur in the file");
	if (count > 1 && !rpc_json_get_boolean(parameters, "all", false))
		return error_set(err, ERROR_INVALID,
		    "old occurs %zu times in the file: give more of its surroundings, or set all",
		    count);
	return 0;
}

static int
make_edit(struct file_call *file, struct file_reply *reply, struct file_request *request,
    struct error *err)
{
	unsigned char *content;
	struct buffer out;
	size_t size, count;
	int result;

	content = file_content_read(reply->fd, (size_t)reply->limit, &size, err);
	if (content == NULL)
		return -1;
	/* Room for anything that may be written, so that what is too large is told as such. */
	buffer_init(&out, (size_t)RPC_LINE_MAX * 64);
	replace(&out, content, size, file->parameters, &count);
	memory_free(content);
	result = check_count(file->parameters, count, err);
	if (result == 0)
		result = make_commit(file, buffer_data(&out), out.length, request, err);
	file->count = (int64_t)count;
	buffer_free(&out);
	return result;
}

static void
edit_read(struct file_call *file, struct file_reply *reply)
{
	struct file_request request;
	struct error err;

	file_request_init(&request, FILE_COMMIT);
	if (make_edit(file, reply, &request, &err) == 0) {
		file_call_send(file, &request, edit_reply);
		return;
	}
	file_request_free(&request);
	file_call_error(file, &err);
}

static void
edit_start(struct rpc_call *call, struct json_object *parameters)
{
	struct file_call *file = file_call_new(call, parameters);
	struct file_request request;

	file_request_init(&request, FILE_OPEN);
	request.flags = FILE_WHOLE | FILE_FOLLOW;
	request.path = file_call_path(parameters, "path", NULL);
	file_call_send(file, &request, edit_read);
}

const struct rpc_handler rpc_file_handlers[] = {
	{ "read", read_start, file_call_cancel, file_call_drop, NULL, NULL },
	{ "write", write_start, NULL, file_call_drop, NULL, NULL },
	{ "edit", edit_start, NULL, file_call_drop, NULL, NULL },
	{ .name = NULL },
};
