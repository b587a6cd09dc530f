/* SPDX-License-Identifier: ISC */
/* Removing: for good, or into the trash of the root. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

#define STATE ".rws"
#define TRASH "trash"
#define TRIES 100

/*
 * Opens a directory of ours below another, made when it is missing;
 * a symlink in its place is refused.
 */
static int
open_own(int directory, const char *name, struct error *err)
{
	int fd;

	(void)mkdirat(directory, name, 0755);
	fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_system(err, errno, "%s of the root", name);
	return fd;
}

static int
open_trash(const struct file_server *server, struct error *err)
{
	int root, state, trash = -1;

	root = open(server->serve.root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0)
		return error_system(err, errno, "the root");
	state = open_own(root, STATE, err);
	if (state >= 0)
		trash = open_own(state, TRASH, err);
	descriptor_close(&state);
	(void)close(root);
	return trash;
}

/* Gives the entry a name in the trash that nothing there has: the time, then its own name. */
static int
move_to_trash(const struct file_place *place, int trash, char **moved, struct error *err)
{
	char stamp[32], name[256];
	struct tm parts;
	time_t now;
	unsigned i;

	now = time(NULL);
	(void)gmtime_r(&now, &parts);
	(void)strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &parts);
	for (i = 0; i < TRIES; i++) {
		if (snprintf(name, sizeof(name), "%s-%02u-%s", stamp, i, place->name) >=
		    (int)sizeof(name))
			memcpy(name + sizeof(name) - 4, "...", 4);
		if (renameat2(place->directory, place->name, trash, name, RENAME_NOREPLACE) == 0) {
			*moved = memory_text_format(STATE "/" TRASH "/%s", name);
			return 0;
		}
		if (errno != EEXIST)
			break;
	}
	return error_system(err, errno, "move %s to the trash", place->path);
}

static int
trash(const struct file_server *server, const struct file_place *place, struct file_reply *reply,
    struct error *err)
{
	char *state, *moved = NULL;
	int fd, result;
	bool within;

	state = path_join(server->serve.root, STATE);
	within = path_is_within(state, place->path);
	memory_free(state);
	if (within)
		return error_set(
		    err, ERROR_INVALID, "%s cannot go to the trash: it holds it", place->path);
	fd = open_trash(server, err);
	if (fd < 0)
		return -1;
	result = move_to_trash(place, fd, &moved, err);
	(void)close(fd);
	if (result == 0)
		reply->text = path_join(server->serve.root, moved);
	memory_free(moved);
	return result;
}

static int
remove_place(const struct file_server *server, const struct file_place *place,
    const struct file_request *request, struct file_reply *reply, struct error *err)
{
	const char *path = request->path;
	struct stat status;
	int result;

	if (file_place_check_name(place, path, err) != 0 ||
	    file_place_stat(place, path, &status, err) != 0)
		return -1;
	if (S_ISDIR(status.st_mode) && (request->flags & FILE_ONLY_FILE) != 0)
		return error_set(err, ERROR_IS_DIRECTORY, "%s is a directory", path);
	if (!S_ISDIR(status.st_mode) && (request->flags & FILE_ONLY_DIRECTORY) != 0)
		return error_set(err, ERROR_NOT_DIRECTORY, "%s is not a directory", path);
	if ((request->flags & FILE_TRASH) != 0)
		return trash(server, place, reply, err);
	if (!S_ISDIR(status.st_mode))
		result = unlinkat(place->directory, place->name, 0);
	else if ((request->flags & FILE_RECURSIVE) != 0)
		result = init_remove_tree(place->directory, place->name);
	else
		result = unlinkat(place->directory, place->name, AT_REMOVEDIR);
	if (result != 0)
		error_system(err, errno, "%s", path);
	if (result != 0 && err->code == ERROR_EXISTS)
		err->code = ERROR_NOT_EMPTY;
	return result;
}

/* Closes fd. */
static bool
is_empty(int fd)
{
	size_t count = 0;
	DIR *stream;

	stream = fdopendir(fd);
	if (stream == NULL) {
		(void)close(fd);
		return true;
	}
	while (count <= 2 && readdir(stream) != NULL)
		count++;
	(void)closedir(stream);
	return count <= 2;
}

/* A directory with something in it goes to the trash only when all of it was meant. */
static int
check_empty(const struct file_place *place, const struct file_request *request, struct error *err)
{
	int fd;

	if ((request->flags & (FILE_RECURSIVE | FILE_TRASH)) != FILE_TRASH)
		return 0;
	fd = openat(place->directory, place->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0;
	return is_empty(fd) ? 0 : error_set(err, ERROR_NOT_EMPTY, "%s is not empty", request->path);
}

int
file_verb_remove(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	struct file_place place;
	int result;

	if (file_place_find(server, request->path, false, &place, err) != 0)
		return -1;
	result = check_empty(&place, request, err);
	if (result == 0)
		result = remove_place(server, &place, request, reply, err);
	file_place_free(&place);
	return result;
}
