/* SPDX-License-Identifier: ISC */
/*
 * The records process: knows which login has which sandbox, and owns the database that says so. A
 * program of its own (rwsd-records), so that no session and no worker carries a database's library.
 * It is one process because the database's password must not be where a provider's answers are
 * parsed, and because calls that wait for a database would hold up a worker's channels; here they hold
 * up nothing but other questions about records.
 *
 * Started by: the listener, before the first worker, and again when it ended; and by rwsd -t, for a look at
 *	the database that changes nothing.
 * User and rights: the configured user; with SQLite it may open files of the records' own directory and
 *	nothing else, with PostgreSQL it may connect.
 * Descriptors: 0 and 1 /dev/null, 2 the log, 3 the listener; the records' directory; a socket to each worker.
 * Secrets: the password in state_database.
 * Reaches: STATE/records; the database's host.
 * Messages: core/record_protocol.h and core/record_list.h. A worker's socket is bound to one workspace by
 *	the listener.
 * Ends: when the listener and all workers are gone, after their leases are given back.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/base/confine.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "core/base/process.h"
#include "core/record_list.h"
#include "core/record_protocol.h"
#include "gateway/records_client.h"
#include "gateway/records_database.h"
#include "gateway/records_store.h"

/* ms between attempts to write what could not be written. */
#define FLUSH_PERIOD 1000
/* ms for the reason of our end to reach the listener. */
#define LAST_WAIT 2000
#define PLACE_BYTES 8
#define PLACE_LENGTH (2 * PLACE_BYTES)

enum records_stage {
	RECORDS_EMPTY = 1,
	RECORDS_SERVING = 2,
};

static struct {
	struct loop *loop;
	struct process_user user;
	struct peer *listener;
	struct database *database;
	struct store *store;
	struct clients clients;
	struct loop_timer *renewal, *flush;
	char place[PLACE_LENGTH + 1]; /* names this gateway for ever */
	int lock;                     /* held as long as we live */
} state;

static void
end_if_done(void)
{
	if (state.listener != NULL || clients_alive(&state.clients))
		return;
	loop_stop(state.loop);
}

static void
flush_expired(void *argument)
{
	(void)argument;
	clients_flush(&state.clients);
	loop_timer_start(state.flush, FLUSH_PERIOD);
}

static void
tell_orphan(void *argument, const char *login, const char *instance)
{
	struct records_orphan orphan = { 0 };
	struct message message;

	(void)argument;
	orphan.login = memory_text(login);
	orphan.instance = memory_text(instance);
	records_orphan_encode(&message, &orphan);
	peer_send(state.listener, &message);
	records_orphan_free(&orphan);
}

static void
renewal_expired(void *argument)
{
	struct error err;

	(void)argument;
	loop_timer_start(state.renewal, STORE_RENEWAL);
	clients_renew(&state.clients);
	if (state.listener != NULL &&
	    store_each_orphan(state.store, state.place, tell_orphan, NULL, &err) != 0)
		log_debug("orphans: %s", err.message);
}

/* The name of this gateway's place, made on the first start with this state directory. */
static int
read_place(struct error *err)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[PLACE_BYTES];
	size_t i;
	int fd;

	fd = open("place", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return error_system(err, errno, "open records/place");
	if (read(fd, state.place, PLACE_LENGTH) == PLACE_LENGTH &&
	    strspn(state.place, digits) == PLACE_LENGTH) {
		(void)close(fd);
		return 0;
	}
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
		(void)close(fd);
		return error_system(err, errno, "getrandom");
	}
	for (i = 0; i < PLACE_BYTES; i++) {
		state.place[2 * i] = digits[bytes[i] >> 4];
		state.place[2 * i + 1] = digits[bytes[i] & 15];
	}
	state.place[PLACE_LENGTH] = '\0';
	if (pwrite(fd, state.place, PLACE_LENGTH, 0) != PLACE_LENGTH || fsync(fd) != 0) {
		error_system(err, errno, "write records/place");
		(void)close(fd);
		return -1;
	}
	(void)close(fd);
	return 0;
}

