/* SPDX-License-Identifier: ISC */
/* Normalising is done as text, as the seed has it: "a/../b" is "b" whatever "a" may be. */
#include <string.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/file.h"
#include "core/file_path.h"

/* Takes the parts of path onto out, which has length bytes so far and room for all of path. */
static size_t
append_parts(char *out, size_t length, const char *path)
{
	size_t size;

	for (;; path += size) {
		path += strspn(path, "/");
		size = strcspn(path, "/");
		if (size == 0)
			return length;
		if (size == 1 && path[0] == '.')
			continue;
		if (size == 2 && path[0] == '.' && path[1] == '.') {
			while (length > 0 && out[--length] != '/')
				continue;
			continue;
		}
		out[length++] = '/';
		memcpy(out + length, path, size);
		length += size;
	}
}

char *
path_normalize(const char *root, const char *path, struct error *err)
{
	size_t length = 0;
	char *out;

	if (*path == '\0') {
		error_set(err, ERROR_INVALID, "an empty path");
		return NULL;
	}
	out = memory_allocate(strlen(root) + strlen(path) + 3);
	if (*path != '/')
		length = append_parts(out, length, root);
	length = append_parts(out, length, path);
	if (length == 0)
		out[length++] = '/';
	out[length] = '\0';
	if (length <= FILE_PATH_MAX)
		return out;
	memory_free(out);
	error_set(err, ERROR_INVALID, "a path of %zu bytes is too long", length);
	return NULL;
}

bool
path_is_within(const char *directory, const char *path)
{
	size_t length;

	length = strlen(directory);
	if (length == 1)
		return path[0] == '/';
	return strncmp(directory, path, length) == 0 &&
	       (path[length] == '/' || path[length] == '\0');
}

const char *
path_last(const char *path)
{
	const char *slash;

	slash = strrchr(path, '/');
	return slash == NULL ? path : slash + 1;
}

char *
path_join(const char *directory, const char *name)
{
	const char *between;

	between = directory[strlen(directory) - 1] == '/' ? "" : "/";
	return memory_text_format("%s%s%s", directory, between, name);
}

char *
path_parent(const char *path)
{
	const char *last;

	last = path_last(path);
	return last - path <= 1 ? memory_text("/")
				: memory_text_bounded(path, (size_t)(last - path - 1));
}
