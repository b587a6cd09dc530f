/* SPDX-License-Identifier: ISC */
/*
 * The parts of the local driver that share one sandbox: drivers/local.c starts and ends it,
 * local_stream.c has its commands and local_operation.c its reads, writes and runs. Nothing else
 * includes this.
 */
#ifndef DRIVERS_LOCAL_DRIVER_H
#define DRIVERS_LOCAL_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/driver.h"
#include "drivers/local_sandbox.h"
#include "drivers/local_store.h"

struct local_answer;
struct local_child;
struct loop_timer;
struct message;
struct peer;

enum local_state {
	LOCAL_STOPPED,
	LOCAL_STARTING,
	LOCAL_RUNNING,
	LOCAL_ENDING,
};

struct driver_sandbox {
	struct driver_context context;
	enum local_state state;
	char id[LOCAL_ID_SIZE];
	bool created;
	struct local_sandbox shape;
	struct local_child *child; /* bubblewrap, or init without it */
	struct peer *init;
	struct loop_timer *deadline;    /* of a start or an end under way */
	struct error trouble;           /* why init was given up; code ERROR_NONE when it was not */
	driver_connected_fn *connected; /* a connect under way */
	void *connect_argument;
	char *wanted; /* its target */
	bool may_create;
	struct loop_timer *connect; /* begins it */
	driver_done_fn *released;   /* a stop or destroy under way */
	void *release_argument;
	bool destroy;
	struct loop_timer *finish;    /* ends it, when there is nothing to wait for */
	struct local_answer *answers; /* to calls that are done at once */
	struct local_child *removal;  /* of a left-over tree */
	struct driver_stream *streams;
	struct driver_operation *operations;
	uint32_t last_id;
	bool losing; /* callbacks are made that may close it: the memory is left to their caller */
	bool closed;
};

/* A number for a command or copy that no other under way has. */
uint32_t local_next_id(struct driver_sandbox *sandbox);

/* What init says of commands: the messages STREAM, STARTED, ENDED and GONE. */
int local_stream_take(void *argument, struct message *message, struct error *err);
int local_started_take(void *argument, struct message *message, struct error *err);
int local_ended_take(void *argument, struct message *message, struct error *err);
int local_gone_take(void *argument, struct message *message, struct error *err);

/* And of copies: DONE. */
int local_done_take(void *argument, struct message *message, struct error *err);

/* The sandbox is gone: ends one command or operation that still waits; false when none does. */
bool local_stream_lose(struct driver_sandbox *sandbox, const struct error *err);
bool local_operation_lose(struct driver_sandbox *sandbox, const struct error *err);

/* Without isolation: kills what a dead init left of the commands. */
void local_stream_kill_all(struct driver_sandbox *sandbox);

/* Frees all without callbacks. */
void local_stream_free_all(struct driver_sandbox *sandbox);
void local_operation_free_all(struct driver_sandbox *sandbox);

/* The driver's operations, as in core/driver.h. */
struct driver_stream *local_stream_start(struct driver_sandbox *sandbox,
    const struct driver_command *command, const struct driver_stream_events *events,
    void *argument);
void local_stream_resize(struct driver_stream *stream, uint32_t columns, uint32_t rows,
    uint32_t x_pixels, uint32_t y_pixels);
void local_stream_signal(struct driver_stream *stream, int number);
void local_stream_close(struct driver_stream *stream);
struct driver_operation *local_read(struct driver_sandbox *sandbox, const char *path, uint64_t max,
    int sink, driver_done_fn *done, void *argument);
struct driver_operation *local_write(struct driver_sandbox *sandbox, const char *path,
    uint64_t size, int source, driver_done_fn *done, void *argument);
struct driver_operation *local_run(struct driver_sandbox *sandbox, char *const *argv,
    const void *input, size_t input_size, size_t max_output, driver_result_fn *done,
    void *argument);
void local_cancel(struct driver_operation *operation);

#endif
