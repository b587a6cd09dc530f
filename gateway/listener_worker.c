/* SPDX-License-Identifier: ISC */
/*
 * The listener's side of workers: one for each workspace, started by its first session. A worker
 * that wants to end asks first, so that no session is handed to one that is gone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "conf/conf.h"
#include "core/admin_protocol.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/option.h"
#include "core/base/peer.h"
#include "core/ledger.h"
#include "core/login.h"
#include "core/record_protocol.h"
#include "gateway/listener_admin.h"
#include "gateway/listener_state.h"

static void end_worker(struct worker_entry *worker);

static void
send_drain(struct worker_entry *worker, bool dispose)
{
	struct message message;

	worker->leaving = true;
	drain_encode(&message, dispose);
	peer_send(worker->peer, &message);
}

static int
take_idle(void *argument, struct message *message, struct error *err)
{
	struct worker_entry *worker = argument;

	if (worker_idle_decode(message, err) != 0)
		return -1;
	/* A session may have been attached while the question was on its way. */
	if (worker->sessions == 0 && worker->acts == 0 && !worker->leaving)
		send_drain(worker, true);
	return 0;
}

static const struct peer_rule worker_rules[] = {
	{ MESSAGE_WORKER_IDLE, "WORKER_IDLE", 1, take_idle },
	{ MESSAGE_WORKER_CONFIGURE, "WORKER_CONFIGURE", 0, NULL },
	{ MESSAGE_WORKER_ATTACH, "WORKER_ATTACH", 0, NULL },
	{ MESSAGE_DRAIN, "DRAIN", 0, NULL },
	{ MESSAGE_WORKER_REPORT, "WORKER_REPORT", 1, listener_admin_take_worker },
	{ MESSAGE_WORKER_DONE, "WORKER_DONE", 1, listener_admin_take_done },
	{ MESSAGE_WORKER_ASK, "WORKER_ASK", 0, NULL },
	{ MESSAGE_WORKER_ACT, "WORKER_ACT", 0, NULL },
	{ MESSAGE_WORKER_RECORDS, "WORKER_RECORDS", 0, NULL },
	{ MESSAGE_WORKER_RECLAIM, "WORKER_RECLAIM", 0, NULL },
	{ 0, NULL, 0, NULL },
};

/* Its process ends now if it has not yet; the entry stays until then, so that its death is told in its name. */
static void
worker_closed(void *argument, const struct error *err)
{
	struct worker_entry *worker = argument;

	if (!worker->leaving || err->code == ERROR_INVALID) {
		log_error(
		    "worker %ld of %s: %s", (long)worker->pid, worker->workspace, err->message);
		(void)kill(worker->pid, SIGKILL);
	}
	peer_free(worker->peer);
	worker->peer = NULL;
}

static const struct peer_events worker_events = { worker_rules, worker_closed, NULL };

