/* SPDX-License-Identifier: ISC */
/*
 * The parts of the E2B driver that share one sandbox: e2b.c opens and closes it, e2b_control.c gets
 * and releases it, e2b_life.c keeps it alive, e2b_request.c makes the requests of all of them.
 * Commands are e2b_process.c (their event stream), e2b_input.c (their stdin), and on top of these
 * e2b_stream.c and e2b_run.c; e2b_files.c moves files. Nothing else includes this.
 */
#ifndef DRIVERS_E2B_DRIVER_H
#define DRIVERS_E2B_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/driver.h"
#include "drivers/e2b_event.h"
#include "drivers/http.h"
#include "drivers/waiting.h"

struct json_object;
struct loop_timer;
struct pump_source;

/* envd's versions as one number: 0.5.7 is E2B_VERSION(0, 5, 7). */
#define E2B_VERSION(major, minor, patch) ((major)*1000000U + (minor)*1000U + (patch))

struct connecting;
struct others;
struct e2b_chore; /* a request nobody waits for, or somebody that can be dropped */

struct driver_sandbox {
	struct driver_context context;
	struct http *http;
	char *api;                         /* URL of the control plane */
	char *key_header;                  /* secret */
	int64_t lifetime, request_timeout; /* ms */

	char *id;           /* of the sandbox; NULL until it is connected */
	char *base;         /* URL of its envd */
	char *token_header; /* secret, or NULL */
	char *id_header;
	unsigned version; /* of envd */
	char *directory, *user;
	bool is_attached; /* by the option sandbox_id */
	bool no_stream_input, stream_input_works;

	struct connecting *connect; /* under way */
	struct others *others;      /* a release of others under way */

	/* a release under way */
	enum driver_release release;
	driver_done_fn *released;
	void *release_argument;
	struct loop_timer *release_soon;
	struct http_request *releasing;

	/* e2b_life.c */
	struct loop_timer *tick;
	int64_t extended; /* loop_now when its end was last pushed back */
	bool used;        /* since then */
	struct http_request *extending;
	struct waiting waiting; /* for the outcome of extend */
	struct http_request *checking;
	bool is_lost;

	bool is_closing;
	struct driver_stream *streams;
	struct driver_operation *operations;
	struct e2b_process *processes;
	struct e2b_chore *chores;
};

/*
 * e2b_request.c. A request to the control plane; body may be NULL and is put. timeout in ms for the
 * whole of it.
 */
struct http_request *e2b_control_call(struct driver_sandbox *sandbox, const char *method,
    const char *path, struct json_object *body, int64_t timeout, http_done_fn *done,
    void *argument);

/* The one request to it that must not happen twice; puts body. */
struct http_request *e2b_create_call(struct driver_sandbox *sandbox, struct json_object *body,
    int64_t timeout, http_done_fn *done, void *argument);

/* A unary RPC of envd ("process.Process/SendInput"); puts body. timeout 0: it may take for ever. */
struct http_request *e2b_unary_call(struct driver_sandbox *sandbox, const char *method,
    struct json_object *body, enum http_repeat repeat, int64_t timeout, http_done_fn *done,
    void *argument);

/* The headers that every request to envd has, and these; a new list. */
char **e2b_envd_headers(const struct driver_sandbox *sandbox, const char *const *headers);

/* ms for a connection to be made. */
int64_t e2b_connect_timeout(const struct driver_sandbox *sandbox);

/* Did envd itself answer with an error of the RPC layer, rather than something before it? */
bool e2b_is_rpc_error(const struct http_answer *answer);

/* {"process":{"pid":N}}, to which members can be added. */
struct json_object *e2b_select(uint32_t pid);

/* A unary call whose outcome is only logged. */
void e2b_chore(struct driver_sandbox *sandbox, const char *method, struct json_object *body);

/* Destroys the sandbox, for whose id nobody waits any more. */
void e2b_chore_destroy(struct driver_sandbox *sandbox);

/* Ends a process that may have been started by a request whose answer was lost. */
void e2b_chore_reap(struct driver_sandbox *sandbox, const char *tag);
void e2b_chore_free_all(struct driver_sandbox *sandbox);

/* e2b_control.c: the operations of core/driver.h, and what an answer with a Sandbox in it says. */
void e2b_connect(struct driver_sandbox *sandbox, const struct driver_target *target,
    driver_connected_fn *done, void *argument);

