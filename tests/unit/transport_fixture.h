/* SPDX-License-Identifier: ISC */
/*
 * What tests of commands over two terminals share: a driver that has nothing else, one command at a
 * time with its streams, and waiting that ends. What goes wrong in here fails the test that runs.
 */
#ifndef TESTS_UNIT_TRANSPORT_FIXTURE_H
#define TESTS_UNIT_TRANSPORT_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/driver.h"
#include "tests/unit/pty_driver.h"

struct wrapped;

struct transport_stream {
	struct transport_fixture *transport_fixture;
	int fd;
	struct loop_watch *watch;
	uint64_t size;
	bool ended, differs;
	struct buffer content; /* the first of it */
};

struct transport_fixture {
	struct loop *loop;
	struct driver_sandbox sandbox;
	char *directory, *path; /* with a link called sh */
	struct wrapped *wrapped;
	struct transport_stream output, errors;
	int input;
	struct loop_watch *input_watch;
	uint64_t sent, to_send;
	bool started, exited, gone, unknown;
	struct driver_exit ended;
	struct error failure;
};

extern struct transport_fixture transport_fixture;

/* Set-ups with each shell as the sandbox's sh, and the end of all of them. */
int transport_open_dash(void **state);
int transport_open_bash(void **state);
int transport_open_busybox(void **state);
int transport_close_all(void **state);

/* sh -c SCRIPT with so many bytes of the pattern on its stdin, or with an open stdin, or none. */
void transport_start_script(const char *script, uint64_t to_send, bool keep_input);

/* The same on a terminal of 91 columns and 37 rows. */
void transport_start_terminal(const char *script);

/* Waits for the end of the command and of its streams; until then these are not read. */
void transport_finish_command(void);
void transport_forget_command(void);
void transport_end_input(void);
void transport_dispatch(const bool *flag);

/* What was gathered, valid until more comes; waiting until it holds text. */
const char *transport_text_of(struct transport_stream *stream);
void transport_expect_text(struct transport_stream *stream, const char *text);

/* Runs SCRIPT to its end and compares output and status. */
void transport_expect_run(const char *script, const char *output, int status);
void transport_type(int fd, const char *text);

#endif
