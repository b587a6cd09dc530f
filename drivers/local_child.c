/* SPDX-License-Identifier: ISC */
/*
 * Child processes with chosen descriptors, watched by a pidfd so that no signal handler is needed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "drivers/local_child.h"

#define COMPLAINT_MAX 300U
#define FIRST_FD 3
#define EXIT_NOT_FOUND 127

struct local_child {
	pid_t pid;
	int pidfd;
	int errors; /* its stderr */
	struct loop_watch *end, *speech;
	struct buffer complaint;
	local_child_fn *ended;
	void *argument;
};

static void
reset_signals(void)
{
	sigset_t none;
	int number;

	for (number = 1; number < NSIG; number++)
		(void)signal(number, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Puts the descriptors at 3 and up, by way of numbers that none of them is moved onto. */
static int
place_fds(const struct local_child_spec *spec, int errors)
{
	int fds[LOCAL_CHILD_FDS], null;
	size_t i;

	null = open("/dev/null", O_RDWR);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(errors, STDERR_FILENO) < 0)
		return -1;
	for (i = 0; i < spec->count; i++) {
		fds[i] = fcntl(spec->fds[i], F_DUPFD_CLOEXEC, FIRST_FD + LOCAL_CHILD_FDS);
		if (fds[i] < 0)
			return -1;
	}
	for (i = 0; i < spec->count; i++)
		if (dup2(fds[i], FIRST_FD + (int)i) < 0)
			return -1;
	return close_range((unsigned)(FIRST_FD + spec->count), ~0U, 0);
}

static _Noreturn void
run_child(const struct local_child_spec *spec, int errors, pid_t parent)
{
	reset_signals();
	if (place_fds(spec, errors) != 0)
		_exit(EXIT_NOT_FOUND);
	if (spec->tied) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_NOT_FOUND);
	}
	(void)execve(spec->argv[0], spec->argv, spec->environment);
	(void)dprintf(STDERR_FILENO, "%s: %s\n", spec->argv[0], strerror(errno));
	_exit(EXIT_NOT_FOUND);
}

/* Keeps the start, where the cause stands, with lines joined; logs the rest as it comes. */
static void
hear_child(void *argument, unsigned events)
{
	struct local_child *child = argument;
	char text[512];
	ssize_t got;
	size_t i, room;

	(void)events;
	while ((got = read(child->errors, text, sizeof(text) - 1)) > 0) {
		text[got] = '\0';
		for (i = 0; i < (size_t)got; i++)
			if (text[i] == '\n')
				text[i] = ' ';
		log_info("sandbox process %d: %s", (int)child->pid, text);
		room = buffer_room(&child->complaint);
		(void)buffer_append(
		    &child->complaint, text, (size_t)got < room ? (size_t)got : room);
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	loop_unwatch(child->speech);
	child->speech = NULL;
}

static char *
complaint_text(const struct local_child *child)
{
	char *text;
	size_t length;

	length = child->complaint.length;
	text = memory_text_bounded(buffer_data(&child->complaint), length);
	while (length > 0 && text[length - 1] == ' ')
		text[--length] = '\0';
	return text;
}

static void
release_child(struct local_child *child)
{
	loop_unwatch(child->end);
	loop_unwatch(child->speech);
	descriptor_close(&child->pidfd);
	descriptor_close(&child->errors);
	buffer_free(&child->complaint);
	memory_free(child);
}

static void
child_ended(void *argument, unsigned events)
{
	struct local_child *child = argument;
	local_child_fn *ended = child->ended;
	void *ended_argument = child->argument;
	char *complaint;
	int status = 0;

	(void)events;
	if (child->speech != NULL)
		hear_child(child, LOOP_READ);
	(void)waitpid(child->pid, &status, 0);
	complaint = complaint_text(child);
	release_child(child);
	ended(ended_argument, status, complaint);
	memory_free(complaint);
}

static struct local_child *
watch_child(struct loop *loop, pid_t pid, int pidfd, int errors)
{
	struct local_child *child;

	child = memory_zeroed(1, sizeof(*child));
	child->pid = pid;
	child->pidfd = pidfd;
	child->errors = errors;
	buffer_init(&child->complaint, COMPLAINT_MAX);
	child->end = loop_watch(loop, pidfd, LOOP_READ, child_ended, child);
	child->speech = loop_watch(loop, errors, LOOP_READ, hear_child, child);
	return child;
}

struct local_child *
local_child_start(struct loop *loop, const struct local_child_spec *spec, local_child_fn *ended,
    void *argument, struct error *err)
{
	struct local_child *child;
	int speech[2], pidfd;
	pid_t pid, parent = getpid();

	if (descriptor_pipe(speech, err) != 0)
		return NULL;
	pid = descriptor_nonblock(speech[0], err) == 0 ? fork() : -1;
	if (pid == 0)
		run_child(spec, speech[1], parent);
	(void)close(speech[1]);
	pidfd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		error_system(err, errno, "start %s", spec->argv[0]);
		if (pid > 0) {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
		}
		(void)close(speech[0]);
		return NULL;
	}
	(void)fcntl(pidfd, F_SETFD, FD_CLOEXEC);
	child = watch_child(loop, pid, pidfd, speech[0]);
	child->ended = ended;
	child->argument = argument;
	return child;
}

void
local_child_kill(struct local_child *child)
{
	(void)syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL, NULL, 0);
}

void
local_child_free(struct local_child *child, int wait)
{
	struct pollfd entry;

	if (child == NULL)
		return;
	entry.fd = child->pidfd;
	entry.events = POLLIN;
	if (poll(&entry, 1, wait) != 1)
		local_child_kill(child);
	(void)waitpid(child->pid, NULL, 0);
	release_child(child);
}
