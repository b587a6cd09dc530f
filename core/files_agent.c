/* SPDX-License-Identifier: ISC */
/* Running the script, and moving bytes in and out of it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/carrier.h"
#include "core/driver.h"
#include "core/files_agent.h"
#include "core/scripts.h"
#include "core/transport.h"
#include "core/workspace.h"

#define CHUNK_SIZE 65536U
/* Reads in a row before others get their turn. */
#define CHUNKS_A_ROUND 16
#define LINE_LIMIT (512U * 1024U)
#define KILL_GRACE 1000U

/* A line and content that wait to be sent. */
struct parcel {
	struct parcel *next;
	struct buffer text;
	int fd;
	uint64_t offset;
	size_t left;
};

struct files_agent {
	struct workspace *workspace;
	const struct files_agent_events *events;
	void *argument;
	struct carrier *carrier;
	struct driver_descriptors ends;
	struct loop_watch *input, *output, *errors;
	struct parcel *first, *last;
	struct files_reply_reader reader;
	uint32_t last_number;
	bool is_started;
	bool *closed; /* set by close, for whoever is in the middle of an event */
};

static void
drop_parcel(struct files_agent *agent)
{
	struct parcel *parcel = agent->first;

	agent->first = parcel->next;
	if (agent->first == NULL)
		agent->last = NULL;
	descriptor_close(&parcel->fd);
	buffer_free(&parcel->text);
	memory_free(parcel);
}

static void
close_end(struct loop_watch **watch, int *fd)
{
	loop_unwatch(*watch);
	*watch = NULL;
	descriptor_close(fd);
}

void
files_agent_close(struct files_agent *agent)
{
	if (agent == NULL)
		return;
	if (agent->closed != NULL)
		*agent->closed = true;
	close_end(&agent->input, &agent->ends.input);
	close_end(&agent->output, &agent->ends.output);
	close_end(&agent->errors, &agent->ends.errors);
	carrier_close(agent->carrier);
	while (agent->first != NULL)
		drop_parcel(agent);
	files_reply_free(&agent->reader);
	memory_free(agent);
}

static void
lose(struct files_agent *agent, const char *why)
{
	struct error err;

	if (agent->is_started)
		error_set(&err, ERROR_UNAVAILABLE,
		    "the files script ended; whether the operation was done is unknown (%s)", why);
	else
		error_set(&err, ERROR_UNAVAILABLE, "the files script did not start: %s", why);
	agent->events->lost(agent->argument, &err);
}

/* Fills the parcel's text with its next content. */
static void
refill(struct parcel *parcel)
{
	unsigned char *place;
	ssize_t got;
	size_t size;

	size = parcel->left < CHUNK_SIZE ? parcel->left : CHUNK_SIZE;
	place = buffer_reserve(&parcel->text, size);
	got = pread(parcel->fd, place, size, (off_t)parcel->offset);
	if (got <= 0) {
		memset(place, 0, size);
		got = (ssize_t)size;
	}
	buffer_extend(&parcel->text, (size_t)got);
	parcel->offset += (uint64_t)got;
	parcel->left -= (size_t)got;
}

/* Writes what the script takes now: 0 when it takes no more, -1 when it is gone. */
static int
write_parcels(struct files_agent *agent)
{
	struct parcel *parcel;
	ssize_t written;

	while ((parcel = agent->first) != NULL) {
		if (parcel->text.length == 0 && parcel->left > 0)
			refill(parcel);
		if (parcel->text.length == 0) {
			drop_parcel(agent);
			continue;
		}
		written = write(agent->ends.input, buffer_data(&parcel->text), parcel->text.length);
		if (written < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (written < 0)
			return -1;
		buffer_consume(&parcel->text, (size_t)written);
	}
	return 0;
}

static void
input_ready(void *argument, unsigned events)
{
	struct files_agent *agent = argument;

	(void)events;
	if (write_parcels(agent) != 0)
		/* Its output says the rest. */
		close_end(&agent->input, &agent->ends.input);
	else if (agent->first == NULL)
		loop_watch_change(agent->input, 0);
}

static void
output_ready(void *argument, unsigned events)
{
	static unsigned char chunk[CHUNK_SIZE];
	struct files_agent *agent = argument;
	bool closed = false;
	struct error err;
	ssize_t got = 1;
	int i;

	(void)events;
	agent->closed = &closed;
	for (i = 0; i < CHUNKS_A_ROUND && !closed && got > 0; i++) {
		got = read(agent->ends.output, chunk, sizeof(chunk));
		if (got > 0 &&
		    files_reply_feed(&agent->reader, chunk, (size_t)got, &agent->events->replies,
			agent->argument, &err) != 0 &&
		    !closed) {
			agent->closed = NULL;
			lose(agent, err.message);
			return;
		}
	}
	if (closed)
		return;
	agent->closed = NULL;
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
		lose(agent, "its output is at its end");
}

static void
errors_ready(void *argument, unsigned events)
{
	struct files_agent *agent = argument;
	char text[512];
	ssize_t got;

	(void)events;
	got = read(agent->ends.errors, text, sizeof(text) - 1);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		close_end(&agent->errors, &agent->ends.errors);
		return;
	}
	text[got] = '\0';
	log_info("files of %s: %s", workspace_login(agent->workspace), text);
}

