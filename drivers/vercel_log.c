/* SPDX-License-Identifier: ISC */
#include "drivers/vercel_log.h"

#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "drivers/http.h"
#include "drivers/vercel_event.h"

static int
take_line(struct vercel_log *log, const void *line, size_t size, bool *ends, struct error *err)
{
	struct vercel_event event;
	int result;

	result = vercel_event_decode(line, size, &event, err);
	if (result == 0 && event.kind == VERCEL_COMMAND) {
		if (log->id == NULL && event.id != NULL)
			log->id = memory_text(event.id);
		log->has_exit = log->has_exit || event.has_exit;
		*ends = *ends || event.has_exit;
	} else if (result == 0 && event.kind == VERCEL_STDOUT) {
		if (buffer_append(&log->text, event.data, event.size) != 0)
			result = error_set(
			    err, ERROR_UNAVAILABLE, "the sandbox's script says too much");
	} else if (result == 0 && event.kind == VERCEL_FAULT) {
		log_debug("vercel: a command's stream: %s", event.message);
	}
	vercel_event_free(&event);
	return result;
}

void
vercel_log_init(struct vercel_log *log, size_t max)
{
	log->id = NULL;
	log->has_exit = false;
	buffer_init(&log->line, max + 2 * HTTP_STREAM_ROOM);
	buffer_init(&log->text, max);
}

void
vercel_log_free(struct vercel_log *log)
{
	memory_free(log->id);
	buffer_wipe(&log->line);
	buffer_wipe(&log->text);
}

void
vercel_log_clear(struct vercel_log *log)
{
	buffer_consume(&log->line, log->line.length);
	buffer_consume(&log->text, log->text.length);
}

int
vercel_log_take(
    struct vercel_log *log, const void *data, size_t size, bool *ends, struct error *err)
{
	unsigned char *start, *end;
	int result = 0;

	if (buffer_append(&log->line, data, size) != 0)
		return error_set(err, ERROR_UNAVAILABLE, "a line of the command's is too long");
	while (result == 0 && log->line.length > 0) {
		start = buffer_data(&log->line);
		end = memchr(start, '\n', log->line.length);
		if (end == NULL)
			break;
		result = take_line(log, start, (size_t)(end - start), ends, err);
		buffer_consume(&log->line, (size_t)(end - start) + 1);
	}
	return result;
}

void
vercel_log_take_rest(struct vercel_log *log)
{
	struct error err;
	bool ends = false;

	if (log->line.length > 0 &&
	    take_line(log, buffer_data(&log->line), log->line.length, &ends, &err) != 0)
		log_debug("vercel: %s", err.message);
	buffer_consume(&log->line, log->line.length);
}

char *
vercel_log_text(const struct vercel_log *log)
{
	return memory_text_bounded(buffer_data(&log->text), log->text.length);
}
