/* SPDX-License-Identifier: ISC */
/* What is said to Daytona's control plane, and what its answers say; for the parts of the driver
 * only. */
#ifndef DRIVERS_DAYTONA_CONTROL_H
#define DRIVERS_DAYTONA_CONTROL_H

#include "drivers/daytona_driver.h"

/* What a Sandbox object's state means to somebody who waits for it. */
enum daytona_state {
	DAYTONA_STARTED,
	DAYTONA_STOPPED, /* or archived, or paused: it can be started */
	DAYTONA_MOVING,  /* to another state, or to one that we do not know */
	DAYTONA_GONE,
	DAYTONA_FAILED,
};

/* The body of a create; the caller puts it. */
struct json_object *daytona_create_body(const struct driver_sandbox *sandbox, const char *name);

/* The path that lists what has our label; a new text. */
char *daytona_list_path(const struct driver_sandbox *sandbox, const char *cursor);

/* As the find of struct connecting_kind. */
int daytona_find_ours(const struct driver_sandbox *sandbox, const struct http_answer *answer,
    char **id, char **cursor, struct error *err);

/* As the read of struct others_kind. */
int daytona_list_others(const struct driver_sandbox *sandbox, const struct http_answer *answer,
    bool destroys, char ***ids, size_t *count, char **cursor, struct error *err);

/* What a look at one sandbox gives; free it with daytona_look_clear. */
struct daytona_look {
	enum daytona_state state;
	char *id, *toolbox; /* URL, may be NULL */
	char *reason;       /* of a failure */
	char *word;         /* the state as Daytona calls it */
	bool is_ours;
};
int daytona_read_look(const struct driver_sandbox *sandbox, const struct http_answer *answer,
    struct daytona_look *look, struct error *err);
void daytona_look_clear(struct daytona_look *look);

#endif
