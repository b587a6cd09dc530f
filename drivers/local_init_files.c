/* SPDX-License-Identifier: ISC */
/*
 * The file server of a sandbox: a process of our init that speaks core/file_protocol.h on one
 * socket and hands out real descriptors. Started by init, when the driver asks; runs as the
 * sandbox's user; holds no secret and nothing but that socket; ends with it. Like init it cannot be
 * traced, and only SIGKILL of the sandbox's own user ends it: the driver then asks for another.
 *
 * Most operations are done at once. Those that may take long run in a process of their own, so that
 * they hold up nobody else.
 */
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "drivers/local_files.h"
#include "drivers/local_init.h"

#define SOCKET 3
#define WORKERS_MAX 8U
/* Shorter than this is not worth a process: bytes of an EDIT or COMMIT. */
#define QUICK_SIZE (4 * 1024 * 1024)

enum {
	BEFORE_SERVE = 1,
	SERVING = 2,
};

/* A process that does one long operation. */
struct file_worker {
	struct file_worker *next;
	struct file_server *server;
	uint32_t id;
	pid_t pid;
	struct peer *peer;
};

static const struct {
	const char *name;
	file_verb_fn *run;
} verbs[FILE_VERBS] = {
	[FILE_RESOLVE] = { "resolve", file_verb_resolve },
	[FILE_STAT] = { "stat", file_verb_stat },
	[FILE_LIST] = { "list", file_verb_list },
	[FILE_OPEN] = { "open", file_verb_open },
	[FILE_EDIT] = { "edit", file_verb_edit },
	[FILE_COMMIT] = { "write", file_verb_commit },
	[FILE_MKDIR] = { "mkdir", file_verb_mkdir },
	[FILE_REMOVE] = { "remove", file_verb_remove },
	[FILE_RENAME] = { "rename", file_verb_rename },
	[FILE_SYMLINK] = { "symlink", file_verb_symlink },
	[FILE_READLINK] = { "readlink", file_verb_readlink },
	[FILE_LINK] = { "link", file_verb_link },
	[FILE_SETSTAT] = { "setstat", file_verb_setstat },
	[FILE_STATVFS] = { "statvfs", file_verb_statvfs },
	[FILE_COPY] = { "copy", file_verb_copy },
	[FILE_HASH] = { "hash", file_verb_hash },
	[FILE_NAMES] = { "names", file_verb_names },
};

/* May it take long? */
static bool
is_long(const struct file_request *request)
{
	struct stat status;

	switch (request->verb) {
	case FILE_LIST:
		return (request->flags & FILE_RECURSIVE) != 0;
	case FILE_REMOVE:
		return (request->flags & (FILE_RECURSIVE | FILE_TRASH)) == FILE_RECURSIVE;
	case FILE_EDIT:
		return (request->flags & (FILE_TRUNCATE | FILE_EXCLUSIVE)) == 0;
	case FILE_COMMIT:
		/*
		 * What EDIT gave has room on a disk and needs no copy; what is memory may need one.
		 */
		return fstat(request->fd, &status) == 0 && status.st_size > QUICK_SIZE &&
		       status.st_nlink != 0;
	case FILE_COPY:
	case FILE_HASH:
		return true;
	default:
		return false;
	}
}

/* Runs the verb and makes the message of its reply. */
static void
run_request(const struct file_server *server, uint32_t id, struct file_request *request,
    struct message *message)
{
	struct file_reply reply;
	struct error failure;

	error_clear(&failure);
	file_reply_init(&reply);
	if (verbs[request->verb].run(server, request, &reply, &failure) == 0)
		error_clear(&failure);
	file_reply_encode(message, id, &reply, &failure);
	file_reply_free(&reply);
}

static void
end_worker(struct file_worker *worker)
{
	struct file_server *server = worker->server;
	struct file_worker **place;

	for (place = &server->workers; *place != worker; place = &(*place)->next)
		continue;
	*place = worker->next;
	server->worker_count--;
	(void)kill(worker->pid, SIGKILL);
	(void)waitpid(worker->pid, NULL, 0);
	peer_free(worker->peer);
	memory_free(worker);
	peer_pause(server->asker, false);
}

static int
forward_reply(void *argument, struct message *message, struct error *err)
{
	struct file_worker *worker = argument;

	(void)err;
	peer_send(worker->server->asker, message);
	end_worker(worker);
	return 0;
}

/* It ended without a word: killed, or out of memory. */
static void
worker_closed(void *argument, const struct error *reason)
{
	struct file_worker *worker = argument;
	struct file_reply reply;
	struct message message;
	struct error failure;

	(void)reason;
	error_set(&failure, ERROR_UNAVAILABLE, "the process of the operation was killed");
	file_reply_init(&reply);
	file_reply_encode(&message, worker->id, &reply, &failure);
	peer_send(worker->server->asker, &message);
	end_worker(worker);
}

