/* SPDX-License-Identifier: ISC */
/*
 * What the files of the rws subsystem share: a connection, and a call, which is one request under
 * way. A call is answered once, by its handler, at any time; then it is gone.
 */
#ifndef GATEWAY_RPC_CALL_H
#define GATEWAY_RPC_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "gateway/rpc.h"
#include "gateway/rpc_feed.h"

struct json_object;
struct operation;
struct loop_timer;
struct loop_watch;

/* Error numbers of JSON-RPC 2.0 section 5.1 and of MCP 2026-07-28. */
enum rpc_number {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_UNSUPPORTED_VERSION = -32022,
};

struct rpc_call;

/* What stands behind an operation. All but start may be NULL. */
struct rpc_handler {
	const char *name; /* of the operation */
	/* Answers now or later. The parameters have been checked against the table. */
	void (*start)(struct rpc_call *call, struct json_object *parameters);
	/*
	 * The client wants it stopped: it still answers, ABORTED when that worked.
	 * NULL: it runs on.
	 */
	void (*cancel)(struct rpc_call *call);
	/* Free call->state: after the answer, and without one when the client is gone. */
	void (*drop)(struct rpc_call *call);
	/* The client has read what it was sent: go on streaming. */
	void (*resume)(struct rpc_call *call);
	/*
	 * Bytes of an input request that names this call, as feed_put takes them.
	 * NULL: it takes none.
	 */
	int (*input)(struct rpc_call *call, const struct feed_input *input, struct feed_lot **lot,
	    struct error *err);
};

/* How MCP sees a request; zero for plain JSON-RPC. */
struct rpc_mcp_call {
	bool tool;                    /* tools/call: the answer is content */
	bool stateless;               /* of 2026-07-28, which says so in each request */
	struct json_object *progress; /* the token, or NULL */
	int64_t progress_value;       /* the last that was sent; it must grow */
	int64_t progress_time;        /* loop_now of that */
	int log_level;                /* of a stateless request, -1: none asked for */
};

struct rpc_batch;

struct rpc_call {
	struct rpc_call *next;
	struct rpc *rpc;
	struct json_object *id; /* NULL for a notification, which is never answered */
	struct rpc_batch *batch;
	const struct operation *operation;
	const struct rpc_handler *handler;
	size_t size; /* of the line that it came in, or 0 */
	bool cancelled;
	bool silent; /* cancelled by MCP, which wants no answer */
	struct rpc_mcp_call mcp;
	void *state; /* the handler's */
};

struct rpc {
	struct worker *worker;
	int input, output; /* our ends of the pipes */
	struct loop_watch *input_watch, *output_watch;
	struct buffer line;    /* read, not yet a line */
	size_t searched;       /* bytes of it known to hold no newline */
	struct buffer pending; /* to be written */
	bool skipping;         /* in the rest of a line that was too long */
	bool input_ended;
	bool output_full; /* streams wait */
	struct loop_timer *finish;
	struct rpc_call *calls;
	unsigned call_count;
	size_t line_size; /* of the line being taken, until a call has it */
	size_t held;      /* bytes of the lines of all calls */
	char **environment;
	rpc_ended_fn *ended;
	void *argument;
	/* MCP's state before 2026-07-28 */
	const char *mcp_version; /* negotiated, or NULL */
	int log_level;
};

/* Ends the call with a result (owned by the call now), or with an error. */
void rpc_call_result(struct rpc_call *call, struct json_object *result);
void rpc_call_error(struct rpc_call *call, const struct error *err);

/*
 * Streams: false while the client does not read; the handler's resume is called when it does again.
 */
bool rpc_call_ready(const struct rpc_call *call);

/* A piece of a stream ("stdout", "stderr", "archive") as a notification, to MCP as progress. */
void rpc_call_output(struct rpc_call *call, const char *stream, const void *data, size_t size);

/* How far it is, for people: done of total (0: unknown), and what it does. */
void rpc_call_progress(struct rpc_call *call, uint64_t done, uint64_t total, const char *text);

/* The call with this id, or NULL; id may be NULL. */
struct rpc_call *rpc_call_find(struct rpc *rpc, struct json_object *id);

/* For rpc.c, rpc_call.c and rpc_mcp.c. */

/* Requests at once; more are refused, so that a request to cancel is always read. */
#define RPC_CALLS_MAX 64
/* Bytes that they came in: the same, once there are that many. */
#define RPC_HELD_MAX (32U * 1024U * 1024U)
/* Values in one line, and bytes of an id. */
#define RPC_VALUES_MAX 16384
#define RPC_ID_MAX 1024
/* Bytes not yet read by the client, over which streams wait and requests are not read. */
#define RPC_PENDING_HIGH (1024U * 1024U)

/* Queues one line; takes over object. */
void rpc_send(struct rpc *rpc, struct json_object *object);

/* Ends the channel, from the loop, once there is nothing left to do for the client. */
void rpc_finish_if_done(struct rpc *rpc);

/* Is there room for one more call that takes its time? */
bool rpc_call_fits(const struct rpc *rpc);

/* A new call; batch and id (not taken over) may be NULL. */
struct rpc_call *rpc_call_new(struct rpc *rpc, struct rpc_batch *batch, struct json_object *id);

/* Ends a call without an answer. */
void rpc_call_drop(struct rpc_call *call);

/* Refuses a request that made no call. */
void rpc_refuse(struct rpc *rpc, struct rpc_batch *batch, struct json_object *id, int number,
    enum error_code code, const char *message);

/* A batch gathers answers from its opening until it is closed and its calls are answered. */
struct rpc_batch *rpc_batch_open(void);
void rpc_batch_close(struct rpc *rpc, struct rpc_batch *batch);

/* Sends a notification; takes over params. */
void rpc_notify(struct rpc *rpc, const char *method, struct json_object *params);

/* Answers with an error number of the protocol itself; data may be NULL and is taken over. */
void rpc_call_refuse(
    struct rpc_call *call, enum rpc_number number, const char *message, struct json_object *data);

/* Answers with result as it is, whatever the call is; takes it over. */
void rpc_call_answer(struct rpc_call *call, struct json_object *result);

/* Stops a call; with silent there is no answer. */
void rpc_call_cancel(struct rpc_call *call, bool silent);

/* Takes bytes of the client; for the fuzz target, too. */
void rpc_take(struct rpc *rpc, const void *data, size_t size);

/* rpc_table.c */

/* What stands behind an operation, or NULL. */
const struct rpc_handler *rpc_handler_find(const char *name);

/* Checks the parameters (NULL: none) and starts the operation. */
void rpc_call_start(
    struct rpc_call *call, const struct operation *operation, struct json_object *parameters);

/* rpc_mcp.c */

/* Takes a method of MCP; false when it is none. */
bool rpc_mcp_take(struct rpc_call *call, const char *method, struct json_object *parameters);

/* The tool's answer made of an operation's result, or of its error; result is taken over. */
struct json_object *rpc_mcp_result(const struct rpc_call *call, struct json_object *result);
struct json_object *rpc_mcp_error(const struct rpc_call *call, const struct error *err);

/* Progress and log messages of a call. */
void rpc_mcp_progress(struct rpc_call *call, uint64_t done, uint64_t total, const char *text);

/* rpc_schema.c: the JSON Schemas of an operation's parameters and result; new. */
struct json_object *rpc_schema_input(const struct operation *operation);
struct json_object *rpc_schema_output(const struct operation *operation);

/*
 * rpc_content.c: MCP content blocks that show a result; new.
 * Bytes that become a block leave the result.
 */
struct json_object *rpc_content(const struct operation *operation, struct json_object *result);

#endif
