/* SPDX-License-Identifier: ISC */
/*
 * The handlers behind the operations, each list in the file of its name;
 * they end with one without a name.
 */
#ifndef GATEWAY_RPC_HANDLERS_H
#define GATEWAY_RPC_HANDLERS_H

#include "gateway/rpc_call.h"

extern const struct rpc_handler rpc_exec_handlers[];
extern const struct rpc_handler rpc_job_handlers[];
extern const struct rpc_handler rpc_file_handlers[];
extern const struct rpc_handler rpc_tree_handlers[];
extern const struct rpc_handler rpc_search_handlers[];
extern const struct rpc_handler rpc_sandbox_handlers[];
extern const struct rpc_handler rpc_snapshot_handlers[];

#endif
