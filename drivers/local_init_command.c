/* SPDX-License-Identifier: ISC */
/*
 * Commands inside the sandbox. Each leads its own session and process group. Its leader stays a
 * zombie until nothing of the session is left: as long as it does, the kernel gives its number to
 * nobody else, so a signal to the group can never reach a stranger.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "drivers/local_init.h"
#include "drivers/local_protocol.h"
#include "drivers/local_scan.h"

/*
 * Asked for each pipe of bulk data. Not more: the kernel lets a user have 64 MiB of pipes in all
 * and makes those beyond tiny, and the sandbox's own pipes count as well.
 */
#define PIPE_SIZE (256 * 1024)

/* How often groups without a leader are looked at; most of their ends show at once as SIGCHLD. */
#define LINGER_INTERVAL 250

/*
 * What a login gets by default on Linux;
 * the gateway's own limit is far higher, and select(2) breaks above.
 */
#define SOFT_DESCRIPTORS 1024

#define EXIT_NOT_FOUND 127
#define EXIT_CANNOT_RUN 126

#define STANDARD_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum ending {
	ENDING_NOT,    /* the leader runs, or what it left may stay */
	ENDING_ASKED,  /* HUP, CONT and TERM were sent */
	ENDING_FORCED, /* KILL is sent until nothing is left */
};

struct init_command {
	struct init_command *next;
	struct init *init;
	uint32_t id;
	pid_t leader; /* also its group's and its session's number */
	bool keep;
	uint32_t grace;
	bool ended;
	bool released;  /* nobody wants to hear of it any more */
	bool populated; /* as of the last scan */
	unsigned empty; /* scans in a row that found nothing left */
	enum ending ending;
	struct loop_timer *force;
};

/* A command's descriptors: ours go to the driver, theirs to the command. */
struct ends {
	int ours[LOCAL_STREAM_KINDS];
	int theirs[3];
};

static struct init_command *
find_command(const struct init *init, uint32_t id)
{
	struct init_command *command;

	for (command = init->commands; command != NULL; command = command->next)
		if (command->id == id && !command->released)
			return command;
	return NULL;
}

static void
close_ends(struct ends *ends)
{
	size_t i;

	for (i = 0; i < LOCAL_STREAM_KINDS; i++)
		descriptor_close(&ends->ours[i]);
	for (i = 0; i < 3; i++)
		descriptor_close(&ends->theirs[i]);
}

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

static void
send_streams(const struct init *init, uint32_t id, struct ends *ends)
{
	struct local_stream stream = { .id = id };
	struct message message;
	unsigned kind;

	for (kind = 0; kind < LOCAL_STREAM_KINDS; kind++) {
		if (ends->ours[kind] < 0)
			continue;
		stream.kind = (enum local_stream_kind)kind;
		local_stream_encode(&message, &stream);
		message.fd = ends->ours[kind];
		ends->ours[kind] = -1;
		peer_send(init->driver, &message);
	}
}

static void
send_failure(const struct init *init, uint32_t id, const struct error *err)
{
	struct local_ended ended = { .id = id, .failed = true, .failure = *err };
	struct message message;

	local_ended_encode(&message, &ended);
	peer_send(init->driver, &message);
}

static void force_end(void *argument);

static void
add_command(struct init *init, const struct local_start *start, pid_t leader)
{
	struct local_started started = { .id = start->id, .pid = (uint32_t)leader };
	struct init_command *command;
	struct message message;

	command = memory_zeroed(1, sizeof(*command));
	command->init = init;
	command->id = start->id;
	command->leader = leader;
	command->keep = start->keep;
	command->grace = start->grace;
	command->force = loop_timer_new(init->loop, force_end, command);
	command->next = init->commands;
	init->commands = command;
	local_started_encode(&message, &started);
	peer_send(init->driver, &message);
}

void
init_command_start(struct init *init, const struct local_start *start)
{
	struct ends ends = { { -1, -1, -1, -1 }, { -1, -1, -1 } };
	struct error err;
	pid_t leader;
	int result;

	result = start->pty ? open_terminal(start, &ends, &err) : open_pipes(start, &ends, &err);
	leader = result == 0 ? fork_command(init, start, &ends, &err) : -1;
	if (leader < 0) {
		error_wrap(&err, "start %s", start->argv[0]);
		send_failure(init, start->id, &err);
	} else {
		send_streams(init, start->id, &ends);
		add_command(init, start, leader);
	}
	close_ends(&ends);
}

