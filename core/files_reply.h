/* SPDX-License-Identifier: ISC */
/*
 * What core/scripts/files.sh says, read from its output as it comes. It is a sandbox's word: every
 * number is checked, every text is bounded, and what it has no business to say ends it.
 */
#ifndef CORE_FILES_REPLY_H
#define CORE_FILES_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/file.h"

enum files_reply_kind {
	FILES_REPLY_OK,
	FILES_REPLY_FAIL,       /* failure */
	FILES_REPLY_ATTRIBUTES, /* attributes */
	FILES_REPLY_VOLUME,     /* volume */
	FILES_REPLY_DATA,       /* size bytes follow */
};

struct files_reply_line {
	enum files_reply_kind kind;
	uint32_t number; /* of the request */
	struct error failure;
	struct file_attributes attributes;
	struct file_volume volume;
	uint64_t size;
};

/* Both return -1 with err to end the reading. */
struct files_reply_events {
	int (*line)(void *argument, const struct files_reply_line *line, struct error *err);
	/* Bytes of the DATA last told, in pieces. */
	int (*data)(void *argument, uint32_t number, const unsigned char *data, size_t size,
	    struct error *err);
};

/* Zeroed is new; nothing but init, feed and free looks inside. */
struct files_reply_reader {
	struct buffer line;
	struct files_reply_line current; /* whose bytes are being read */
	uint64_t left;
};

/* A reader at the start of a stream; free accepts nothing else. */
void files_reply_init(struct files_reply_reader *reader);
void files_reply_free(struct files_reply_reader *reader);

/* Takes size bytes of output; -1 with err when they make no sense, or an event said so. */
int files_reply_feed(struct files_reply_reader *reader, const unsigned char *data, size_t size,
    const struct files_reply_events *events, void *argument, struct error *err);

/* One record of a listing, PATH//TYPE MODE …, without its NUL; entry->path is text's first part. */
int files_reply_entry(char *text, struct file_entry *entry, struct error *err);

#endif
