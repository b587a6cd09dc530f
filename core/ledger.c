/* SPDX-License-Identifier: ISC */
/* One file a command, command.PID.STARTTIME, which holds the sandbox's id. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/ledger.h"

#define PREFIX "command."
#define NAME_SIZE 64
#define ID_MAX 256

static void
make_name(char name[NAME_SIZE], uint32_t pid, uint64_t start_time)
{
	(void)snprintf(name, NAME_SIZE, PREFIX "%" PRIu32 ".%" PRIu64, pid, start_time);
}

void
ledger_add(int directory, const char *sandbox, uint32_t pid, uint64_t start_time)
{
	char name[NAME_SIZE];
	size_t size = strlen(sandbox);
	int fd;

	if (directory < 0)
		return;
	make_name(name, pid, start_time);
	fd = openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, sandbox, size) != (ssize_t)size)
		log_error("a command cannot be written down: %s", strerror(errno));
	if (fd >= 0)
		(void)close(fd);
}

void
ledger_remove(int directory, uint32_t pid, uint64_t start_time)
{
	char name[NAME_SIZE];

	if (directory < 0)
		return;
	make_name(name, pid, start_time);
	(void)unlinkat(directory, name, 0);
}

/* A stream over the directory, which leaves the descriptor as it is; NULL when it cannot be read. */
static DIR *
open_stream(int directory)
{
	DIR *stream;
	int fd;

	fd = directory < 0 ? -1 : openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	stream = fdopendir(fd);
	if (stream == NULL)
		(void)close(fd);
	return stream;
}

static bool
is_entry(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}

/* Is the command of this file in that sandbox? */
static bool
is_in(int directory, const char *name, const char *sandbox)
{
	char id[ID_MAX];
	ssize_t size;
	int fd;

	fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	size = read(fd, id, sizeof(id));
	(void)close(fd);
	return size == (ssize_t)strlen(sandbox) && memcmp(id, sandbox, (size_t)size) == 0;
}

/* Adds what a name says; false when it says nothing. */
static bool
take_name(char ***list, size_t *count, const char *name)
{
	char *pid, *start_time;
	int64_t number;
	bool ok;

	name += strlen(PREFIX);
	pid = memory_text_bounded(name, strcspn(name, "."));
	start_time = memory_text(name[strlen(pid)] == '.' ? name + strlen(pid) + 1 : "");
	ok = number_parse(pid, 1, INT32_MAX, &number, NULL) == 0 &&
	     number_parse(start_time, 0, INT64_MAX, &number, NULL) == 0;
	if (ok) {
		*list = memory_list_add(*list, (*count)++, pid);
		*list = memory_list_add(*list, (*count)++, start_time);
	}
	memory_free(pid);
	memory_free(start_time);
	return ok;
}

char **
ledger_list(int directory, const char *sandbox)
{
	struct dirent *entry;
	size_t count = 0;
	char **list;
	DIR *stream;

	list = memory_zeroed(1, sizeof(*list));
	stream = open_stream(directory);
	if (stream == NULL)
		return list;
	while (count < (size_t)2 * LEDGER_MAX && (entry = readdir(stream)) != NULL) {
		if (!is_entry(entry->d_name))
			continue;
		if (!is_in(directory, entry->d_name, sandbox) ||
		    !take_name(&list, &count, entry->d_name))
			(void)unlinkat(directory, entry->d_name, 0);
	}
	(void)closedir(stream);
	return list;
}

bool
ledger_is_empty(int directory)
{
	struct dirent *entry;
	DIR *stream;

	stream = open_stream(directory);
	if (stream == NULL)
		return true;
	do
		entry = readdir(stream);
	while (entry != NULL && !is_entry(entry->d_name));
	(void)closedir(stream);
	return entry == NULL;
}
