/* SPDX-License-Identifier: ISC */
/*
 * What the files of the SFTP server share: sftp.c (packets and their order), sftp_file.c (open
 * files and what is not committed yet), sftp_handle.c (requests on handles), sftp_data.c (those
 * that read and write), sftp_path.c (requests on paths) and sftp_extended.c.
 *
 * What a client writes is seen by nobody until CLOSE, but the client itself must find what it has
 * open: so a path that is open for writing is answered from here, and requests that would change it
 * under our hands make it be committed first.
 */
#ifndef GATEWAY_SFTP_STATE_H
#define GATEWAY_SFTP_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/file.h"
#include "gateway/sftp_packet.h"

struct channel;
struct session_file;
struct sftp;
struct sftp_input;

#define SFTP_HANDLES_MAX 256U
/* Requests with the worker, and output that waits for the client, before no more input is taken. */
#define SFTP_CALLS_MAX 64U
#define SFTP_OUTPUT_HIGH (512U * 1024U)

/* A read that waits for bytes that are still arriving from the sandbox. */
struct sftp_wait {
	struct sftp_wait *next;
	uint32_t id;
	uint64_t offset;
	uint32_t size;
};

/* An open regular file; several handles of one path share it when it is written. */
struct sftp_file {
	struct sftp_file *next;
	struct sftp *sftp;
	unsigned uses; /* handles, and calls under way */
	unsigned writers;
	char *path; /* as the client named it, normalised */
	char *real; /* as the sandbox resolved it */
	int fd;
	struct file_attributes old; /* of what is, or was, there; mode 0: nothing */
	struct sftp_call *arrival;  /* more bytes are coming into fd */
	uint64_t arrived;
	struct sftp_wait *waits;
	bool opening, committing; /* with the worker */
	bool is_private;          /* fd is nobody else's until committed */
	bool committed;           /* at least once */
	bool dirty;
	bool exclusive;
	bool mode_if_new;     /* the mode in change is that of OPEN */
	bool discarded;       /* removed or replaced meanwhile: nothing to commit */
	bool spoiled;         /* a read or write failed: never to be committed */
	struct error trouble; /* how */
	uint64_t limit;
	uint32_t listed_by;        /* serial of the handle that told of it, in a listing */
	struct file_change change; /* to apply at the commit */
	uint64_t read, written;    /* bytes, for the log */
};

struct sftp_handle {
	uint32_t serial;
	struct sftp_file *file; /* or NULL: a directory */
	bool reads, writes, appends;
	char *path;
	struct file_list *list;
	struct file_attributes attributes; /* of the directory */
	unsigned dots;                     /* of "." and "..", how many were told */
	struct sftp_file *unlisted; /* where to go on with what is not committed; NULL: done */
	bool listed;
};

/* A request that is with the worker. */
struct sftp_call {
	struct sftp_call *next;
	struct sftp *sftp;
	uint32_t id;
	enum sftp_type type; /* of its reply on success: STATUS, ATTRS, NAME, … */
	struct session_file *request;
	struct sftp_file *file;
	struct sftp_handle *handle;
	char *path, *other; /* for the log, and what done needs of them */
	const char *what;   /* for the log: "remove"; NULL: not told */
	uint32_t number;
	bool forgive_missing; /* NOT_FOUND is as good as done */
	bool silent;          /* no request waits for it */
	void (*done)(struct sftp_call *call, struct file_reply *reply, const struct error *err);
};

struct sftp {
	struct channel *channel;
	struct session *session;
	char *root;
	uint64_t limit;
	bool begun, ended, failed;
	uint32_t version_id;
	struct buffer packet; /* the one being received, or waiting for its turn */
	struct buffer output;
	struct sftp_call *calls;
	unsigned call_count;
	struct sftp_file *files;
	struct sftp_handle *handles[SFTP_HANDLES_MAX];
	unsigned handle_count;
	uint32_t last_serial;
	bool held; /* the packet's turn has not come */
};

/* One kind of request: reads its values and answers, or calls the worker. */
typedef void sftp_serve_fn(struct sftp *sftp, uint32_t id, struct sftp_input *input);

