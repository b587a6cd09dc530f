/* SPDX-License-Identifier: ISC */
/* ssh-config, and doctor, which looks at the installation on this machine. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "gateway/cli.h"
#include "gateway/version.h"

#define CONFIGURATION "/etc/rwsd/rwsd.conf"
#define OUTPUT_MAX 512

/* The name of the block is LOGIN.HOST, which is no name of a machine. */
int
cli_ssh_config(const char *text)
{
	struct cli_destination destination;

	cli_destination_parse(&destination, text);
	if (destination.login == 0 || *destination.host == '\0') {
		(void)fputs(
		    "rws: INVALID: ssh-config takes LOGIN@GATEWAY or LOGIN@GATEWAY:PORT\n", stderr);
		cli_destination_free(&destination);
		return error_kind(ERROR_INVALID)->exit_status;
	}
	(void)printf("Host %.*s.%s\n", destination.login, text, destination.host);
	(void)printf("\tHostName %s\n", destination.host);
	if (destination.port != NULL)
		(void)printf("\tPort %s\n", destination.port);
	(void)printf("\tUser %.*s\n", destination.login, text);
	(void)fputs("\tServerAliveInterval 15\n"
		    "\tServerAliveCountMax 4\n"
		    "\tControlMaster auto\n"
		    "\tControlPath ~/.ssh/rws-%C\n"
		    "\tControlPersist 10m\n",
	    stdout);
	cli_destination_free(&destination);
	return 0;
}

/* What doctor found out. */
static int problems;

static void
report(bool good, const char *what, const char *text)
{
	(void)printf("%-8s %-22s %s\n", good ? "ok" : "missing", what, text);
	if (!good)
		problems++;
}

/*
 * Runs a program without a shell and takes the first line of what it says on either stream; its
 * exit status, or -1 when it cannot be started.
 */
static int
run_program(char *const *argv, char line[OUTPUT_MAX])
{
	posix_spawn_file_actions_t actions;
	int ends[2], status, result;
	size_t length;
	ssize_t got;
	pid_t pid;

	line[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	(void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
	result = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(ends[1]);
	for (length = 0; result == 0 && length < OUTPUT_MAX - 1; length += (size_t)got) {
		got = read(ends[0], line + length, OUTPUT_MAX - 1 - length);
		if (got <= 0)
			break;
	}
	(void)close(ends[0]);
	if (result != 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
check_ssh(void)
{
	char name[] = "ssh", flag[] = "-V", *argv[] = { name, flag, NULL }, line[OUTPUT_MAX];
	bool found;

	found = run_program(argv, line) == 0;
	report(found, "ssh client", found ? line : "install openssh-client");
}

/* A directory that the daemons are installed in, or NULL; new. */
static char *
find_daemon(const char *name)
{
	static const char *const directories[] = { "/usr/local/sbin", "/usr/sbin" };
	char self[4096], *path, *slash;
	ssize_t length;
	size_t i;

	length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length > 0) {
		self[length] = '\0';
		slash = strrchr(self, '/');
		path = memory_text_format("%.*s/%s", (int)(slash - self), self, name);
		if (access(path, X_OK) == 0)
			return path;
		memory_free(path);
	}
	for (i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		path = memory_text_format("%s/%s", directories[i], name);
		if (access(path, X_OK) == 0)
			return path;
		memory_free(path);
	}
	return NULL;
}

static void
check_daemons(void)
{
	static const char *const names[] = { "rwsd", "rwsd-worker", "rwsd-records" };
	char *path;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		path = find_daemon(names[i]);
		if (path != NULL)
			report(true, names[i], path);
		else
			(void)printf("%-8s %-22s %s\n", "none", names[i],
			    "only needed where the gateway runs");
		memory_free(path);
	}
}

/* rwsd -t says what is wrong with the configuration, if there is one. */
static void
check_configuration(void)
{
	char flag[] = "-t", file[] = "-f", name[] = CONFIGURATION, *argv[5], line[OUTPUT_MAX],
	     *path;
	bool good;

	path = find_daemon("rwsd");
	if (path == NULL || access(CONFIGURATION, F_OK) != 0) {
		memory_free(path);
		(void)printf("%-8s %-22s %s\n", "none", "configuration", CONFIGURATION);
		return;
	}
	argv[0] = path;
	argv[1] = flag;
	argv[2] = file;
	argv[3] = name;
	argv[4] = NULL;
	good = run_program(argv, line) == 0;
	report(good, "configuration", good ? CONFIGURATION : line);
	memory_free(path);
}

/* The local driver's sandboxes need bubblewrap, and a kernel that lets it make user namespaces. */
static void
check_bubblewrap(void)
{
	char bwrap[] = "bwrap", version[] = "--version", user[] = "--unshare-user",
	     bind[] = "--ro-bind";
	char top[] = "/", truth[] = "true", line[OUTPUT_MAX];
	char *ask[] = { bwrap, version, NULL };
	char *try[] = { bwrap, user, bind, top, top, truth, NULL };
	bool found;

	found = run_program(ask, line) == 0;
	report(found, "bubblewrap", found ? line : "install bubblewrap (for the local driver)");
	if (!found)
		return;
	found = run_program(try, line) == 0;
	report(found, "user namespaces",
	    found           ? "may be made"
	    : *line != '\0' ? line
			    : "not allowed: see sysctl kernel.unprivileged_userns_clone");
}

int
cli_doctor(void)
{
	problems = 0;
	(void)printf("%-8s %-22s %s\n", "ok", "rws", RWSD_VERSION);
	check_ssh();
	check_daemons();
	check_configuration();
	check_bubblewrap();
	return problems == 0 ? 0 : 1;
}
