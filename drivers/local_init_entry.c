/* SPDX-License-Identifier: ISC */
/* Names and attributes: what needs no look into a file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/file_path.h"
#include "drivers/local_files.h"

#define NAMES_FILE_MAX (4U * 1024U * 1024U)

int
file_verb_stat(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	struct file_place place;
	struct stat status;
	int result;

	if (file_place_find(
		server, request->path, (request->flags & FILE_FOLLOW) != 0, &place, err) != 0)
		return -1;
	result = file_place_stat(&place, request->path, &status, err);
	if (result == 0)
		file_attributes_from(&reply->attributes, &status);
	file_place_free(&place);
	return result;
}

int
file_verb_mkdir(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	bool parents = (request->flags & FILE_PARENTS) != 0;
	mode_t mode = (request->change.fields & FILE_CHANGE_MODE) != 0 ? request->change.mode
								       : 0777;
	struct file_place place;
	struct stat status;
	int result = 0;

	(void)reply;
	if (parents && file_place_make_parents(server, request->path, err) != 0)
		return -1;
	if (file_place_find(server, request->path, parents, &place, err) != 0)
		return -1;
	if (mkdirat(place.directory, place.name, mode & 07777) != 0) {
		result = error_system(err, errno, "%s", request->path);
		if (err->saved_errno == EEXIST && parents &&
		    fstatat(place.directory, place.name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISDIR(status.st_mode))
			result = 0;
	}
	file_place_free(&place);
	return result;
}

/* Two places, of path and other; both are free on failure. */
static int
find_two(const struct file_server *server, const struct file_request *request,
    struct file_place *from, struct file_place *to, struct error *err)
{
	if ((request->flags & FILE_PARENTS) != 0 &&
	    file_place_make_parents(server, request->other, err) != 0)
		return -1;
	if (file_place_find(server, request->path, false, from, err) != 0)
		return -1;
	if (file_place_find(server, request->other, false, to, err) == 0) {
		if (file_place_check_name(from, request->path, err) == 0 &&
		    file_place_check_name(to, request->other, err) == 0)
			return 0;
		file_place_free(to);
	}
	file_place_free(from);
	return -1;
}

