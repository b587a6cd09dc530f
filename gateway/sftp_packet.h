/* SPDX-License-Identifier: ISC */
/*
 * SFTP version 3 packets (draft-ietf-secsh-filexfer-02): reading values out of one, and appending
 * replies to a buffer. Numbers are big-endian, strings carry their length.
 */
#ifndef GATEWAY_SFTP_PACKET_H
#define GATEWAY_SFTP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/file.h"

struct buffer;
struct error;

/*
 * What a read or write may carry, and a whole packet without its length: 1 KiB for the rest of it.
 */
#define SFTP_DATA_MAX (256U * 1024U)
#define SFTP_PACKET_MAX (SFTP_DATA_MAX + 1024U)

/* Section 3 */
enum sftp_type {
	SFTP_INIT = 1,
	SFTP_VERSION = 2,
	SFTP_OPEN = 3,
	SFTP_CLOSE = 4,
	SFTP_READ = 5,
	SFTP_WRITE = 6,
	SFTP_LSTAT = 7,
	SFTP_FSTAT = 8,
	SFTP_SETSTAT = 9,
	SFTP_FSETSTAT = 10,
	SFTP_OPENDIR = 11,
	SFTP_READDIR = 12,
	SFTP_REMOVE = 13,
	SFTP_MKDIR = 14,
	SFTP_RMDIR = 15,
	SFTP_REALPATH = 16,
	SFTP_STAT = 17,
	SFTP_RENAME = 18,
	SFTP_READLINK = 19,
	SFTP_SYMLINK = 20,
	SFTP_STATUS = 101,
	SFTP_HANDLE = 102,
	SFTP_DATA = 103,
	SFTP_NAME = 104,
	SFTP_ATTRS = 105,
	SFTP_EXTENDED = 200,
	SFTP_EXTENDED_REPLY = 201,
};

/* Section 7 */
enum sftp_status {
	SFTP_OK = 0,
	SFTP_EOF = 1,
	SFTP_NO_SUCH_FILE = 2,
	SFTP_PERMISSION_DENIED = 3,
	SFTP_FAILURE = 4,
	SFTP_BAD_MESSAGE = 5,
	SFTP_UNSUPPORTED = 8,
};

/* Section 6.3 */
enum sftp_open_flags {
	SFTP_OPEN_READ = 1,
	SFTP_OPEN_WRITE = 2,
	SFTP_OPEN_APPEND = 4,
	SFTP_OPEN_CREATE = 8,
	SFTP_OPEN_TRUNCATE = 16,
	SFTP_OPEN_EXCLUSIVE = 32,
};

/* A packet being read. A value that is not there is zero or empty, and failed is set. */
struct sftp_input {
	const unsigned char *at;
	size_t left;
	bool failed;
};

/* The next value (RFC 4251 section 5). */
uint8_t sftp_get_u8(struct sftp_input *input);
uint32_t sftp_get_u32(struct sftp_input *input);
uint64_t sftp_get_u64(struct sftp_input *input);

/* The bytes stay in the packet. */
const unsigned char *sftp_get_string(struct sftp_input *input, size_t *size);

/* A new text; a NUL inside fails. An empty one is "", which a path reads as ".". */
char *sftp_get_text(struct sftp_input *input);
char *sftp_get_path(struct sftp_input *input);

/* Section 5; extended attributes are read over. */
void sftp_get_change(struct sftp_input *input, struct file_change *change);

/*
 * A reply: start leaves room for the length, which finish fills in. There must be room: whoever
 * takes requests sees to it.
 */
size_t sftp_put_start(struct buffer *output, enum sftp_type type, uint32_t id);
void sftp_put_finish(struct buffer *output, size_t start);
void sftp_put_u32(struct buffer *output, uint32_t value);
void sftp_put_u64(struct buffer *output, uint64_t value);
void sftp_put_string(struct buffer *output, const void *data, size_t size);
void sftp_put_text(struct buffer *output, const char *text);
void sftp_put_attributes(struct buffer *output, const struct file_attributes *attributes);

/* An entry of a NAME reply: the name, a line as "ls -l" would show it, the attributes. */
void sftp_put_name(
    struct buffer *output, const char *name, const struct file_attributes *attributes);

/* Whole STATUS replies. An error says its code, then its message. */
void sftp_put_status(struct buffer *output, uint32_t id, enum sftp_status status, const char *text);
void sftp_put_error(struct buffer *output, uint32_t id, const struct error *err);

#endif
