/* SPDX-License-Identifier: ISC */
/*
 * The rws subsystem of one channel: JSON-RPC 2.0, one object a line, and MCP on the same stream.
 * Runs in the worker, which is the only process that parses JSON; the session passes bytes.
 */
#ifndef GATEWAY_RPC_H
#define GATEWAY_RPC_H

struct driver_descriptors;
struct error;
struct rpc;
struct worker;

/* The longest line, either way. */
#define RPC_LINE_MAX (16U * 1024U * 1024U)

/* Called once, when the client has ended its input and every answer was read. */
typedef void rpc_ended_fn(void *argument);

/*
 * Opens it and gives the client's ends of its pipes (errors is -1), which are the caller's.
 * environment (NULL-ended, copied) is what commands get beside the login's own. NULL on failure.
 */
struct rpc *rpc_open(struct worker *worker, char *const *environment, rpc_ended_fn *ended,
    void *argument, struct driver_descriptors *descriptors, struct error *err);

/* Ends it: what runs for it is stopped, but for what was detached. */
void rpc_close(struct rpc *rpc); /* accepts NULL */

#endif
