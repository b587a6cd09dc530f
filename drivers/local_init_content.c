/* SPDX-License-Identifier: ISC */
/*
 * What files hold. Reading hands out the file itself. Writing goes to a private file that has no
 * name, in the target's directory, and gets one at COMMIT: until then nobody sees it, and when we
 * die it is gone without anybody's doing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "drivers/local_files.h"

#define CHUNK_SIZE (1U << 30)
#define BUFFER_SIZE 65536U

static int
check_regular(const struct stat *status, const char *path, struct error *err)
{
	if (S_ISDIR(status->st_mode))
		return error_set(err, ERROR_IS_DIRECTORY, "%s is a directory", path);
	if (!S_ISREG(status->st_mode))
		return error_set(err, ERROR_INVALID, "%s is not a regular file", path);
	return 0;
}

static int
check_size(const struct file_server *server, const struct stat *status, struct error *err)
{
	if ((uint64_t)status->st_size > server->serve.limit)
		return file_too_large(err, (uint64_t)status->st_size, server->serve.limit);
	return 0;
}

/*
 * O_NONBLOCK: a named pipe must not make us wait. The kind is checked first: opening a device acts.
 */
static int
open_regular(const struct file_place *place, const char *path, int flags, struct stat *status,
    struct error *err)
{
	int fd;

