/* SPDX-License-Identifier: ISC */
/*
 * Finding paths without ever leaving the root. A directory is opened the way the kernel does it,
 * every symlink followed, and then asked where it is: by its descriptor, so the answer is about the
 * very directory that is used afterwards, and a symlink swapped in meanwhile changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/file_path.h"
#include "drivers/local_files.h"

/* As many links one after another as the kernel takes. */
#define LINKS_MAX 40
#define BILLION INT64_C(1000000000)

void
file_attributes_from(struct file_attributes *attributes, const struct stat *status)
{
	attributes->mode = status->st_mode;
	attributes->user = status->st_uid;
	attributes->group = status->st_gid;
	attributes->links = (uint32_t)status->st_nlink;
	attributes->size = (uint64_t)status->st_size;
	attributes->device = status->st_dev;
	attributes->inode = status->st_ino;
	attributes->accessed = status->st_atim.tv_sec * BILLION + status->st_atim.tv_nsec;
	attributes->modified = status->st_mtim.tv_sec * BILLION + status->st_mtim.tv_nsec;
}

/* Before 1970 too the nanoseconds count up, from the second below. */
static struct timespec
make_time(int64_t nanoseconds)
{
	struct timespec when;

	when.tv_sec = nanoseconds / BILLION;
	when.tv_nsec = nanoseconds % BILLION;
	if (when.tv_nsec < 0) {
		when.tv_sec--;
		when.tv_nsec += BILLION;
	}
	return when;
}

void
file_times_from(struct timespec times[2], const struct file_change *change)
{
	times[0] = make_time(change->accessed);
	times[1] = make_time(change->modified);
}

/* Where the directory is: a new path, or NULL with errno ENOENT when it was removed. */
static char *
tell_path(int directory)
{
	char link[64], path[PATH_MAX];
	struct stat status;
	ssize_t length;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
	length = readlink(link, path, sizeof(path));
	if (length <= 0 || (size_t)length >= sizeof(path) || fstat(directory, &status) != 0 ||
	    status.st_nlink == 0) {
		errno = ENOENT;
		return NULL;
	}
	return memory_text_bounded(path, (size_t)length);
}

/* Opens the directory that holds text's last name. */
static int
enter_parent(const char *text, struct file_place *place)
{
	char *parent, *real;

	parent = path_parent(text);
	place->directory = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	memory_free(parent);
	if (place->directory < 0)
		return -1;
	real = tell_path(place->directory);
	if (real == NULL)
		return -1;
	place->name = memory_text(path_last(text));
	place->path = path_join(real, place->name);
	memory_free(real);
	return 0;
}

