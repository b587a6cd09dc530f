/* SPDX-License-Identifier: ISC */
/*
 * One session as the worker sees it: the commands it started, and the restrictions that its key
 * carries. They are enforced here, not in the session, which speaks to the client.
 */
#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/option.h"
#include "core/base/peer.h"
#include "core/command.h"
#include "core/driver.h"
#include "core/file_protocol.h"
#include "core/signal_name.h"
#include "core/workspace.h"
#include "gateway/rpc.h"
#include "gateway/worker.h"

/* A session may not start more at once; its own limit of channels is far below. */
#define COMMANDS_MAX 256

struct entry {
	struct entry *next;
	struct link *link;
	uint32_t id;
	struct command *command; /* or */
	struct rpc *rpc;
	uint64_t max_stream;
};

struct link {
	struct link *next;
	struct worker *worker;
	struct peer *peer;
	uint64_t connection;
	struct restrictions restrictions;
	struct entry *entries;
	unsigned entry_count;
	struct link_files *files;
};

static const char *const standard_accept[] = { "LANG", "LC_*", "TERM", "COLORTERM",
	"GIT_PROTOCOL" };

static struct entry *
find_entry(struct link *link, uint32_t id)
{
	struct entry *entry;

	for (entry = link->entries; entry != NULL; entry = entry->next)
		if (entry->id == id)
			return entry;
	return NULL;
}

static void
remove_entry(struct entry *entry)
{
	struct entry **place;

	for (place = &entry->link->entries; *place != entry; place = &(*place)->next)
		continue;
	*place = entry->next;
	entry->link->entry_count--;
	if (entry->command != NULL)
		command_close(entry->command);
	rpc_close(entry->rpc);
	memory_free(entry);
}

static void
send_progress(void *argument, const char *text)
{
	struct command_progress progress = { 0 };
	struct entry *entry = argument;
	struct message message;

	progress.id = entry->id;
	progress.text = memory_text(text);
	command_progress_encode(&message, &progress);
	peer_send(entry->link->peer, &message);
	command_progress_free(&progress);
}

static void
send_descriptor(struct entry *entry, enum command_stream_kind kind, int fd, bool last)
{
	struct command_stream stream = { 0 };
	struct message message;

	stream.id = entry->id;
	stream.kind = kind;
	stream.fd = fd;
	stream.last = last;
	stream.max_stream = entry->max_stream;
	command_stream_encode(&message, &stream);
	peer_send(entry->link->peer, &message);
}

static void
send_started(void *argument, const struct driver_descriptors *descriptors)
{
	struct entry *entry = argument;

	if (descriptors->input >= 0)
		send_descriptor(entry, COMMAND_INPUT, descriptors->input, false);
	if (descriptors->errors >= 0) {
		send_descriptor(entry, COMMAND_ERRORS, descriptors->errors, false);
		send_descriptor(entry, COMMAND_OUTPUT, descriptors->output, true);
	} else if (entry->rpc != NULL) {
		send_descriptor(entry, COMMAND_OUTPUT, descriptors->output, true);
	} else {
		send_descriptor(entry, COMMAND_TERMINAL, descriptors->output, true);
	}
}

static void
send_ended(void *argument, const struct command_exit *ended)
{
	struct command_exit copy = *ended;
	struct entry *entry = argument;
	struct message message;

	copy.id = entry->id;
	command_exit_encode(&message, &copy);
	peer_send(entry->link->peer, &message);
}

static const struct command_events command_events = {
	.progress = send_progress,
	.started = send_started,
	.ended = send_ended,
};

