/* SPDX-License-Identifier: ISC */
/* list, stat, mkdir, remove and rename. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <json-c/json.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/workspace.h"
#include "gateway/rpc_call.h"
#include "gateway/rpc_file.h"
#include "gateway/rpc_handlers.h"
#include "gateway/rpc_json.h"
#include "gateway/worker.h"

#define LIST_STANDARD 1000
#define SECOND INT64_C(1000000000)

static void
put_attributes(struct json_object *object, const struct file_attributes *attributes)
{
	char mode[16];

	(void)snprintf(mode, sizeof(mode), "%04" PRIo32, attributes->mode & 07777);
	rpc_json_put_text(object, "type", file_type_name(attributes->mode));
	rpc_json_put_number(object, "size", (int64_t)attributes->size);
	rpc_json_put_text(object, "mode", mode);
	rpc_json_put_number(object, "modified", attributes->modified / SECOND);
}

/* The entries, one less than were asked for: that one says whether there are more. */
static int
put_entries(struct json_object *result, struct file_list *list, int64_t limit, struct error *err)
{
	struct json_object *array, *object;
	struct file_entry entry;
	int64_t count;
	int status;

	array = json_object_new_array();
	for (count = 0; (status = file_list_next(list, &entry, err)) == 1 && count < limit;
	     count++) {
		object = json_object_new_object();
		rpc_json_put_bytes(object, "path", entry.path, strlen(entry.path));
		put_attributes(object, &entry.attributes);
		(void)json_object_array_add(array, object);
	}
	(void)json_object_object_add(result, "entries", array);
	rpc_json_put_boolean(result, "truncated", status == 1);
	return status < 0 ? -1 : 0;
}

static void
list_reply(struct file_call *file, struct file_reply *reply)
{
	struct json_object *result;
	struct file_list *list;
	struct error err;
	int status;

	list = file_list_open(reply->fd);
	reply->fd = -1;
	result = file_call_object(file);
	status = put_entries(
	    result, list, rpc_json_get_number(file->parameters, "limit", LIST_STANDARD), &err);
	file_list_free(list);
	if (status == 0) {
		file_call_result(file, result);
		return;
	}
	json_object_put(result);
	file_call_error(file, &err);
}

static void
list_start(struct rpc_call *call, struct json_object *parameters)
{
	struct file_call *file = file_call_new(call, parameters);
	struct file_request request;
	const char *glob;

	file_request_init(&request, FILE_LIST);
	request.path = file_call_path(parameters, "path", ".");
	glob = rpc_json_get_text(parameters, "glob", NULL);
	if (rpc_json_get_boolean(
		parameters, "recursive", glob != NULL && strchr(glob, '/') != NULL))
		request.flags |= FILE_RECURSIVE;
	if (rpc_json_get_boolean(parameters, "include_hidden", false))
		request.flags |= FILE_HIDDEN;
	request.glob = glob == NULL ? NULL : memory_text(glob);
	request.skip = rpc_json_get_list(parameters, "skip_dirs");
	request.limit = (uint32_t)rpc_json_get_number(parameters, "limit", LIST_STANDARD) + 1;
	file_call_send(file, &request, list_reply);
}

static struct json_object *
stat_result(const struct file_call *file)
{
	const struct file_attributes *attributes = &file->attributes;
	struct json_object *result;

	result = file_call_object(file);
	put_attributes(result, attributes);
	rpc_json_put_number(result, "user", attributes->user);
	rpc_json_put_number(result, "group", attributes->group);
	rpc_json_put_number(result, "links", attributes->links);
	return result;
}

static void
link_reply(struct file_call *file, struct file_reply *reply)
{
	struct json_object *result;

	result = stat_result(file);
	rpc_json_put_bytes(result, "target", reply->text, strlen(reply->text));
	file_call_result(file, result);
}

