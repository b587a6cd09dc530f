/* SPDX-License-Identifier: ISC */
/* The plan of a restore: sorted lists and the questions asked of them. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/snapshot_plan.h"

/* Over anything that the lists, whose sizes are limited, can add up to. */
#define REPORT_MAX ((size_t)1 << 30)

struct item {
	const char *path; /* "./a/b" */
	char type;        /* as find's %y; of the tree now also x, X and h */
	uint64_t size;
	bool alone; /* it must be left alone */
	bool holds; /* something below it must be */
};

struct items {
	struct item *list;
	size_t count;
};

static int
compare_items(const void *one, const void *other)
{
	const struct item *a = one, *b = other;

	return strcmp(a->path, b->path);
}

/* Compares paths up to a length: "./a" for "./a/b" with 3. */
static struct item *
find_prefix(const struct items *items, const char *path, size_t length)
{
	size_t low, high, middle;
	int order;

	for (low = 0, high = items->count; low < high;) {
		middle = low + (high - low) / 2;
		order = strncmp(items->list[middle].path, path, length);
		if (order == 0 && items->list[middle].path[length] != '\0')
			order = 1;
		if (order == 0)
			return &items->list[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static struct item *
find_item(const struct items *items, const char *path)
{
	return find_prefix(items, path, strlen(path));
}

static bool
is_directory(char type)
{
	return type == 'd' || type == 'h' || type == 'X';
}

/* "TYPE PATH", or "TYPE SIZE PATH" with_size, or "PATH" without anything; path is in the list. */
static int
parse_item(struct item *item, const char *text, bool with_type, bool with_size)
{
	char number[24];
	int64_t size;
	size_t length;

	memset(item, 0, sizeof(*item));
	if (with_type) {
		if (text[0] == '\0' || text[1] != ' ')
			return -1;
		item->type = text[0];
		text += 2;
	}
	if (with_size) {
		length = strcspn(text, " ");
		if (text[length] != ' ' || length >= sizeof(number))
			return -1;
		memcpy(number, text, length);
		number[length] = '\0';
		if (number_parse(number, 0, INT64_MAX, &size, NULL) != 0)
			return -1;
		item->size = (uint64_t)size;
		text += length + 1;
	}
	item->path = text;
	return strncmp(text, "./", 2) == 0 && text[2] != '\0' ? 0 : -1;
}

static int
parse_items(struct items *items, const struct snapshot_list *list, bool with_type, bool with_size)
{
	const char *at, *end = list->data + list->size;
	size_t room;

	items->list = NULL;
	items->count = room = 0;
	if (list->size > 0 && end[-1] != '\0')
		return -1;
	for (at = list->data; at < end; at += strlen(at) + 1) {
		if (items->count == room) {
			room = room == 0 ? 256 : room * 2;
			items->list = memory_resize(items->list, room, sizeof(*items->list));
		}
		if (parse_item(&items->list[items->count++], at, with_type, with_size) != 0)
			return -1;
	}
	if (items->count > 0)
		qsort(items->list, items->count, sizeof(*items->list), compare_items);
	return 0;
}

/* Is the path, or one above it, in the list? */
static bool
is_below(const struct items *items, const char *path)
{
	const char *slash;

	for (slash = strchr(path + 2, '/'); slash != NULL; slash = strchr(slash + 1, '/'))
		if (find_prefix(items, path, (size_t)(slash - path)) != NULL)
			return true;
	return find_item(items, path) != NULL;
}

static void
mark_above(const struct items *now, const char *path)
{
	struct item *item;
	const char *slash;

	for (slash = strchr(path + 2, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		item = find_prefix(now, path, (size_t)(slash - path));
		if (item != NULL)
			item->holds = true;
	}
}

static void
mark_alone(const struct items *entries, const struct items *skipped, const struct items *now,
    uint64_t max_file)
{
	struct item *item;

	for (item = now->list; item < now->list + now->count; item++) {
		item->alone = item->type == 'x' || item->type == 'X' ||
			      is_below(skipped, item->path) ||
			      (item->type == 'f' && item->size > max_file &&
				  find_item(entries, item->path) == NULL);
		if (item->type == 'h')
			item->holds = true;
		if (item->alone || item->type == 'h')
			mark_above(now, item->path);
	}
}

static void
put(struct buffer *buffer, const char *path)
{
	(void)buffer_append(buffer, path, strlen(path) + 1);
}

/*
 * One thing that is there now; from last to first, so that a directory comes after what is in it.
 */
static void
plan_now(struct snapshot_plan *plan, const struct items *entries, const struct item *item)
{
	const struct item *entry;
	bool directory;

	/* Our own directory is no part of the workspace. */
	if (strcmp(item->path, "./.rws") == 0)
		return;
	entry = find_item(entries, item->path);
	directory = is_directory(item->type);
	if (item->alone || (entry == NULL && item->holds)) {
		put(&plan->kept, item->path + 2);
		return;
	}
	if (entry != NULL && (directory == (entry->type == 'd') || item->holds))
		return;
	put(directory ? &plan->remove_directories : &plan->remove_files, item->path);
	if (entry == NULL)
		put(&plan->deleted, item->path + 2);
}

/* Can an entry not be restored because of what is left alone at its place or above it? */
static bool
is_blocked(const struct items *now, const struct item *entry)
{
	const struct item *item;
	const char *slash;

	for (slash = strchr(entry->path + 2, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		item = find_prefix(now, entry->path, (size_t)(slash - entry->path));
		if (item != NULL && item->alone && !is_directory(item->type))
			return true;
	}
	item = find_item(now, entry->path);
	if (item == NULL)
		return false;
	if (entry->type == 'd')
		return item->alone && !is_directory(item->type);
	return (item->alone || item->holds) && is_directory(item->type);
}

static void
plan_entries(struct snapshot_plan *plan, const struct items *entries, const struct items *now)
{
	const struct item *entry;
	bool blocked;

	blocked = false;
	for (entry = entries->list; entry < entries->list + entries->count; entry++) {
		if (is_blocked(now, entry)) {
			blocked = true;
			continue;
		}
		put(&plan->names, entry->path);
		if (entry->type != 'd')
			put(&plan->restored, entry->path + 2);
	}
	if (!blocked)
		buffer_free(&plan->names);
}

int
snapshot_plan_make(struct snapshot_plan *plan, const struct snapshot_list *entries,
    const struct snapshot_list *skipped, const struct snapshot_list *now, uint64_t max_file,
    struct error *err)
{
	struct items archive = { 0 }, left = { 0 }, tree = { 0 };
	size_t i;
	int result;

	buffer_init(&plan->restored, REPORT_MAX);
	buffer_init(&plan->deleted, REPORT_MAX);
	buffer_init(&plan->kept, REPORT_MAX);
	buffer_init(&plan->remove_files, REPORT_MAX);
	buffer_init(&plan->remove_directories, REPORT_MAX);
	buffer_init(&plan->names, REPORT_MAX);
	result = -1;
	if (parse_items(&archive, entries, true, false) != 0 ||
	    parse_items(&left, skipped, false, false) != 0 ||
	    parse_items(&tree, now, true, true) != 0) {
		error_set(err, ERROR_INVALID, "the snapshot is damaged");
		goto out;
	}
	mark_alone(&archive, &left, &tree, max_file);
	for (i = tree.count; i > 0; i--)
		plan_now(plan, &archive, &tree.list[i - 1]);
	plan_entries(plan, &archive, &tree);
	result = 0;
out:
	memory_free(archive.list);
	memory_free(left.list);
	memory_free(tree.list);
	return result;
}

void
snapshot_plan_free(struct snapshot_plan *plan)
{
	buffer_free(&plan->restored);
	buffer_free(&plan->deleted);
	buffer_free(&plan->kept);
	buffer_free(&plan->remove_files);
	buffer_free(&plan->remove_directories);
	buffer_free(&plan->names);
}
