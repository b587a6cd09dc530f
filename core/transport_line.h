/* SPDX-License-Identifier: ISC */
/* One of the two terminals of a transport; for core/transport.c alone. */
#ifndef CORE_TRANSPORT_LINE_H
#define CORE_TRANSPORT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/driver.h"

struct transport_line;
struct transport_setup;

/* A turn is what one word to the far side lets through: as in core/scripts/transport.sh. */
#define TRANSPORT_TURN_SIZE ((size_t)4 * 65536)
/* Granted at once. Daytona cuts a reader off that is 256 pieces of 4 KiB behind. */
#define TRANSPORT_TURNS 3

/*
 * Starts argv on a terminal and sends it the token, which both lines of a transport share
 * (MARKER_TOKEN_SIZE of core/marker.h). changed is called, from the loop, when anything below has
 * another answer.
 */
struct transport_line *transport_line_open(const struct transport_setup *setup, const char *token,
    const struct driver_command *command, void (*changed)(void *argument), void *argument);

/* Ends what runs there. Accepts NULL. */
void transport_line_close(struct transport_line *line);

/* The far side can be told things: the token went ahead of them. */
bool transport_line_is_open(const struct transport_line *line);

/* What the far side's program is told; only as much as there is room for. */
size_t transport_line_room(const struct transport_line *line);
void transport_line_say(struct transport_line *line, const void *data, size_t size);

/* Where its output goes; takes over fd. */
void transport_line_connect(struct transport_line *line, int fd);

/* May it be granted one more turn? Then it counts as granted. */
bool transport_line_take_turn(struct transport_line *line);

/* The end marker came, and all before it was delivered. */
bool transport_line_is_complete(const struct transport_line *line);
void transport_line_get_exit(const struct transport_line *line, struct driver_exit *ended);

/* The terminal is gone; before is_complete that is a failure. */
bool transport_line_has_exited(const struct transport_line *line);

/* NULL while all is well. */
const struct error *transport_line_failure(const struct transport_line *line);

/* Its output ends here, whatever is still to come. */
void transport_line_disconnect(struct transport_line *line);

#endif
