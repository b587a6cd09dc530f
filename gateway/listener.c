/* SPDX-License-Identifier: ISC */
/*
 * The listener process: binds, accepts, throttles; starts the others and reaps them.
 *
 * Started by: the operator (systemd, make run).
 * User and rights: as started; root lets the others become the configured user. May fork and exec.
 * Descriptors: standard ones, the listening sockets, a socket to each process it started.
 * Secrets: the configuration, provider credentials included, to hand each worker its own.
 * Reaches: the configuration, the host keys, the state directory; no host.
 * Messages: see listener_session.c, listener_auth.c, listener_worker.c, listener_records.c and
 *	listener_admin.h. It parses nothing that comes from the network: sockets are passed on unread,
 *	requests to log in unopened.
 * Ends: on SIGTERM or SIGINT, once its sessions have ended or drain_grace is over.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/listen.h"
#include "core/base/confine.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/base/option.h"
#include "gateway/listener.h"
#include "gateway/listener_admin.h"
#include "gateway/listener_state.h"
#include "keys/hostkey.h"

#define BACKLOG 512
#define ACCEPTS_A_ROUND 32
/* ms without accepting when there is no descriptor or memory for a connection. */
#define ACCEPT_PAUSE 500
/* ms between a session being told to end at once and the process being killed. */
#define KILL_WAIT 3000

static struct listener listener;

/* "ADDR:PORT" or "[ADDR]:PORT", as the log and the configuration write it. */
static void
format_address(char *out, size_t size, const char *address, const char *port)
{
	(void)snprintf(
	    out, size, strchr(address, ':') != NULL ? "[%s]:%s" : "%s:%s", address, port);
}

static int
bind_socket(const struct sockaddr_storage *address, socklen_t size, struct error *err)
{
	int fd, on = 1;

	fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_system(err, errno, "socket");
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    (address->ss_family == AF_INET6 &&
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) != 0) ||
	    bind(fd, (const struct sockaddr *)address, size) != 0 || listen(fd, BACKLOG) != 0) {
		error_system(err, errno, "bind");
		(void)close(fd);
		return -1;
	}
	return fd;
}

static int
open_socket(const char *text, struct error *err)
{
	struct sockaddr_storage address;
	socklen_t size;
	int fd;

	if (conf_listen_parse(text, &address, &size, err) != 0)
		return -1;
	fd = bind_socket(&address, size, err);
	return fd >= 0 ? fd : error_wrap(err, "listen on %s", text);
}

static void
log_listening(int fd)
{
	char host[ADDRESS_TEXT_MAX], port[16], text[ADDRESS_TEXT_MAX + 24];
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &size) != 0 ||
	    getnameinfo((struct sockaddr *)&address, size, host, sizeof(host), port, sizeof(port),
		NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return;
	format_address(text, sizeof(text), host, port);
	log_info("listening on %s", text);
}

/* Is there room for one more connection from this address? Says so in the log when not. */
static bool
admit(struct listener *self, const char *address)
{
	const struct settings *settings = conf_global(self->conf);

	if (self->total >= (unsigned)settings_number(settings, "max_connections"))
		log_info(
		    "connection from %s refused: %u connections are open", address, self->total);
	else if (self->starting >= (unsigned)settings_number(settings, "max_startups"))
		log_info(
		    "connection from %s refused: %u have yet to log in", address, self->starting);
	else if (listener_count_source(self, address) >=
		 (unsigned)settings_number(settings, "max_startups_per_source"))
		log_info(
		    "connection from %s refused: too many of its own have yet to log in", address);
	else
		return true;
	return false;
}

static void
accept_one(struct listener *self, int fd, const struct sockaddr *from, socklen_t size)
{
	char address[ADDRESS_TEXT_MAX], port[16];

	if (getnameinfo(from, size, address, sizeof(address), port, sizeof(port),
		NI_NUMERICHOST | NI_NUMERICSERV) != 0 ||
	    !admit(self, address)) {
		(void)close(fd);
		return;
	}
	listener_start_session(self, fd, address, (uint32_t)strtoul(port, NULL, 10));
}

static void
watch_sockets(struct listener *self, unsigned events)
{
	size_t i;

	for (i = 0; i < self->socket_count; i++)
		loop_watch_change(self->socket_watches[i], events);
}

static void
accept_again(void *argument)
{
	watch_sockets(argument, LOOP_READ);
}

