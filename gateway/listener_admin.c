/* SPDX-License-Identifier: ISC */
/*
 * The socket of rws admin. It is made for root and the listener's own user alone, and the kernel is
 * asked who connects as well: the user that sessions and workers become has no business here. Each
 * connection carries one request in the same typed messages that the processes use. Few connections,
 * each with a deadline at every step: nobody on the socket can hold up the gateway or one another.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "conf/conf.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/option.h"
#include "core/base/peer.h"
#include "gateway/listener_admin_state.h"
#include "gateway/listener_state.h"

#define CLIENTS_MAX 16
#define BACKLOG 16
/* ms to say what is wanted, and to take the answer and close. */
#define REQUEST_WAIT 10000
#define CLOSE_WAIT 30000
/* ms before a session that was told to go is killed. */
#define DISCONNECT_WAIT 5000
/* ms for a provider: longer than what a workspace gives it. */
#define ACT_WAIT 300000
/* ms for the records. */
#define FORGET_WAIT 15000
/* ms without accepting when that failed: the connection stays in the queue. */
#define ACCEPT_PAUSE 500

/* What is done about each verb, and once its time is over. */
static const struct {
	const char *name;
	void (*start)(struct admin_client *client, const char *target);
	int64_t wait;
	void (*expired)(struct admin_client *client);
} actions[] = {
	[ADMIN_STATUS] = { "status", admin_list_status, 0, NULL },
	[ADMIN_LOGINS] = { "logins", admin_list_logins, 0, NULL },
	[ADMIN_WORKSPACES] = { "workspaces", admin_list_workspaces, ADMIN_REPORT_WAIT,
	    admin_list_without },
	[ADMIN_SESSIONS] = { "sessions", admin_list_sessions, ADMIN_REPORT_WAIT,
	    admin_list_without },
	[ADMIN_CHANNELS] = { "channels", admin_list_sessions, ADMIN_REPORT_WAIT,
	    admin_list_without },
	[ADMIN_RELOAD] = { "reload", admin_act_reload, 0, NULL },
	[ADMIN_DRAIN] = { "drain", admin_act_drain, 0, NULL },
	[ADMIN_DISCONNECT] = { "disconnect", admin_act_disconnect, DISCONNECT_WAIT,
	    admin_act_kill },
	[ADMIN_START] = { "start", admin_act_workspace, ACT_WAIT, admin_act_give_up },
	[ADMIN_STOP] = { "stop", admin_act_workspace, ACT_WAIT, admin_act_give_up },
	[ADMIN_DESTROY] = { "destroy", admin_act_workspace, ACT_WAIT, admin_act_give_up },
	[ADMIN_FORGET] = { "forget", admin_records_forget, FORGET_WAIT, admin_records_forget_late },
};

void
admin_client_await(
    struct admin_client *client, struct session_entry *session, struct worker_entry *worker)
{
	struct awaited *awaited;

	awaited = memory_zeroed(1, sizeof(*awaited));
	awaited->session = session;
	awaited->worker = worker;
	awaited->next = client->awaited;
	client->awaited = awaited;
}

bool
admin_client_stop_awaiting(struct admin_client *client, const struct session_entry *session,
    const struct worker_entry *worker)
{
	struct awaited **place, *awaited;

	for (place = &client->awaited; (awaited = *place) != NULL; place = &awaited->next) {
		if (awaited->session != session || awaited->worker != worker)
			continue;
		*place = awaited->next;
		memory_free(awaited);
		return true;
	}
	return false;
}

void
admin_client_end(struct admin_client *client, const struct error *failure, const char *sandbox_id,
    const char *note)
{
	struct admin_end end = { 0 };
	struct message message;

	if (failure != NULL)
		end.failure = *failure;
	end.sandbox_id = sandbox_id == NULL ? NULL : memory_text(sandbox_id);
	end.note = note == NULL ? NULL : memory_text(note);
	admin_end_encode(&message, &end);
	admin_end_free(&end);
	client->stage = ADMIN_STAGE_ENDED;
	peer_set_state(client->peer, client->stage);
	loop_timer_start(client->deadline, CLOSE_WAIT);
	peer_send(client->peer, &message);
}

void
admin_client_end_list(struct admin_client *client)
{
	if (client->awaited == NULL && client->question == NULL && !client->paused &&
	    client->stage == ADMIN_STAGE_ASKED)
		admin_client_end(client, NULL, NULL, client->note);
}

static void
free_client(struct admin_client *client)
{
	struct admin *admin = client->listener->admin;
	struct admin_client **place;
	struct awaited *awaited;

	for (place = &admin->clients; *place != client; place = &(*place)->next)
		continue;
	*place = client->next;
	admin->client_count--;
	while ((awaited = client->awaited) != NULL) {
		client->awaited = awaited->next;
		memory_free(awaited);
	}
	admin_records_free(client);
	memory_free(client->target);
	loop_timer_free(client->deadline);
	peer_free(client->peer);
	memory_free(client);
}