/* Does the login let the client set this variable? */
static bool
accepts(const struct settings *settings, const char *entry)
{
	char *const *patterns;
	size_t i;
	bool found;
	char *name;

	found = false;
	name = memory_text_bounded(entry, strcspn(entry, "="));
	patterns = settings_list(settings, "accept_env");
	for (i = 0; patterns[i] != NULL; i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			found = true;
	if (!settings_has(settings, "accept_env"))
		for (i = 0; i < sizeof(standard_accept) / sizeof(standard_accept[0]); i++)
			if (fnmatch(standard_accept[i], name, 0) == 0)
				found = true;
	memory_free(name);
	return found;
}

/* What the client asked for and may have, what its key sets, and the command that the key forces away. */
static char **
make_environment(const struct link *link, const struct command_start *start)
{
	char **environment, *original;
	size_t i, count;

	environment = memory_zeroed(1, sizeof(*environment));
	count = 0;
	for (i = 0; start->environment[i] != NULL; i++)
		if (accepts(link->worker->settings, start->environment[i]))
			environment = memory_list_add(environment, count++, start->environment[i]);
	for (i = 0;
	     link->restrictions.environment != NULL && link->restrictions.environment[i] != NULL;
	     i++)
		environment = memory_list_add(
		    environment, count++, link->restrictions.environment[i]);
	if (link->restrictions.command != NULL && start->command != NULL) {
		original = memory_text_format("SSH_ORIGINAL_COMMAND=%s", start->command);
		environment = memory_list_add(environment, count++, original);
		memory_free(original);
	}
	return environment;
}

/* Limits count for exec and shell only where the login or the global part sets them. */
static int64_t
limit(const struct settings *settings, const char *name)
{
	return settings_has(settings, name) ? settings_number(settings, name) : 0;
}

static struct entry *
add_entry(struct link *link, uint32_t id)
{
	struct entry *entry;

	entry = memory_zeroed(1, sizeof(*entry));
	entry->link = link;
	entry->id = id;
	entry->next = link->entries;
	link->entries = entry;
	link->entry_count++;
	return entry;
}

static void
rpc_ended(void *argument)
{
	struct command_exit ended = { 0 };

	send_ended(argument, &ended);
}

static void
start_rpc(struct link *link, const struct command_start *start)
{
	struct driver_descriptors descriptors;
	struct command_exit ended = { 0 };
	struct entry *entry;
	char **environment;

	entry = add_entry(link, start->id);
	environment = make_environment(link, start);
	entry->rpc = rpc_open(
	    link->worker, environment, rpc_ended, entry, &descriptors, &ended.failure);
	memory_list_free(environment);
	if (entry->rpc != NULL) {
		send_started(entry, &descriptors);
	} else {
		ended.failed = true;
		send_ended(entry, &ended);
	}
}

static void
start_command(struct link *link, const struct command_start *start)
{
	const struct settings *settings = link->worker->settings;
	char shell[] = "sh", flag[] = "-c", *argv[4];
	struct command_request request = { 0 };
	struct entry *entry;
	char **environment;

	entry = add_entry(link, start->id);
	entry->max_stream = (uint64_t)limit(settings, "max_stream_bytes");
	argv[0] = shell;
	argv[1] = flag;
	argv[2] = link->restrictions.command != NULL ? link->restrictions.command : start->command;
	argv[3] = NULL;
	request.argv = argv[2] == NULL ? NULL : argv;
	environment = make_environment(link, start);
	request.environment = environment;
	request.want_stdin = true;
	request.pty = start->pty && !link->restrictions.no_pty;
	request.term = start->term;
	request.columns = start->columns;
	request.rows = start->rows;
	request.x_pixels = start->x_pixels;
	request.y_pixels = start->y_pixels;
	request.timeout = limit(settings, "timeout");
	request.keep_background = strcmp(settings_text(settings, "background"), "keep") == 0;
	entry->command = command_start(link->worker->workspace, &request, &command_events, entry);
	memory_list_free(environment);
}

static int
take_start(void *argument, struct message *message, struct error *err)
{
	struct link *link = argument;
	struct command_start start;
	int result;

	if (command_start_decode(message, &start, err) != 0)
		return -1;
	result = 0;
	if (link->entry_count >= COMMANDS_MAX || find_entry(link, start.id) != NULL)
		result = error_set(
		    err, ERROR_INVALID, "the session started command %u out of turn", start.id);
	else if (start.kind == COMMAND_RWS && link->restrictions.command == NULL)
		start_rpc(link, &start);
	else
		start_command(link, &start);
	command_start_free(&start);
	return result;
}

static int
take_signal(void *argument, struct message *message, struct error *err)
{
	struct command_signal request;
	struct entry *entry;
	int number;

	if (command_signal_decode(message, &request, err) != 0)
		return -1;
	entry = find_entry(argument, request.id);
	number = signal_number(request.name);
	if (entry != NULL && entry->command != NULL && number != 0)
		command_signal(entry->command, number);
	command_signal_free(&request);
	return 0;
}

static int
take_resize(void *argument, struct message *message, struct error *err)
{
	struct command_resize resize;
	struct entry *entry;

	if (command_resize_decode(message, &resize, err) != 0)
		return -1;
	entry = find_entry(argument, resize.id);
	if (entry != NULL && entry->command != NULL)
		command_resize(
		    entry->command, resize.columns, resize.rows, resize.x_pixels, resize.y_pixels);
	return 0;
}

static int
take_limit(void *argument, struct message *message, struct error *err)
{
	struct entry *entry;
	uint32_t id;

	if (command_id_decode(message, &id, err) != 0)
		return -1;
	entry = find_entry(argument, id);
	if (entry != NULL && entry->command != NULL)
		command_limit(entry->command, entry->max_stream);
	return 0;
}

static int
take_close(void *argument, struct message *message, struct error *err)
{
	struct entry *entry;
	uint32_t id;

	if (command_id_decode(message, &id, err) != 0)
		return -1;
	entry = find_entry(argument, id);
	if (entry != NULL)
		remove_entry(entry);
	return 0;
}

static int
take_file_request(void *argument, struct message *message, struct error *err)
{
	struct link *link = argument;

	return link_files_take_request(link->files, message, err);
}

static int
take_file_cancel(void *argument, struct message *message, struct error *err)
{
	struct link *link = argument;

	return link_files_take_cancel(link->files, message, err);
}

static const struct peer_rule rules[] = {
	{ MESSAGE_COMMAND_START, "COMMAND_START", 1, take_start },
	{ MESSAGE_COMMAND_SIGNAL, "COMMAND_SIGNAL", 1, take_signal },
	{ MESSAGE_COMMAND_RESIZE, "COMMAND_RESIZE", 1, take_resize },
	{ MESSAGE_COMMAND_LIMIT, "COMMAND_LIMIT", 1, take_limit },
	{ MESSAGE_COMMAND_CLOSE, "COMMAND_CLOSE", 1, take_close },
	{ MESSAGE_FILE_REQUEST, "FILE_REQUEST", 1, take_file_request },
	{ MESSAGE_FILE_CANCEL, "FILE_CANCEL", 1, take_file_cancel },
	{ MESSAGE_FILE_REPLY, "FILE_REPLY", 0, NULL },
	{ MESSAGE_COMMAND_STREAM, "COMMAND_STREAM", 0, NULL },
	{ MESSAGE_COMMAND_PROGRESS, "COMMAND_PROGRESS", 0, NULL },
	{ MESSAGE_COMMAND_EXIT, "COMMAND_EXIT", 0, NULL },
	{ 0, NULL, 0, NULL },
};

static void
close_link(struct link *link)
{
	struct worker *worker = link->worker;
	struct link **place;

	for (place = &worker->links; *place != link; place = &(*place)->next)
		continue;
	*place = link->next;
	worker->link_count--;
	while (link->entries != NULL)
		remove_entry(link->entries);
	link_files_free(link->files);
	peer_free(link->peer);
	restrictions_free(&link->restrictions);
	memory_free(link);
	worker_links_changed(worker);
}

static void
session_closed(void *argument, const struct error *err)
{
	struct link *link = argument;

	if (err->code == ERROR_INVALID)
		log_error("session of connection %llu: %s", (unsigned long long)link->connection,
		    err->message);
	close_link(link);
}

static const struct peer_events session_events = { rules, session_closed, NULL };

void
link_open(struct worker *worker, struct worker_attach *attach)
{
	struct link *link;

	link = memory_zeroed(1, sizeof(*link));
	link->worker = worker;
	link->connection = attach->connection;
	link->restrictions = attach->restrictions;
	link->peer = peer_new(worker->loop, attach->fd, "worker", "session", &session_events, link);
	link->files = link_files_new(worker, link->peer, &link->restrictions);
	link->next = worker->links;
	worker->links = link;
	worker->link_count++;
	worker_links_changed(worker);
}

void
link_close_all(struct worker *worker)
{
	while (worker->links != NULL)
		close_link(worker->links);
}
