/* SPDX-License-Identifier: ISC */
/*
 * The parts of a copy: file_copy.c is its life and runs its scripts, file_copy_read.c and
 * file_copy_write.c move the bytes.
 */
#ifndef DRIVERS_FILE_COPY_PRIVATE_H
#define DRIVERS_FILE_COPY_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "drivers/file_copy.h"
#include "drivers/http.h"
#include "drivers/operation.h"

/* Bytes that wait for the reader of a read, and from the writer of a write. */
#define FILE_COPY_PUMP_MAX ((size_t)2 * HTTP_STREAM_ROOM)

struct file_copy;
struct loop_timer;
struct pack;
struct pump_sink;
struct pump_source;

/* Goes on once the script said ok, with what it said. */
typedef void file_copy_after_fn(struct file_copy *copy, const char *output);

struct file_copy {
	struct driver_operation operation; /* first: a copy is an operation */
	struct file_copy_setup setup;
	struct loop_timer *soon; /* tells what failed within the call */
	struct error err;
	struct http_request *request;
	char *path;
	driver_done_fn *done;
	void *argument;
	uint64_t left;              /* bytes to be moved */
	struct pump_sink *sink;     /* of a read */
	struct pump_source *source; /* of a write */
	struct driver_operation *script;
	file_copy_after_fn *after; /* the script */
	char *temp;                /* of a write, while it is there */
	const char *tail;          /* of a write's request */
	bool tail_sent, is_complete;
	struct pack *part;  /* that is filled, or under way */
	uint64_t part_left; /* bytes that it still takes */
	bool is_later;      /* it is not the first one */
};

/* Begins nothing yet; with err set when nothing is to be begun, which is told from the loop. */
struct file_copy *file_copy_new(
    const struct file_copy_setup *setup, const char *path, driver_done_fn *done, void *argument);

/* Runs file.sh and goes on with after. */
void file_copy_begin_script(
    struct file_copy *copy, const char *mode, char *first, char *second, file_copy_after_fn *after);

/* Ends it with this outcome; NULL is success. */
void file_copy_report(struct file_copy *copy, const struct error *err);

/* Ends it because a request failed; what is the context of reason. */
void file_copy_fail(struct file_copy *copy, const struct http_answer *answer,
    const struct error *reason, const char *what);

/* file_copy_write.c. Is it a write whose private file is being made, of a name that is not known yet? */
bool file_copy_is_preparing(const struct file_copy *copy);

/* It was given up: goes on only to know that name. */
void file_copy_abandon(struct file_copy *copy);

#endif
