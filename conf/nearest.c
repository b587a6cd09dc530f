/* SPDX-License-Identifier: ISC */
/* "Did you mean": the edit distance between a name that is not known and those that are. */
#include <string.h>

#include "conf/private.h"

#define NAME_MAX_BYTES 48

static size_t
smallest(size_t a, size_t b, size_t c)
{
	if (b < a)
		a = b;
	return c < a ? c : a;
}

/* Insertions, deletions and changes that make one name of the other (Levenshtein). */
static size_t
edit_distance(const char *from, const char *to)
{
	size_t row[NAME_MAX_BYTES + 1], length, i, j, diagonal, above;

	length = strlen(to);
	for (j = 0; j <= length; j++)
		row[j] = j;
	for (i = 1; from[i - 1] != '\0'; i++) {
		diagonal = row[0];
		row[0] = i;
		for (j = 1; j <= length; j++) {
			above = row[j];
			row[j] = smallest(row[j] + 1, row[j - 1] + 1,
			    diagonal + (from[i - 1] == to[j - 1] ? 0 : 1));
			diagonal = above;
		}
	}
	return row[length];
}

void
conf_nearest_init(struct conf_nearest *nearest, const char *written)
{
	nearest->written = written;
	nearest->name = NULL;
	nearest->distance = strlen(written) / 3 + 1; /* farther than that is another word */
}

void
conf_nearest_add(struct conf_nearest *nearest, const char *name)
{
	size_t distance;

	if (strlen(name) > NAME_MAX_BYTES || strlen(nearest->written) > NAME_MAX_BYTES)
		return;
	distance = edit_distance(nearest->written, name);
	if (distance < nearest->distance ||
	    (nearest->name == NULL && distance == nearest->distance)) {
		nearest->distance = distance;
		nearest->name = name;
	}
}