/* The connection stays in the socket's queue, and would wake the loop again at once. */
static void
pause_accepting(struct listener *self, int number)
{
	log_error("accept: %s; %u connections are open", strerror(number), self->total);
	watch_sockets(self, 0);
	loop_timer_start(self->accept_again, ACCEPT_PAUSE);
}

static void
socket_ready(void *argument, unsigned events)
{
	int *listening = argument;
	struct sockaddr_storage from;
	socklen_t size;
	int i, fd;

	(void)events;
	for (i = 0; i < ACCEPTS_A_ROUND; i++) {
		size = sizeof(from);
		fd = accept4(*listening, (struct sockaddr *)&from, &size, SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
				pause_accepting(&listener, errno);
			break;
		}
		accept_one(&listener, fd, (struct sockaddr *)&from, size);
	}
	listener_fill_spares(&listener);
}

static int
open_sockets(struct listener *self, struct error *err)
{
	char *const *list;
	size_t i;

	list = settings_list(conf_global(self->conf), "listen");
	/* At most LISTEN_MAX: the configuration was checked. */
	for (i = 0; i < LISTEN_MAX && list[i] != NULL; i++) {
		self->sockets[i] = open_socket(list[i], err);
		if (self->sockets[i] < 0)
			return -1;
		self->socket_count = i + 1;
		self->socket_watches[i] = loop_watch(
		    self->loop, self->sockets[i], LOOP_READ, socket_ready, &self->sockets[i]);
	}
	return 0;
}

static void
close_sockets(struct listener *self)
{
	size_t i;

	loop_timer_stop(self->accept_again);
	for (i = 0; i < self->socket_count; i++) {
		loop_unwatch(self->socket_watches[i]);
		descriptor_close(&self->sockets[i]);
	}
	self->socket_count = 0;
}

/* Who was that? Sessions are not asked for: whatever is neither auth nor a worker was one. */
static void
log_death(struct listener *self, pid_t pid, int status)
{
	const char *workspace, *role;

	workspace = listener_worker_name(self, pid);
	role = pid == self->auth_pid      ? "auth"
	       : pid == self->records_pid ? "records"
	       : workspace != NULL        ? "worker of "
					  : "session";
	if (workspace == NULL)
		workspace = "";
	if (WIFSIGNALED(status))
		log_error("%s%s: process %ld was killed by signal %d", role, workspace, (long)pid,
		    WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		log_error("%s%s: process %ld ended with status %d", role, workspace, (long)pid,
		    WEXITSTATUS(status));
}

static void
reap(struct listener *self)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		log_death(self, pid, status);
		if (!listener_session_exited(self, pid) && !listener_worker_exited(self, pid) &&
		    !listener_auth_exited(self, pid))
			(void)listener_records_exited(self, pid);
	}
	listener_fill_spares(self);
	listener_check_drained(self);
}

int
listener_reload(struct listener *self, struct error *err)
{
	struct conf *fresh;

	fresh = listener_load_conf(self->path, self->overrides, err);
	if (fresh == NULL || listener_check_conf(fresh, err) != 0 ||
	    hostkey_ensure(settings_text(conf_global(fresh), "host_keys"), err) != 0) {
		conf_free(fresh);
		return error_wrap(err, "not reloaded");
	}
	conf_free(self->conf);
	self->conf = fresh;
	(void)listener_configure_auth(self);
	listener_drop_spares(self);
	listener_fill_spares(self);
	listener_audit_records(self);
	log_info("reloaded: new connections and workspaces use the new configuration");
	return 0;
}

/* Each step is harder than the one before: tell, disconnect, kill. */
static void
drain_expired(void *argument)
{
	struct listener *self = argument;
	struct session_entry *session;

	self->drain_steps++;
	if (self->drain_steps == 1) {
		listener_drain_sessions(self, true);
		listener_drain_workers(self);
	} else {
		for (session = self->sessions; session != NULL; session = session->next)
			(void)kill(session->pid, SIGKILL);
		for (struct worker_entry *worker = self->workers; worker != NULL;
		     worker = worker->next)
			(void)kill(worker->pid, SIGKILL);
	}
	loop_timer_start(self->drain, KILL_WAIT);
}

void
listener_check_drained(struct listener *self)
{
	if (!self->draining || self->sessions != NULL)
		return;
	listener_drain_workers(self);
	if (self->workers == NULL)
		loop_stop(self->loop);
}

