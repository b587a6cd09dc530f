/* SPDX-License-Identifier: ISC */
/* Which sandbox a workspace has, kept across restarts. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/random.h"
#include "drivers/local_store.h"

#define ID_PREFIX "local-"
#define ID_FILE "sandbox"
#define ID_FILE_NEW "sandbox.new"

static bool
is_id(const char *text)
{
	size_t prefix = strlen(ID_PREFIX);

	return strlen(text) == LOCAL_ID_SIZE - 1 && strncmp(text, ID_PREFIX, prefix) == 0 &&
	       strspn(text + prefix, "0123456789abcdef") == LOCAL_ID_SIZE - 1 - prefix;
}

/* 0 with id empty when there is no sandbox. */
static int
read_id(int state, char id[LOCAL_ID_SIZE], struct error *err)
{
	char *text;
	int result;

	id[0] = '\0';
	error_clear(err);
	text = descriptor_read_file(state, ID_FILE, LOCAL_ID_SIZE, NULL, err);
	if (text == NULL)
		return err->code == ERROR_NOT_FOUND ? 0 : -1;
	text[strcspn(text, "\n")] = '\0';
	result = is_id(text) ? 0
			     : error_set(err, ERROR_INVALID, "%s holds no sandbox's id", ID_FILE);
	if (result == 0)
		memcpy(id, text, LOCAL_ID_SIZE);
	memory_free(text);
	return result;
}

static void
make_id(char id[LOCAL_ID_SIZE])
{
	memcpy(id, ID_PREFIX, strlen(ID_PREFIX));
	random_hex(id + strlen(ID_PREFIX), (LOCAL_ID_SIZE - 1 - strlen(ID_PREFIX)) / 2);
}

static int
write_id(int state, const char *id, struct error *err)
{
	char line[LOCAL_ID_SIZE + 1];
	int fd, result;

	fd = openat(
	    state, ID_FILE_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_system(err, errno, "%s", ID_FILE_NEW);
	(void)snprintf(line, sizeof(line), "%s\n", id);
	result = descriptor_write(fd, line, strlen(line), err);
	if (result == 0 && fsync(fd) != 0)
		result = error_system(err, errno, "%s", ID_FILE_NEW);
	(void)close(fd);
	if (result == 0 && renameat(state, ID_FILE_NEW, state, ID_FILE) != 0)
		result = error_system(err, errno, "%s", ID_FILE);
	if (result == 0)
		(void)fsync(state);
	return result;
}

static int
make_directory(int parent, const char *name, mode_t mode, struct error *err)
{
	if (mkdirat(parent, name, 0700) == 0) {
		/* Not by mkdir: our umask must not decide. */
		if (fchmodat(parent, name, mode, 0) != 0)
			return error_system(err, errno, "%s", name);
	} else if (errno != EEXIST) {
		return error_system(err, errno, "%s", name);
	}
	return 0;
}

/* Makes what is missing, which is all of it or what a kill left out. */
static int
open_tree(int state, const char *id, struct error *err)
{
	int directory;

	if (make_directory(state, id, 0700, err) != 0)
		return -1;
	directory = openat(state, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory < 0)
		return error_system(err, errno, "%s", id);
	if (make_directory(directory, "home", 0755, err) == 0 &&
	    make_directory(directory, "tmp", 01777, err) == 0 &&
	    make_directory(directory, "var-tmp", 01777, err) == 0)
		return directory;
	(void)close(directory);
	return -1;
}

int
local_store_open(int state, const char *wanted, bool may_create, char id[LOCAL_ID_SIZE],
    bool *created, struct error *err)
{
	int directory;

	*created = false;
	if (read_id(state, id, err) != 0)
		return error_wrap(err, "state of the workspace");
	if (wanted != NULL && strcmp(id, wanted) != 0)
		return error_set(err, ERROR_NOT_FOUND, "there is no sandbox %s here", wanted);
	if (id[0] == '\0' && !may_create)
		return error_set(err, ERROR_NOT_FOUND, "there is no sandbox");
	if (id[0] == '\0') {
		make_id(id);
		if (write_id(state, id, err) != 0)
			return error_wrap(err, "create a sandbox");
		*created = true;
	}
	directory = open_tree(state, id, err);
	if (directory < 0)
		return error_wrap(err, "directory of sandbox %s", id);
	return directory;
}

int
local_store_forget(int state, struct error *err)
{
	if (unlinkat(state, ID_FILE, 0) != 0 && errno != ENOENT)
		return error_system(err, errno, "%s", ID_FILE);
	(void)fsync(state);
	return 0;
}

bool
local_store_leftover(int state, const char *id, char name[LOCAL_ID_SIZE])
{
	struct dirent *entry;
	bool found = false;
	DIR *stream;
	int fd;

	fd = openat(state, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	stream = fd < 0 ? NULL : fdopendir(fd);
	if (stream == NULL) {
		descriptor_close(&fd);
		return false;
	}
	while (!found && (entry = readdir(stream)) != NULL) {
		found = is_id(entry->d_name) && strcmp(entry->d_name, id) != 0;
		if (found)
			memcpy(name, entry->d_name, LOCAL_ID_SIZE);
	}
	(void)closedir(stream);
	return found;
}
