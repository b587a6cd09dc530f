/* SPDX-License-Identifier: ISC */
/*
 * The one error type. An error is a value: it is filled where something fails, gains context on
 * its way up (outermost first), and may travel to another process as a message.
 */
#ifndef CORE_BASE_ERROR_H
#define CORE_BASE_ERROR_H

#include <stdint.h>

/* The codes a user sees; each exists because some caller branches on it. */
enum error_code {
	ERROR_NONE,
	ERROR_UNAVAILABLE,
	ERROR_OUTSIDE_ROOT,
	ERROR_TOO_LARGE,
	ERROR_NOT_FOUND,
	ERROR_EXISTS,
	ERROR_NOT_EMPTY,
	ERROR_IS_DIRECTORY,
	ERROR_NOT_DIRECTORY,
	ERROR_DENIED,
	ERROR_BUSY,
	ERROR_ABORTED,
	ERROR_TIMEOUT,
	ERROR_INVALID,
	ERROR_UNSUPPORTED,
	ERROR_CODES,
};

#define ERROR_MESSAGE_MAX 512

struct error {
	enum error_code code;
	int saved_errno; /* 0 when no system call was at fault */
	char message[ERROR_MESSAGE_MAX];
};

/* How one code looks from outside. */
struct error_kind {
	const char *name;     /* the word on the wire: "OUTSIDE_ROOT" */
	uint32_t sftp_status; /* SSH_FX_*, draft-ietf-secsh-filexfer-02 section 7 */
	int rpc_number;       /* JSON-RPC 2.0 error number */
	int exit_status;      /* of the rws command line, after sysexits.h where one fits */
	const char *sentence; /* said when there is no better message */
};

/* Fills err (which may be NULL) and returns -1, so that a failure is one line at its origin. */
int error_set(struct error *err, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As error_set, with the code that errnum stands for and ": " and its text at the end. */
int error_system(struct error *err, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Puts "CONTEXT: " in front of the message; returns -1.
 * A message that grows too long loses its tail.
 */
int error_wrap(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes it an error that says nothing: code NONE. */
void error_clear(struct error *err);

/* Never NULL; an unknown code is described as INVALID. */
const struct error_kind *error_kind(enum error_code code);

/* The code with this name, or ERROR_NONE. */
enum error_code error_code_parse(const char *name);

/* The code that a failed system call's errno stands for. */
enum error_code error_code_system(int errnum);

#endif
