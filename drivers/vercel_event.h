/* SPDX-License-Identifier: ISC */
/* The lines of JSON that Vercel answers with while a command runs. */
#ifndef DRIVERS_VERCEL_EVENT_H
#define DRIVERS_VERCEL_EVENT_H

#include <stdbool.h>
#include <stddef.h>

struct error;
struct json_object;

enum vercel_event_kind {
	VERCEL_COMMAND, /* first and last, with the exit code in the last */
	VERCEL_STDOUT,
	VERCEL_STDERR,
	VERCEL_FAULT, /* the stream is over, and what became of the command is not known */
	VERCEL_OTHER, /* blank lines, and what may be invented yet */
};

struct vercel_event {
	enum vercel_event_kind kind;
	struct json_object *object; /* what the texts belong to */
	const char *id;             /* of a command; NULL when it is none that can be used */
	bool has_exit;
	const char *data; /* of an output; may hold NUL */
	size_t size;
	const char *message; /* of a fault */
};

/* Decodes a line without its newline; -1 for what is no JSON object. Free it in either case. */
int vercel_event_decode(
    const void *line, size_t size, struct vercel_event *event, struct error *err);
void vercel_event_free(struct vercel_event *event);

/* The same for the object of one command. */
void vercel_event_take_command(struct vercel_event *event, const struct json_object *command);

/*
 * The id, which belongs to the object, of the command in a list of them that has this argument;
 * NULL for none.
 */
const char *vercel_event_find_command(const struct json_object *object, const char *argument);

#endif
