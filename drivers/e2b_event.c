/* SPDX-License-Identifier: ISC */
/*
 * Events of a process. protojson leaves out fields with default values, so an end without an
 * exitCode is one with exit status 0.
 */
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "core/base/base64.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/json.h"
#include "drivers/e2b_event.h"

#define SIGNAL_PREFIX "signal: "
#define CORE_SUFFIX " (core dumped)"

/* envd reports a death by signal in the words of Go's syscall package for Linux. */
static const struct {
	const char *words;
	int number;
} signals[] = {
	{ "hangup", SIGHUP },
	{ "interrupt", SIGINT },
	{ "quit", SIGQUIT },
	{ "illegal instruction", SIGILL },
	{ "trace/breakpoint trap", SIGTRAP },
	{ "aborted", SIGABRT },
	{ "bus error", SIGBUS },
	{ "floating point exception", SIGFPE },
	{ "killed", SIGKILL },
	{ "user defined signal 1", SIGUSR1 },
	{ "segmentation fault", SIGSEGV },
	{ "user defined signal 2", SIGUSR2 },
	{ "broken pipe", SIGPIPE },
	{ "alarm clock", SIGALRM },
	{ "terminated", SIGTERM },
	{ "stack fault", SIGSTKFLT },
	{ "CPU time limit exceeded", SIGXCPU },
	{ "file size limit exceeded", SIGXFSZ },
	{ "virtual timer expired", SIGVTALRM },
	{ "profiling timer expired", SIGPROF },
	{ "I/O possible", SIGIO },
	{ "power failure", SIGPWR },
	{ "bad system call", SIGSYS },
};

static const struct {
	const char *member;
	enum e2b_event_kind kind;
} streams[] = {
	{ "stdout", E2B_EVENT_OUTPUT },
	{ "stderr", E2B_EVENT_ERRORS },
	{ "pty", E2B_EVENT_TERMINAL },
};

static int
decode_start(const struct json_object *start, struct e2b_event *event, struct error *err)
{
	event->kind = E2B_EVENT_START;
	event->pid = (uint32_t)json_number(start, "pid", 1, UINT32_MAX, 0);
	if (event->pid == 0)
		return error_set(err, ERROR_INVALID, "a start without a pid");
	return 0;
}

static int
decode_data(const struct json_object *data, struct e2b_event *event, struct error *err)
{
	struct json_object *member;
	size_t i, length;

	for (i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		member = json_member(data, streams[i].member, json_type_string);
		if (member == NULL)
			continue;
		event->kind = streams[i].kind;
		length = (size_t)json_object_get_string_len(member);
		event->data = memory_allocate(length / 4 * 3 + 1);
		if (base64_decode(
			event->data, &event->size, json_object_get_string(member), length) != 0)
			return error_set(err, ERROR_INVALID, "output that is not base64");
		return 0;
	}
	/* An empty write is left out like every default value. */
	event->kind = E2B_EVENT_OTHER;
	return 0;
}

/* The number of the signal that status tells of, 0 when it tells of none. */
static int
decode_signal(const char *status, bool *core)
{
	const char *words;
	int64_t number;
	size_t i, length;

	if (status == NULL || strncmp(status, SIGNAL_PREFIX, strlen(SIGNAL_PREFIX)) != 0)
		return 0;
	words = status + strlen(SIGNAL_PREFIX);
	length = strlen(words);
	*core = length > strlen(CORE_SUFFIX) &&
		strcmp(words + length - strlen(CORE_SUFFIX), CORE_SUFFIX) == 0;
	if (*core)
		length -= strlen(CORE_SUFFIX);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (strlen(signals[i].words) == length &&
		    strncmp(signals[i].words, words, length) == 0)
			return signals[i].number;
	/* Those without words of their own, real-time signals among them. */
	if (strncmp(words, "signal ", 7) == 0 &&
	    number_parse(words + 7, 1, DRIVER_SIGNAL_MAX, &number, NULL) == 0)
		return (int)number;
	return 0;
}

static int
decode_end(const struct json_object *end, struct e2b_event *event, struct error *err)
{
	const char *status;
	int number;

	event->kind = E2B_EVENT_END;
	if (json_boolean(end, "exited")) {
		event->ended.status = (int)json_number(end, "exitCode", 0, 255, -1);
		if (json_member(end, "exitCode", json_type_int) == NULL)
			event->ended.status = 0;
		if (event->ended.status < 0)
			return error_set(
			    err, ERROR_INVALID, "an end with an exit code out of range");
		return 0;
	}
	status = json_text(end, "status");
	number = decode_signal(status, &event->ended.core);
	if (number == 0)
		return error_set(err, ERROR_INVALID, "an end that tells neither exit nor signal");
	event->ended.signaled = true;
	event->ended.status = number;
	return 0;
}

int
e2b_event_decode(const void *payload, size_t size, struct e2b_event *event, struct error *err)
{
	struct json_object *object, *inner, *member;
	int result;

	memset(event, 0, sizeof(*event));
	event->kind = E2B_EVENT_OTHER;
	object = json_parse_object(payload, size, err);
	if (object == NULL)
		return -1;
	inner = json_member(object, "event", json_type_object);
	result = 0;
	if ((member = json_member(inner, "data", json_type_object)) != NULL)
		result = decode_data(member, event, err);
	else if ((member = json_member(inner, "start", json_type_object)) != NULL)
		result = decode_start(member, event, err);
	else if ((member = json_member(inner, "end", json_type_object)) != NULL)
		result = decode_end(member, event, err);
	else if (json_member(inner, "keepalive", json_type_object) != NULL)
		event->kind = E2B_EVENT_KEEPALIVE;
	json_object_put(object);
	if (result != 0)
		e2b_event_free(event);
	return result;
}

void
e2b_event_free(struct e2b_event *event)
{
	memory_free(event->data);
	event->data = NULL;
	event->size = 0;
}
