/* SPDX-License-Identifier: ISC */
/* The process of a command inside the sandbox: its descriptors, its environment, its start. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "drivers/local_init.h"
#include "drivers/local_protocol.h"

/*
 * Asked for each pipe of bulk data. Not more: the kernel lets a user have 64 MiB of pipes in all
 * and makes those beyond tiny, and the sandbox's own pipes count as well.
 */
#define PIPE_SIZE (256 * 1024)

/*
 * What a login gets by default on Linux;
 * the gateway's own limit is far higher, and select(2) breaks above.
 */
#define SOFT_DESCRIPTORS 1024

#define EXIT_NOT_FOUND 127
#define EXIT_CANNOT_RUN 126

#define STANDARD_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* A command's descriptors: ours go to the driver, theirs to the command. */
struct ends {
	int *ours; /* LOCAL_STREAM_KINDS of them */
	int theirs[3];
};

static int
open_pipe(int *reader, int *writer, bool bulk, struct error *err)
{
	int pair[2];

	if (descriptor_pipe(pair, err) != 0)
		return -1;
	if (bulk)
		(void)fcntl(pair[0], F_SETPIPE_SZ, PIPE_SIZE);
	*reader = pair[0];
	*writer = pair[1];
	return 0;
}

static int
open_pipes(const struct local_start *start, struct ends *ends, struct error *err)
{
	if (start->want_stdin) {
		if (open_pipe(&ends->theirs[0], &ends->ours[LOCAL_INPUT], true, err) != 0)
			return -1;
	} else {
		ends->theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (ends->theirs[0] < 0)
			return error_system(err, errno, "/dev/null");
	}
	if (open_pipe(&ends->ours[LOCAL_OUTPUT], &ends->theirs[1], true, err) != 0)
		return -1;
	return open_pipe(&ends->ours[LOCAL_ERRORS], &ends->theirs[2], false, err);
}

/*
 * The kernel's standard modes are a sane terminal's already, except that it takes text for Latin-1.
 */
static int
open_terminal(const struct local_start *start, struct ends *ends, struct error *err)
{
	struct winsize size = { 0 };
	struct termios modes;
	int master, slave;

	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	ends->ours[LOCAL_TERMINAL] = master;
	if (master < 0 || unlockpt(master) != 0)
		return error_system(err, errno, "open a terminal");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	ends->theirs[0] = slave;
	if (slave < 0)
		return error_system(err, errno, "open a terminal");
	if (tcgetattr(slave, &modes) == 0) {
		modes.c_iflag |= IUTF8;
		(void)tcsetattr(slave, TCSANOW, &modes);
	}
	size.ws_col = (unsigned short)start->columns;
	size.ws_row = (unsigned short)start->rows;
	size.ws_xpixel = (unsigned short)start->x_pixels;
	size.ws_ypixel = (unsigned short)start->y_pixels;
	if (ioctl(master, TIOCSWINSZ, &size) != 0)
		return error_system(err, errno, "size the terminal");
	return 0;
}

/* Adds NAME=VALUE to the list, in place of an earlier value of NAME. */
static void
set_variable(char ***list, size_t *count, const char *text)
{
	size_t i, length;

	length = strcspn(text, "=") + 1;
	for (i = 0; i < *count; i++) {
		if (strncmp((*list)[i], text, length) != 0)
			continue;
		memory_free((*list)[i]);
		(*list)[i] = memory_text(text);
		return;
	}
	*list = memory_list_add(*list, (*count)++, text);
}

static void
set_variable_pair(char ***list, size_t *count, const char *name, const char *value)
{
	char *text;

	text = memory_text_format("%s=%s", name, value);
	set_variable(list, count, text);
	memory_free(text);
}