	if (file_place_stat(place, path, status, err) != 0 || check_regular(status, path, err) != 0)
		return -1;
	fd = openat(
	    place->directory, place->name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return error_system(err, errno, "%s", path);
	if (fstat(fd, status) == 0 && check_regular(status, path, err) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

int
file_verb_open(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	struct file_place place;
	struct stat status;

	if (file_place_find(server, request->path, true, &place, err) != 0)
		return -1;
	reply->fd = open_regular(&place, request->path, O_RDONLY, &status, err);
	file_place_free(&place);
	if (reply->fd < 0 || check_size(server, &status, err) != 0)
		return -1;
	file_attributes_from(&reply->attributes, &status);
	reply->arrived = (uint64_t)status.st_size;
	reply->limit = server->serve.limit;
	return 0;
}

/* Copies all of source from its start, sharing blocks where the file system can. */
static int
copy_content(int source, int target)
{
	static char buffer[BUFFER_SIZE];
	off_t offset = 0;
	ssize_t got;

	if (ioctl(target, FICLONE, source) == 0)
		return 0;
	while ((got = copy_file_range(source, &offset, target, NULL, CHUNK_SIZE, 0)) > 0)
		continue;
	/* It may say nothing at once and mean that it cannot; then it is read and written. */
	if (got < 0 && errno != EXDEV && errno != EINVAL && errno != ENOSYS &&
	    errno != EOPNOTSUPP && errno != EPERM && errno != EBADF)
		return -1;
	while ((got = pread(source, buffer, sizeof(buffer), offset)) > 0) {
		if (descriptor_write(target, buffer, (size_t)got, NULL) != 0)
			return -1;
		offset += got;
	}
	return got < 0 ? -1 : 0;
}

/* A file without a name; also where the file system knows no O_TMPFILE. */
static int
open_private(const struct file_place *place, struct error *err)
{
	struct file_leftover leftover;
	int fd;

	fd = openat(place->directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)
		return error_system(err, errno, "%s", place->path);
	file_leftover_open(&leftover, place);
	fd = openat(place->directory, leftover.name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		error_system(err, errno, "%s", place->path);
	else
		(void)unlinkat(place->directory, leftover.name, 0);
	file_leftover_close(&leftover);
	return fd;
}

/* What is there before it is written to: 1, or 0 for nothing. */
static int
look_before(const struct file_place *place, const struct file_request *request, struct stat *status,
    struct error *err)
{
	if (file_place_stat(place, request->path, status, err) != 0) {
		if (err->code == ERROR_NOT_FOUND && (request->flags & FILE_CREATE) != 0)
			return 0;
		return -1;
	}
	if ((request->flags & FILE_EXCLUSIVE) != 0)
		return error_set(err, ERROR_EXISTS, "%s exists", request->path);
	return check_regular(status, request->path, err) == 0 ? 1 : -1;
}

/* Opens it as a writer would, for the right to do so, and takes over what it holds. */
static int
take_present(const struct file_server *server, const struct file_place *place,
    const struct file_request *request, int target, struct error *err)
{
	struct stat status;
	int fd, result = 0;

	fd = open_regular(place, request->path, O_WRONLY, &status, err);
	/* One that runs can be replaced, if not be written to. */
	if (fd < 0 && err->saved_errno != ETXTBSY)
		return -1;
	descriptor_close(&fd);
	if ((request->flags & FILE_TRUNCATE) != 0)
		return 0;
	fd = open_regular(place, request->path, O_RDONLY, &status, err);
	if (fd < 0)
		return -1;
	if (check_size(server, &status, err) != 0)
		result = -1;
	else if (copy_content(fd, target) != 0)
		result = error_system(err, errno, "copy %s", request->path);
	(void)close(fd);
	return result;
}

int
file_verb_edit(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	struct file_place place;
	struct stat status;
	int found, result = -1;

	if (file_place_find(server, request->path, true, &place, err) != 0)
		return -1;
	found = look_before(&place, request, &status, err);
	if (found < 0)
		goto out;
	reply->fd = open_private(&place, err);
	if (reply->fd < 0)
		goto out;
	if (found == 1) {
		file_attributes_from(&reply->attributes, &status);
		if (take_present(server, &place, request, reply->fd, err) != 0)
			goto out;
	}
	reply->limit = server->serve.limit;
	reply->text = place.path;
	place.path = NULL;
	result = 0;
out:
	file_place_free(&place);
	return result;
}

/*
 * Mode, owner and times of the file that is about to appear. Only root can keep another's file his.
 */
static int
dress(int fd, const struct file_change *change, const struct stat *old)
{
	struct timespec times[2];
	mode_t mode = 0644;

	if (old != NULL) {
		mode = old->st_mode & 07777;
		(void)!fchown(fd, old->st_uid, old->st_gid);
	}
	if ((change->fields & FILE_CHANGE_OWNER) != 0 &&
	    fchown(fd, change->user, change->group) != 0)
		return -1;
	if ((change->fields & FILE_CHANGE_MODE) != 0)
		mode = change->mode & 07777;
	if (fchmod(fd, mode) != 0)
		return -1;
	if ((change->fields & FILE_CHANGE_TIMES) == 0)
		return 0;
	file_times_from(times, change);
	return futimens(fd, times);
}

/* Gives a file without a name one: only one that never had any. */
static int
give_name(int fd, int directory, const char *name)
{
	char path[64];
	struct stat status;

	if (fstat(fd, &status) != 0 || status.st_nlink != 0)
		return errno = EXDEV, -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW);
}

/*
 * A file with this name and the same content,
 * as fd is not to be had under a name of that directory.
 */
static int
copy_named(int fd, int directory, const char *name, const struct file_change *change,
    const struct stat *old)
{
	int copy, result;

	copy = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (copy < 0)
		return -1;
	result = copy_content(fd, copy);
	if (result == 0)
		result = dress(copy, change, old);
	if (close(copy) != 0)
		result = -1;
	if (result != 0)
		(void)unlinkat(directory, name, 0);
	return result;
}

/*
 * The last step. Without replace a second name is made rather than the first one changed: that
 * fails for what is there already.
 */
static int
move_over(const struct file_place *place, const char *name, bool replace)
{
	int failure, result;

	if (replace)
		result = renameat(place->directory, name, place->directory, place->name);
	else
		result = linkat(place->directory, name, place->directory, place->name, 0);
	failure = errno;
	if (result != 0 || !replace)
		(void)unlinkat(place->directory, name, 0);
	errno = failure;
	return result;
}

/*
 * Makes fd's content appear at the place, in one step, over what is there unless that is refused.
 */
static int
put_in_place(const struct file_place *place, int fd, const struct file_change *change,
    const struct stat *old, bool replace, struct error *err)
{
	struct file_leftover leftover;
	int result;

	if (give_name(fd, place->directory, place->name) == 0)
		return 0;
	if (errno == EEXIST && !replace)
		return error_system(err, errno, "%s", place->path);
	file_leftover_open(&leftover, place);
	result = give_name(fd, place->directory, leftover.name);
	if (result != 0)
		result = copy_named(fd, place->directory, leftover.name, change, old);
	if (result == 0)
		result = move_over(place, leftover.name, replace);
	if (result != 0)
		error_system(err, errno, "%s", place->path);
	file_leftover_close(&leftover);
	return result;
}

/* The content of fd becomes the file at the place. old says what is there, NULL for nothing. */
static int
replace_place(const struct file_place *place, int fd, const struct file_change *change,
    const struct stat *old, bool replace, struct error *err)
{
	struct stat status;

	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
		return error_set(err, ERROR_INVALID, "the content is not a regular file");
	/* A descriptor of somebody else's file is only read. */
	if (status.st_nlink == 0 && dress(fd, change, old) != 0 && errno != EROFS)
		return error_system(err, errno, "%s", place->path);
	return put_in_place(place, fd, change, old, replace, err);
}

static int
report_place(const struct file_place *place, struct file_reply *reply, struct error *err)
{
	struct stat status;

	if (file_place_stat(place, place->path, &status, err) != 0)
		return -1;
	file_attributes_from(&reply->attributes, &status);
	reply->text = memory_text(place->path);
	return 0;
}

/* COMMIT and COPY: request's content to the place of path. */
static int
store(const struct file_server *server, const char *path, struct file_request *request, int fd,
    bool replace, struct file_reply *reply, struct error *err)
{
	struct file_place place;
	struct stat old, status;
	bool found;
	int result = -1;

	if ((request->flags & FILE_PARENTS) != 0 && file_place_make_parents(server, path, err) != 0)
		return -1;
	if (file_place_find(server, path, true, &place, err) != 0)
		return -1;
	found = fstatat(place.directory, place.name, &old, AT_SYMLINK_NOFOLLOW) == 0;
	if (found && (request->flags & FILE_CREATE) != 0)
		request->change.fields &= ~(unsigned)FILE_CHANGE_MODE;
	if (found && !replace)
		error_set(err, ERROR_EXISTS, "%s exists", path);
	else if (fstat(fd, &status) != 0 || check_size(server, &status, err) != 0)
		error_wrap(err, "%s", path);
	else if (!found || check_regular(&old, path, err) == 0)
		result = replace_place(
		    &place, fd, &request->change, found ? &old : NULL, replace, err);
	if (result == 0)
		result = report_place(&place, reply, err);
	file_place_free(&place);
	return result;
}

int
file_verb_commit(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	bool replace = (request->flags & FILE_EXCLUSIVE) == 0;

	return store(server, request->path, request, request->fd, replace, reply, err);
}

int
file_verb_copy(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	struct file_place place;
	struct stat status;
	int source, result = -1;

	if (file_place_find(server, request->path, true, &place, err) != 0)
		return -1;
	source = open_regular(&place, request->path, O_RDONLY, &status, err);
	file_place_free(&place);
	if (source < 0)
		return -1;
	if ((request->change.fields & FILE_CHANGE_MODE) == 0) {
		request->change.fields |= FILE_CHANGE_MODE;
		request->change.mode = status.st_mode & 0777;
	}
	result = store(server, request->other, request, source,
	    (request->flags & FILE_OVERWRITE) != 0, reply, err);
	(void)close(source);
	return result;
}
