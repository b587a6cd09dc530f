/* SPDX-License-Identifier: ISC */
/*
 * Which names and links of an archive stay inside. A symlink is safe when its target is relative,
 * goes up only at its start and no further than the root; that holds whatever other links there
 * are, as long as no entry lies below a symlink.
 */
#include <stdlib.h>
#include <string.h>

#include "core/archive.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/memory.h"

/* As many bytes of names as a listing may have. */
#define NAMES_MAX ((size_t)64 << 20)
#define NAME_MAX_LENGTH 4095U
#define RECENT 32

struct archive_entry_name {
	char *name; /* "./a/b" */
	char type;
};

struct archive_names {
	struct archive_entry_name *list;
	size_t count, room, bytes;
};

struct archive_names *
archive_names_new(void)
{
	return memory_zeroed(1, sizeof(struct archive_names));
}

void
archive_names_free(struct archive_names *names)
{
	size_t i;

	if (names == NULL)
		return;
	for (i = 0; i < names->count; i++)
		memory_free(names->list[i].name);
	memory_free(names->list);
	memory_free(names);
}

char *
archive_name(const char *name, struct error *err)
{
	struct buffer out;
	const char *at;
	size_t length;
	char *text;

	text = NULL;
	buffer_init(&out, NAME_MAX_LENGTH);
	(void)buffer_append_text(&out, ".");
	if (*name == '/') {
		error_set(err, ERROR_OUTSIDE_ROOT, "entry %.200s: an absolute name", name);
		goto out;
	}
	for (at = name; *at != '\0'; at += length + strspn(at + length, "/")) {
		length = strcspn(at, "/");
		if (length == 2 && strncmp(at, "..", 2) == 0) {
			error_set(
			    err, ERROR_OUTSIDE_ROOT, "entry %.200s: \"..\" in its name", name);
			goto out;
		}
		if (length == 0 || (length == 1 && *at == '.'))
			continue;
		if (buffer_append_text(&out, "/") != 0 || buffer_append(&out, at, length) != 0) {
			error_set(err, ERROR_INVALID, "entry %.200s: its name is too long", name);
			goto out;
		}
	}
	if (out.length == 1)
		(void)buffer_append_text(&out, "/");
	text = memory_text_bounded(buffer_data(&out), out.length);
	if (strcmp(text, "./.rws") == 0 || strncmp(text, "./.rws/", 7) == 0) {
		error_set(err, ERROR_DENIED, "entry %.200s: .rws is the gateway's own", name);
		memory_free(text);
		text = NULL;
	}
out:
	buffer_free(&out);
	return text;
}

/* How deep a symlink lies below the root: "./a/b" is 1. */
static size_t
depth(const char *name)
{
	size_t count;

	count = 0;
	for (name += 2; (name = strchr(name, '/')) != NULL; name++)
		count++;
	return count;
}

static int
check_target(const char *name, const char *target, struct error *err)
{
	const char *at;
	size_t length, up;
	bool down;

	up = 0;
	down = false;
	if (*target == '\0' || *target == '/')
		return error_set(
		    err, ERROR_OUTSIDE_ROOT, "entry %.100s: a link to %.100s", name + 2, target);
	for (at = target; *at != '\0'; at += length + strspn(at + length, "/")) {
		length = strcspn(at, "/");
		if (length == 2 && strncmp(at, "..", 2) == 0) {
			if (down || ++up > depth(name))
				return error_set(err, ERROR_OUTSIDE_ROOT,
				    "entry %.100s: a link to %.100s", name + 2, target);
		} else if (length > 1 || *at != '.') {
			down = true;
		}
	}
	return 0;
}

/* Takes over name. */
static int
add(struct archive_names *names, char *name, char type, struct error *err)
{
	names->bytes += strlen(name) + 3;
	if (names->bytes > NAMES_MAX) {
		memory_free(name);
		return error_set(err, ERROR_TOO_LARGE, "the archive has too many entries");
	}
	if (names->count == names->room) {
		names->room = names->room == 0 ? 256 : names->room * 2;
		names->list = memory_resize(names->list, names->room, sizeof(*names->list));
	}
	names->list[names->count].name = name;
	names->list[names->count++].type = type;
	return 0;
}