/* The directory of a workspace's own: 0700, of the user the worker becomes. */
static int
open_directory(struct listener *listener, const char *workspace, struct error *err)
{
	int fd;

	if (mkdirat(listener->workspaces, workspace, 0700) != 0 && errno != EEXIST)
		return error_system(err, errno, "make the directory of workspace %s", workspace);
	fd = openat(
	    listener->workspaces, workspace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_system(err, errno, "open the directory of workspace %s", workspace);
	if (listener->user.uid != 0 && geteuid() == 0 &&
	    fchown(fd, listener->user.uid, listener->user.gid) != 0) {
		error_system(err, errno, "hand over the directory of workspace %s", workspace);
		(void)close(fd);
		return -1;
	}
	return fd;
}

static int
send_configure(struct worker_entry *worker, size_t login, struct error *err)
{
	struct listener *listener = worker->listener;
	struct worker_configure configure = { 0 };
	struct message message;

	configure.directory = open_directory(listener, worker->workspace, err);
	if (configure.directory < 0)
		return -1;
	configure.login = worker->login;
	configure.workspace = worker->workspace;
	configure.instance = memory_text_format(
	    "%s/%s", settings_text(conf_global(listener->conf), "gateway"), worker->workspace);
	configure.driver = memory_text(worker->driver);
	worker_configure_encode(&message, &configure);
	settings_put(&message, conf_login(listener->conf, login));
	peer_send(worker->peer, &message);
	memory_free(configure.instance);
	memory_free(configure.driver);
	return 0;
}

struct worker_entry *
listener_start_worker(
    struct listener *listener, const char *login, const char *workspace, struct error *err)
{
	struct worker_entry *worker;
	struct login parsed;
	char *title;
	int index, control, result;
	pid_t pid;

	/*
	 * Auth and the database name workspaces too; the name becomes a path, and what it leads to
	 * is handed over.
	 */
	if (login_parse(workspace, &parsed) != 0 || strcmp(parsed.name, login) != 0) {
		error_set(err, ERROR_INVALID, "login %s has no workspace of that name", login);
		return NULL;
	}
	index = conf_login_find(listener->conf, login);
	if (index < 0) {
		error_set(err, ERROR_NOT_FOUND, "login %s is no longer configured", login);
		return NULL;
	}
	title = memory_text_format("rwsd: worker %s", workspace);
	result = process_start(
	    listener->worker_program, "worker", title, &listener->user, &pid, &control, err);
	memory_free(title);
	if (result != 0)
		return NULL;
	worker = memory_zeroed(1, sizeof(*worker));
	worker->listener = listener;
	worker->pid = pid;
	worker->login = memory_text(login);
	worker->workspace = memory_text(workspace);
	worker->driver = memory_text(
	    settings_text(conf_login(listener->conf, (size_t)index), "driver"));
	worker->since = (int64_t)time(NULL);
	worker->peer = peer_new(
	    listener->loop, control, "listener", "worker", &worker_events, worker);
	worker->next = listener->workers;
	listener->workers = worker;
	if (send_configure(worker, (size_t)index, err) != 0) {
		worker->leaving = true;
		end_worker(worker);
		return NULL;
	}
	listener_record_worker(worker);
	log_info("worker %ld of %s started", (long)pid, workspace);
	return worker;
}

struct worker_entry *
listener_find_worker(struct listener *listener, const char *workspace)
{
	struct worker_entry *worker;

	for (worker = listener->workers; worker != NULL; worker = worker->next)
		if (strcmp(worker->workspace, workspace) == 0)
			return worker;
	return NULL;
}

/* Hands the session's socket over, or keeps it for the worker after this one. */
static void
send_attach(struct worker_entry *worker, struct worker_attach *attach)
{
	struct waiting *waiting;
	struct message message;

	if (!worker->leaving && worker->peer != NULL) {
		worker_attach_encode(&message, attach);
		peer_send(worker->peer, &message);
		worker_attach_free(attach);
		return;
	}
	waiting = memory_zeroed(1, sizeof(*waiting));
	waiting->attach = *attach;
	waiting->next = worker->waiting;
	worker->waiting = waiting;
}

static void
copy_restrictions(struct restrictions *to, const struct restrictions *from)
{
	to->command = from->command == NULL ? NULL : memory_text(from->command);
	to->no_pty = from->no_pty;
	to->environment = memory_list(from->environment);
}

int
listener_attach(struct listener *listener, const struct auth_result *result, struct error *err)
{
	struct worker_attach attach = { 0 };
	struct worker_entry *worker;
	struct session_entry *session;
	int pair[2];

	session = listener_find_session(listener, result->connection);
	worker = listener_find_worker(listener, result->workspace);
	if (worker == NULL)
		worker = listener_start_worker(listener, result->login, result->workspace, err);
	if (session == NULL || worker == NULL || descriptor_pair(pair, err) != 0)
		return -1;
	attach.connection = result->connection;
	attach.fd = pair[1];
	copy_restrictions(&attach.restrictions, &result->restrictions);
	send_attach(worker, &attach);
	session->worker = worker;
	worker->sessions++;
	worker->was_used = true;
	return pair[0];
}

void
listener_detach(struct session_entry *session)
{
	if (session->worker != NULL)
		session->worker->sessions--;
	session->worker = NULL;
}

/* The sessions that came while the worker was leaving go to a new one. */
static void
serve_waiting(struct listener *listener, struct worker_entry *gone)
{
	struct worker_entry *worker;
	struct waiting *waiting;
	struct error err;

	worker = NULL;
	if (gone->waiting != NULL && !listener->draining) {
		worker = listener_start_worker(listener, gone->login, gone->workspace, &err);
		if (worker == NULL)
			log_error("start a worker for %s: %s", gone->workspace, err.message);
	}
	while ((waiting = gone->waiting) != NULL) {
		gone->waiting = waiting->next;
		if (worker != NULL) {
			send_attach(worker, &waiting->attach);
		} else {
			descriptor_close(&waiting->attach.fd);
			worker_attach_free(&waiting->attach);
		}
		memory_free(waiting);
	}
	if (worker == NULL)
		return;
	for (struct session_entry *session = listener->sessions; session != NULL;
	     session = session->next) {
		if (session->worker == gone && session->logged_in) {
			session->worker = worker;
			worker->sessions++;
		}
	}
}

/* Starts a worker if the last one of this workspace died and left commands in its sandbox, which are ended so. */
static void
look_after(struct listener *listener, const char *login, const char *workspace)
{
	struct worker_entry *worker;
	struct error err;
	bool is_needed;
	int directory;

	directory = open_directory(listener, workspace, &err);
	is_needed = directory >= 0 && !ledger_is_empty(directory);
	descriptor_close(&directory);
	if (!is_needed)
		return;
	worker = listener_start_worker(listener, login, workspace, &err);
	if (worker == NULL)
		log_error("what is left of %s is not ended: %s", workspace, err.message);
	else
		worker->is_successor = true;
}

/* Looks after what a dead worker left. One that died before anybody used it is not replaced. */
static void
succeed(const struct worker_entry *dead)
{
	if (dead->listener->draining || (dead->is_successor && !dead->was_used) ||
	    listener_find_worker(dead->listener, dead->workspace) != NULL)
		return;
	look_after(dead->listener, dead->login, dead->workspace);
}

static void
end_worker(struct worker_entry *worker)
{
	struct listener *listener = worker->listener;
	struct session_entry *session;
	struct worker_entry **place;

	for (place = &listener->workers; *place != worker; place = &(*place)->next)
		continue;
	*place = worker->next;
	serve_waiting(listener, worker);
	if (!worker->leaving)
		succeed(worker);
	for (session = listener->sessions; session != NULL; session = session->next)
		if (session->worker == worker)
			session->worker = NULL;
	listener_admin_worker_gone(worker);
	peer_free(worker->peer);
	memory_free(worker->login);
	memory_free(worker->workspace);
	memory_free(worker->driver);
	memory_free(worker);
	listener_check_drained(listener);
}

const char *
listener_worker_name(const struct listener *listener, pid_t pid)
{
	const struct worker_entry *worker;

	for (worker = listener->workers; worker != NULL; worker = worker->next)
		if (worker->pid == pid)
			return worker->workspace;
	return NULL;
}

bool
listener_worker_exited(struct listener *listener, pid_t pid)
{
	struct worker_entry *worker;

	for (worker = listener->workers; worker != NULL; worker = worker->next)
		if (worker->pid == pid)
			break;
	if (worker == NULL)
		return false;
	if (!worker->leaving) {
		listener->crashes++;
		log_error("worker %ld of %s ended unexpectedly", (long)pid, worker->workspace);
	}
	end_worker(worker);
	return true;
}

void
listener_drain_workers(struct listener *listener)
{
	struct worker_entry *worker;

	for (worker = listener->workers; worker != NULL; worker = worker->next)
		if (!worker->leaving && worker->peer != NULL)
			send_drain(worker, false);
}

void
listener_reclaim(struct listener *listener, const char *login, const char *instance)
{
	struct worker_entry *worker;
	struct message message;
	struct error err;
	char *workspace;

	workspace = listener_workspace_name(login, instance);
	if (listener_find_worker(listener, workspace) != NULL ||
	    conf_login_find(listener->conf, login) < 0)
		goto out;
	log_info("workspace %s is idle, and no gateway has it: disposing of it", workspace);
	worker = listener_start_worker(listener, login, workspace, &err);
	if (worker == NULL) {
		log_error("workspace %s: %s", workspace, err.message);
		goto out;
	}
	message_start(&message, MESSAGE_WORKER_RECLAIM);
	peer_send(worker->peer, &message);
out:
	memory_free(workspace);
}

void
listener_look_back(struct listener *listener)
{
	struct dirent *entry;
	struct login login;
	DIR *stream;
	int fd;

	fd = openat(listener->workspaces, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	stream = fd < 0 ? NULL : fdopendir(fd);
	if (stream == NULL) {
		descriptor_close(&fd);
		return;
	}
	while ((entry = readdir(stream)) != NULL)
		if (login_parse(entry->d_name, &login) == 0)
			look_after(listener, login.name, entry->d_name);
	(void)closedir(stream);
}
