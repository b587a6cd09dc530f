/* SPDX-License-Identifier: ISC */
/* The message that starts a command in E2B's envd. */
#ifndef DRIVERS_E2B_START_H
#define DRIVERS_E2B_START_H

struct driver_command;
struct error;
struct json_object;

/* A StartRequest; NULL with err when the command is too long. The caller puts it. */
struct json_object *e2b_start_body(
    const struct driver_command *command, const char *tag, struct error *err);

#endif
