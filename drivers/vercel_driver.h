/* SPDX-License-Identifier: ISC */
/*
 * The parts of the Vercel driver that share one sandbox: vercel.c opens, closes and releases it,
 * vercel_connect.c (with vercel_remake.c) gets it with what vercel_control.c says and reads,
 * vercel_life.c pushes its end back and finds out what became of it, vercel_request.c makes the
 * requests of all of them. Commands run on a terminal (vercel_pty.c, and terminal.h) or, to their
 * end, by a request (vercel_run.c, with what vercel_log.c makes of vercel_event.c's lines);
 * vercel_files.c moves files. Nothing else includes this.
 *
 * What Vercel calls a sandbox has a name and a disk; what runs is a session of it, with an id of
 * its own and another one after each stop.
 */
#ifndef DRIVERS_VERCEL_DRIVER_H
#define DRIVERS_VERCEL_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/driver.h"
#include "drivers/http.h"
#include "drivers/operation.h"
#include "drivers/terminal.h"
#include "drivers/vercel_credentials.h"
#include "drivers/waiting.h"

struct connecting;
struct json_object;
struct loop_timer;
struct others;
struct vercel_look;

struct driver_sandbox {
	struct driver_context context;
	struct http_setup setup;
	struct http *http;
	char *api; /* URL */
	struct vercel_credentials credentials;
	char *auth_header; /* secret */

	char *name;    /* of the sandbox; NULL until it is connected */
	char *session; /* the id of what runs */
	char *directory, *user;
	bool is_persistent; /* it leaves a snapshot when it stops */
	bool is_healthy;    /* the session's server of terminals has answered */
	bool is_lost, is_closing;

	struct connecting *connect; /* under way */

	/* a release under way */
	enum driver_release release;
	driver_done_fn *released;
	void *release_argument;
	struct loop_timer *release_again;
	unsigned release_attempts;
	struct http_request *releasing;

	/* vercel_life.c */
	int64_t lifetime; /* ms */
	int64_t timeout;  /* ms from the session's start to its end */
	int64_t ends;     /* loop_now of that end */
	bool used;        /* since it was last pushed back */
	bool is_capped;   /* it cannot be pushed back any more */
	struct loop_timer *tick;
	struct http_request *extending, *checking;
	struct waiting waiting; /* for the outcome of extend */

	struct others *others; /* a release of others under way */
	struct terminal_pool terminals;
	struct driver_operation *operations;
};

/* A request with JSON in it. */
struct vercel_call {
	const char *method, *path; /* "/v2/...", escaped */
	const char *query;         /* "&name=value...", escaped; or NULL */
	struct json_object *body;  /* put by the call; may be NULL */
	enum http_repeat repeat;
	int64_t timeout;         /* ms for the whole of it; 0 for a stream */
	http_event_fn *received; /* of a stream, see drivers/http.h */
	http_done_fn *done;
	void *argument;
};

/* vercel_request.c */
struct http_request *vercel_start_call(
    struct driver_sandbox *sandbox, const struct vercel_call *call);

/* Also those to the session, whose path is "/v2/sandboxes/sessions/ID" and rest. */
struct http_request *vercel_session_call(
    struct driver_sandbox *sandbox, const char *rest, const struct vercel_call *call);

/* Also those about the sandbox with this name, which may be sent twice; query as above. */
struct http_request *vercel_name_call(
    struct driver_sandbox *sandbox, const char *name, const struct vercel_call *call);

/* The URL of a path of the session, and the headers with this content type; both new. */
char *vercel_session_url(const struct driver_sandbox *sandbox, const char *rest);
char **vercel_headers(const struct driver_sandbox *sandbox, const char *type);

/* Is this the machine's word for what failed: error.code of the answer? */
bool vercel_is_code(const struct http_answer *answer, const char *code);

/* Is the session over, or about to be, or did something answer that is not Vercel? */
bool vercel_is_suspicious(const struct http_answer *answer);

/* Why nothing can be done in the sandbox now; 0 when it can. */
int vercel_check_usable(const struct driver_sandbox *sandbox, struct error *err);

/* vercel_connect.c */
void vercel_connect(struct driver_sandbox *sandbox, const struct driver_target *target,
    driver_connected_fn *done, void *argument);

/* No sandbox is known any more. */
void vercel_forget(struct driver_sandbox *sandbox);

/* vercel_life.c */
void vercel_life_begin(struct driver_sandbox *sandbox, const struct vercel_look *look);
void vercel_life_end(struct driver_sandbox *sandbox);

/* An operation begins: pushes the end of the sandbox's life back when that is due. */
void vercel_life_use(struct driver_sandbox *sandbox);
void vercel_extend(struct driver_sandbox *sandbox, driver_done_fn *done, void *argument);

/* Something went wrong on the way to the sandbox: asks what became of it, and says so if it is
 * lost. */
void vercel_life_check(struct driver_sandbox *sandbox);

/* vercel_others.c: the interface's release_others. */
void vercel_release_others(
    struct driver_sandbox *sandbox, enum driver_release how, driver_done_fn *done, void *argument);

/* vercel_pty.c */
extern const struct terminal_kind vercel_pty;

/* vercel_run.c, vercel_files.c: the operations of core/driver.h. */
struct driver_operation *vercel_run(struct driver_sandbox *sandbox, char *const *argv,
    const void *input, size_t input_size, size_t max_output, driver_result_fn *done,
    void *argument);

struct driver_operation *vercel_read(struct driver_sandbox *sandbox, const char *path, uint64_t max,
    int sink, driver_done_fn *done, void *argument);
struct driver_operation *vercel_write(struct driver_sandbox *sandbox, const char *path,
    uint64_t size, int source, driver_done_fn *done, void *argument);

#endif