static const struct peer_rule worker_rules[] = {
	{ MESSAGE_FILE_REPLY, "FILE_REPLY", 1, forward_reply },
	{ 0, NULL, 0, NULL },
};

static const struct peer_events worker_events = { .rules = worker_rules, .closed = worker_closed };

/* The long operation's side of the fork; its writes to the socket wait. */
static _Noreturn void
run_worker(const struct file_server *server, uint32_t id, struct file_request *request, int socket)
{
	struct message message;
	struct error err;

	run_request(server, id, request, &message);
	_exit(message_send(socket, &message, &err) == 0 ? 0 : 1);
}

static int
start_worker(struct file_server *server, uint32_t id, struct file_request *request)
{
	struct file_worker *worker;
	int pair[2];
	pid_t pid;

	if (descriptor_pair(pair, NULL) != 0)
		return -1;
	pid = fork();
	if (pid == 0)
		run_worker(server, id, request, pair[1]);
	(void)close(pair[1]);
	if (pid < 0) {
		(void)close(pair[0]);
		return -1;
	}
	worker = memory_zeroed(1, sizeof(*worker));
	worker->server = server;
	worker->id = id;
	worker->pid = pid;
	worker->peer = peer_new(server->loop, pair[0], "files", "worker", &worker_events, worker);
	worker->next = server->workers;
	server->workers = worker;
	if (++server->worker_count == WORKERS_MAX)
		peer_pause(server->asker, true);
	return 0;
}

static int
take_request(void *argument, struct message *message, struct error *err)
{
	struct file_server *server = argument;
	struct file_request request;
	struct message answer;
	uint32_t id;

	if (file_request_decode(message, &id, &request, err) != 0)
		return -1;
	if (!is_long(&request) || start_worker(server, id, &request) != 0) {
		run_request(server, id, &request, &answer);
		peer_send(server->asker, &answer);
	}
	file_request_free(&request);
	return 0;
}

static int
take_cancel(void *argument, struct message *message, struct error *err)
{
	struct file_server *server = argument;
	struct file_worker *worker;
	uint32_t id;

	if (file_cancel_decode(message, &id, err) != 0)
		return -1;
	for (worker = server->workers; worker != NULL; worker = worker->next) {
		if (worker->id == id) {
			end_worker(worker);
			break;
		}
	}
	return 0;
}

static void
sweep(void *argument)
{
	struct file_server *server = argument;
	int64_t interval = (int64_t)server->serve.leftover_age * 1000;

	file_leftover_sweep(server);
	loop_timer_start(server->sweep, interval < 1000 ? 1000 : interval);
}

static int
take_serve(void *argument, struct message *message, struct error *err)
{
	struct file_server *server = argument;

	if (file_serve_decode(message, &server->serve, err) != 0)
		return -1;
	peer_set_state(server->asker, SERVING);
	loop_timer_start(server->sweep, 0);
	return 0;
}

static const struct peer_rule rules[] = {
	{ MESSAGE_FILE_SERVE, "FILE_SERVE", BEFORE_SERVE, take_serve },
	{ MESSAGE_FILE_REQUEST, "FILE_REQUEST", SERVING, take_request },
	{ MESSAGE_FILE_CANCEL, "FILE_CANCEL", SERVING, take_cancel },
	{ 0, NULL, 0, NULL },
};

static void
asker_closed(void *argument, const struct error *err)
{
	struct file_server *server = argument;

	log_debug("%s", err->message);
	loop_stop(server->loop);
}

static const struct peer_events events = { .rules = rules, .closed = asker_closed };

static _Noreturn void
serve(const struct init *init, int socket)
{
	static const int ignored[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
		SIGPIPE };
	struct file_server server = { 0 };
	struct error err;
	size_t i;

	init_child_begin(init);
	for (i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
	(void)umask(022);
	if (dup2(socket, SOCKET) < 0 || close_range(SOCKET + 1, ~0U, 0) != 0)
		_exit(1);
	server.loop = loop_new(&err);
	if (server.loop == NULL)
		log_fatal("%s", err.message);
	server.sweep = loop_timer_new(server.loop, sweep, &server);
	server.asker = peer_new(server.loop, SOCKET, "files", "driver", &events, &server);
	if (loop_run(server.loop, &err) != 0)
		log_error("%s", err.message);
	while (server.workers != NULL)
		end_worker(server.workers);
	_exit(0);
}

void
init_files_start(const struct init *init, int socket)
{
	pid_t pid;

	pid = fork();
	if (pid == 0)
		serve(init, socket);
	if (pid < 0)
		log_error("the file server was not started: fork failed");
	(void)close(socket);
}