static void
deadline_expired(void *argument)
{
	struct admin_client *client = argument;

	if (client->stage == ADMIN_STAGE_ASKED && !client->paused) {
		loop_timer_start(client->deadline, CLOSE_WAIT);
		actions[client->verb].expired(client);
	} else {
		log_debug("admin %u: closed: it is slow", client->number);
		free_client(client);
	}
}

static int
take_request(void *argument, struct message *message, struct error *err)
{
	struct admin_client *client = argument;
	struct admin_request request;

	if (admin_request_decode(message, &request, err) != 0)
		return -1;
	if (request.verb >= ADMIN_RELOAD)
		log_info("admin: user %lu: %s%s%s", (unsigned long)client->user,
		    actions[request.verb].name, request.target == NULL ? "" : " ",
		    request.target == NULL ? "" : request.target);
	client->verb = request.verb;
	client->stage = ADMIN_STAGE_ASKED;
	peer_set_state(client->peer, client->stage);
	loop_timer_stop(client->deadline);
	if (actions[client->verb].expired != NULL)
		loop_timer_start(client->deadline, actions[client->verb].wait);
	actions[client->verb].start(client, request.target);
	admin_request_free(&request);
	return 0;
}

static const struct peer_rule rules[] = {
	{ MESSAGE_ADMIN_REQUEST, "ADMIN_REQUEST", ADMIN_STAGE_NEW, take_request },
	{ MESSAGE_ADMIN_STATUS, "ADMIN_STATUS", 0, NULL },
	{ MESSAGE_ADMIN_LOGIN, "ADMIN_LOGIN", 0, NULL },
	{ MESSAGE_ADMIN_WORKSPACE, "ADMIN_WORKSPACE", 0, NULL },
	{ MESSAGE_ADMIN_SESSION, "ADMIN_SESSION", 0, NULL },
	{ MESSAGE_ADMIN_CHANNEL, "ADMIN_CHANNEL", 0, NULL },
	{ MESSAGE_ADMIN_RECORD, "ADMIN_RECORD", 0, NULL },
	{ MESSAGE_ADMIN_END, "ADMIN_END", 0, NULL },
	{ 0, NULL, 0, NULL },
};

/* What was asked for goes on; only nobody is told. */
static void
client_closed(void *argument, const struct error *err)
{
	struct admin_client *client = argument;

	if (err->code != ERROR_UNAVAILABLE)
		log_info("admin %u: closed: %s", client->number, err->message);
	free_client(client);
}

static void
client_drained(void *argument)
{
	admin_records_go_on(argument);
}

static const struct peer_events events = { rules, client_closed, client_drained };

static int
check_credentials(int fd, uid_t *user, struct error *err)
{
	struct ucred credentials;
	socklen_t size = sizeof(credentials);

	*user = 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
		return error_system(err, errno, "SO_PEERCRED");
	*user = credentials.uid;
	if (credentials.uid == 0 || credentials.uid == geteuid())
		return 0;
	log_error("admin: user %lu was refused (process %ld)", (unsigned long)credentials.uid,
	    (long)credentials.pid);
	return error_set(
	    err, ERROR_DENIED, "this is for root and for the user of the gateway's listener");
}

/* The one message that says why not; it fits into any socket that is new. */
static void
refuse(int fd, const struct error *err)
{
	struct admin_end end = { .failure = *err };
	struct message message;

	admin_end_encode(&message, &end);
	(void)message_send(fd, &message, NULL);
	(void)close(fd);
}

static void
accept_client(struct listener *listener, int fd)
{
	struct admin *admin = listener->admin;
	struct admin_client *client;
	struct error err;
	uid_t user;

	if (check_credentials(fd, &user, &err) != 0 ||
	    (admin->client_count == CLIENTS_MAX &&
		error_set(&err, ERROR_BUSY, "%d others are being served", CLIENTS_MAX) != 0)) {
		refuse(fd, &err);
		return;
	}
	client = memory_zeroed(1, sizeof(*client));
	client->listener = listener;
	client->number = ++admin->last_number;
	client->user = user;
	client->stage = ADMIN_STAGE_NEW;
	client->deadline = loop_timer_new(listener->loop, deadline_expired, client);
	client->peer = peer_new(listener->loop, fd, "listener", "admin", &events, client);
	client->next = admin->clients;
	admin->clients = client;
	admin->client_count++;
	loop_timer_start(client->deadline, REQUEST_WAIT);
}

static void
socket_ready(void *argument, unsigned ready)
{
	struct listener *listener = argument;
	struct admin *admin = listener->admin;
	int fd;

	(void)ready;
	fd = accept4(admin->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		accept_client(listener, fd);
	} else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		log_error("admin: accept: %s", strerror(errno));
		loop_watch_change(admin->watch, 0);
		loop_timer_start(admin->again, ACCEPT_PAUSE);
	}
}

