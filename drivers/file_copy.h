/* SPDX-License-Identifier: ISC */
/*
 * Files in and out of providers whose file interface knows neither the user's rights nor a rename:
 * core/scripts/file.sh checks the rights before a read, and a write goes to a private file beside
 * its target and is moved over it when it is complete. The bytes themselves are the provider's.
 */
#ifndef DRIVERS_FILE_COPY_H
#define DRIVERS_FILE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/driver.h"
#include "drivers/operation.h"

struct file_copy;
struct http_answer;
struct http_request;
struct loop;
struct loop_timer;
struct pump_sink;
struct pump_source;

/* What a provider does differently. */
struct file_copy_kind {
	size_t size; /* of the kind's own, which begins with a struct file_copy */

	/* As driver->run. */
	struct driver_operation *(*run)(struct driver_sandbox *sandbox, char *const *argv,
	    const void *input, size_t input_size, size_t max_output, driver_result_fn *done,
	    void *argument);

	/* From here on a run that makes a private file is nobody's: has its outcome given to
	 * file_copy_orphaned. */
	void (*abandon)(struct driver_operation *operation);

	/* Starts copy->request for copy->path, with file_copy_received and file_copy_fetched. */
	void (*fetch)(struct file_copy *copy);

	/* Begins to send what comes from copy->source to copy->temp, and ends in file_copy_sent or
	 * file_copy_fail. */
	void (*send)(struct file_copy *copy);

	/* There is more in the source, or its end. */
	void (*more)(struct file_copy *copy);

	/* Frees what is the kind's own; may be NULL. */
	void (*release)(struct file_copy *copy);

	/* Can something still be run there? */
	bool (*is_usable)(const struct driver_sandbox *sandbox);

	/* An answer failed: is the sandbox still there? */
	void (*doubt)(struct driver_sandbox *sandbox, const struct http_answer *answer);
};

/* Its members are for the kind. */
struct file_copy {
	struct driver_operation operation; /* first: a copy is one */
	const struct file_copy_kind *kind;
	struct loop_timer *soon; /* tells what failed within the call */
	struct error err;
	struct http_request *request; /* cancelled when it is freed */
	char *path;
	driver_done_fn *done;
	void *argument;
	uint64_t left;              /* bytes to be moved */
	struct pump_sink *sink;     /* of a read */
	struct pump_source *source; /* of a write */
	struct driver_operation *script;
	/* Goes on once the script said ok. */
	void (*after)(struct file_copy *copy, const char *output);
	char *temp; /* of a write, while it is there */
	bool is_complete;
};

/* refusal is why nothing can be copied now, or NULL. */
struct file_copy_setup {
	const struct file_copy_kind *kind;
	struct driver_sandbox *sandbox;
	struct driver_operation **list; /* of the sandbox's operations */
	struct loop *loop;
	const struct error *refusal;
};

/* As driver->read and driver->write. */
struct driver_operation *file_copy_read(const struct file_copy_setup *setup, const char *path,
    uint64_t max, int sink, driver_done_fn *done, void *argument);
struct driver_operation *file_copy_write(const struct file_copy_setup *setup, const char *path,
    uint64_t size, int source, driver_done_fn *done, void *argument);

/* For the kind: the callbacks of a fetch, whose request streams its answer. */
void file_copy_received(void *argument);
void file_copy_fetched(void *argument, const struct http_answer *answer, const struct error *err);

/* For the kind: all that came from the source is in the private file. */
void file_copy_sent(struct file_copy *copy);

/* For the kind: runs file.sh and goes on with after. */
void file_copy_run(struct file_copy *copy, const char *mode, char *first, char *second,
    void (*after)(struct file_copy *copy, const char *output));

/* For the kind: the outcome of a run that was abandoned. */
void file_copy_orphaned(const struct file_copy_kind *kind, struct driver_sandbox *sandbox,
    const struct driver_result *result);

/* For the kind: the source ended before it gave what it had announced. */
void file_copy_fail_short(struct file_copy *copy);

/* For the kind: an answer, or something else (answer NULL), failed. The copy is gone. */
void file_copy_fail(struct file_copy *copy, const struct http_answer *answer,
    const struct error *reason, const char *what);

#endif
