/* SPDX-License-Identifier: ISC */
/*
 * The parts of the local driver's init, the one program of ours inside a sandbox. Nothing outside
 * of drivers/local_init*.c includes this.
 */
#ifndef DRIVERS_LOCAL_INIT_H
#define DRIVERS_LOCAL_INIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "drivers/local_protocol.h"

struct error;
struct loop;
struct message;
struct peer;

struct init_command;
struct init_copy;

struct init {
	struct loop *loop;
	struct peer *driver;
	const char *home, *user, *shell;
	bool first; /* we are process 1: what we leave behind dies with us */
	struct init_command *commands;
	struct init_copy *copies;
	int signals;               /* signalfd for SIGCHLD */
	struct loop_timer *linger; /* looks again at groups that outlive their leader */
};

/* Starts a command and reports its descriptors, or why there is none. */
void init_command_start(struct init *init, const struct local_start *start);

/*
 * Starts the process that leads a command: its number, or -1. It leads its own session by then;
 * streams are our ends of its descriptors, -1 for those it does not have, and then the caller's.
 */
pid_t init_process_start(const struct init *init, const struct local_start *start,
    int streams[LOCAL_STREAM_KINDS], struct error *err);

/* To the group of a command; nothing when it is gone. */
void init_command_signal(struct init *init, uint32_t id, int number);

/* Kills what is left of the command, unless its end was to leave something; it reports no more. */
void init_command_close(struct init *init, uint32_t id);

/* Reports which commands ended, and reaps every child that is of no more use. */
void init_command_survey(struct init *init);

/* Starts a copy between a file and fd, which it closes. */
void init_copy_start(struct init *init, const struct local_copy *copy, int fd);

/* Stops a copy, of which nothing is reported; nothing when it is gone. */
void init_copy_cancel(struct init *init, uint32_t id);

/* Reports which copies ended. */
void init_copy_survey(struct init *init);

/* Starts the file server, which gets the socket (it is closed here) and ends with it. */
void init_files_start(const struct init *init, int socket);

/* True for the process of a copy under way. */
bool init_copy_owns(const struct init *init, pid_t pid);

/*
 * What a child of ours does first: signals as in a fresh process, and with the init gone it is gone
 * as well, where the kernel does not see to that.
 */
void init_child_begin(const struct init *init);

/* Where the program "mount" puts the directory. */
#define LOCAL_MOUNT_POINT "/tmp"

/* The programs "remove NAME" and "mount COMMAND": the exit status, after a line on stderr. */
int init_remove(int directory, const char *name);
int init_mount(int directory, char *const *command);

#endif