int
archive_names_add(struct archive_names *names, const char *name, char type, const char *target,
    const char *link, struct error *err)
{
	char *own, *other;

	own = archive_name(name, err);
	if (own == NULL)
		return -1;
	if (strcmp(own, "./") == 0) {
		memory_free(own);
		return type == 'd' ? 0 : error_set(err, ERROR_INVALID, "the root is no directory");
	}
	if (target != NULL && check_target(own, target, err) != 0) {
		memory_free(own);
		return -1;
	}
	if (link != NULL) {
		other = archive_name(link, err);
		if (other == NULL || strcmp(other, "./") == 0) {
			error_wrap(err, "entry %.100s", name);
			memory_free(own);
			memory_free(other);
			return -1;
		}
		memory_free(other);
	}
	return add(names, own, type, err);
}

static int
compare(const void *one, const void *other)
{
	const struct archive_entry_name *a = one, *b = other;

	return strcmp(a->name, b->name);
}

static int
compare_key(const void *key, const void *other)
{
	const struct archive_entry_name *entry = other;

	return strcmp(key, entry->name);
}

static const struct archive_entry_name *
find(const struct archive_names *names, size_t count, const char *name)
{
	return bsearch(name, names->list, count, sizeof(*names->list), compare_key);
}

/*
 * The last of those with one name counts, as it does when they are unpacked;
 * a symlink among them always.
 */
static void
join_equals(struct archive_names *names)
{
	size_t i, kept;

	for (i = kept = 0; i < names->count; i++) {
		if (kept > 0 && strcmp(names->list[i].name, names->list[kept - 1].name) == 0) {
			if (names->list[i].type == 'l' || names->list[kept - 1].type != 'l')
				names->list[kept - 1].type = names->list[i].type;
			memory_free(names->list[i].name);
		} else {
			names->list[kept++] = names->list[i];
		}
	}
	names->count = kept;
}

/* Was it added a moment ago? Names come sorted, so that neighbours have their parents in common. */
static bool
is_recent(const struct archive_names *names, size_t known, const char *name)
{
	size_t i;

	for (i = names->count; i > known && i + RECENT > names->count; i--)
		if (strcmp(names->list[i - 1].name, name) == 0)
			return true;
	return false;
}

/* Adds the parents that are missing of one entry; -1 when one is not a directory. */
static int
add_parents(struct archive_names *names, size_t known, const char *name, struct error *err)
{
	const struct archive_entry_name *parent;
	const char *slash;
	char *above;

	for (slash = strchr(name + 2, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		above = memory_text_bounded(name, (size_t)(slash - name));
		parent = find(names, known, above);
		if (parent != NULL || is_recent(names, known, above))
			memory_free(above);
		else if (add(names, above, 'd', err) != 0)
			return -1;
		if (parent != NULL && parent->type != 'd')
			return error_set(err, ERROR_OUTSIDE_ROOT,
			    "entry %.100s: it lies below %s %.100s", name + 2,
			    parent->type == 'l' ? "the link" : "the file", parent->name + 2);
	}
	return 0;
}

static void
sort(struct archive_names *names)
{
	if (names->count > 0)
		qsort(names->list, names->count, sizeof(*names->list), compare);
	join_equals(names);
}

/* "TYPE ./PATH" and a NUL. */
static int
put_entry(struct buffer *entries, const struct archive_entry_name *entry)
{
	if (buffer_append(entries, &entry->type, 1) != 0 || buffer_append(entries, " ", 1) != 0)
		return -1;
	return buffer_append(entries, entry->name, strlen(entry->name) + 1);
}

int
archive_names_finish(struct archive_names *names, struct buffer *entries, struct error *err)
{
	size_t i, known;

	sort(names);
	known = names->count;
	for (i = 0; i < known; i++)
		if (add_parents(names, known, names->list[i].name, err) != 0)
			return -1;
	sort(names);
	for (i = 0; i < names->count; i++)
		if (put_entry(entries, &names->list[i]) != 0)
			return error_set(err, ERROR_TOO_LARGE, "the archive has too many entries");
	return 0;
}