void
listener_drain(struct listener *self)
{
	char text[NUMBER_TEXT_MAX];
	int64_t grace;

	if (self->draining) {
		/* The second signal means: now. */
		drain_expired(self);
		return;
	}
	grace = settings_number(conf_global(self->conf), "drain_grace");
	log_info(
	    "draining: %u connections have %s", self->total, number_format_duration(text, grace));
	self->draining = true;
	close_sockets(self);
	listener_drop_spares(self);
	listener_drain_sessions(self, false);
	loop_timer_start(self->drain, grace);
	listener_check_drained(self);
}

static void
signal_ready(void *argument, unsigned events)
{
	struct listener *self = argument;
	struct signalfd_siginfo info;
	struct error err;

	(void)events;
	while (read(self->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(self);
		else if (info.ssi_signo != SIGHUP)
			listener_drain(self);
		else if (listener_reload(self, &err) != 0)
			log_error("%s", err.message);
	}
}

static int
watch_signals(struct listener *self, struct error *err)
{
	sigset_t set;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return error_system(err, errno, "block signals");
	self->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (self->signals < 0)
		return error_system(err, errno, "signalfd");
	self->signal_watch = loop_watch(self->loop, self->signals, LOOP_READ, signal_ready, self);
	return 0;
}

static int
open_state(struct listener *self, struct error *err)
{
	const char *path;
	int state;

	path = settings_text(conf_global(self->conf), "state");
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return error_system(err, errno, "state: make %s", path);
	state = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (state < 0)
		return error_system(err, errno, "state: open %s", path);
	if (mkdirat(state, "workspaces", 0700) != 0 && errno != EEXIST) {
		error_system(err, errno, "state: make %s/workspaces", path);
	} else {
		self->workspaces = openat(
		    state, "workspaces", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (self->workspaces < 0)
			error_system(err, errno, "state: open %s/workspaces", path);
	}
	(void)close(state);
	return self->workspaces < 0 ? -1 : 0;
}

/* A descriptor for each connection and worker: as many as we may have. */
static void
raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		log_debug("the limit of descriptors stays: errno %d", errno);
}

static int
enter(struct listener *self, struct error *err)
{
	struct confine confine = { .calls = CONFINE_CALLS_LISTENER, .files = true };

	raise_limits();
	self->workspaces = self->signals = -1;
	self->loop = loop_new(err);
	if (self->loop == NULL)
		return -1;
	self->drain = loop_timer_new(self->loop, drain_expired, self);
	self->accept_again = loop_timer_new(self->loop, accept_again, self);
	if (listener_find_user(self->conf, &self->user, err) != 0 || open_state(self, err) != 0 ||
	    hostkey_ensure(settings_text(conf_global(self->conf), "host_keys"), err) != 0)
		return -1;
	self->program = process_open_program(NULL, err);
	if (self->program < 0)
		return -1;
	self->worker_program = process_open_program("rwsd-worker", err);
	if (self->worker_program < 0)
		return -1;
	self->records_program = process_open_program("rwsd-records", err);
	if (self->records_program < 0 || confine_enter(&confine, err) != 0 ||
	    watch_signals(self, err) != 0 || listener_admin_open(self, err) != 0 ||
	    open_sockets(self, err) != 0)
		return -1;
	if (listener_start_records(self, err) != 0 || listener_await_records(self, err) != 0)
		return -1;
	return listener_start_auth(self, err);
}

static void
leave(struct listener *self)
{
	close_sockets(self);
	listener_admin_close(self);
	listener_audit_free(self);
	memory_free(self->place);
	loop_timer_free(self->drain);
	loop_timer_free(self->accept_again);
	loop_timer_free(self->auth_again);
	loop_timer_free(self->records_again);
	loop_unwatch(self->signal_watch);
	descriptor_close(&self->signals);
	descriptor_close(&self->workspaces);
	conf_free(self->conf);
	loop_free(self->loop);
}

int
listener_main(struct conf *conf, const char *path, char *const *overrides)
{
	struct error err;
	size_t i;
	int result;

	listener.conf = conf;
	listener.path = path;
	listener.overrides = overrides;
	if (enter(&listener, &err) != 0) {
		log_error("%s", err.message);
		listener_admin_close(&listener);
		return 1;
	}
	listener_fill_spares(&listener);
	for (i = 0; i < listener.socket_count; i++)
		log_listening(listener.sockets[i]);
	listener_look_back(&listener);
	result = loop_run(listener.loop, &err);
	if (result != 0)
		log_error("%s", err.message);
	else
		log_info("drained");
	leave(&listener);
	return result == 0 ? 0 : 1;
}
