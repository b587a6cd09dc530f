/* SPDX-License-Identifier: ISC */
/*
 * The listener's side of the records process. Each worker gets a socket to it that is bound to its
 * workspace, and another one when the records process had to be started anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
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
#include "core/driver.h"
#include "core/record_list.h"
#include "core/record_protocol.h"
#include "gateway/listener_state.h"

/* ms from the start of one records process to that of the next. */
#define RECORDS_LIFE_MIN 2000
/* ms for the records' first word: longer than they give the database to answer. */
#define STATE_WAIT 30000

static int
take_orphan(void *argument, struct message *message, struct error *err)
{
	struct listener *listener = argument;
	struct records_orphan orphan;

	if (records_orphan_decode(message, &orphan, err) != 0)
		return -1;
	if (!listener->draining)
		listener_reclaim(listener, orphan.login, orphan.instance);
	records_orphan_free(&orphan);
	return 0;
}

static int
take_state(void *argument, struct message *message, struct error *err)
{
	struct listener *listener = argument;
	struct records_state state;

	if (records_state_decode(message, &state, err) != 0)
		return -1;
	listener->records_told = true;
	listener->records_failure = state.failure;
	memory_free(listener->place);
	listener->place = state.place;
	state.place = NULL;
	records_state_free(&state);
	if (listener->audit == NULL)
		listener_audit_records(listener);
	return 0;
}

static const struct peer_rule records_rules[] = {
	{ MESSAGE_RECORDS_STATE, "RECORDS_STATE", 1, take_state },
	{ MESSAGE_RECORDS_ORPHAN, "RECORDS_ORPHAN", 1, take_orphan },
	{ MESSAGE_RECORDS_PAGE, "RECORDS_PAGE", 1, listener_take_page },
	{ MESSAGE_RECORDS_FORGOTTEN, "RECORDS_FORGOTTEN", 1, listener_take_forgotten },
	{ MESSAGE_RECORDS_LIST, "RECORDS_LIST", 0, NULL },
	{ MESSAGE_RECORDS_FORGET, "RECORDS_FORGET", 0, NULL },
	{ MESSAGE_RECORDS_CONFIGURE, "RECORDS_CONFIGURE", 0, NULL },
	{ MESSAGE_RECORDS_ATTACH, "RECORDS_ATTACH", 0, NULL },
	{ 0, NULL, 0, NULL },
};

static void
lose_records(struct listener *listener)
{
	peer_free(listener->records);
	listener->records = NULL;
	listener->records_told = false;
	listener_fail_questions(listener);
}

/* A process that is not reached any more is of no use to workers that come: it ends, so that another one is started. */
static void
records_closed(void *argument, const struct error *err)
{
	struct listener *listener = argument;

	if (listener->draining) {
		log_debug("records: %s", err->message);
	} else {
		log_error("records: %s", err->message);
		/* Never that of nobody, -1: it would be everybody. */
		if (listener->records_pid > 0)
			(void)kill(listener->records_pid, SIGKILL);
	}
	lose_records(listener);
}

static const struct peer_events records_events = { records_rules, records_closed, NULL };

/* A new one each time the gateway starts: what an earlier run left behind is not ours. */
static int
name_run(struct listener *listener, struct error *err)
{
	unsigned char bytes[(RUN_SIZE - 1) / 2];
	static const char digits[] = "0123456789abcdef";
	size_t i;

	if (listener->run[0] != '\0')
		return 0;
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return error_system(err, errno, "getrandom");
	for (i = 0; i < sizeof(bytes); i++) {
		listener->run[2 * i] = digits[bytes[i] >> 4];
		listener->run[2 * i + 1] = digits[bytes[i] & 15];
	}
	return 0;
}

/* STATE/records, of the user that the records process becomes. */
static int
open_directory(struct listener *listener, struct error *err)
{
	const char *state = settings_text(conf_global(listener->conf), "state");
	char *path;
	int fd;

	path = memory_text_format("%s/records", state);
	fd = -1;
	if (mkdir(path, 0700) != 0 && errno != EEXIST) {
		error_system(err, errno, "state: make %s", path);
		goto out;
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		error_system(err, errno, "state: open %s", path);
	} else if (listener->user.uid != 0 && geteuid() == 0 &&
		   fchown(fd, listener->user.uid, listener->user.gid) != 0) {
		error_system(err, errno, "state: hand over %s", path);
		descriptor_close(&fd);
	}
out:
	memory_free(path);
	return fd;
}

