/* SPDX-License-Identifier: ISC */
/*
 * What rwsd -t looks at beyond the configuration: the database of the records. Only the records' program
 * can, so it is started for it, with the rights that it always has, and told to look and nothing else.
 */
#include <fcntl.h>
#include <sys/wait.h>
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
#include "core/base/process.h"
#include "core/record_list.h"
#include "core/record_protocol.h"
#include "gateway/listener.h"
#include "gateway/listener_state.h"

/* ms; longer than the records give the database to answer. */
#define STATE_WAIT 30000

/*
 * Where the records work: their own directory, or any while that has yet to be made. -1 when there are
 * none to look at, or we may not.
 */
static int
open_directory(const struct conf *conf)
{
	const struct settings *settings = conf_global(conf);
	char *path;
	int fd;

	path = memory_text_format("%s/records", settings_text(settings, "state"));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	memory_free(path);
	if (fd < 0 && settings_text(settings, "state_database") != NULL)
		fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd;
}

static int
take_state(void *argument, struct message *message, struct error *err)
{
	return records_state_decode(message, argument, err);
}

static void
closed(void *argument, const struct error *err)
{
	(void)argument;
	(void)err;
}

static const struct peer_rule rules[] = {
	{ MESSAGE_RECORDS_STATE, "RECORDS_STATE", 1, take_state },
	{ 0, NULL, 0, NULL },
};

static const struct peer_events events = { rules, closed, NULL };

/* One question and one answer. */
static int
ask(struct peer *peer, const char *database, int directory, struct error *err)
{
	struct records_configure configure = { .check = true, .directory = directory };
	struct message message;

	configure.database = database == NULL ? NULL : memory_text(database);
	configure.run = memory_text("check");
	records_configure_encode(&message, &configure);
	records_configure_free(&configure);
	peer_send(peer, &message);
	return peer_wait(peer, STATE_WAIT, err);
}

/* With a records process of our own, which ends when we have its answer. Takes over directory. */
static int
look(const char *database, const struct process_user *user, int directory,
    struct records_state *state, struct error *err)
{
	struct loop *loop;
	struct peer *peer;
	int program, control, result;
	pid_t pid;

	program = process_open_program("rwsd-records", err);
	loop = program < 0 ? NULL : loop_new(err);
	result = loop == NULL ? -1
			      : process_start(
				    program, "records", "rwsd: records", user, &pid, &control, err);
	descriptor_close(&program);
	if (result != 0) {
		loop_free(loop);
		descriptor_close(&directory);
		return -1;
	}
	peer = peer_new(loop, control, "rwsd", "records", &events, state);
	result = ask(peer, database, directory, err);
	peer_free(peer);
	loop_free(loop);
	(void)waitpid(pid, NULL, 0);
	return result;
}

int
listener_check_records(const struct conf *conf, struct error *err)
{
	const char *database = settings_text(conf_global(conf), "state_database");
	struct process_user user = { 0, 0 };
	struct records_state state = { 0 };
	int directory, result;

	directory = open_directory(conf);
	if (directory < 0)
		return 0;
	result = -1;
	if (listener_find_user(conf, &user, err) != 0) {
		descriptor_close(&directory);
	} else if (look(database, &user, directory, &state, err) == 0) {
		*err = state.failure;
		result = err->code == ERROR_NONE ? 0 : -1;
	}
	if (result != 0) {
		error_wrap(err, database == NULL ? "the records in state" : "state_database");
		result = err->code == ERROR_UNAVAILABLE ? 1 : -1;
	}
	records_state_free(&state);
	return result;
}
