/* SPDX-License-Identifier: ISC */
/*
 * Commands that are run to their end at providers whose answers are text: core/scripts/gather.sh
 * runs them, takes their words and their stdin in base64, and gives their outputs in base64.
 */
#ifndef DRIVERS_GATHER_H
#define DRIVERS_GATHER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/driver.h"
#include "core/marker.h"

/* Where the script has its files, and the start of its name. */
#define GATHER_WORK "/tmp/.rws-run-"

/* Bytes of stdin and of all words together that one request takes. */
#define GATHER_INPUT_MAX ((size_t)1024 * 1024)

struct gather {
	/* Its directory: a name like no other. */
	char work[sizeof(GATHER_WORK) + MARKER_TOKEN_SIZE];
	size_t max_output;
};

void gather_init(struct gather *gather, size_t max_output);

/* 0, or -1 (TOO_LARGE) for what does not go into one request. */
int gather_check(char *const *argv, size_t input_size, struct error *err);

/*
 * The arguments of the script, none of which holds anything that a shell looks at; a new list for
 * memory_list_free.
 */
char **gather_arguments(
    const struct gather *gather, char *const *argv, const void *input, size_t size);

/* The argv that kills what the script runs, or keeps it from beginning; likewise. */
char **gather_cancel_argv(const struct gather *gather);

/* How long a text of the script's may be. */
size_t gather_answer_max(const struct gather *gather);

/* Does the text hold a whole answer of the script's? */
bool gather_is_complete(const char *text);

/*
 * What the script said, in the last of the lines that look like it: what shells said before is
 * noise. -1 when there is no such line, or a malformed one. Free it in either case.
 */
struct gather_answer {
	struct driver_result result;
	unsigned char *output, *errors; /* the memory of those of result */
};
int gather_read(const char *text, struct gather_answer *answer, struct error *err);
void gather_answer_free(struct gather_answer *answer);

#endif
