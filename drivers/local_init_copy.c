/* SPDX-License-Identifier: ISC */
/*
 * Files in and out of the sandbox. Each copy is a process of its own, inside, so that names and
 * links mean what they mean there, and a slow disk or a full pipe holds up nobody else. It says
 * how it ended by an errno as its exit status.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "drivers/local_init.h"
#include "drivers/local_protocol.h"

#define CHUNK_SIZE (256U * 1024U)

/* Beside errno values, which end well below. */
enum {
	FAILURE_SHORT = 200, /* the source ended early */
	FAILURE_KIND,        /* not a regular file */
};

struct init_copy {
	struct init_copy *next;
	uint32_t id;
	pid_t process;
	bool write;
	char *path;
};

/* The unfinished file of this process, which only ever runs one copy. */
static char unfinished[PATH_MAX];

static void
stop_copy(int number)
{
	(void)number;
	if (unfinished[0] != '\0')
		(void)unlink(unfinished);
	_exit(ECANCELED);
}

static void
wait_for(int fd, short events)
{
	struct pollfd entry = { .fd = fd, .events = events };

	(void)poll(&entry, 1, -1);
}

/* The descriptor may be shared with somebody who made it non-blocking. */
static int
write_all(int fd, const char *data, size_t size)
{
	ssize_t written;

	while (size > 0) {
		written = write(fd, data, size);
		if (written < 0 && errno == EAGAIN)
			wait_for(fd, POLLOUT);
		else if (written < 0 && errno != EINTR)
			return errno;
		else if (written > 0) {
			data += written;
			size -= (size_t)written;
		}
	}
	return 0;
}

/* Copies until the source ends or size bytes are over; *copied says how many there were. */
static int
copy_bytes(int source, int sink, uint64_t size, uint64_t *copied)
{
	static char chunk[CHUNK_SIZE];
	ssize_t got;
	size_t want;
	int failure;

	for (*copied = 0; *copied < size; *copied += (uint64_t)got) {
		want = size - *copied < sizeof(chunk) ? (size_t)(size - *copied) : sizeof(chunk);
		got = read(source, chunk, want);
		if (got < 0 && errno == EAGAIN)
			wait_for(source, POLLIN);
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			return errno;
		if (got == 0)
			break;
		if (got < 0)
			got = 0;
		else if ((failure = write_all(sink, chunk, (size_t)got)) != 0)
			return failure;
	}
	return 0;
}

/* O_NONBLOCK: opening a named pipe must not wait for its other end. */
static int
read_file(const struct local_copy *copy, int sink)
{
	struct stat status;
	uint64_t copied;
	int fd;

	fd = open(copy->path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (fstat(fd, &status) != 0)
		return errno;
	if (S_ISDIR(status.st_mode))
		return EISDIR;
	if (!S_ISREG(status.st_mode))
		return FAILURE_KIND;
	return copy_bytes(fd, sink, copy->size, &copied);
}

/*
 * Follows links as far as they lead to something,
 * so that a link stays one and its target is replaced.
 */
static int
write_file(const struct local_copy *copy, int source)
{
	char target[PATH_MAX];
	struct stat status;
	uint64_t copied;
	int fd, failure;

	if (realpath(copy->path, target) == NULL &&
	    snprintf(target, sizeof(target), "%s", copy->path) >= (int)sizeof(target))
		return ENAMETOOLONG;
	if (stat(target, &status) == 0 && !S_ISREG(status.st_mode))
		return S_ISDIR(status.st_mode) ? EISDIR : FAILURE_KIND;
	if (snprintf(unfinished, sizeof(unfinished), "%.*s.rws-XXXXXX",
		(int)(strrchr(target, '/') + 1 - target), target) >= (int)sizeof(unfinished))
		return ENAMETOOLONG;
	fd = mkostemp(unfinished, O_CLOEXEC);
	if (fd < 0) {
		unfinished[0] = '\0';
		return errno;
	}
	failure = copy_bytes(source, fd, copy->size, &copied);
	if (failure == 0 && copied < copy->size)
		failure = FAILURE_SHORT;
	if (failure == 0 && (close(fd) != 0 || rename(unfinished, target) != 0))
		failure = errno;
	if (failure != 0)
		(void)unlink(unfinished);
	return failure;
}

static _Noreturn void
run_copy(const struct init *init, const struct local_copy *copy, int fd)
{
	init_child_begin(init);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGTERM, stop_copy);
	(void)dup2(fd, 3);
	(void)close_range(4, ~0U, 0);
	_exit(copy->write ? write_file(copy, 3) : read_file(copy, 3));
}

static void
send_done(const struct init *init, uint32_t id, const struct error *err)
{
	struct local_done done = { .id = id, .failure = *err };
	struct message message;

	local_done_encode(&message, &done);
	peer_send(init->driver, &message);
}

void
init_copy_start(struct init *init, const struct local_copy *request, int fd)
{
	struct init_copy *copy;
	struct error err;
	pid_t pid;

	pid = fork();
	if (pid == 0)
		run_copy(init, request, fd);
	(void)close(fd);
	if (pid < 0) {
		error_system(&err, errno, "fork");
		send_done(init, request->id, &err);
		return;
	}
	copy = memory_zeroed(1, sizeof(*copy));
	copy->id = request->id;
	copy->process = pid;
	copy->write = request->write;
	copy->path = memory_text(request->path);
	copy->next = init->copies;
	init->copies = copy;
}

static void
forget_copy(struct init_copy **place)
{
	struct init_copy *copy;

	copy = *place;
	*place = copy->next;
	memory_free(copy->path);
	memory_free(copy);
}

/* The process is reaped like any child that nobody waits for. */
void
init_copy_cancel(struct init *init, uint32_t id)
{
	struct init_copy **place;

	for (place = &init->copies; *place != NULL; place = &(*place)->next) {
		if ((*place)->id != id)
			continue;
		(void)kill((*place)->process, SIGTERM);
		forget_copy(place);
		return;
	}
}

static void
explain(const struct init_copy *copy, int status, struct error *err)
{
	error_clear(err);
	if (!WIFEXITED(status))
		error_set(err, ERROR_UNAVAILABLE, "%s: the copying process was killed", copy->path);
	else if (WEXITSTATUS(status) == FAILURE_SHORT)
		error_set(err, ERROR_INVALID, "%s: fewer bytes came than announced", copy->path);
	else if (WEXITSTATUS(status) == FAILURE_KIND)
		error_set(err, ERROR_INVALID, "%s: not a regular file", copy->path);
	else if (WEXITSTATUS(status) != 0)
		error_system(err, WEXITSTATUS(status), "%s", copy->path);
}

void
init_copy_survey(struct init *init)
{
	struct init_copy **place;
	struct error err;
	int status;

	for (place = &init->copies; *place != NULL;) {
		if (waitpid((*place)->process, &status, WNOHANG) != (*place)->process) {
			place = &(*place)->next;
			continue;
		}
		explain(*place, status, &err);
		send_done(init, (*place)->id, &err);
		forget_copy(place);
	}
}

bool
init_copy_owns(const struct init *init, pid_t pid)
{
	const struct init_copy *copy;

	for (copy = init->copies; copy != NULL; copy = copy->next)
		if (copy->process == pid)
			return true;
	return false;
}
