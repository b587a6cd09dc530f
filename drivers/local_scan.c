/* SPDX-License-Identifier: ISC */
/* Reading /proc, and signalling what was found there without hitting a stranger. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/log.h"
#include "drivers/local_scan.h"

/* Reads /proc/PID/stat; the name in it may hold anything, so the fields count from its last ')'. */
static int
read_process(int proc, const char *name, struct local_process *process)
{
	char path[64], text[1024];
	const char *fields;
	ssize_t length;
	char state;
	int fd, group;

	if (snprintf(path, sizeof(path), "%s/stat", name) >= (int)sizeof(path))
		return -1;
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	length = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (length <= 0)
		return -1;
	text[length] = '\0';
	fields = strrchr(text, ')');
	if (fields == NULL || sscanf(fields + 1, " %c %d %d %d", &state, &process->parent, &group,
				  &process->session) != 4)
		return -1;
	process->pid = (pid_t)strtol(text, NULL, 10);
	process->zombie = state == 'Z' || state == 'X';
	return 0;
}

void
local_scan(void (*visit)(void *argument, const struct local_process *process), void *argument)
{
	struct local_process process;
	struct dirent *entry;
	DIR *proc;

	proc = opendir("/proc");
	if (proc == NULL) {
		log_error("/proc: %s", strerror(errno));
		return;
	}
	while ((entry = readdir(proc)) != NULL)
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    read_process(dirfd(proc), entry->d_name, &process) == 0)
			visit(argument, &process);
	(void)closedir(proc);
}

struct session_signal {
	pid_t session;
	int number;
};

/*
 * The process is held by a descriptor first and looked at again:
 * its number may be another's by now.
 */
static void
signal_member(void *argument, const struct local_process *process)
{
	const struct session_signal *signal = argument;
	int fd;

	if (process->session != signal->session || process->pid == signal->session ||
	    process->zombie)
		return;
	fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
	if (fd < 0)
		return;
	if (getsid(process->pid) == signal->session)
		(void)syscall(SYS_pidfd_send_signal, fd, signal->number, NULL, 0);
	(void)close(fd);
}

void
local_scan_signal(pid_t session, int number)
{
	struct session_signal signal = { .session = session, .number = number };

	local_scan(signal_member, &signal);
}
