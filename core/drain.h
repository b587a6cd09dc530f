/* SPDX-License-Identifier: ISC */
/*
 * Keeps an output open for what a command left running, once its owner has gone: what comes is read
 * and dropped, so that the writer is not killed by SIGPIPE.
 */
#ifndef CORE_DRAIN_H
#define CORE_DRAIN_H

struct drain;
struct loop;

/* Duplicates fd, and does nothing with it yet. NULL when fd is none. */
struct drain *drain_new(struct loop *loop, int fd);

/* Starts to read, until the end. Both accept NULL. */
void drain_start(struct drain *drain);
void drain_free(struct drain *drain);

#endif
