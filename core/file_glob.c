/* SPDX-License-Identifier: ISC */
/*
 * Braces are taken apart first, so that the matcher proper knows none; what is left is matched part
 * by part with fnmatch(3). The number of forms that braces may make is bounded: a pattern over it
 * matches nothing.
 */
#include <fnmatch.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/file_glob.h"

#define FORMS_MAX 1024

/* Matches one part of each, length bytes of glob and of path. */
static bool
match_part(const char *glob, size_t glob_length, const char *path, size_t path_length)
{
	char *pattern, *name;
	bool matches;

	pattern = memory_text_bounded(glob, glob_length);
	name = memory_text_bounded(path, path_length);
	matches = fnmatch(pattern, name, 0) == 0;
	memory_free(pattern);
	memory_free(name);
	return matches;
}

static bool
is_deep(const char *glob, size_t length)
{
	return length == 2 && glob[0] == '*' && glob[1] == '*';
}

/* The start of the next part, or NULL when there is none. */
static const char *
next_part(const char *text, size_t length)
{
	return text[length] == '/' ? text + length + 1 : NULL;
}

/*
 * The last "**" is the only one that need be tried again: whatever an earlier one took, the parts
 * after it were found as early as can be. NULL stands for the end.
 */
static bool
match_parts(const char *glob, const char *path)
{
	const char *deep_glob = NULL, *deep_path = NULL;
	size_t glob_length, path_length;

	while (path != NULL) {
		glob_length = glob == NULL ? 0 : strcspn(glob, "/");
		path_length = strcspn(path, "/");
		if (glob != NULL && is_deep(glob, glob_length)) {
			deep_glob = glob = next_part(glob, glob_length);
			deep_path = path;
			if (glob == NULL)
				return true;
		} else if (glob != NULL && match_part(glob, glob_length, path, path_length)) {
			glob = next_part(glob, glob_length);
			path = next_part(path, path_length);
		} else if (deep_path != NULL) {
			deep_path = path = next_part(deep_path, strcspn(deep_path, "/"));
			glob = deep_glob;
		} else {
			return false;
		}
	}
	return glob == NULL || is_deep(glob, strlen(glob));
}

/* The bracket that closes the one at text, or NULL. */
static const char *
find_close(const char *text)
{
	unsigned depth = 0;

	for (; *text != '\0'; text++) {
		if (*text == '\\' && text[1] != '\0')
			text++;
		else if (*text == '{')
			depth++;
		else if (*text == '}' && --depth == 0)
			return text;
	}
	return NULL;
}

/* The end of the alternative that starts at text: a "," or "}" of its own level. */
static const char *
find_end(const char *text, const char *close)
{
	unsigned depth = 0;

	for (; text < close; text++) {
		if (*text == '\\' && text[1] != '\0')
			text++;
		else if (*text == '{')
			depth++;
		else if (*text == '}')
			depth--;
		else if (*text == ',' && depth == 0)
			return text;
	}
	return close;
}

static const char *
find_open(const char *glob)
{
	for (; *glob != '\0' && *glob != '{'; glob++)
		if (*glob == '\\' && glob[1] != '\0')
			glob++;
	return *glob == '{' ? glob : NULL;
}

static bool
match_forms(const char *glob, const char *path, unsigned *forms)
{
	const char *open, *close, *from, *end;
	bool matches = false;
	char *form;

	open = find_open(glob);
	close = open == NULL ? NULL : find_close(open);
	if (close == NULL)
		return ++*forms <= FORMS_MAX && match_parts(glob, path);
	for (from = open + 1; !matches && *forms <= FORMS_MAX; from = end + 1) {
		end = find_end(from, close);
		form = memory_text_format(
		    "%.*s%.*s%s", (int)(open - glob), glob, (int)(end - from), from, close + 1);
		matches = match_forms(form, path, forms);
		memory_free(form);
		if (end == close)
			break;
	}
	return matches;
}

bool
glob_match(const char *glob, const char *path)
{
	unsigned forms = 0;

	return match_forms(glob, path, &forms);
}

char *
glob_last(const char *glob)
{
	const char *slash;

	/* A slash within braces parts nothing that can be told apart here. */
	if (find_open(glob) != NULL)
		return memory_text("*");
	slash = strrchr(glob, '/');
	if (slash != NULL)
		glob = slash + 1;
	return memory_text(strcmp(glob, "**") == 0 ? "*" : glob);
}
