/* SPDX-License-Identifier: ISC */
/*
 * The log: one line an event, one write a line, on standard error. Bytes that are not printable
 * are escaped, so that nothing a client or a sandbox says can forge a line.
 */
#ifndef CORE_BASE_LOG_H
#define CORE_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

enum log_format {
	LOG_FORMAT_TEXT,
	LOG_FORMAT_JSON,
};

/* Names the process ("session"); role is kept, not copied. Until called, lines carry no name. */
void log_open(const char *role, enum log_level level, enum log_format format);

/* What log_open was told, for a child to be told the same; the level may change on the way. */
enum log_level log_level(void);
enum log_format log_format(void);
void log_set_level(enum log_level level);

/*
 * What every later line of this process carries:
 * the connection's number, 0 for none, and the login or NULL.
 */
void log_set_context(unsigned long long connection, const char *login);

/* One line at the level of that name, dropped when the log shows less. Cut at 1.5 KB. */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Logs and exits with status 70 (sysexits.h: internal software error). */
void log_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/*
 * Writes text with the backslash and every byte that is neither printable ASCII nor of valid UTF-8
 * as \xHH (\n for a newline, \\ for a backslash); with json the quote as well, and \u00HH for \xHH.
 * Returns the length; the result is terminated and cut to size.
 */
size_t log_escape(char *out, size_t size, const char *text, bool json);

#endif
