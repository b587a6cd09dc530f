/* SPDX-License-Identifier: ISC */
/*
 * What the driver contract tests share: a driver with its loop and a state directory of its own,
 * commands whose streams are fed and gathered, and waiting that ends. Everything that goes wrong
 * in here fails the test that runs.
 */
#ifndef TESTS_CONTRACT_HARNESS_H
#define TESTS_CONTRACT_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/driver.h"

struct contract {
	const struct driver *driver;
	struct loop *loop;
	struct settings *settings;
	char *state;    /* path of the state directory */
	char *instance; /* label at the provider */
	int state_directory;
	struct driver_sandbox *sandbox;
	bool connected, created, started;
	char *id, *directory, *user;
	unsigned lost;
	unsigned under_way;   /* commands not freed yet, and waits that have not ended */
	struct error failure; /* of connect or of the loss */
	bool nothing;         /* and certainly nothing came of the connect */
};

/* The driver and the settings NAME=VALUE of all tests; ends the program when they make no sense. */
void contract_choose(const char *driver, char *const *settings);
const struct driver *contract_driver(void);
bool contract_supports(unsigned bits);

/* The value of one of the settings above, or NULL. */
const char *contract_setting(const char *name);

/* A fresh state directory with nothing connected yet, and its removal with all that is in it. */
void contract_open(struct contract *contract);
void contract_close(struct contract *contract);

/*
 * A test that failed was left in the middle: what it had under way writes to variables that are no more.
 * Gives up the loop that would call it, and opens the driver again. Before anything of the next test, or of
 * the tear-down; does nothing after a test that came to its end.
 */
void contract_recover(struct contract *contract);

/* One of a group's tests, on the connected sandbox that they share: the file's static "contract". */
#define CONTRACT_TEST(function)                                      \
	{                                                            \
#function, function, contract_begin, NULL, &contract \
	}
int contract_begin(void **state);

/* Closes the driver and opens it again over the same state, as a new worker does. */
void contract_reopen(struct contract *contract);

/* Connects and says whether that worked; contract->failure otherwise. */
bool contract_connect(struct contract *contract, const char *id, bool may_create);
bool contract_release(struct contract *contract, enum driver_release release);
/* Of one that is not connected. */
bool contract_put_away(struct contract *contract, const char *id, enum driver_release release);

/* Dispatches until *flag, at most a minute. */
void contract_wait(struct contract *contract, const bool *flag);

/* Dispatches until nothing more was due for a moment: for what must not happen. */
void contract_settle(struct contract *contract);

/* One output of a command, gathered or only counted. */
struct contract_output {
	struct contract_command *command;
	int fd;
	struct loop_watch *watch;
	uint64_t size, sum;    /* of all bytes */
	struct buffer content; /* the first of them */
	bool ended;
};

/*
 * Its stream is the driver's own, or what core makes of it where the driver has no DRIVER_GROUP:
 * the contract is what the rest of the program relies on.
 */
struct contract_command {
	struct contract *contract;
	struct driver_stream *stream;
	struct wrapped *wrapped;
	bool started, exited, gone;
	uint32_t pid;
	struct driver_exit ended;
	bool unknown; /* exited without an outcome */
	struct error failure;
	struct contract_output output, errors;
	int input;
	struct loop_watch *input_watch;
	const char *text;                /* what is left of a text for stdin */
	uint64_t pattern, pattern_total; /* bytes of the pattern sent, and to send */
	bool keep_input;                 /* do not end stdin */
	bool stopped;                    /* outputs are not read */
};

/* How to start one: everything may be left zero but argv. */
struct contract_start {
	const char *const *argv;
	const char *const *environment;
	const char *directory;
	const char *input;      /* text for stdin, which then ends */
	uint64_t pattern_total; /* or so many bytes of the pattern */
	bool keep_input;        /* stdin without an end */
	bool pty;
	uint32_t columns, rows;
	bool keep_background;
	uint32_t kill_grace;
	bool stopped;
};
void contract_command_start(struct contract *contract, struct contract_command *command,
    const struct contract_start *start);

/* A new list, as drivers want it, of constant texts; NULL stays NULL. memory_list_free frees it. */
char **contract_list(const char *const *texts);

/* sh -c SCRIPT. */
void contract_shell(
    struct contract *contract, struct contract_command *command, const char *script);

/* Waits for its end and that of its outputs. */
void contract_command_finish(struct contract_command *command);
void contract_command_free(struct contract_command *command);
void contract_command_forget(
    struct contract_command *command); /* its stream went with the driver */
void contract_command_resume(struct contract_command *command);
void contract_command_signal(struct contract_command *command, int number);
void contract_command_resize(struct contract_command *command, uint32_t columns, uint32_t rows);
void contract_command_end_input(struct contract_command *command);
void contract_command_type(struct contract_command *command, const char *text);

/* Waits until the gathered output contains text. */
void contract_command_expect(struct contract_command *command, const char *text);

/* Gathered bytes as a text, valid until more come. */
const char *contract_text(struct contract_output *output);

/*
 * Runs a script that must succeed and gives what it printed, without the last newline;
 * the caller frees it.
 */
char *contract_output(struct contract *contract, const char *script);

/* Runs SCRIPT to its end and compares status and stdout. */
void contract_check(struct contract *contract, const char *script, int status, const char *output);

/* Whole files by way of read and write; the error's code, ERROR_NONE for success. */
enum error_code contract_read(
    struct contract *contract, const char *path, uint64_t max, struct buffer *content);
enum error_code contract_write(
    struct contract *contract, const char *path, uint64_t size, const void *data, size_t data_size);

/*
 * Byte at offset of the pattern; all values occur, at no regular distance.
 * FNV-1a of its first size bytes.
 */
unsigned char contract_pattern(uint64_t offset);
uint64_t contract_pattern_sum(uint64_t size);
#define CONTRACT_SUM_START 14695981039346656037ULL
uint64_t contract_sum(uint64_t sum, const unsigned char *data, size_t size);

#endif