static void
accept_again(void *argument)
{
	struct listener *listener = argument;

	loop_watch_change(listener->admin->watch, LOOP_READ);
}

static int
make_address(const char *path, struct sockaddr_un *address, struct error *err)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(address->sun_path))
		return error_set(err, ERROR_INVALID, "the path is longer than %zu bytes",
		    sizeof(address->sun_path) - 1);
	memcpy(address->sun_path, path, strlen(path));
	return 0;
}

/* Removes the socket of a gateway that is gone. Anything else in its place stays, and is an error. */
static int
clear_place(const struct sockaddr_un *address, struct error *err)
{
	struct stat status;
	int fd, result;

	if (lstat(address->sun_path, &status) != 0)
		return errno == ENOENT ? 0 : error_system(err, errno, "stat");
	if (!S_ISSOCK(status.st_mode))
		return error_set(err, ERROR_EXISTS, "it is there and is no socket");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_system(err, errno, "socket");
	result = connect(fd, (const struct sockaddr *)address, sizeof(*address));
	if (result != 0 && errno == ECONNREFUSED)
		result = unlink(address->sun_path) == 0 ? 0 : error_system(err, errno, "remove");
	else if (result == 0 || errno == EAGAIN)
		result = error_set(err, ERROR_BUSY, "another gateway is using it");
	else
		result = error_system(err, errno, "connect");
	(void)close(fd);
	return result;
}

/* From its first moment nobody but the listener's user and root may connect. */
static int
bind_socket(struct admin *admin, const struct sockaddr_un *address, struct error *err)
{
	struct stat status;
	mode_t before;
	int result;

	admin->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (admin->socket < 0)
		return error_system(err, errno, "socket");
	before = umask(0177);
	result = bind(admin->socket, (const struct sockaddr *)address, sizeof(*address));
	(void)umask(before);
	if (result != 0)
		return error_system(err, errno, "bind");
	if (lstat(address->sun_path, &status) != 0)
		return error_system(err, errno, "stat");
	admin->device = status.st_dev;
	admin->inode = status.st_ino;
	return listen(admin->socket, BACKLOG) == 0 ? 0 : error_system(err, errno, "listen");
}

/* Where it is; a new text. */
static char *
socket_path(const struct settings *settings)
{
	const char *path = settings_text(settings, "admin_socket");

	return path != NULL ? memory_text(path)
			    : memory_text_format("%s/admin.sock", settings_text(settings, "state"));
}

/* Can a socket be made there? The state is not there yet before the first start. */
static int
check_place(char *path, bool needs_directory, struct error *err)
{
	struct stat status;
	int result;

	if (lstat(path, &status) == 0 && !S_ISSOCK(status.st_mode))
		return error_set(err, ERROR_EXISTS, "%s is there and is no socket", path);
	if (!needs_directory)
		return 0;
	*strrchr(path, '/') = '\0';
	if (stat(*path == '\0' ? "/" : path, &status) != 0)
		result = error_system(err, errno, "%s/", path);
	else if (!S_ISDIR(status.st_mode))
		result = error_system(err, ENOTDIR, "%s", path);
	else
		result = 0;
	return result;
}

int
listener_admin_check(const struct settings *settings, struct error *err)
{
	struct sockaddr_un address;
	char *path;
	int result;

	path = socket_path(settings);
	result = make_address(path, &address, err);
	if (result == 0)
		result = check_place(path, settings_has(settings, "admin_socket"), err);
	memory_free(path);
	return result;
}

int
listener_admin_open(struct listener *listener, struct error *err)
{
	const struct settings *settings = conf_global(listener->conf);
	struct sockaddr_un address;
	struct admin *admin;

	admin = memory_zeroed(1, sizeof(*admin));
	admin->socket = -1;
	admin->since = (int64_t)time(NULL);
	admin->path = socket_path(settings);
	listener->admin = admin;
	if (make_address(admin->path, &address, err) != 0 || clear_place(&address, err) != 0 ||
	    bind_socket(admin, &address, err) != 0)
		return error_wrap(err, "admin_socket %s", admin->path);
	admin->again = loop_timer_new(listener->loop, accept_again, listener);
	admin->watch = loop_watch(listener->loop, admin->socket, LOOP_READ, socket_ready, listener);
	return 0;
}

void
listener_admin_close(struct listener *listener)
{
	struct admin *admin = listener->admin;
	struct stat status;

	if (admin == NULL)
		return;
	while (admin->clients != NULL)
		free_client(admin->clients);
	if (admin->inode != 0 && lstat(admin->path, &status) == 0 &&
	    status.st_dev == admin->device && status.st_ino == admin->inode)
		(void)unlink(admin->path);
	loop_unwatch(admin->watch);
	loop_timer_free(admin->again);
	descriptor_close(&admin->socket);
	memory_free(admin->path);
	memory_free(admin);
	listener->admin = NULL;
}