/* A clean environment, what the command was given, and nothing of ours but the language. */
static char **
make_environment(const struct init *init, const struct local_start *start)
{
	const char *language;
	char **list = NULL;
	size_t i, count = 0;

	set_variable(&list, &count, STANDARD_PATH);
	set_variable_pair(&list, &count, "HOME", init->home);
	set_variable_pair(&list, &count, "USER", init->user);
	set_variable_pair(&list, &count, "LOGNAME", init->user);
	set_variable_pair(&list, &count, "SHELL", init->shell);
	language = getenv("LANG");
	if (language != NULL)
		set_variable_pair(&list, &count, "LANG", language);
	if (start->pty && start->term != NULL)
		set_variable_pair(&list, &count, "TERM", start->term);
	for (i = 0; start->environment[i] != NULL; i++)
		set_variable(&list, &count, start->environment[i]);
	return list;
}

/* Stays where it is when nothing else is left: the sandbox may have removed its own home. */
static void
enter_directory(const struct init *init, const char *directory)
{
	const char *instead;

	if (directory == NULL)
		directory = init->home;
	if (chdir(directory) == 0)
		return;
	instead = strerror(errno);
	(void)dprintf(STDERR_FILENO, "rws: cannot enter %s: %s\n", directory, instead);
	if (chdir(init->home) == 0)
		(void)dprintf(STDERR_FILENO, "rws: starting in %s\n", init->home);
	else if (chdir("/") == 0)
		(void)dprintf(STDERR_FILENO, "rws: starting in /\n");
}

static void
install_ends(const struct local_start *start, const struct ends *ends)
{
	int i;

	for (i = 0; i < 3; i++)
		(void)dup2(start->pty ? ends->theirs[0] : ends->theirs[i], i);
	if (start->pty)
		(void)ioctl(STDIN_FILENO, TIOCSCTTY, 0);
}

static void
limit_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= SOFT_DESCRIPTORS)
		return;
	limit.rlim_cur = SOFT_DESCRIPTORS;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* The command's side of the fork. ready tells init that signals to the group work from here on. */
static _Noreturn void
run_command(
    const struct init *init, const struct local_start *start, const struct ends *ends, int ready)
{
	int failure;

	init_child_begin(init);
	(void)setsid();
	(void)umask(022);
	(void)close(ready);
	install_ends(start, ends);
	(void)close_range(3, ~0U, 0);
	limit_descriptors();
	environ = make_environment(init, start);
	enter_directory(init, start->directory);
	(void)execvp(start->argv[0], start->argv);
	failure = errno;
	if (failure == ENOENT)
		(void)dprintf(STDERR_FILENO, "rws: %s: not found\n", start->argv[0]);
	else
		(void)dprintf(STDERR_FILENO, "rws: %s: %s\n", start->argv[0], strerror(failure));
	_exit(failure == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

/* Returns once the child leads its own session; waits for nothing that could take long. */
static pid_t
fork_command(const struct init *init, const struct local_start *start, const struct ends *ends,
    struct error *err)
{
	int ready[2];
	char unused;
	pid_t pid;

	if (descriptor_pipe(ready, err) != 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		(void)close(ready[0]);
		run_command(init, start, ends, ready[1]);
	}
	if (pid < 0)
		error_system(err, errno, "fork");
	(void)close(ready[1]);
	while (pid > 0 && read(ready[0], &unused, 1) < 0 && errno == EINTR)
		continue;
	(void)close(ready[0]);
	return pid;
}

pid_t
init_process_start(const struct init *init, const struct local_start *start,
    int streams[LOCAL_STREAM_KINDS], struct error *err)
{
	struct ends ends = { streams, { -1, -1, -1 } };
	pid_t pid;
	int i, result;

	for (i = 0; i < LOCAL_STREAM_KINDS; i++)
		streams[i] = -1;
	result = start->pty ? open_terminal(start, &ends, err) : open_pipes(start, &ends, err);
	pid = result == 0 ? fork_command(init, start, &ends, err) : -1;
	for (i = 0; i < 3; i++)
		descriptor_close(&ends.theirs[i]);
	for (i = 0; pid < 0 && i < LOCAL_STREAM_KINDS; i++)
		descriptor_close(&streams[i]);
	return pid;
}
