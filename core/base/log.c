/* SPDX-License-Identifier: ISC */
/*
 * One line an event. A line is put together in full and handed over by one write of less than
 * PIPE_BUF bytes, so that lines of different processes never mix.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/utf8.h"

#define LINE_MAX_BYTES 4000
#define EXIT_SOFTWARE 70

static struct {
	const char *role;
	enum log_level level;
	enum log_format format;
	unsigned long long connection;
	char login[160];
} state = { .role = NULL, .level = LOG_LEVEL_INFO, .format = LOG_FORMAT_TEXT };

static const char *const level_names[] = { "error", "warning", "info", "debug" };

void
log_open(const char *role, enum log_level level, enum log_format format)
{
	state.role = role;
	state.level = level;
	state.format = format;
}

enum log_level
log_level(void)
{
	return state.level;
}

enum log_format
log_format(void)
{
	return state.format;
}

void
log_set_level(enum log_level level)
{
	state.level = level;
}

void
log_set_context(unsigned long long connection, const char *login)
{
	state.connection = connection;
	if (login == NULL)
		state.login[0] = '\0';
	else
		(void)log_escape(state.login, sizeof(state.login), login, true);
}

/* The escape for one byte that may not stand as it is; returns its length. */
static size_t
escape_byte(char *out, unsigned char byte, bool json)
{
	static const char digits[] = "0123456789abcdef";
	const char *prefix;
	size_t length;

	if (byte == '\n' || byte == '\\' || byte == '"') {
		out[0] = '\\';
		out[1] = byte == '\n' ? 'n' : (char)byte;
		return 2;
	}
	prefix = json ? "\\u00" : "\\x";
	length = strlen(prefix);
	memcpy(out, prefix, length);
	out[length] = digits[byte >> 4];
	out[length + 1] = digits[byte & 15];
	return length + 2;
}

/*
 * May the byte at text, the start of a UTF-8 sequence (0: of none), stand as it is? U+0080 to
 * U+009F are control characters too: U+009B starts a terminal's escape sequence.
 */
static bool
is_plain(const char *text, size_t sequence, bool json)
{
	unsigned char byte;

	byte = (unsigned char)*text;
	if (sequence == 0 || byte < 0x20 || byte == 0x7f || byte == '\\' || (json && byte == '"'))
		return false;
	return byte != 0xc2 || (unsigned char)text[1] >= 0xa0;
}

size_t
log_escape(char *out, size_t size, const char *text, bool json)
{
	size_t used, left, sequence;

	used = 0;
	for (left = strlen(text); left > 0 && used + 7 < size; left -= sequence) {
		sequence = utf8_sequence(text, left);
		if (!is_plain(text, sequence, json)) {
			used += escape_byte(out + used, (unsigned char)*text, json);
			text++;
			sequence = 1;
			continue;
		}
		memcpy(out + used, text, sequence);
		used += sequence;
		text += sequence;
	}
	out[used] = '\0';
	return used;
}

static void
format_time(char *out, size_t size)
{
	struct timespec now;
	struct tm parts;
	size_t used;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &parts);
	used = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &parts);
	(void)snprintf(out + used, size - used, ".%03ldZ", now.tv_nsec / 1000000);
}

static int
format_text(char *line, size_t size, const char *when, enum log_level level, const char *text)
{
	char context[256];

	context[0] = '\0';
	if (state.connection != 0 && state.login[0] != '\0')
		(void)snprintf(
		    context, sizeof(context), " c=%llu s=%s", state.connection, state.login);
	else if (state.connection != 0)
		(void)snprintf(context, sizeof(context), " c=%llu", state.connection);
	else if (state.login[0] != '\0')
		(void)snprintf(context, sizeof(context), " s=%s", state.login);
	return snprintf(line, size, "%s %s %s[%ld]%s %s\n", when, level_names[level],
	    state.role == NULL ? "rwsd" : state.role, (long)getpid(), context, text);
}

static int
format_json(char *line, size_t size, const char *when, enum log_level level, const char *text)
{
	return snprintf(line, size,
	    "{\"time\":\"%s\",\"level\":\"%s\",\"process\":\"%s\",\"pid\":%ld,"
	    "\"connection\":%llu,\"login\":\"%s\",\"text\":\"%s\"}\n",
	    when, level_names[level], state.role == NULL ? "rwsd" : state.role, (long)getpid(),
	    state.connection, state.login, text);
}

static void log_line(enum log_level level, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static void
log_line(enum log_level level, const char *format, va_list arguments)
{
	char plain[1536], escaped[3072], line[LINE_MAX_BYTES], when[40];
	int length;

	if (level > state.level)
		return;
	if (vsnprintf(plain, sizeof(plain), format, arguments) >= (int)sizeof(plain))
		memcpy(plain + sizeof(plain) - 4, "...", 4);
	(void)log_escape(escaped, sizeof(escaped), plain, state.format == LOG_FORMAT_JSON);
	format_time(when, sizeof(when));
	if (state.format == LOG_FORMAT_JSON)
		length = format_json(line, sizeof(line), when, level, escaped);
	else
		length = format_text(line, sizeof(line), when, level, escaped);
	if (length < 0)
		return;
	if ((size_t)length >= sizeof(line))
		length = (int)sizeof(line) - 1;
	/* There is nowhere to report that the log itself cannot be written. */
	if (write(STDERR_FILENO, line, (size_t)length) < 0)
		return;
}

void
log_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_line(LOG_LEVEL_ERROR, format, arguments);
	va_end(arguments);
}

void
log_warning(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_line(LOG_LEVEL_WARNING, format, arguments);
	va_end(arguments);
}

void
log_info(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_line(LOG_LEVEL_INFO, format, arguments);
	va_end(arguments);
}

void
log_debug(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_line(LOG_LEVEL_DEBUG, format, arguments);
	va_end(arguments);
}

void
log_fatal(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_line(LOG_LEVEL_ERROR, format, arguments);
	va_end(arguments);
	_exit(EXIT_SOFTWARE);
}
