/* SPDX-License-Identifier: ISC */
/* What is said to Vercel about a sandbox, and what the answers say; for the parts of the driver
 * only. */
#ifndef DRIVERS_VERCEL_CONTROL_H
#define DRIVERS_VERCEL_CONTROL_H

#include "drivers/vercel_driver.h"

/* What a session's status means to somebody who waits for it. */
enum vercel_state {
	VERCEL_RUNNING,
	VERCEL_PENDING, /* it will run */
	VERCEL_ENDING,  /* it is being stopped, or its disk is being saved */
	VERCEL_STOPPED,
	VERCEL_FAILED,
};

/* The name that the option name gives this workspace's sandbox; a new text, or NULL for none. */
char *vercel_own_name(const struct driver_sandbox *sandbox);

/* The path of a create, and its body, which the caller puts. */
const char *vercel_create_path(const struct driver_sandbox *sandbox);
struct json_object *vercel_create_body(const struct driver_sandbox *sandbox, const char *name);

/* What lists the sandboxes with our tag: a query, as a new text. */
char *vercel_list_query(const struct driver_sandbox *sandbox, const char *cursor);

/* As the find of struct connecting_kind, by the name. */
int vercel_find_ours(const struct driver_sandbox *sandbox, const struct http_answer *answer,
    char **name, char **cursor, struct error *err);

/* As the read of struct others_kind: names to destroy, or the sessions to stop. */
int vercel_list_others(const struct driver_sandbox *sandbox, const struct http_answer *answer,
    bool destroys, char ***ids, size_t *count, char **cursor, struct error *err);

/* What an answer with a session in it says; free it with vercel_look_clear. */
struct vercel_look {
	char *name; /* of the sandbox; NULL when the answer has none */
	char *session;
	char *directory; /* NULL when it is not told */
	char *word;      /* the session's state as Vercel calls it */
	enum vercel_state state;
	int64_t began;   /* ms since 1970, 0 when it is not told */
	int64_t timeout; /* ms from then */
	bool is_persistent, is_resumed, is_ours, has_snapshot;
};
int vercel_read_look(const struct driver_sandbox *sandbox, const struct http_answer *answer,
    struct vercel_look *look, struct error *err);
void vercel_look_clear(struct vercel_look *look);

#endif
