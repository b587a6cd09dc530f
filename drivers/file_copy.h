/* SPDX-License-Identifier: ISC */
/*
 * Files in and out of a sandbox through its provider's file interface. Those read with rights of
 * their own, and write in place; core/scripts/file.sh adds what that lacks: rights are checked
 * before a read, and a write goes to a private file beside its target and is moved over it when it
 * is complete.
 */
#ifndef DRIVERS_FILE_COPY_H
#define DRIVERS_FILE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/driver.h"
#include "drivers/http.h"

struct buffer;
struct loop;

/* What is different from provider to provider. */
struct file_interface {
	const struct driver *driver; /* its run takes the script */

	/* Can a script be run in the sandbox: is it connected, not lost and not being closed? */
	bool (*is_ready)(const struct driver_sandbox *sandbox);

	/*
	 * Start the request that gives a file's bytes, or the one that makes a file of them. call has
	 * its callbacks; the URL, headers and timeouts are to be added. For a write its body_length is
	 * that of the file, to which is added what frames it: store sends what goes before the bytes,
	 * and says what goes behind them, a text that stays.
	 */
	struct http_request *(*fetch)(
	    struct driver_sandbox *sandbox, const char *path, struct http_call *call);
	struct http_request *(*store)(struct driver_sandbox *sandbox, const char *path,
	    struct http_call *call, const char **tail);

	/*
	 * Or, with store NULL: a file goes in parts of at most part_max bytes, and store_part starts
	 * the request that takes one, packed (drivers/pack.h) and whole, so that it can be sent again.
	 */
	uint64_t part_max;
	struct http_request *(*store_part)(
	    struct driver_sandbox *sandbox, const struct buffer *packed, struct http_call *call);

	/* A request failed: if the sandbox may be gone, it is looked at. */
	void (*suspect)(struct driver_sandbox *sandbox, const struct http_answer *answer);
};

struct file_copy_setup {
	const struct file_interface *interface;
	struct driver_sandbox *sandbox;
	struct driver_operation **operations; /* the sandbox's list, for operation_cancel */
	struct loop *loop;
};

/* read and write of core/driver.h. */
struct driver_operation *file_copy_read(const struct file_copy_setup *setup, const char *path,
    uint64_t max, int sink, driver_done_fn *done, void *argument);
struct driver_operation *file_copy_write(const struct file_copy_setup *setup, const char *path,
    uint64_t size, int source, driver_done_fn *done, void *argument);

#endif
