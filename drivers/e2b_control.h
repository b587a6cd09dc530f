/* SPDX-License-Identifier: ISC */
/* What is said to E2B's control plane, and what its answers say; for the parts of the driver only.
 */
#ifndef DRIVERS_E2B_CONTROL_H
#define DRIVERS_E2B_CONTROL_H

#include "drivers/e2b_driver.h"

/* Bodies; the caller puts them. */
struct json_object *e2b_timeout_body(const struct driver_sandbox *sandbox);
struct json_object *e2b_create_body(const struct driver_sandbox *sandbox);

/* The path that lists what has our label, with the old list's route for servers without the new; a
 * new text. */
char *e2b_list_path(const struct driver_sandbox *sandbox, bool old, const char *next_page);

/* As the find of struct connecting_kind: a running sandbox of ours, if there is. */
int e2b_find_ours(const struct driver_sandbox *sandbox, const struct http_answer *answer, char **id,
    char **page, struct error *err);

/* As the read of struct others_kind: with paused ones, if they are destroyed. */
int e2b_list_others(const struct driver_sandbox *sandbox, const struct http_answer *answer,
    bool destroys, char ***ids, size_t *count, char **page, struct error *err);

/*
 * Takes over which sandbox it is and how it is reached from the answer to create or connect. When
 * its envd is too old that is an error, with the id known all the same.
 */
int e2b_take_answer(
    struct driver_sandbox *sandbox, const struct http_answer *answer, struct error *err);

/* No sandbox is known any more. */
void e2b_forget(struct driver_sandbox *sandbox);

#endif