static void
stat_reply(struct file_call *file, struct file_reply *reply)
{
	struct file_request request;

	file->attributes = reply->attributes;
	if (!S_ISLNK(reply->attributes.mode)) {
		file_call_result(file, stat_result(file));
		return;
	}
	file_request_init(&request, FILE_READLINK);
	request.path = file_call_path(file->parameters, "path", NULL);
	file_call_send(file, &request, link_reply);
}

static void
stat_start(struct rpc_call *call, struct json_object *parameters)
{
	struct file_call *file = file_call_new(call, parameters);
	struct file_request request;

	file_request_init(&request, FILE_STAT);
	request.path = file_call_path(parameters, "path", NULL);
	if (rpc_json_get_boolean(parameters, "follow", false))
		request.flags |= FILE_FOLLOW;
	file_call_send(file, &request, stat_reply);
}

static void
mkdir_start(struct rpc_call *call, struct json_object *parameters)
{
	struct file_call *file = file_call_new(call, parameters);
	struct file_request request;

	file_request_init(&request, FILE_MKDIR);
	request.path = file_call_path(parameters, "path", NULL);
	if (rpc_json_get_boolean(parameters, "parents", true))
		request.flags |= FILE_PARENTS;
	file_call_send(file, &request, NULL);
}

static void
remove_reply(struct file_call *file, struct file_reply *reply)
{
	const char *root = workspace_root(file->call->rpc->worker->workspace);
	struct json_object *result;
	const char *place = reply->text;

	result = file_call_object(file);
	if (place != NULL && strncmp(place, root, strlen(root)) == 0 && place[strlen(root)] == '/')
		place += strlen(root) + 1;
	if (place != NULL)
		rpc_json_put_bytes(result, "trash", place, strlen(place));
	file_call_result(file, result);
}

static void
remove_start(struct rpc_call *call, struct json_object *parameters)
{
	struct file_call *file = file_call_new(call, parameters);
	struct file_request request;

	file_request_init(&request, FILE_REMOVE);
	request.path = file_call_path(parameters, "path", NULL);
	request.flags = FILE_UNLESS_BUSY;
	if (rpc_json_get_boolean(parameters, "recursive", false))
		request.flags |= FILE_RECURSIVE;
	if (rpc_json_get_boolean(parameters, "trash", false))
		request.flags |= FILE_TRASH;
	file_call_send(file, &request, remove_reply);
}

static void
rename_reply(struct file_call *file, struct file_reply *reply)
{
	struct json_object *result;
	char *path;

	(void)reply;
	result = json_object_new_object();
	path = file_call_path(file->parameters, "to", NULL);
	rpc_json_put_bytes(result, "path", path, strlen(path));
	memory_free(path);
	file_call_result(file, result);
}

static void
rename_start(struct rpc_call *call, struct json_object *parameters)
{
	struct file_call *file = file_call_new(call, parameters);
	struct file_request request;

	file_request_init(&request, FILE_RENAME);
	request.path = file_call_path(parameters, "path", NULL);
	request.other = file_call_path(parameters, "to", NULL);
	request.flags = FILE_UNLESS_BUSY;
	if (rpc_json_get_boolean(parameters, "overwrite", false))
		request.flags |= FILE_OVERWRITE;
	if (rpc_json_get_boolean(parameters, "parents", false))
		request.flags |= FILE_PARENTS;
	file_call_send(file, &request, rename_reply);
}

const struct rpc_handler rpc_tree_handlers[] = {
	{ "list", list_start, file_call_cancel, file_call_drop, NULL, NULL },
	{ "stat", stat_start, file_call_cancel, file_call_drop, NULL, NULL },
	{ "mkdir", mkdir_start, NULL, file_call_drop, NULL, NULL },
	{ "remove", remove_start, NULL, file_call_drop, NULL, NULL },
	{ "rename", rename_start, NULL, file_call_drop, NULL, NULL },
	{ .name = NULL },
};
