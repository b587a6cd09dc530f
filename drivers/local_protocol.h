/* SPDX-License-Identifier: ISC */
/*
 * The messages between the local driver, in the worker, and its init, in the sandbox, each with
 * its encode and decode. What comes from init is checked like anything from a sandbox: nobody
 * inside can reach the socket, but nothing here depends on that.
 *
 *	init -> driver   READY once, then STREAM and STARTED, ENDED, GONE for each command; DONE
 *	                 for each copy
 *	driver -> init   START, SIGNAL, CLOSE; COPY, CANCEL, FILES
 *
 * Ids are the driver's; a command and a copy never share one. Texts and lists in a decoded struct
 * are new: the matching free releases them (and accepts a zeroed struct).
 */
#ifndef DRIVERS_LOCAL_PROTOCOL_H
#define DRIVERS_LOCAL_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

struct message;

enum local_message {
	LOCAL_READY = 1,
	LOCAL_START,
	LOCAL_STREAM,
	LOCAL_STARTED,
	LOCAL_ENDED,
	LOCAL_GONE,
	LOCAL_SIGNAL,
	LOCAL_CLOSE,
	LOCAL_COPY,
	LOCAL_DONE,
	LOCAL_CANCEL,
	LOCAL_FILES, /* starts a file server on the socket that comes with the message */
};

/* What all texts of one START may come to together: well under a message's limit. */
#define LOCAL_START_MAX 786432U

/*
 * Rows, columns and pixels of a window at most: far over any terminal, within the kernel's 16 bits.
 */
#define LOCAL_WINDOW_MAX 32767U

/* START: the command as in struct driver_command. */
struct local_start {
	uint32_t id;
	char **argv;        /* one text at least */
	char **environment; /* NAME=VALUE */
	char *directory;    /* absolute, or NULL for the home directory */
	bool want_stdin;
	bool pty;
	char *term;
	uint32_t columns, rows, x_pixels, y_pixels;
	bool keep;
	uint32_t grace; /* ms */
};
void local_start_encode(struct message *message, const struct local_start *start);
int local_start_decode(struct message *message, struct local_start *start, struct error *err);
void local_start_free(struct local_start *start);

/* STREAM: our end of one of a command's descriptors, which comes with the message. */
enum local_stream_kind {
	LOCAL_INPUT,
	LOCAL_OUTPUT,
	LOCAL_ERRORS,
	LOCAL_TERMINAL,
	LOCAL_STREAM_KINDS,
};
struct local_stream {
	uint32_t id;
	enum local_stream_kind kind;
};
void local_stream_encode(struct message *message, const struct local_stream *stream);
int local_stream_decode(struct message *message, struct local_stream *stream, struct error *err);

/* STARTED: comes after the command's STREAMs. */
struct local_started {
	uint32_t id;
	uint32_t pid; /* of the leader, as the sandbox numbers it */
};
void local_started_encode(struct message *message, const struct local_started *started);
int local_started_decode(struct message *message, struct local_started *started, struct error *err);

/* ENDED: with failed set it was never started, and neither STARTED nor GONE come. */
struct local_ended {
	uint32_t id;
	bool failed;
	struct error failure;
	bool signaled;
	uint32_t status; /* exit status, or the signal's number */
	bool core;
};
void local_ended_encode(struct message *message, const struct local_ended *ended);
int local_ended_decode(struct message *message, struct local_ended *ended, struct error *err);

/* SIGNAL: to the command's group. */
struct local_signal {
	uint32_t id;
	uint32_t number;
};
void local_signal_encode(struct message *message, const struct local_signal *signal);
int local_signal_decode(struct message *message, struct local_signal *signal, struct error *err);

/*
 * COPY: a file to, or from, the descriptor that comes with the message. Reading copies at most
 * size bytes; writing takes exactly size bytes and then replaces the file in one step.
 */
struct local_copy {
	uint32_t id;
	bool write;
	char *path; /* absolute */
	uint64_t size;
};
void local_copy_encode(struct message *message, const struct local_copy *copy);
int local_copy_decode(struct message *message, struct local_copy *copy, struct error *err);
void local_copy_free(struct local_copy *copy);

/* DONE: how a copy ended; failure.code is ERROR_NONE for success. */
struct local_done {
	uint32_t id;
	struct error failure;
};
void local_done_encode(struct message *message, const struct local_done *done);
int local_done_decode(struct message *message, struct local_done *done, struct error *err);

/*
 * GONE (nothing is left of a command), CLOSE (kill what is left and report no more) and CANCEL
 * (stop the copy, which reports no more).
 */
void local_id_encode(struct message *message, enum local_message type, uint32_t id);
int local_id_decode(struct message *message, uint32_t *id, struct error *err);

#endif
