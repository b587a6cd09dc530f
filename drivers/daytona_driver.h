/* SPDX-License-Identifier: ISC */
/*
 * The parts of the Daytona driver that share one sandbox: daytona.c opens, closes and releases it,
 * daytona_connect.c gets it with what daytona_control.c says and reads, daytona_life.c keeps it
 * awake and finds out what became of it, daytona_request.c makes the requests of all of them.
 * Commands run on a terminal (daytona_pty.c, and terminal.h)
 * or by daytona_run.c (to the end, with its output gathered); daytona_files.c moves files. Nothing
 * else includes this.
 */
#ifndef DRIVERS_DAYTONA_DRIVER_H
#define DRIVERS_DAYTONA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/driver.h"
#include "drivers/http.h"
#include "drivers/operation.h"
#include "drivers/terminal.h"
#include "drivers/waiting.h"

struct connecting;
struct daytona_chore; /* a request nobody waits for */
struct json_object;
struct loop_timer;
struct others;

struct driver_sandbox {
	struct driver_context context;
	struct http_setup setup;
	struct http *http;
	char *api;         /* URL of the control plane */
	char *auth_header; /* secret */

	char *id;   /* of the sandbox; NULL until it is connected */
	char *base; /* URL of its toolbox */
	char *directory, *user;
	bool is_attached;       /* by the option sandbox */
	bool no_create_connect; /* its daemon does not know how to make a terminal in one trip */
	bool is_lost, is_closing;

	struct connecting *connect; /* under way */
	struct others *others;      /* a release of others under way */

	/* a release under way */
	enum driver_release release;
	driver_done_fn *released;
	void *release_argument;
	struct loop_timer *release_again;
	unsigned release_attempts;
	struct http_request *releasing;

	/* daytona_life.c */
	struct loop_timer *tick;
	int64_t touched; /* loop_now of the last sign of activity */
	struct http_request *touching, *checking;
	struct waiting waiting; /* for the outcome of extend */

	struct terminal_pool terminals;
	struct driver_operation *operations;
	struct daytona_chore *chores;
};

/* A request with JSON both ways. */
struct daytona_call {
	const char *method, *path;
	struct json_object *body; /* put by the call; may be NULL */
	enum http_repeat repeat;
	int64_t timeout;   /* ms for the whole of it */
	size_t max_answer; /* bytes; 0 for what all but outputs of commands need */
};

/* daytona_request.c */
struct http_request *daytona_control_call(struct driver_sandbox *sandbox,
    const struct daytona_call *call, http_done_fn *done, void *argument);
struct http_request *daytona_toolbox_call(struct driver_sandbox *sandbox,
    const struct daytona_call *call, http_done_fn *done, void *argument);

/* The headers that every request has, and these; a new list. */
char **daytona_headers(const struct driver_sandbox *sandbox, const char *const *headers);

/* A request to the toolbox whose outcome is only logged. */
void daytona_chore(struct driver_sandbox *sandbox, const char *method, const char *path);
void daytona_chore_free_all(struct driver_sandbox *sandbox);

/* daytona_connect.c */
void daytona_connect(struct driver_sandbox *sandbox, const struct driver_target *target,
    driver_connected_fn *done, void *argument);

/* daytona_others.c: the interface's release_others. */
void daytona_release_others(
    struct driver_sandbox *sandbox, enum driver_release how, driver_done_fn *done, void *argument);

/* No sandbox is known any more. */
void daytona_forget(struct driver_sandbox *sandbox);

/* daytona_life.c */
void daytona_life_begin(struct driver_sandbox *sandbox);
void daytona_life_end(struct driver_sandbox *sandbox);
void daytona_extend(struct driver_sandbox *sandbox, driver_done_fn *done, void *argument);

/* Something went wrong on the way to the sandbox: asks what became of it, and says so if it is
 * lost. */
void daytona_life_check(struct driver_sandbox *sandbox);

/* Did something before the daemon answer, or nothing at all? Then a look at the sandbox is due. */
bool daytona_is_suspicious(const struct http_answer *answer);

/* daytona_pty.c */
extern const struct terminal_kind daytona_pty;

/* daytona_run.c, daytona_files.c: the operations of core/driver.h. */
struct driver_operation *daytona_run(struct driver_sandbox *sandbox, char *const *argv,
    const void *input, size_t input_size, size_t max_output, driver_result_fn *done,
    void *argument);
struct driver_operation *daytona_read(struct driver_sandbox *sandbox, const char *path,
    uint64_t max, int sink, driver_done_fn *done, void *argument);
struct driver_operation *daytona_write(struct driver_sandbox *sandbox, const char *path,
    uint64_t size, int source, driver_done_fn *done, void *argument);

#endif
