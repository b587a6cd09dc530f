/* SPDX-License-Identifier: ISC */
/* What a command says at Vercel: a stream of lines that tell its id, its output and its end. */
#ifndef DRIVERS_VERCEL_LOG_H
#define DRIVERS_VERCEL_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/buffer.h"

struct error;

struct vercel_log {
	char *id;      /* of the command, once it is known */
	bool has_exit; /* the command has ended */
	struct buffer line, text;
};

/* max: bytes of text that the command may say. */
void vercel_log_init(struct vercel_log *log, size_t max);
void vercel_log_free(struct vercel_log *log);

/* It is read once more from its beginning. */
void vercel_log_clear(struct vercel_log *log);

/*
 * Takes the whole lines of what came. *ends becomes true when one of them tells the command's end.
 * -1 for what is no line of a log, or too much.
 */
int vercel_log_take(
    struct vercel_log *log, const void *data, size_t size, bool *ends, struct error *err);

/* The last line may have no newline, but only of an answer that is whole. */
void vercel_log_take_rest(struct vercel_log *log);

/* What the command has said so far; a new text. */
char *vercel_log_text(const struct vercel_log *log);

#endif
