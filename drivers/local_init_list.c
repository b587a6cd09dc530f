/* SPDX-License-Identifier: ISC */
/*
 * Listing: each directory's names are sorted, and what is in a directory comes right after it. The
 * records go to a file without a name that the asker reads, so no listing is ever in memory whole
 * but one directory's names.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/file_glob.h"
#include "core/file_path.h"
#include "drivers/local_files.h"

#define FLUSH_SIZE 65536U
/* Directories within each other that are entered: each holds a descriptor. */
#define DEPTH_MAX 200

struct listing {
	const struct file_request *request;
	int sink;
	struct buffer output;
	uint64_t size, count;
	bool full; /* as many entries as were asked for */
	unsigned depth;
	char path[FILE_PATH_MAX + 1];
	size_t length;
};

static int
compare_names(const void *first, const void *second)
{
	return strcmp(*(char *const *)first, *(char *const *)second);
}

static char **
read_names(DIR *stream, bool hidden, size_t *count)
{
	size_t room = 0;
	struct dirent *entry;
	char **names = NULL;

	*count = 0;
	while ((entry = readdir(stream)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    (entry->d_name[0] == '.' && !hidden))
			continue;
		if (*count == room) {
			room = room == 0 ? 64 : 2 * room;
			names = memory_resize(names, room, sizeof(*names));
		}
		names[(*count)++] = memory_text(entry->d_name);
	}
	if (*count > 1)
		qsort(names, *count, sizeof(*names), compare_names);
	return names;
}

static int
flush_listing(struct listing *listing, struct error *err)
{
	if (descriptor_write(
		listing->sink, buffer_data(&listing->output), listing->output.length, err) != 0)
		return error_wrap(err, "listing");
	buffer_consume(&listing->output, listing->output.length);
	return 0;
}

static int
put_entry(struct listing *listing, const struct stat *status, struct error *err)
{
	struct file_entry entry = { .path = listing->path };
	size_t before;

	file_attributes_from(&entry.attributes, status);
	before = listing->output.length;
	(void)file_list_put(&listing->output, &entry);
	listing->size += listing->output.length - before;
	if (listing->size > FILE_LIST_BYTES_MAX)
		return error_set(err, ERROR_TOO_LARGE,
		    "the listing is over 64 MiB: narrow it with skip_dirs, glob or limit");
	listing->count++;
	if (listing->request->limit != 0 && listing->count == listing->request->limit)
		listing->full = true;
	return listing->output.length >= FLUSH_SIZE ? flush_listing(listing, err) : 0;
}

static bool
is_skipped(const struct listing *listing, const char *name)
{
	char **skip = listing->request->skip;
	size_t i;

	for (i = 0; skip != NULL && skip[i] != NULL; i++)
		if (strcmp(skip[i], name) == 0)
			return true;
	return false;
}

static int list_directory(struct listing *listing, int parent, const char *name, struct error *err);

/* One that vanished meanwhile is left out. */
static int
list_entry(struct listing *listing, int directory, const char *name, struct error *err)
{
	const struct file_request *request = listing->request;
	struct stat status;
	size_t length = listing->length, size = strlen(name);
	int result = 0;

	if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
	    length + size + 1 > FILE_PATH_MAX)
		return 0;
	if (length > 0)
		listing->path[length++] = '/';
	memcpy(listing->path + length, name, size + 1);
	if (request->glob == NULL || glob_match(request->glob, listing->path))
		result = put_entry(listing, &status, err);
	if (result == 0 && !listing->full && S_ISDIR(status.st_mode) &&
	    (request->flags & FILE_RECURSIVE) != 0 && !is_skipped(listing, name)) {
		size += length;
		length = listing->length;
		listing->length = size;
		result = list_directory(listing, directory, name, err);
		listing->length = length;
	}
	return result;
}

/* Below the listed one, what cannot be entered is listed as if it were empty. */
static int
list_directory(struct listing *listing, int parent, const char *name, struct error *err)
{
	char **names;
	size_t i, count;
	DIR *stream;
	int fd, result = 0;

	if (listing->depth == DEPTH_MAX)
		return 0;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	stream = fd < 0 ? NULL : fdopendir(fd);
	if (stream == NULL) {
		result = listing->depth == 0
			     ? error_system(err, errno, "%s", listing->request->path)
			     : 0;
		descriptor_close(&fd);
		return result;
	}
	listing->depth++;
	names = read_names(stream, (listing->request->flags & FILE_HIDDEN) != 0, &count);
	for (i = 0; i < count; i++) {
		if (result == 0 && !listing->full)
			result = list_entry(listing, fd, names[i], err);
		memory_free(names[i]);
	}
	memory_free(names);
	(void)closedir(stream);
	listing->depth--;
	return result;
}

int
file_verb_list(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	struct listing *listing;
	struct file_place place;
	struct stat status;
	int result;

	if (file_place_find(server, request->path, true, &place, err) != 0)
		return -1;
	listing = memory_zeroed(1, sizeof(*listing));
	listing->request = request;
	buffer_init(&listing->output, 2 * FLUSH_SIZE);
	listing->sink = memfd_create("rws-listing", MFD_CLOEXEC);
	if (listing->sink < 0)
		result = error_system(err, errno, "memfd_create");
	else
		result = list_directory(listing, place.directory, place.name, err);
	if (result == 0)
		result = flush_listing(listing, err);
	if (result == 0 && file_place_stat(&place, request->path, &status, err) == 0) {
		file_attributes_from(&reply->attributes, &status);
		(void)lseek(listing->sink, 0, SEEK_SET);
		reply->count = listing->count;
		reply->fd = listing->sink;
		listing->sink = -1;
	}
	descriptor_close(&listing->sink);
	buffer_free(&listing->output);
	memory_free(listing);
	file_place_free(&place);
	return result;
}
