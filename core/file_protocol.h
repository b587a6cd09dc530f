/* SPDX-License-Identifier: ISC */
/*
 * File operations as messages: from a session to its worker, and from there to a driver's own file
 * server, which both speak the same.
 *
 *	asker  -> server   FILE_REQUEST, FILE_CANCEL; FILE_SERVE first, to a driver's server
 *	server -> asker    FILE_REPLY, one for each request or, with more set, several
 *
 * Numbers of requests are the asker's. After FILE_CANCEL a reply may still be under way.
 */
#ifndef CORE_FILE_PROTOCOL_H
#define CORE_FILE_PROTOCOL_H

#include <stdint.h>

#include "core/base/error.h"
#include "core/file.h"

struct message;

enum file_message {
	MESSAGE_FILE_REQUEST = 80,
	MESSAGE_FILE_REPLY,
	MESSAGE_FILE_CANCEL,
	MESSAGE_FILE_SERVE,
};

/* The descriptor goes with the message: request->fd is -1 afterwards. */
void file_request_encode(struct message *message, uint32_t id, struct file_request *request);
int file_request_decode(
    struct message *message, uint32_t *id, struct file_request *request, struct error *err);

/* failure.code is ERROR_NONE for success. The descriptor goes with the message, as above. */
void file_reply_encode(
    struct message *message, uint32_t id, struct file_reply *reply, const struct error *failure);
int file_reply_decode(struct message *message, uint32_t *id, struct file_reply *reply,
    struct error *failure, struct error *err);

/* Nobody waits for the reply any more; the operation may be done all the same. */
void file_cancel_encode(struct message *message, uint32_t id);
int file_cancel_decode(struct message *message, uint32_t *id, struct error *err);

/* What a driver's file server serves. */
struct file_serve {
	char *root;            /* absolute, symlinks resolved */
	uint64_t limit;        /* max_file_bytes */
	uint32_t leftover_age; /* s, after which what interrupted operations left is removed */
};
void file_serve_encode(struct message *message, const struct file_serve *serve);
int file_serve_decode(struct message *message, struct file_serve *serve, struct error *err);
void file_serve_free(struct file_serve *serve);

#endif
