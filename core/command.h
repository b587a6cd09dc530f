/* SPDX-License-Identifier: ISC */
/*
 * One command: a process group in the sandbox, from its start to the end of what it left running.
 * Time and output limits, signals and the client's leaving all act on the whole group.
 */
#ifndef CORE_COMMAND_H
#define CORE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

struct command;
struct command_exit;
struct driver_descriptors;
struct error;
struct workspace;

/* What to run; everything is copied. */
struct command_request {
	char *const *argv;        /* NULL-ended; NULL for the user's login shell */
	char *const *environment; /* NAME=VALUE, over that of the login */
	const char *directory;    /* relative to the root; NULL: the login's cwd */
	bool want_stdin;
	bool pty;
	const char *term;
	uint32_t columns, rows, x_pixels, y_pixels;
	int64_t timeout;      /* ms, 0: none */
	uint32_t kill_grace;  /* ms between TERM and KILL, 0: the login's */
	bool keep_background; /* what it leaves running lives on */
	/* and is heard: without this its output may end with the command, whoever still holds it */
	bool follow_background;
	bool internal; /* a part of an operation of ours: the workspace is not busy for it */
};

/* What the owner of a command is told, in this order; never from within a call of the owner's. */
struct command_events {
	void (*progress)(void *argument, const char *text);
	/* The descriptors are the owner's to close. */
	void (*started)(void *argument, const struct driver_descriptors *descriptors);
	/* Once and last; ended.id is not set. The note belongs to the command. */
	void (*ended)(void *argument, const struct command_exit *ended);
	/* May be NULL. After ended: no process of the group is left. Not the place for command_close. */
	void (*gone)(void *argument);
};

/* Starts it once the workspace is ready. It belongs to the owner until command_close. */
struct command *command_start(struct workspace *workspace, const struct command_request *request,
    const struct command_events *events, void *argument);

/*
 * Sends a signal by number to the whole group: before the start it is remembered, after the end it
 * reaches what was left running.
 */
void command_signal(struct command *command, int number);
void command_resize(
    struct command *command, uint32_t columns, uint32_t rows, uint32_t x_pixels, uint32_t y_pixels);

/* Stops it for printing too much: TERM, then KILL; it ends with status 143 and a note. */
void command_limit(struct command *command, uint64_t limit);

/* Stops it because its client gave up: TERM, then KILL; ends with ABORTED. */
void command_abort(struct command *command);

/*
 * The owner has no more interest: no event comes any more. What still runs gets HUP and TERM, then
 * KILL after kill_grace. What a command with keep_background left running stays; its output is dropped.
 */
void command_close(struct command *command);

/* Does it run, or has it left processes behind? Never true for an internal one. */
bool command_busy(const struct command *command);

/* Did it end? Something of it may be left. */
bool command_has_ended(const struct command *command);

/* Is it being started, does it run, or has it left processes behind? An internal one as well. */
bool command_lives(const struct command *command);

/* workspace.c only: the next in its list, ending for good, and a sandbox that is gone. */
struct command *command_next(const struct command *command);
void command_set_next(struct command *command, struct command *next);
void command_kill(struct command *command);

/* workspace.c only: frees it at the workspace's end, whatever it does; its owner is told nothing. */
void command_drop(struct command *command);

#endif
