/* SPDX-License-Identifier: ISC */
/*
 * What OpenSSH adds to version 3 (its PROTOCOL file, section 4), and the hashes of
 * draft-ietf-secsh-filexfer-extensions-00.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/file_path.h"
#include "gateway/sftp_state.h"

#define COPY_CHUNK 65536U
#define HASHES_SIZE_MAX (192U * 1024U)

static void
serve_posix_rename(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	sftp_rename(sftp, id, input, true);
}

static void
serve_lsetstat(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	sftp_setstat(sftp, id, input, false);
}

/* Sends verb on a normal path that is handed over. */
static struct sftp_call *
send_verb(struct sftp *sftp, uint32_t id, enum sftp_type type, enum file_verb verb, char *path)
{
	struct file_request request;
	struct sftp_call *call;

	file_request_init(&request, verb);
	request.path = path;
	call = sftp_call_new(sftp, id, type);
	sftp_call_send(call, &request);
	return call;
}

static void
serve_statvfs(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	char *text, *path;

	text = sftp_get_path(input);
	path = sftp_path(sftp, id, text);
	memory_free(text);
	if (path != NULL)
		(void)send_verb(sftp, id, SFTP_EXTENDED_REPLY, FILE_STATVFS, path);
}

static void
serve_fstatvfs(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct sftp_handle *handle;

	handle = sftp_get_handle(sftp, input);
	if (handle == NULL)
		sftp_put_refusal(sftp, id, SFTP_FAILURE, "there is no such handle");
	else
		/*
		 * Its directory is on the same volume, and is there even when the file is not yet.
		 */
		(void)send_verb(sftp, id, SFTP_EXTENDED_REPLY, FILE_STATVFS,
		    handle->file == NULL ? memory_text(handle->path) : path_parent(handle->path));
}

static void
serve_hardlink(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct file_request request;
	struct sftp_call *call;
	char *text, *path, *other;

	text = sftp_get_path(input);
	path = sftp_path(sftp, id, text);
	memory_free(text);
	text = sftp_get_path(input);
	other = path == NULL ? NULL : sftp_path(sftp, id, text);
	memory_free(text);
	if (other == NULL || sftp_path_settle(sftp, path) || sftp_path_waits(sftp, other)) {
		memory_free(path);
		memory_free(other);
		return;
	}
	file_request_init(&request, FILE_LINK);
	request.path = memory_text(path);
	request.other = memory_text(other);
	call = sftp_call_new(sftp, id, SFTP_STATUS);
	call->what = "hardlink";
	call->path = path;
	call->other = other;
	sftp_call_send(call, &request);
}

static void
serve_fsync(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct sftp_handle *handle;
	struct error err;

	handle = sftp_get_file(sftp, id, input);
	if (handle == NULL)
		return;
	if (fsync(handle->file->fd) == 0 || errno == EINVAL || errno == EROFS)
		sftp_put_done(sftp, id, NULL);
	else {
		error_system(&err, errno, "%s", handle->path);
		sftp_put_done(sftp, id, &err);
	}
}

static void
serve_limits(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	size_t start;

	(void)input;
	start = sftp_put_start(&sftp->output, SFTP_EXTENDED_REPLY, id);
	sftp_put_u64(&sftp->output, SFTP_PACKET_MAX);
	sftp_put_u64(&sftp->output, SFTP_DATA_MAX);
	sftp_put_u64(&sftp->output, SFTP_DATA_MAX);
	sftp_put_u64(&sftp->output, SFTP_HANDLES_MAX);
	sftp_put_finish(&sftp->output, start);
}

/* "~" is the root, where a session starts, and so is the home of whoever else is named after it. */
static void
serve_expand_path(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	const char *rest;
	char *text, *path;

	text = sftp_get_path(input);
	rest = text;
	if (*rest == '~') {
		if (rest[1] != '\0' && rest[1] != '/') {
			sftp_put_refusal(
			    sftp, id, SFTP_NO_SUCH_FILE, "there are no other users here");
			memory_free(text);
			return;
		}
		rest += 1 + strspn(rest + 1, "/");
	}
	path = sftp_path(sftp, id, *rest == '\0' ? "." : rest);
	memory_free(text);
	if (path != NULL)
		(void)send_verb(sftp, id, SFTP_NAME, FILE_RESOLVE, path);
}

static void
serve_home_directory(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	(void)input;
	(void)send_verb(sftp, id, SFTP_NAME, FILE_RESOLVE, memory_text(sftp->root));
}