/* sftp.c */

/* A call to the worker for request id; request is freed here. done answers, or sftp_answer does. */
struct sftp_call *sftp_call_new(struct sftp *sftp, uint32_t id, enum sftp_type type);
void sftp_call_send(struct sftp_call *call, struct file_request *request);
void sftp_call_free(struct sftp_call *call);

/* The reply that fits the call's type, or the error. */
void sftp_answer(struct sftp_call *call, struct file_reply *reply, const struct error *err);

/* STATUS with OK, or with code and message of err. */
void sftp_put_done(struct sftp *sftp, uint32_t id, const struct error *err);

/* One of the plain refusals. */
void sftp_put_refusal(struct sftp *sftp, uint32_t id, enum sftp_status status, const char *text);

/* The path in absolute and normal form; NULL when that is impossible, and the client was told. */
char *sftp_path(struct sftp *sftp, uint32_t id, const char *path);

/* sftp_file.c */
struct sftp_file *sftp_file_new(struct sftp *sftp, const char *path);
void sftp_file_release(struct sftp_file *file); /* one use less */

/* The file that is open for writing at path and not seen there yet, or NULL. */
struct sftp_file *sftp_file_pending(struct sftp *sftp, const char *path);

/*
 * True when a request on path has to wait:
 * something at it or below it is being opened or committed.
 */
bool sftp_path_waits(struct sftp *sftp, const char *path);

/* Commits what is pending at path and below it; true when the request has to wait for that. */
bool sftp_path_settle(struct sftp *sftp, const char *path);

/* The name of what is open below from became to. */
void sftp_path_renamed(struct sftp *sftp, const char *from, const char *to);

/* What is open at path was removed or replaced. */
void sftp_path_discard(struct sftp *sftp, const char *path);

/* Sends the commit of a file; call answers a CLOSE, or is NULL. */
void sftp_file_commit(struct sftp_file *file, struct sftp_call *call);

/* As fstat would say of it, with what is still to be applied. */
int sftp_file_attributes(
    const struct sftp_file *file, struct file_attributes *attributes, struct error *err);

/* Applies a change to a pending file; -1 with err, or 1 when only the worker can. */
int sftp_file_change(struct sftp_file *file, const struct file_change *change, struct error *err);

/*
 * sftp_data.c: answers reads that waited for bytes which are here now, as far as there is room.
 */
void sftp_answer_waits(struct sftp_file *file);

/*
 * sftp_handle.c: the new handle or NULL when there are too many; and the one that the packet names.
 */
struct sftp_handle *sftp_add_handle(struct sftp *sftp, const char *path);
void sftp_drop_handle(struct sftp *sftp, struct sftp_handle *handle);
void sftp_put_handle(struct sftp *sftp, uint32_t id, const struct sftp_handle *handle);
struct sftp_handle *sftp_get_handle(struct sftp *sftp, struct sftp_input *input);

/* The same for a regular file; without it NULL, and the client was told. */
struct sftp_handle *sftp_get_file(struct sftp *sftp, uint32_t id, struct sftp_input *input);

sftp_serve_fn sftp_serve_open, sftp_serve_close, sftp_serve_read, sftp_serve_write,
    sftp_serve_fstat, sftp_serve_fsetstat, sftp_serve_opendir, sftp_serve_readdir;
sftp_serve_fn sftp_serve_lstat, sftp_serve_stat, sftp_serve_setstat, sftp_serve_remove,
    sftp_serve_mkdir, sftp_serve_rmdir, sftp_serve_realpath, sftp_serve_rename, sftp_serve_readlink,
    sftp_serve_symlink;
sftp_serve_fn sftp_serve_extended;

/* sftp_path.c, for its own requests and the extended ones */
void sftp_rename(struct sftp *sftp, uint32_t id, struct sftp_input *input, bool overwrite);
void sftp_setstat(struct sftp *sftp, uint32_t id, struct sftp_input *input, bool follow);

/* sftp_extended.c: the extensions, for VERSION. */
void sftp_put_extensions(struct buffer *output);

#endif
