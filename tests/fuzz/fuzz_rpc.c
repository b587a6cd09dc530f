/* SPDX-License-Identifier: ISC */
/*
 * The reader of the rws subsystem with everything behind it: lines of JSON, batches, MCP,
 * parameters of every operation. The sandbox is a stub, so an operation fails where it would leave
 * the worker.
 */
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/driver.h"
#include "gateway/rpc_call.h"
#include "gateway/rpc_job.h"
#include "gateway/worker.h"
#include "tests/unit/stub_driver.h"

/* As much as a dispatch needs for what the input began to come to its end. */
#define ROUNDS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
ignore_end(void *argument)
{
	(void)argument;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *environment[] = { NULL }, scratch[65536];
	struct driver_descriptors ends;
	struct worker worker;
	struct rpc *rpc;
	unsigned round;

	(void)signal(SIGPIPE, SIG_IGN);
	log_set_level(LOG_LEVEL_ERROR);
	stub_worker_open(&worker);
	rpc = rpc_open(&worker, environment, ignore_end, NULL, &ends, NULL);
	if (rpc != NULL) {
		(void)descriptor_nonblock(ends.output, NULL);
		rpc_take(rpc, data, size);
		rpc_take(rpc, "\n", 1);
		for (round = 0; round < ROUNDS; round++) {
			(void)loop_dispatch(worker.loop, 0, NULL);
			while (read(ends.output, scratch, sizeof(scratch)) > 0)
				continue;
		}
		rpc_close(rpc);
		job_free_all(&worker);
		descriptor_close(&ends.input);
		descriptor_close(&ends.output);
	}
	stub_worker_close(&worker);
	return 0;
}