static void
agent_started(void *argument, const struct driver_descriptors *descriptors, uint32_t pid)
{
	struct files_agent *agent = argument;
	struct loop *loop = workspace_loop(agent->workspace);

	(void)pid;
	agent->is_started = true;
	agent->ends = *descriptors;
	(void)descriptor_nonblock(agent->ends.input, NULL);
	(void)descriptor_nonblock(agent->ends.output, NULL);
	agent->input = loop_watch(loop, agent->ends.input, LOOP_WRITE, input_ready, agent);
	agent->output = loop_watch(loop, agent->ends.output, LOOP_READ, output_ready, agent);
	if (agent->ends.errors < 0)
		return;
	(void)descriptor_nonblock(agent->ends.errors, NULL);
	agent->errors = loop_watch(loop, agent->ends.errors, LOOP_READ, errors_ready, agent);
}

static void
agent_exited(void *argument, const struct driver_exit *ended, const struct error *err)
{
	struct files_agent *agent = argument;

	/* What it said last is in its output; when it never ran, or was cut off, there is none. */
	if (ended == NULL || agent->output == NULL)
		lose(agent, err == NULL ? "it did not start" : err->message);
}

static void
agent_gone(void *argument)
{
	(void)argument;
}

static const struct driver_stream_events stream_events = {
	.started = agent_started,
	.exited = agent_exited,
	.gone = agent_gone,
};

/* The script in its two parts, the root, and the age of leftovers in minutes. */
static char **
make_argv(const struct workspace *workspace)
{
	char *place, *rest, *text, *minutes, **argv;
	size_t count = 0;

	place = script_text("files_place");
	rest = script_text("files");
	text = memory_text_format("%s%s", place, rest);
	minutes = memory_text_format("%lld",
	    (long long)settings_number(workspace_settings(workspace), "leftover_age") / 60000);
	argv = memory_list_add(NULL, count++, "sh");
	argv = memory_list_add(argv, count++, "-c");
	argv = memory_list_add(argv, count++, text);
	argv = memory_list_add(argv, count++, "files");
	argv = memory_list_add(argv, count++, workspace_root(workspace));
	argv = memory_list_add(argv, count++, minutes);
	memory_free(place);
	memory_free(rest);
	memory_free(text);
	memory_free(minutes);
	return argv;
}

struct files_agent *
files_agent_open(
    struct workspace *workspace, const struct files_agent_events *events, void *argument)
{
	char locale[] = "LC_ALL=C", *environment[] = { locale, NULL }, **argv;
	struct driver_command command = { 0 };
	struct transport_setup setup = { 0 };
	struct files_agent *agent;

	agent = memory_zeroed(1, sizeof(*agent));
	agent->workspace = workspace;
	agent->events = events;
	agent->argument = argument;
	agent->ends.input = agent->ends.output = agent->ends.errors = -1;
	files_reply_init(&agent->reader);
	argv = make_argv(workspace);
	command.argv = argv;
	command.environment = environment;
	command.directory = workspace_root(workspace);
	command.want_stdin = true;
	command.kill_grace = KILL_GRACE;
	setup.loop = workspace_loop(workspace);
	setup.driver = workspace_driver(workspace);
	setup.sandbox = workspace_sandbox(workspace);
	setup.directory = workspace_directory(workspace);
	setup.id = workspace_id(workspace);
	agent->carrier = carrier_start(&setup, &command, &stream_events, agent);
	memory_list_free(argv);
	return agent;
}

bool
files_agent_is_started(const struct files_agent *agent)
{
	return agent->is_started;
}

uint32_t
files_agent_number(struct files_agent *agent)
{
	return ++agent->last_number;
}

uint32_t
files_agent_last_number(const struct files_agent *agent)
{
	return agent->last_number;
}

void
files_agent_send(struct files_agent *agent, const char *line, int fd, uint64_t offset, size_t size)
{
	struct parcel *parcel;

	parcel = memory_zeroed(1, sizeof(*parcel));
	buffer_init(&parcel->text, LINE_LIMIT + CHUNK_SIZE);
	if (buffer_append_format(&parcel->text, "%s\n", line) != 0)
		log_fatal("files: a request is too long");
	parcel->fd = fd < 0 ? -1 : descriptor_duplicate(fd);
	parcel->offset = offset;
	parcel->left = size;
	if (agent->last != NULL)
		agent->last->next = parcel;
	else
		agent->first = parcel;
	agent->last = parcel;
	if (agent->input != NULL)
		loop_watch_change(agent->input, LOOP_WRITE);
}
