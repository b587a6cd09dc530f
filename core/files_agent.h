/* SPDX-License-Identifier: ISC */
/*
 * One running core/scripts/files.sh: requests go in as lines, with content behind them that is read
 * from a file as the sandbox takes it; replies come out.
 */
#ifndef CORE_FILES_AGENT_H
#define CORE_FILES_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/files_reply.h"

struct files_agent;
struct workspace;

struct files_agent_events {
	struct files_reply_events replies;
	/* It ended, or said something that makes no sense; it is to be closed. */
	void (*lost)(void *argument, const struct error *err);
};

/* Starts it; what is sent before it runs waits. */
struct files_agent *files_agent_open(
    struct workspace *workspace, const struct files_agent_events *events, void *argument);

/* Ends it; accepts NULL. May be called from an event. */
void files_agent_close(struct files_agent *agent);

/* Did it ever run? What was sent before is not under way then. */
bool files_agent_is_started(const struct files_agent *agent);

/* A number for the next request. */
uint32_t files_agent_number(struct files_agent *agent);

/* The one that was given last. */
uint32_t files_agent_last_number(const struct files_agent *agent);

/*
 * Sends a line, and size bytes of fd from offset on; fd is kept open until they are sent, or -1.
 * A file that turns out shorter is made up with zeros: so many were announced.
 */
void files_agent_send(
    struct files_agent *agent, const char *line, int fd, uint64_t offset, size_t size);

#endif
