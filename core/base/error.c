/* SPDX-License-Identifier: ISC */
/*
 * The error type and the one table that says how each code looks to SFTP, JSON-RPC, the shell
 * and a person.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"

enum {
	FX_NO_SUCH_FILE = 2,
	FX_PERMISSION_DENIED = 3,
	FX_FAILURE = 4,
	FX_BAD_MESSAGE = 5,
	/*
	 * 6 and 7, no connection and a lost one, are for the client to say of itself (section 7).
	 */
	FX_UNSUPPORTED = 8,
};

static const struct error_kind kinds[ERROR_CODES] = {
	[ERROR_NONE] = { "NONE", 0, 0, 0, "no error" },
	[ERROR_UNAVAILABLE] = { "UNAVAILABLE", FX_FAILURE, -32000, 69,
	    "the sandbox cannot be reached" },
	[ERROR_OUTSIDE_ROOT] = { "OUTSIDE_ROOT", FX_PERMISSION_DENIED, -32001, 77,
	    "the path is outside the workspace's root" },
	[ERROR_TOO_LARGE] = { "TOO_LARGE", FX_FAILURE, -32002, 73, "more than the limit allows" },
	[ERROR_NOT_FOUND] = { "NOT_FOUND", FX_NO_SUCH_FILE, -32003, 66,
	    "no such file or directory" },
	[ERROR_EXISTS] = { "EXISTS", FX_FAILURE, -32004, 73, "it exists already" },
	[ERROR_NOT_EMPTY] = { "NOT_EMPTY", FX_FAILURE, -32005, 73, "the directory is not empty" },
	[ERROR_IS_DIRECTORY] = { "IS_DIRECTORY", FX_FAILURE, -32006, 73, "it is a directory" },
	[ERROR_NOT_DIRECTORY] = { "NOT_DIRECTORY", FX_NO_SUCH_FILE, -32007, 66,
	    "it is not a directory" },
	[ERROR_DENIED] = { "DENIED", FX_PERMISSION_DENIED, -32008, 77, "permission denied" },
	[ERROR_BUSY] = { "BUSY", FX_FAILURE, -32009, 75, "a command of the workspace is running" },
	[ERROR_ABORTED] = { "ABORTED", FX_FAILURE, -32010, 130, "stopped on request" },
	[ERROR_TIMEOUT] = { "TIMEOUT", FX_FAILURE, -32011, 124, "it took too long" },
	[ERROR_INVALID] = { "INVALID", FX_BAD_MESSAGE, -32602, 64, "the request makes no sense" },
	[ERROR_UNSUPPORTED] = { "UNSUPPORTED", FX_UNSUPPORTED, -32012, 72, "not supported here" },
};

static const struct {
	int errnum;
	enum error_code code;
} system_codes[] = {
	{ ENOENT, ERROR_NOT_FOUND },
	{ EEXIST, ERROR_EXISTS },
	{ ENOTEMPTY, ERROR_NOT_EMPTY },
	{ EISDIR, ERROR_IS_DIRECTORY },
	{ ENOTDIR, ERROR_NOT_DIRECTORY },
	{ EACCES, ERROR_DENIED },
	{ EPERM, ERROR_DENIED },
	{ EROFS, ERROR_DENIED },
	{ EBUSY, ERROR_BUSY },
	{ ETXTBSY, ERROR_BUSY },
	{ EFBIG, ERROR_TOO_LARGE },
	{ E2BIG, ERROR_TOO_LARGE },
	{ EMSGSIZE, ERROR_TOO_LARGE },
	{ ETIMEDOUT, ERROR_TIMEOUT },
	{ EINVAL, ERROR_INVALID },
	{ ENAMETOOLONG, ERROR_INVALID },
	{ ELOOP, ERROR_INVALID },
	{ EXDEV, ERROR_UNSUPPORTED },
	{ ENOSYS, ERROR_UNSUPPORTED },
	{ EOPNOTSUPP, ERROR_UNSUPPORTED },
};

/* A text that did not fit ends in "..." so that nobody takes it for whole. */
static void
mark_cut(char *text, size_t size)
{
	memcpy(text + size - 4, "...", 4);
}

static void set_message(struct error *err, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static void
set_message(struct error *err, const char *format, va_list arguments)
{
	int length;

	length = vsnprintf(err->message, sizeof(err->message), format, arguments);
	if (length < 0)
		err->message[0] = '\0';
	else if ((size_t)length >= sizeof(err->message))
		mark_cut(err->message, sizeof(err->message));
}

/* Appends ": " and text to the message. */
static void
add_to_message(struct error *err, const char *text)
{
	size_t used;
	int length;

	used = strlen(err->message);
	length = snprintf(err->message + used, sizeof(err->message) - used, ": %s", text);
	if (length < 0 || (size_t)length >= sizeof(err->message) - used)
		mark_cut(err->message, sizeof(err->message));
}

int
error_set(struct error *err, enum error_code code, const char *format, ...)
{
	va_list arguments;

	if (err == NULL)
		return -1;
	err->code = code;
	err->saved_errno = 0;
	va_start(arguments, format);
	set_message(err, format, arguments);
	va_end(arguments);
	return -1;
}

int
error_system(struct error *err, int errnum, const char *format, ...)
{
	va_list arguments;

	if (err == NULL)
		return -1;
	err->code = error_code_system(errnum);
	err->saved_errno = errnum;
	va_start(arguments, format);
	set_message(err, format, arguments);
	va_end(arguments);
	add_to_message(err, strerror(errnum));
	return -1;
}

int
error_wrap(struct error *err, const char *format, ...)
{
	char inner[ERROR_MESSAGE_MAX];
	va_list arguments;

	if (err == NULL)
		return -1;
	memcpy(inner, err->message, sizeof(inner));
	va_start(arguments, format);
	set_message(err, format, arguments);
	va_end(arguments);
	add_to_message(err, inner);
	return -1;
}

void
error_clear(struct error *err)
{
	err->code = ERROR_NONE;
	err->saved_errno = 0;
	err->message[0] = '\0';
}

const struct error_kind *
error_kind(enum error_code code)
{
	if ((unsigned)code >= ERROR_CODES)
		code = ERROR_INVALID;
	return &kinds[code];
}

enum error_code
error_code_parse(const char *name)
{
	unsigned code;

	for (code = ERROR_NONE + 1; code < ERROR_CODES; code++)
		if (strcmp(kinds[code].name, name) == 0)
			return (enum error_code)code;
	return ERROR_NONE;
}

enum error_code
error_code_system(int errnum)
{
	size_t i;

	for (i = 0; i < sizeof(system_codes) / sizeof(system_codes[0]); i++)
		if (system_codes[i].errnum == errnum)
			return system_codes[i].code;
	return ERROR_UNAVAILABLE;
}