/* Copies from one open file to another; size 0 means to the end. */
static int
copy_data(struct sftp_handle *from, uint64_t offset, uint64_t size, struct sftp_handle *to,
    uint64_t target, struct error *err)
{
	unsigned char chunk[COPY_CHUNK];
	uint64_t left;
	ssize_t got;

	for (left = size == 0 ? UINT64_MAX : size; left > 0; left -= (uint64_t)got) {
		got = pread(from->file->fd, chunk,
		    left < sizeof(chunk) ? (size_t)left : sizeof(chunk), (off_t)offset);
		if (got < 0)
			return error_system(err, errno, "%s", from->path);
		if (got == 0)
			break;
		if (target > to->file->limit || (uint64_t)got > to->file->limit - target)
			return file_too_large(err, target + (uint64_t)got, to->file->limit);
		if (pwrite(to->file->fd, chunk, (size_t)got, (off_t)target) != got)
			return error_system(err, errno, "%s", to->path);
		offset += (uint64_t)got;
		target += (uint64_t)got;
		to->file->dirty = true;
		to->file->written += (uint64_t)got;
	}
	return 0;
}

static void
serve_copy_data(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct sftp_handle *from, *to;
	uint64_t offset, size, target;
	struct error err;

	from = sftp_get_handle(sftp, input);
	offset = sftp_get_u64(input);
	size = sftp_get_u64(input);
	to = sftp_get_handle(sftp, input);
	target = sftp_get_u64(input);
	if (input->failed || from == NULL || to == NULL || from->file == NULL || to->file == NULL ||
	    !from->reads || !to->writes || from->file == to->file || offset > INT64_MAX) {
		sftp_put_refusal(sftp, id, SFTP_FAILURE, "copy-data needs two open files");
		return;
	}
	if (from->file->arrival != NULL) {
		sftp->held = true;
		return;
	}
	if (copy_data(from, offset, size, to, target, &err) == 0) {
		sftp_put_done(sftp, id, NULL);
		return;
	}
	to->file->spoiled = true;
	to->file->trouble = err;
	sftp_put_done(sftp, id, &err);
}

/* Reads a string of big-endian numbers into the request. */
static void
get_numbers(struct sftp_input *input, struct file_request *request, bool users)
{
	struct sftp_input list = { .failed = false };
	uint32_t *numbers;

	list.at = sftp_get_string(input, &list.left);
	numbers = request->numbers;
	while (list.left >= 4 && request->number_count < FILE_NUMBERS_MAX) {
		numbers[request->number_count++] = sftp_get_u32(&list);
		if (users)
			request->user_count++;
	}
	if (list.left > 0)
		input->failed = true;
}

/* Two strings, of user and of group names, each of which is strings itself. */
static void
names_done(struct sftp_call *call, struct file_reply *reply, const struct error *err)
{
	struct buffer *output = &call->sftp->output, *place;
	struct buffer parts[2];
	size_t start, i, users;

	if (err != NULL) {
		sftp_put_error(output, call->id, err);
		return;
	}
	users = (size_t)call->number;
	buffer_init(&parts[0], SFTP_PACKET_MAX);
	buffer_init(&parts[1], SFTP_PACKET_MAX);
	for (i = 0; reply->names[i] != NULL; i++) {
		place = &parts[i < users ? 0 : 1];
		if (buffer_room(place) > strlen(reply->names[i]) + 4)
			sftp_put_text(place, reply->names[i]);
	}
	start = sftp_put_start(output, SFTP_EXTENDED_REPLY, call->id);
	sftp_put_string(output, buffer_data(&parts[0]), parts[0].length);
	sftp_put_string(output, buffer_data(&parts[1]), parts[1].length);
	sftp_put_finish(output, start);
	buffer_free(&parts[0]);
	buffer_free(&parts[1]);
}

static void
serve_names(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct file_request request;
	struct sftp_call *call;

	file_request_init(&request, FILE_NAMES);
	request.numbers = memory_zeroed(FILE_NUMBERS_MAX, sizeof(*request.numbers));
	get_numbers(input, &request, true);
	get_numbers(input, &request, false);
	if (input->failed) {
		sftp_put_refusal(sftp, id, SFTP_BAD_MESSAGE, "malformed or too many numbers");
		file_request_free(&request);
		return;
	}
	call = sftp_call_new(sftp, id, SFTP_EXTENDED_REPLY);
	call->number = request.user_count;
	call->done = names_done;
	sftp_call_send(call, &request);
}

