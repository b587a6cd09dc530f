/* SPDX-License-Identifier: ISC */
/*
 * What the files of the scp service share: scp.c (its life), scp_sink.c (files that come to us) and
 * scp_source.c (files that are sent).
 */
#ifndef GATEWAY_SCP_STATE_H
#define GATEWAY_SCP_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/file.h"
#include "gateway/scp_command.h"

struct channel;
struct session;
struct session_file;

#define SCP_LINE_MAX 8192U
#define SCP_OUTPUT_HIGH (256U * 1024U)
#define SCP_OUTPUT_MAX (2U * SCP_OUTPUT_HIGH + 65536U)
#define SCP_CHUNK 65536U
#define SCP_DEPTH_MAX 64U

/* What the next bytes from the client are; SCP_BUSY: none are taken, the worker is asked. */
enum scp_stage {
	SCP_BUSY,
	SCP_LINE,   /* a control line */
	SCP_DATA,   /* the content of a file */
	SCP_STATUS, /* the byte, or line, that ends or answers something */
	SCP_DONE,
};

/* A directory that is being filled or read. */
struct scp_level {
	char *path;
	struct file_list *list; /* of the source */
	bool has_times;
	int64_t accessed, modified; /* seconds */
	uint32_t mode;
	bool is_new;
};

/* The file under way. */
struct scp_item {
	char *path;
	int fd;
	uint64_t size, at; /* bytes in all, and so far */
	uint64_t arrived;  /* of the source: what can be read */
	bool has_times;
	int64_t accessed, modified;
	uint32_t mode;
	struct error trouble; /* told once its bytes are through */
};

struct scp {
	struct channel *channel;
	struct session *session;
	struct scp_command command;
	enum scp_stage stage;
	struct buffer line; /* of the client */
	struct buffer output;
	struct session_file *request; /* with the worker */
	void *question;               /* what reply_came is told of it */
	struct session_file *arrival; /* as well: bytes of the item are still coming */
	bool failed;                  /* something was not copied: exit status 1 */

	struct scp_level levels[SCP_DEPTH_MAX];
	size_t depth;
	struct scp_item item;

	/* the sink */
	bool into_directory; /* the target is one */
	bool has_times;      /* a T line came */
	int64_t accessed, modified;

	/* the source */
	size_t next;               /* of command.paths */
	struct file_list *matches; /* of a pattern */
	char *matches_base;        /* what they are relative to */
	bool matched;
	void (*answered)(struct scp *scp); /* what to do once the client has said yes */
};

/* scp.c: asks the worker; done is told its reply. The request is freed here. */
typedef void scp_reply_fn(struct scp *scp, struct file_reply *reply, const struct error *err);
void scp_ask(struct scp *scp, struct file_request *request, scp_reply_fn *done);

/* Gives up the request under way. */
void scp_cancel(struct scp *scp);

/* Tells the client of an error, which is not the end: "\1scp: …\n". */
void scp_warn(struct scp *scp, const struct error *err);

/* The client said something that makes no sense, or wants no more. */
void scp_abort(struct scp *scp, const char *text);

/* All is done: the exit status says whether all went well. */
void scp_finish(struct scp *scp);

/* Answers: zero for well done. */
void scp_put_byte(struct scp *scp, char byte);

/* Forgets the file under way, and leaves the directory under way. */
void scp_item_free(struct scp_item *item);
void scp_level_pop(struct scp *scp);

/* One line of the log for a file that was copied or not. */
void scp_log(const struct scp *scp, const char *what, const char *path, uint64_t bytes,
    const struct error *err);

/* scp_sink.c and scp_source.c: the beginning, a control line, a status, and going on with data. */
void scp_sink_start(struct scp *scp);
void scp_sink_take_line(struct scp *scp, const char *text);
void scp_sink_take_data(struct scp *scp, const unsigned char *data, size_t size);
void scp_sink_take_status(struct scp *scp, bool ok);
void scp_source_start(struct scp *scp);
void scp_source_take_status(struct scp *scp, bool ok);
void scp_source_send_data(struct scp *scp);

#endif