/* Takes over directory. */
static void
send_configure(struct listener *listener, int directory)
{
	const char *database = settings_text(conf_global(listener->conf), "state_database");
	struct records_configure configure = { 0 };
	struct message message;

	configure.directory = directory;
	configure.database = database == NULL ? NULL : memory_text(database);
	configure.run = memory_text(listener->run);
	records_configure_encode(&message, &configure);
	peer_send(listener->records, &message);
	records_configure_free(&configure);
}

int
listener_start_records(struct listener *listener, struct error *err)
{
	struct worker_entry *worker;
	int control, directory;

	/* What can fail comes before the process, which would else be left over by each attempt. */
	if (name_run(listener, err) != 0)
		return -1;
	directory = open_directory(listener, err);
	if (directory < 0)
		return -1;
	if (process_start(listener->records_program, "records", "rwsd: records", &listener->user,
		&listener->records_pid, &control, err) != 0) {
		descriptor_close(&directory);
		return -1;
	}
	listener->records_started = loop_now();
	listener->records = peer_new(
	    listener->loop, control, "listener", "records", &records_events, listener);
	send_configure(listener, directory);
	for (worker = listener->workers; worker != NULL; worker = worker->next)
		listener_record_worker(worker);
	return 0;
}

int
listener_await_records(struct listener *listener, struct error *err)
{
	const struct error *failure = &listener->records_failure;

	if (peer_wait(listener->records, STATE_WAIT, err) != 0)
		return error_wrap(err, "the records process");
	if (failure->code == ERROR_UNAVAILABLE) {
		log_warning("the database of the records does not answer: until it does, who needs "
			    "a sandbox that is not in use here is refused");
		return 0;
	}
	if (failure->code == ERROR_NONE)
		return 0;
	*err = *failure;
	return error_wrap(err, "the records cannot be used");
}

bool
listener_is_place(const struct listener *listener, const char *place)
{
	return listener->place != NULL && strcmp(listener->place, place) == 0;
}

static void
send_attach(struct worker_entry *worker, const struct settings *settings, int fd)
{
	struct records_attach attach = { 0 };
	const struct driver_kind *const *kind;
	struct message message;
	const char *driver, *rest;

	driver = settings_text(settings, "driver");
	rest = worker->workspace + strlen(worker->login);
	attach.login = memory_text(worker->login);
	attach.instance = memory_text(*rest == '+' ? rest + 1 : rest);
	attach.driver = memory_text(driver);
	for (kind = driver_kinds; *kind != NULL; kind++)
		if (strcmp((*kind)->name, driver) == 0)
			attach.here = ((*kind)->supports & DRIVER_HERE) != 0;
	attach.idle = settings_number(settings, "idle_timeout");
	attach.limit = settings_number(settings, "max_instances");
	attach.fd = fd;
	records_attach_encode(&message, &attach);
	peer_send(worker->listener->records, &message);
	records_attach_free(&attach);
}

void
listener_record_worker(struct worker_entry *worker)
{
	struct listener *listener = worker->listener;
	struct message message;
	struct error err;
	int index, pair[2];

	index = conf_login_find(listener->conf, worker->login);
	/* Without records it says that they cannot be reached, and gets them when they are there. */
	if (listener->records == NULL || worker->peer == NULL || index < 0)
		return;
	if (descriptor_pair(pair, &err) != 0) {
		log_error("records for %s: %s", worker->workspace, err.message);
		return;
	}
	send_attach(worker, conf_login(listener->conf, (size_t)index), pair[0]);
	worker_records_encode(&message, pair[1]);
	peer_send(worker->peer, &message);
}

static void
start_again(void *argument)
{
	struct listener *listener = argument;
	struct error err;

	if (listener->draining || listener_start_records(listener, &err) == 0)
		return;
	log_error("start the records process: %s", err.message);
	loop_timer_start(listener->records_again, RECORDS_LIFE_MIN);
}

bool
listener_records_exited(struct listener *listener, pid_t pid)
{
	if (pid != listener->records_pid)
		return false;
	listener->records_pid = -1;
	lose_records(listener);
	if (listener->draining)
		return true;
	listener->crashes++;
	log_error("the records process ended unexpectedly and is started again");
	if (listener->records_again == NULL)
		listener->records_again = loop_timer_new(listener->loop, start_again, listener);
	loop_timer_start(
	    listener->records_again, listener->records_started + RECORDS_LIFE_MIN - loop_now());
	return true;
}
