/* SPDX-License-Identifier: ISC */
/*
 * What interrupted operations leave. An unfinished file needs a name beside its target for a
 * moment; a note in the temporary directory says where, so that a sweep finds it without a search
 * of the whole tree. Notes may be forged by whoever runs in the sandbox: a sweep removes nothing
 * but files in the root whose own name is the note's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/random.h"
#include "core/file_path.h"
#include "drivers/local_files.h"

#define PREFIX ".rws-"
/* Random bytes in a name; their digits fill it up to LEFTOVER_NAME_SIZE. */
#define NUMBER_SIZE 8

/* The directory of notes, our own and closed to others; made when it is missing. */
static int
open_notes(void)
{
	struct stat status;
	const char *base;
	char *path;
	int fd;

	base = getenv("TMPDIR");
	path = memory_text_format("%s/.rws-%u", base == NULL ? "/tmp" : base, geteuid());
	(void)mkdir(path, 0700);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	memory_free(path);
	if (fd >= 0 && fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
	    (status.st_mode & 022) == 0)
		return fd;
	descriptor_close(&fd);
	return -1;
}

static void
write_note(struct file_leftover *leftover, const struct file_place *place)
{
	char *parent, *path;
	int notes, fd;

	notes = open_notes();
	if (notes < 0)
		return;
	fd = openat(notes, leftover->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	parent = path_parent(place->path);
	path = path_join(parent, leftover->name);
	if (fd >= 0 && descriptor_write(fd, path, strlen(path), NULL) == 0)
		leftover->note = memory_text(leftover->name);
	memory_free(parent);
	memory_free(path);
	descriptor_close(&fd);
	(void)close(notes);
}

void
file_leftover_open(struct file_leftover *leftover, const struct file_place *place)
{
	leftover->note = NULL;
	memcpy(leftover->name, PREFIX, strlen(PREFIX));
	random_hex(leftover->name + strlen(PREFIX), NUMBER_SIZE);
	write_note(leftover, place);
}

void
file_leftover_close(struct file_leftover *leftover)
{
	int notes;

	if (leftover->note == NULL)
		return;
	notes = open_notes();
	if (notes >= 0)
		(void)unlinkat(notes, leftover->note, 0);
	descriptor_close(&notes);
	memory_free(leftover->note);
	leftover->note = NULL;
}

/*
 * The unfinished file that the note speaks of, and the note,
 * unless it is for the server of another root.
 */
static void
remove_noted(const struct file_server *server, int notes, const char *name)
{
	struct file_place place;
	struct stat status;
	char *path;

	path = descriptor_read_file(notes, name, FILE_PATH_MAX, NULL, NULL);
	if (path != NULL && path[0] == '/' && !path_is_within(server->serve.root, path)) {
		memory_free(path);
		return;
	}
	if (path != NULL && path[0] == '/' && strcmp(path_last(path), name) == 0 &&
	    file_place_find(server, path, false, &place, NULL) == 0) {
		if (file_place_stat(&place, path, &status, NULL) == 0 && S_ISREG(status.st_mode))
			(void)unlinkat(place.directory, place.name, 0);
		file_place_free(&place);
	}
	memory_free(path);
	(void)unlinkat(notes, name, 0);
}

void
file_leftover_sweep(const struct file_server *server)
{
	struct dirent *entry;
	struct stat status;
	DIR *stream;
	int notes;

	notes = open_notes();
	stream = notes < 0 ? NULL : fdopendir(notes);
	while (stream != NULL && (entry = readdir(stream)) != NULL) {
		if (fstatat(notes, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(status.st_mode) ||
		    time(NULL) - status.st_mtime < (time_t)server->serve.leftover_age)
			continue;
		if (strncmp(entry->d_name, PREFIX, sizeof(PREFIX) - 1) == 0)
			remove_noted(server, notes, entry->d_name);
	}
	if (stream != NULL)
		(void)closedir(stream);
}