/* Not every file system can refuse to replace by itself; then it is looked first. */
static int
rename_new(const struct file_place *from, const struct file_place *to)
{
	struct stat status;

	if (renameat2(from->directory, from->name, to->directory, to->name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (fstatat(to->directory, to->name, &status, AT_SYMLINK_NOFOLLOW) == 0)
		return errno = EEXIST, -1;
	return renameat(from->directory, from->name, to->directory, to->name);
}

static int
rename_places(const struct file_request *request, const struct file_place *from,
    const struct file_place *to, struct error *err)
{
	struct stat status;
	int result;

	if (file_place_stat(from, request->path, &status, err) != 0)
		return -1;
	if (strcmp(from->path, to->path) == 0)
		return 0;
	if (path_is_within(from->path, to->path))
		return error_set(
		    err, ERROR_INVALID, "%s is inside %s", request->other, request->path);
	if ((request->flags & FILE_OVERWRITE) != 0)
		result = renameat(from->directory, from->name, to->directory, to->name);
	else
		result = rename_new(from, to);
	if (result == 0)
		return 0;
	error_system(err, errno, "rename %s to %s", request->path, request->other);
	/* Some say that a directory with something in it exists. */
	if (err->code == ERROR_EXISTS && (request->flags & FILE_OVERWRITE) != 0)
		err->code = ERROR_NOT_EMPTY;
	return -1;
}

int
file_verb_rename(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	struct file_place from, to;
	int result;

	(void)reply;
	if (find_two(server, request, &from, &to, err) != 0)
		return -1;
	result = rename_places(request, &from, &to, err);
	file_place_free(&from);
	file_place_free(&to);
	return result;
}

int
file_verb_link(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	struct file_place from, to;
	int result;

	(void)reply;
	if (find_two(server, request, &from, &to, err) != 0)
		return -1;
	result = linkat(from.directory, from.name, to.directory, to.name, 0);
	if (result != 0)
		error_system(err, errno, "link %s to %s", request->path, request->other);
	file_place_free(&from);
	file_place_free(&to);
	return result;
}

int
file_verb_symlink(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	struct file_place place;
	int result;

	(void)reply;
	if (file_place_find(server, request->path, false, &place, err) != 0)
		return -1;
	result = symlinkat(request->other, place.directory, place.name);
	if (result != 0)
		error_system(err, errno, "%s", request->path);
	file_place_free(&place);
	return result;
}

int
file_verb_readlink(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	struct file_place place;
	char text[PATH_MAX];
	ssize_t length;

	if (file_place_find(server, request->path, false, &place, err) != 0)
		return -1;
	length = readlinkat(place.directory, place.name, text, sizeof(text));
	if (length >= 0)
		reply->text = memory_text_bounded(text, (size_t)length);
	else if (errno == EINVAL)
		error_set(err, ERROR_INVALID, "%s is not a symlink", request->path);
	else
		error_system(err, errno, "%s", request->path);
	file_place_free(&place);
	return length >= 0 ? 0 : -1;
}

static int
change_size(const struct file_server *server, const struct file_place *place, int fd, uint64_t size)
{
	int opened = -1, result;

	if (size > server->serve.limit || size > INT64_MAX)
		return errno = EFBIG, -1;
	if (fd < 0)
		fd = opened = openat(place->directory, place->name,
		    O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	result = fd < 0 ? -1 : ftruncate(fd, (off_t)size);
	descriptor_close(&opened);
	return result;
}

/* chmod has no form that does not follow links, but for a descriptor. */
static int
change_mode(const struct file_place *place, int fd, mode_t mode)
{
	char path[64];
	struct stat status;
	int opened, result = -1;

	if (fd >= 0)
		return fchmod(fd, mode);
	opened = openat(place->directory, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (opened < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", opened);
	if (fstat(opened, &status) == 0 && S_ISLNK(status.st_mode))
		errno = EOPNOTSUPP;
	else
		result = chmod(path, mode);
	(void)close(opened);
	return result;
}

/* Times last: the others change them. */
static int
apply_change(const struct file_server *server, const struct file_change *change,
    const struct file_place *place, int fd)
{
	struct timespec times[2];
	int result = 0;

	if ((change->fields & FILE_CHANGE_SIZE) != 0)
		result = change_size(server, place, fd, change->size);
	if (result == 0 && (change->fields & FILE_CHANGE_OWNER) != 0)
		result = fd >= 0 ? fchown(fd, change->user, change->group)
				 : fchownat(place->directory, place->name, change->user,
				       change->group, AT_SYMLINK_NOFOLLOW);
	if (result == 0 && (change->fields & FILE_CHANGE_MODE) != 0)
		result = change_mode(place, fd, change->mode & 07777);
	if (result != 0 || (change->fields & FILE_CHANGE_TIMES) == 0)
		return result;
	file_times_from(times, change);
	return fd >= 0 ? futimens(fd, times)
		       : utimensat(place->directory, place->name, times, AT_SYMLINK_NOFOLLOW);
}

int
file_verb_setstat(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	struct file_place place = { .directory = -1 };
	int result;

	(void)reply;
	if (request->fd < 0 && file_place_find(server, request->path,
				   (request->flags & FILE_FOLLOW) != 0, &place, err) != 0)
		return -1;
	result = apply_change(server, &request->change, &place, request->fd);
	if (result != 0 && errno == EFBIG)
		file_too_large(err, request->change.size, server->serve.limit);
	else if (result != 0)
		error_system(err, errno, "%s", request->path);
	file_place_free(&place);
	return result;
}

int
file_verb_statvfs(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	struct file_place place;
	struct statvfs status;
	int fd, result;

	if (file_place_find(server, request->path, true, &place, err) != 0)
		return -1;
	fd = openat(place.directory, place.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	result = fd < 0 ? -1 : fstatvfs(fd, &status);
	if (result != 0)
		error_system(err, errno, "%s", request->path);
	descriptor_close(&fd);
	file_place_free(&place);
	if (result != 0)
		return -1;
	reply->volume = (struct file_volume){ .block_size = status.f_bsize,
		.fragment_size = status.f_frsize,
		.blocks = status.f_blocks,
		.blocks_free = status.f_bfree,
		.blocks_available = status.f_bavail,
		.files = status.f_files,
		.files_free = status.f_ffree,
		.files_available = status.f_favail,
		.id = status.f_fsid,
		.flags = status.f_flag,
		.name_max = status.f_namemax };
	return 0;
}

/* The name in the line NAME:x:NUMBER:… of a passwd or group file; a new text, maybe empty. */
static char *
find_name(const char *text, uint32_t number)
{
	const char *line, *field;
	size_t length;
	int64_t found;
	char *digits;
	bool same;

	for (line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
		length = strcspn(line, ":\n");
		field = line + length;
		if (*field != ':' || *(field += 1 + strcspn(field + 1, ":\n")) != ':')
			continue;
		digits = memory_text_bounded(field + 1, strcspn(field + 1, ":\n"));
		same = number_parse(digits, 0, UINT32_MAX, &found, NULL) == 0 && found == number;
		memory_free(digits);
		if (same)
			return memory_text_bounded(line, length);
	}
	return memory_text("");
}

int
file_verb_names(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	char *users, *groups, *name;
	const char *text;
	uint32_t i;

	(void)server;
	(void)err;
	users = descriptor_read_file(AT_FDCWD, "/etc/passwd", NAMES_FILE_MAX, NULL, NULL);
	groups = descriptor_read_file(AT_FDCWD, "/etc/group", NAMES_FILE_MAX, NULL, NULL);
	reply->names = memory_zeroed(1, sizeof(*reply->names));
	for (i = 0; i < request->number_count; i++) {
		text = i < request->user_count ? users : groups;
		name = find_name(text == NULL ? "" : text, request->numbers[i]);
		reply->names = memory_list_add(reply->names, i, name);
		memory_free(name);
	}
	memory_free(users);
	memory_free(groups);
	return 0;
}