/*
 * Every records process of this gateway holds the lock in common. Who gets it alone knows that those of
 * earlier runs are gone, and gives back what they left.
 */
static int
take_lock(struct error *err)
{
	bool alone;

	state.lock = open("lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (state.lock < 0)
		return error_system(err, errno, "open records/lock");
	alone = flock(state.lock, LOCK_EX | LOCK_NB) == 0;
	if (alone && store_forget_runs(state.store, state.place, err) != 0)
		log_debug("earlier runs: %s", err->message);
	if (flock(state.lock, LOCK_SH | LOCK_NB) != 0)
		return error_system(err, errno, "lock records/lock");
	return 0;
}

static int
confine(bool network, struct error *err)
{
	static const char *const here[] = { ".", NULL };
	struct confine rights = { .user = &state.user, .writable = here };

	rights.calls = network ? CONFINE_CALLS_NETWORK : CONFINE_CALLS_FILES;
	/* Certificates, passwords and sockets of PostgreSQL lie where its URL says. */
	rights.files = network;
	return confine_enter(&rights, err);
}

/* May be called when nothing works: then it is the reason that is told. */
static void
tell_state(const struct error *failure)
{
	struct records_state told = { 0 };
	struct message message;

	if (failure != NULL)
		told.failure = *failure;
	told.place = state.place[0] == '\0' ? NULL : memory_text(state.place);
	records_state_encode(&message, &told);
	records_state_free(&told);
	peer_send(state.listener, &message);
}

static int
enter_directory(const struct records_configure *configure, struct error *err)
{
	if (fchdir(configure->directory) != 0)
		return error_system(err, errno, "enter the directory of the records");
	return confine(configure->database != NULL, err);
}

/* Says whether the database can be used, makes none, and ends with the listener. */
static void
check(const struct records_configure *configure)
{
	struct error err;
	int result;

	result = enter_directory(configure, &err);
	/* One that has yet to be made is not made now. */
	if (result == 0 && configure->database == NULL && access(DATABASE_FILE, F_OK) != 0 &&
	    errno == ENOENT) {
		tell_state(NULL);
		return;
	}
	if (result == 0) {
		state.database = database_open(configure->database, 0);
		result = database_check(state.database, &err);
	}
	tell_state(result == 0 ? NULL : &err);
}

static int
configure(const struct records_configure *configure, struct error *err)
{
	char *holder;

	if (enter_directory(configure, err) != 0 || read_place(err) != 0)
		return -1;
	state.database = database_open(configure->database, 0);
	holder = memory_text_format("%s/%s", state.place, configure->run);
	state.store = store_new(state.database, holder);
	memory_free(holder);
	state.clients.store = state.store;
	if (take_lock(err) != 0)
		return -1;
	loop_timer_start(state.renewal, STORE_RENEWAL);
	loop_timer_start(state.flush, FLUSH_PERIOD);
	if (database_reach(state.database, err) != 0)
		tell_state(err);
	else
		tell_state(NULL);
	return 0;
}

static int
take_configure(void *argument, struct message *message, struct error *err)
{
	struct records_configure received;
	int result;

	(void)argument;
	if (records_configure_decode(message, &received, err) != 0)
		return -1;
	result = 0;
	if (received.check)
		check(&received);
	else
		result = configure(&received, err);
	descriptor_close(&received.directory);
	if (result != 0) {
		tell_state(err);
		(void)peer_flush(state.listener, LAST_WAIT, NULL);
	} else if (!received.check) {
		peer_set_state(state.listener, RECORDS_SERVING);
	}
	records_configure_free(&received);
	return result;
}

static int
take_attach(void *argument, struct message *message, struct error *err)
{
	struct records_attach attach;

	(void)argument;
	if (records_attach_decode(message, &attach, err) != 0)
		return -1;
	client_open(&state.clients, &attach);
	return 0;
}

static int
take_list(void *argument, struct message *message, struct error *err)
{
	struct records_page page = { 0 };
	struct records_list list;
	struct store_key after;
	struct message answer;

	(void)argument;
	if (records_list_decode(message, &list, err) != 0)
		return -1;
	after.login = list.login;
	after.instance = list.instance;
	after.place = list.place;
	page.id = list.id;
	if (store_list(state.store, &after, &page, &page.failure) == 0)
		error_clear(&page.failure);
	records_page_encode(&answer, &page);
	peer_send(state.listener, &answer);
	records_page_free(&page);
	records_list_free(&list);
	return 0;
}

static int
take_forget(void *argument, struct message *message, struct error *err)
{
	struct records_forgotten forgotten = { 0 };
	struct records_forget forget;
	struct store_key key;
	struct message answer;

	(void)argument;
	if (records_forget_decode(message, &forget, err) != 0)
		return -1;
	key.login = forget.login;
	key.instance = forget.instance;
	key.place = state.place;
	forgotten.id = forget.id;
	if (store_forget(state.store, &key, &forgotten.sandbox, &forgotten.failure) == 0)
		error_clear(&forgotten.failure);
	records_forgotten_encode(&answer, &forgotten);
	peer_send(state.listener, &answer);
	records_forgotten_free(&forgotten);
	records_forget_free(&forget);
	return 0;
}

static const struct peer_rule rules[] = {
	{ MESSAGE_RECORDS_CONFIGURE, "RECORDS_CONFIGURE", RECORDS_EMPTY, take_configure },
	{ MESSAGE_RECORDS_ATTACH, "RECORDS_ATTACH", RECORDS_SERVING, take_attach },
	{ MESSAGE_RECORDS_LIST, "RECORDS_LIST", RECORDS_SERVING, take_list },
	{ MESSAGE_RECORDS_FORGET, "RECORDS_FORGET", RECORDS_SERVING, take_forget },
	{ MESSAGE_RECORDS_ORPHAN, "RECORDS_ORPHAN", 0, NULL },
	{ MESSAGE_RECORDS_STATE, "RECORDS_STATE", 0, NULL },
	{ MESSAGE_RECORDS_PAGE, "RECORDS_PAGE", 0, NULL },
	{ MESSAGE_RECORDS_FORGOTTEN, "RECORDS_FORGOTTEN", 0, NULL },
	{ 0, NULL, 0, NULL },
};

static void
listener_closed(void *argument, const struct error *err)
{
	(void)argument;
	if (err->code != ERROR_UNAVAILABLE)
		log_error("%s", err->message);
	peer_free(state.listener);
	state.listener = NULL;
	end_if_done();
}

static const struct peer_events events = { rules, listener_closed, NULL };

static int
run(struct error *err)
{
	(void)signal(SIGPIPE, SIG_IGN);
	state.loop = loop_new(err);
	if (state.loop == NULL)
		return -1;
	state.lock = -1;
	state.clients.loop = state.loop;
	state.clients.place = state.place;
	state.clients.gone = end_if_done;
	state.renewal = loop_timer_new(state.loop, renewal_expired, NULL);
	state.flush = loop_timer_new(state.loop, flush_expired, NULL);
	state.listener = peer_new(
	    state.loop, PROCESS_CONTROL_FD, "records", "listener", &events, NULL);
	peer_set_state(state.listener, RECORDS_EMPTY);
	return loop_run(state.loop, err);
}

int
main(int argc, char **argv)
{
	struct error err;
	const char *role;
	int result;

	role = process_enter(argc, argv, &state.user);
	if (role == NULL || strcmp(role, "records") != 0) {
		(void)fputs("rwsd-records is started by rwsd, not by hand\n", stderr);
		return 64;
	}
	process_set_title("rwsd: records");
	result = run(&err);
	if (result != 0)
		log_error("%s", err.message);
	clients_free(&state.clients);
	store_free(state.store);
	database_close(state.database);
	peer_free(state.listener);
	loop_timer_free(state.renewal);
	loop_timer_free(state.flush);
	loop_free(state.loop);
	descriptor_close(&state.lock);
	return result == 0 ? 0 : 1;
}
