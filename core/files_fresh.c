/* SPDX-License-Identifier: ISC */
/*
 * A ring of directories;
 * one that is pushed out takes its parent along, which then holds an unknown name.
 */
#include <string.h>

#include "core/base/memory.h"
#include "core/file.h"
#include "core/file_path.h"
#include "core/files_fresh.h"

#define DIRECTORIES_MAX 64U

struct files_fresh {
	char *directories[DIRECTORIES_MAX];
	size_t next;
};

struct files_fresh *
files_fresh_new(void)
{
	return memory_zeroed(1, sizeof(struct files_fresh));
}

static void
forget_all(struct files_fresh *fresh)
{
	size_t i;

	for (i = 0; i < DIRECTORIES_MAX; i++) {
		memory_free(fresh->directories[i]);
		fresh->directories[i] = NULL;
	}
}

void
files_fresh_free(struct files_fresh *fresh)
{
	if (fresh == NULL)
		return;
	forget_all(fresh);
	memory_free(fresh);
}

/* Its place in the ring, DIRECTORIES_MAX for none. */
static size_t
find(const struct files_fresh *fresh, const char *path)
{
	size_t i;

	for (i = 0; i < DIRECTORIES_MAX; i++)
		if (fresh->directories[i] != NULL && strcmp(fresh->directories[i], path) == 0)
			break;
	return i;
}

static void
forget(struct files_fresh *fresh, size_t at)
{
	if (at == DIRECTORIES_MAX)
		return;
	memory_free(fresh->directories[at]);
	fresh->directories[at] = NULL;
}

void
files_fresh_add(struct files_fresh *fresh, const char *path)
{
	size_t at = fresh->next++ % DIRECTORIES_MAX;
	char *parent;

	if (fresh->directories[at] != NULL) {
		parent = path_parent(fresh->directories[at]);
		forget(fresh, find(fresh, parent));
		memory_free(parent);
	}
	forget(fresh, at);
	fresh->directories[at] = memory_text(path);
}

void
files_fresh_watch(struct files_fresh *fresh, const struct file_request *request)
{
	if (request->verb == FILE_REMOVE || request->verb == FILE_RENAME ||
	    request->verb == FILE_SYMLINK || request->verb == FILE_LINK ||
	    request->verb == FILE_COPY)
		forget_all(fresh);
}

bool
files_fresh_allows(const struct files_fresh *fresh, const struct file_request *request)
{
	const unsigned anew = FILE_CREATE | FILE_TRUNCATE;
	char *parent;
	bool allows;

	if (request->verb != FILE_EDIT || (request->flags & (anew | FILE_EXCLUSIVE)) != anew)
		return false;
	parent = path_parent(request->path);
	allows = find(fresh, parent) < DIRECTORIES_MAX &&
		 find(fresh, request->path) == DIRECTORIES_MAX;
	memory_free(parent);
	return allows;
}