/* e2b_others.c: the interface's release_others. */
void e2b_release_others(struct driver_sandbox *sandbox, enum driver_release release,
    driver_done_fn *done, void *argument);

/* e2b_life.c */
void e2b_life_begin(struct driver_sandbox *sandbox);
void e2b_life_end(struct driver_sandbox *sandbox);

/* An operation begins: pushes the end of the sandbox's life back when that is due. */
void e2b_life_use(struct driver_sandbox *sandbox);
void e2b_extend(struct driver_sandbox *sandbox, driver_done_fn *done, void *argument);

/*
 * Something went wrong on the way to the sandbox. Asks the control plane what became of it and then
 * tells all processes that wait for that (e2b_process_judge).
 */
void e2b_life_check(struct driver_sandbox *sandbox);

/* e2b_process.c: a process and its stream of events. */
struct e2b_process;

struct e2b_process_events {
	void (*started)(void *argument, uint32_t pid);
	/* Can output of this kind be taken now? If not, call e2b_process_resume when it can. */
	bool (*has_room)(void *argument, enum e2b_event_kind kind);
	void (*output)(
	    void *argument, enum e2b_event_kind kind, const unsigned char *data, size_t size);
	/* May be NULL: as in struct driver_stream_events. */
	void (*gap)(void *argument);
	/* Once and last, as in struct driver_stream_events; e2b_process_free is the owner's. */
	void (*ended)(void *argument, const struct driver_exit *ended, const struct error *err);
};

struct e2b_process *e2b_process_start(struct driver_sandbox *sandbox,
    const struct driver_command *command, const struct e2b_process_events *events, void *argument);
void e2b_process_resume(struct e2b_process *process);

/* Its input is broken: ends it with err, or with what is known of the sandbox. */
void e2b_process_fail(struct e2b_process *process, const struct error *err);

/* 0 until it started, and once it ended. */
uint32_t e2b_process_pid(const struct e2b_process *process);

/* What still runs gets KILL. Accepts NULL. */
void e2b_process_free(struct e2b_process *process);

/* Tells all that wait what became of the sandbox; gone NULL: it runs. */
void e2b_process_judge(struct driver_sandbox *sandbox, const struct error *gone);

/* e2b_input.c: a command's stdin or terminal. */
struct e2b_input;

/*
 * Sends what source gives (which it takes over), or with source NULL a copy of data, and then the
 * end. failed comes at most once, when it cannot be known how much arrived.
 */
struct e2b_input_setup {
	struct driver_sandbox *sandbox;
	uint32_t pid;
	bool pty;
	int source;
	const void *data;
	size_t size;
	void (*failed)(void *argument, const struct error *err);
	void *argument;
};
struct e2b_input *e2b_input_new(const struct e2b_input_setup *setup);
void e2b_input_free(struct e2b_input *input); /* accepts NULL */

/* e2b_stream.c, e2b_run.c, e2b_files.c: the operations of core/driver.h. */
struct driver_stream *e2b_start(struct driver_sandbox *sandbox,
    const struct driver_command *command, const struct driver_stream_events *events,
    void *argument);
void e2b_resize(struct driver_stream *stream, uint32_t columns, uint32_t rows, uint32_t x_pixels,
    uint32_t y_pixels);
void e2b_signal(struct driver_stream *stream, int number);
void e2b_close_stream(struct driver_stream *stream);
struct driver_operation *e2b_run(struct driver_sandbox *sandbox, char *const *argv,
    const void *input, size_t input_size, size_t max_output, driver_result_fn *done,
    void *argument);
/* As e2b_run, with a whole command; directory NULL is the sandbox's own. */
struct driver_operation *e2b_run_command(struct driver_sandbox *sandbox,
    const struct driver_command *command, const void *input, size_t input_size, size_t max_output,
    driver_result_fn *done, void *argument);
struct driver_operation *e2b_read(struct driver_sandbox *sandbox, const char *path, uint64_t max,
    int sink, driver_done_fn *done, void *argument);
struct driver_operation *e2b_write(struct driver_sandbox *sandbox, const char *path, uint64_t size,
    int source, driver_done_fn *done, void *argument);

#endif