/* To the whole session: the jobs of a shell with a terminal have groups of their own. */
static void
signal_session(const struct init_command *command, int number)
{
	(void)kill(-command->leader, number);
	local_scan_signal(command->leader, number);
}

/* Also the timer of the grace. */
static void
force_end(void *argument)
{
	struct init_command *command = argument;

	command->ending = ENDING_FORCED;
	signal_session(command, SIGKILL);
	init_command_survey(command->init);
}

static void
ask_to_end(struct init_command *command)
{
	command->ending = ENDING_ASKED;
	signal_session(command, SIGHUP);
	signal_session(command, SIGCONT);
	signal_session(command, SIGTERM);
	loop_timer_start(command->force, command->grace);
}

void
init_command_signal(struct init *init, uint32_t id, int number)
{
	struct init_command *command;

	command = find_command(init, id);
	if (command != NULL)
		(void)kill(-command->leader, number);
}

void
init_command_close(struct init *init, uint32_t id)
{
	struct init_command *command;

	command = find_command(init, id);
	if (command == NULL)
		return;
	command->released = true;
	if (command->ended && command->keep)
		return;
	command->keep = false;
	command->ending = ENDING_FORCED;
	signal_session(command, SIGKILL);
}

/* Reports a leader that ended, and leaves it a zombie. */
static void
look_at_leader(struct init_command *command)
{
	struct local_ended ended = { .id = command->id };
	struct message message;
	siginfo_t info = { 0 };

	if (command->ended ||
	    waitid(P_PID, (id_t)command->leader, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
	    info.si_pid == 0)
		return;
	command->ended = true;
	if (command->released)
		return;
	ended.signaled = info.si_code != CLD_EXITED;
	ended.core = info.si_code == CLD_DUMPED;
	ended.status = (uint32_t)info.si_status;
	local_ended_encode(&message, &ended);
	peer_send(command->init->driver, &message);
}

static void
look_at_process(void *argument, const struct local_process *process)
{
	struct init *init = argument;
	struct init_command *command;

	for (command = init->commands; command != NULL; command = command->next) {
		if (process->pid == command->leader)
			return;
		if (process->session == command->leader && !process->zombie)
			command->populated = true;
	}
	if (process->zombie && process->parent == getpid() && !init_copy_owns(init, process->pid))
		(void)waitpid(process->pid, NULL, WNOHANG);
}

/* True when one look was not enough to say that a command is gone; see is_gone. */
static bool
scan_sessions(struct init *init)
{
	struct init_command *command;
	bool again = false;

	for (command = init->commands; command != NULL; command = command->next)
		command->populated = false;
	local_scan(look_at_process, init);
	for (command = init->commands; command != NULL; command = command->next) {
		command->empty = command->populated ? 0 : command->empty + 1;
		again = again || (command->ended && command->keep && command->empty == 1);
	}
	return again;
}

/*
 * True when the command can be forgotten. A process that was forked while /proc was read may have
 * been missed: what is to be killed is killed once more, blindly and safely, as the zombie still
 * holds the number; what may stay is looked for twice.
 */
static bool
is_gone(const struct init_command *command)
{
	if (!command->ended || command->populated)
		return false;
	if (command->keep)
		return command->empty > 1;
	(void)kill(-command->leader, SIGKILL);
	return true;
}

static void
forget_command(struct init *init, struct init_command *command)
{
	struct message message;

	(void)waitpid(command->leader, NULL, 0);
	if (!command->released) {
		local_id_encode(&message, LOCAL_GONE, command->id);
		peer_send(init->driver, &message);
	}
	loop_timer_free(command->force);
	memory_free(command);
}

/* Moves every ended command on; true when some are still to be watched. */
static bool
settle_commands(struct init *init)
{
	struct init_command **place, *command;
	bool waiting = false;

	for (place = &init->commands; (command = *place) != NULL;) {
		if (is_gone(command)) {
			*place = command->next;
			forget_command(init, command);
			continue;
		}
		if (command->ended && !command->keep && command->ending == ENDING_NOT)
			ask_to_end(command);
		else if (command->ended && command->ending == ENDING_FORCED)
			signal_session(command, SIGKILL);
		waiting = waiting || command->ended;
		place = &command->next;
	}
	return waiting;
}

void
init_command_survey(struct init *init)
{
	struct init_command *command;

	for (command = init->commands; command != NULL; command = command->next)
		look_at_leader(command);
	while (scan_sessions(init))
		continue;
	if (settle_commands(init))
		loop_timer_start(init->linger, LINGER_INTERVAL);
	else
		loop_timer_stop(init->linger);
}