/* The first of the client's algorithms that is known here; a new text, or NULL. */
static char *
choose_algorithm(const char *list)
{
	static const char known[] = ",md5,sha1,sha224,sha256,sha384,sha512,";
	char *sought, *name;
	size_t length;
	bool found;

	for (; *list != '\0'; list += length, list += *list == ',') {
		length = strcspn(list, ",");
		name = memory_text_bounded(list, length);
		sought = memory_text_format(",%s,", name);
		found = length > 0 && strstr(known, sought) != NULL;
		memory_free(sought);
		if (found)
			return name;
		memory_free(name);
	}
	return NULL;
}

static void
hash_done(struct sftp_call *call, struct file_reply *reply, const struct error *err)
{
	struct buffer *output = &call->sftp->output;
	size_t start;

	if (err != NULL || reply->bytes_size > HASHES_SIZE_MAX) {
		sftp_put_done(call->sftp, call->id, err);
		return;
	}
	start = sftp_put_start(output, SFTP_EXTENDED_REPLY, call->id);
	sftp_put_text(output, "check-file");
	sftp_put_text(output, call->other);
	(void)buffer_append(output, reply->bytes, reply->bytes_size);
	sftp_put_finish(output, start);
}

/* Both forms: of a path, and of a handle's path. The path is handed over. */
static void
check_file(struct sftp *sftp, uint32_t id, struct sftp_input *input, char *path)
{
	struct file_request request;
	struct sftp_call *call;
	char *list;

	file_request_init(&request, FILE_HASH);
	request.path = path;
	list = sftp_get_text(input);
	request.algorithm = choose_algorithm(list);
	memory_free(list);
	request.offset = sftp_get_u64(input);
	request.size = sftp_get_u64(input);
	request.block = sftp_get_u32(input);
	if (input->failed || request.algorithm == NULL ||
	    (request.block != 0 && request.block < 256)) {
		sftp_put_refusal(sftp, id, input->failed ? SFTP_BAD_MESSAGE : SFTP_UNSUPPORTED,
		    "no such hash, or a block of less than 256 bytes");
	} else if (!sftp_path_settle(sftp, path)) {
		call = sftp_call_new(sftp, id, SFTP_EXTENDED_REPLY);
		call->other = memory_text(request.algorithm);
		call->done = hash_done;
		sftp_call_send(call, &request);
		return;
	}
	file_request_free(&request);
}

static void
serve_check_file_name(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	char *text, *path;

	text = sftp_get_path(input);
	path = sftp_path(sftp, id, text);
	memory_free(text);
	if (path != NULL)
		check_file(sftp, id, input, path);
}

static void
serve_check_file_handle(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct sftp_handle *handle;

	handle = sftp_get_file(sftp, id, input);
	if (handle != NULL)
		check_file(sftp, id, input, memory_text(handle->path));
}

/* In the order in which VERSION tells them; a version of NULL: not told by this name. */
static const struct {
	const char *name, *version;
	sftp_serve_fn *serve;
} extensions[] = {
	{ "posix-rename@openssh.com", "1", serve_posix_rename },
	{ "statvfs@openssh.com", "2", serve_statvfs },
	{ "fstatvfs@openssh.com", "2", serve_fstatvfs },
	{ "hardlink@openssh.com", "1", serve_hardlink },
	{ "fsync@openssh.com", "1", serve_fsync },
	{ "lsetstat@openssh.com", "1", serve_lsetstat },
	{ "limits@openssh.com", "1", serve_limits },
	{ "expand-path@openssh.com", "1", serve_expand_path },
	{ "copy-data", "1", serve_copy_data },
	{ "home-directory", "1", serve_home_directory },
	{ "users-groups-by-id@openssh.com", "1", serve_names },
	{ "check-file", "1", serve_check_file_handle },
	{ "check-file-handle", NULL, serve_check_file_handle },
	{ "check-file-name", NULL, serve_check_file_name },
};
#define COUNT (sizeof(extensions) / sizeof(extensions[0]))

void
sftp_put_extensions(struct buffer *output)
{
	size_t i;

	for (i = 0; i < COUNT; i++) {
		if (extensions[i].version == NULL)
			continue;
		sftp_put_text(output, extensions[i].name);
		sftp_put_text(output, extensions[i].version);
	}
}

void
sftp_serve_extended(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	char *name;
	size_t i;

	name = sftp_get_text(input);
	for (i = 0; i < COUNT; i++)
		if (strcmp(extensions[i].name, name) == 0)
			break;
	memory_free(name);
	if (i < COUNT)
		extensions[i].serve(sftp, id, input);
	else
		sftp_put_refusal(sftp, id, SFTP_UNSUPPORTED, "there is no such extension");
}
