/* SPDX-License-Identifier: ISC */
/*
 * A driver whose sandbox is always there and in which every command fails to start, and a workspace
 * with it: for tests of what stands above drivers.
 */
#ifndef TESTS_UNIT_STUB_DRIVER_H
#define TESTS_UNIT_STUB_DRIVER_H

struct worker;

/* Fills in loop, settings and workspace; the end frees them. */
void stub_worker_open(struct worker *worker);
void stub_worker_close(struct worker *worker);

#endif