static int
become_root(const struct file_server *server, struct file_place *place)
{
	file_place_free(place);
	place->name = memory_text(".");
	place->path = memory_text(server->serve.root);
	place->directory = open(server->serve.root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return place->directory < 0 ? -1 : 0;
}

/* The text that a symlink says, as a path: new, or NULL when the place is no symlink. */
static char *
follow_link(const struct file_place *place)
{
	char target[PATH_MAX], *parent, *path;
	ssize_t length;

	length = readlinkat(place->directory, place->name, target, sizeof(target) - 1);
	if (length <= 0)
		return NULL;
	target[length] = '\0';
	while (length > 1 && target[length - 1] == '/')
		target[--length] = '\0';
	if (target[0] == '/')
		return memory_text(target);
	parent = path_parent(place->path);
	path = path_join(parent, target);
	memory_free(parent);
	return path;
}

static bool
is_inside(const struct file_server *server, const struct file_place *place)
{
	char *parent;
	bool inside;

	parent = path_parent(place->path);
	inside = path_is_within(server->serve.root, parent);
	memory_free(parent);
	return inside;
}

/*
 * One step along a path:
 * 1 when the place is found, 0 when *text says where to go on, -1 with errno.
 */
static int
take_step(const struct file_server *server, char **text, bool follow, struct file_place *place)
{
	char *next;

	if (strcmp(*text, server->serve.root) == 0 || strcmp(*text, "/") == 0)
		return strcmp(*text, server->serve.root) == 0 && become_root(server, place) == 0
			   ? 1
			   : -1;
	if (enter_parent(*text, place) != 0)
		return -1;
	/* What a dangling link says may end in a name that is none. */
	if (strcmp(place->name, ".") == 0 || strcmp(place->name, "..") == 0)
		return errno = ENOENT, -1;
	if (strcmp(place->path, server->serve.root) == 0)
		return become_root(server, place) == 0 ? 1 : -1;
	next = follow ? follow_link(place) : NULL;
	if (next == NULL)
		return is_inside(server, place) ? 1 : (errno = EXDEV, -1);
	memory_free(*text);
	*text = next;
	file_place_free(place);
	return 0;
}

int
file_place_find(const struct file_server *server, const char *path, bool follow,
    struct file_place *place, struct error *err)
{
	int links, step;
	char *text;

	memset(place, 0, sizeof(*place));
	place->directory = -1;
	text = path_normalize(server->serve.root, path, err);
	if (text == NULL)
		return -1;
	errno = EXDEV;
	for (links = step = 0; step == 0 && links < LINKS_MAX; links++)
		step = take_step(server, &text, follow, place);
	memory_free(text);
	if (step == 1)
		return 0;
	file_place_free(place);
	if (step == 0)
		errno = ELOOP;
	if (errno == EXDEV)
		error_set(
		    err, ERROR_OUTSIDE_ROOT, "%s is outside the root %s", path, server->serve.root);
	else
		error_system(err, errno, "%s", path);
	return -1;
}

void
file_place_free(struct file_place *place)
{
	descriptor_close(&place->directory);
	memory_free(place->name);
	memory_free(place->path);
	place->name = place->path = NULL;
}

int
file_place_stat(
    const struct file_place *place, const char *path, struct stat *status, struct error *err)
{
	if (place->name == NULL) {
		error_set(err, ERROR_INVALID, "%s: there is no such place", path);
		return -1;
	}
	if (fstatat(place->directory, place->name, status, AT_SYMLINK_NOFOLLOW) != 0)
		return error_system(err, errno, "%s", path);
	return 0;
}

int
file_place_check_name(const struct file_place *place, const char *path, struct error *err)
{
	if (strcmp(place->name, ".") == 0)
		return error_set(err, ERROR_DENIED, "%s is the root itself", path);
	return 0;
}

/* Makes one directory unless it is there. */
static int
make_directory(const struct file_server *server, const char *path, struct error *err)
{
	struct file_place place;
	int result = 0;

	if (file_place_find(server, path, true, &place, err) != 0)
		return -1;
	if (mkdirat(place.directory, place.name, 0777) != 0 && errno != EEXIST)
		result = error_system(err, errno, "%s", path);
	file_place_free(&place);
	return result;
}

int
file_place_make_parents(const struct file_server *server, const char *path, struct error *err)
{
	char *text, *end;
	int result = 0;

	text = path_normalize(server->serve.root, path, err);
	if (text == NULL)
		return -1;
	end = text;
	if (path_is_within(server->serve.root, text))
		end += strlen(server->serve.root);
	while (result == 0 && *end != '\0' && (end = strchr(end + 1, '/')) != NULL) {
		*end = '\0';
		result = make_directory(server, text, err);
		*end = '/';
	}
	memory_free(text);
	return result;
}

/* The longest part of path that is there, resolved, and the rest as it stands. */
static char *
resolve(const struct file_server *server, const char *path, struct error *err)
{
	struct file_place place;
	char *parent, *real, *result;

	if (file_place_find(server, path, true, &place, err) == 0) {
		result = place.path;
		place.path = NULL;
		file_place_free(&place);
		return result;
	}
	if (err->code != ERROR_NOT_FOUND || strcmp(path, "/") == 0)
		return NULL;
	parent = path_parent(path);
	real = resolve(server, parent, err);
	result = real == NULL ? NULL : path_join(real, path_last(path));
	memory_free(parent);
	memory_free(real);
	return result;
}

int
file_verb_resolve(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	struct file_place place;
	struct stat status;
	char *text;

	text = path_normalize(server->serve.root, request->path, err);
	if (text == NULL)
		return -1;
	reply->text = resolve(server, text, err);
	memory_free(text);
	if (reply->text == NULL)
		return error_wrap(err, "resolve");
	if (file_place_find(server, reply->text, true, &place, NULL) != 0)
		return 0;
	if (file_place_stat(&place, reply->text, &status, NULL) == 0)
		file_attributes_from(&reply->attributes, &status);
	file_place_free(&place);
	return 0;
}
