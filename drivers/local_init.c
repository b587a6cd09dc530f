/* SPDX-License-Identifier: ISC */
/*
 * rwsd-init: the one program of ours inside a local sandbox. Started by a worker, through
 * bubblewrap as process 1, or directly with isolation = none; runs as the sandbox's user.
 * Descriptor 3 is the socket to the worker's driver, and all it holds; it has no secrets. It starts
 * commands, hands their descriptors to the driver, tells how they end, copies files, reaps orphans,
 * and ends, with everything it started, when the socket is closed.
 *
 * The commands are hostile and run as the same user: so it cannot be traced or read (not dumpable),
 * takes no signal from them, and leaves them none of its descriptors.
 *
 *	rwsd-init serve HOME USER SHELL    the above
 *	rwsd-init remove NAME              removes a tree below the directory on descriptor 3
 *	rwsd-init mount COMMAND...         runs a command that finds the directory on descriptor 5
 *	                                   in /tmp
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "drivers/local_init.h"
#include "drivers/local_protocol.h"
#include "drivers/local_scan.h"

#define SOCKET 3
#define MOUNT_DIRECTORY 5
#define EXIT_USAGE 64

static const int ignored_signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE,
	SIGALRM, SIGTSTP, SIGTTIN, SIGTTOU };

void
init_child_begin(const struct init *init)
{
	/*
	 * As the kernel has it. Not by signal(), which refuses the two that glibc keeps for itself:
	 * its posix_spawn leaves them ignored in whom it starts, and so does make, which uses it.
	 */
	static const struct {
		void (*take)(int);
		unsigned long flags;
		void (*restore)(void);
		uint64_t mask;
	} standard = { .take = SIG_DFL };
	sigset_t none;
	int number;

	for (number = 1; number < NSIG; number++)
		(void)syscall(SYS_rt_sigaction, number, &standard, NULL, sizeof(standard.mask));
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (!init->first)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static int
take_start(void *argument, struct message *message, struct error *err)
{
	struct local_start start;

	if (local_start_decode(message, &start, err) != 0)
		return -1;
	init_command_start(argument, &start);
	local_start_free(&start);
	return 0;
}

static int
take_signal(void *argument, struct message *message, struct error *err)
{
	struct local_signal signal;

	if (local_signal_decode(message, &signal, err) != 0)
		return -1;
	init_command_signal(argument, signal.id, (int)signal.number);
	return 0;
}

static int
take_close(void *argument, struct message *message, struct error *err)
{
	uint32_t id;

	if (local_id_decode(message, &id, err) != 0)
		return -1;
	init_command_close(argument, id);
	return 0;
}

static int
take_copy(void *argument, struct message *message, struct error *err)
{
	struct local_copy copy;
	int fd;

	if (local_copy_decode(message, &copy, err) != 0)
		return -1;
	fd = message_take_fd(message);
	if (fd < 0) {
		local_copy_free(&copy);
		return error_set(err, ERROR_INVALID, "a copy without a descriptor");
	}
	init_copy_start(argument, &copy, fd);
	local_copy_free(&copy);
	return 0;
}

static int
take_files(void *argument, struct message *message, struct error *err)
{
	int socket;

	socket = message_take_fd(message);
	if (socket < 0)
		return error_set(err, ERROR_INVALID, "a file server without a socket");
	init_files_start(argument, socket);
	return message_end(message, err);
}

static int
take_cancel(void *argument, struct message *message, struct error *err)
{
	uint32_t id;

	if (local_id_decode(message, &id, err) != 0)
		return -1;
	init_copy_cancel(argument, id);
	return 0;
}

static const struct peer_rule rules[] = {
	{ LOCAL_START, "START", 1, take_start },
	{ LOCAL_SIGNAL, "SIGNAL", 1, take_signal },
	{ LOCAL_CLOSE, "CLOSE", 1, take_close },
	{ LOCAL_COPY, "COPY", 1, take_copy },
	{ LOCAL_CANCEL, "CANCEL", 1, take_cancel },
	{ LOCAL_FILES, "FILES", 1, take_files },
	{ 0, NULL, 0, NULL },
};

static void
driver_closed(void *argument, const struct error *err)
{
	struct init *init = argument;

	log_debug("%s", err->message);
	loop_stop(init->loop);
}

static const struct peer_events driver_events = { .rules = rules, .closed = driver_closed };

static void
kill_child(void *argument, const struct local_process *process)
{
	(void)argument;
	if (process->parent == getpid())
		(void)kill(process->pid, SIGKILL);
}

/*
 * Whoever loses its parent becomes ours, so this ends with nobody left.
 * Process 1 need not: the kernel does it.
 */
static void
kill_everything(void)
{
	while (waitpid(-1, NULL, WNOHANG) >= 0 || errno == EINTR) {
		local_scan(kill_child, NULL);
		(void)waitpid(-1, NULL, 0);
	}
}

static void
children_ready(void *argument, unsigned events)
{
	struct init *init = argument;
	struct signalfd_siginfo unused;
	int fd = init->signals;

	(void)events;
	while (read(fd, &unused, sizeof(unused)) > 0)
		continue;
	init_copy_survey(init);
	init_command_survey(init);
}

static void
linger_expired(void *argument)
{
	init_command_survey(argument);
}

/* Before anything else can run here. */
static void
protect(struct init *init)
{
	size_t i;

	init->first = getpid() == 1;
	(void)prctl(PR_SET_NAME, "rwsd-init");
	if (prctl(PR_SET_DUMPABLE, 0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		log_fatal("prctl: %s", strerror(errno));
	if (!init->first && prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
		log_fatal("prctl: %s", strerror(errno));
	for (i = 0; i < sizeof(ignored_signals) / sizeof(ignored_signals[0]); i++)
		(void)signal(ignored_signals[i], SIG_IGN);
	(void)close_range(SOCKET + 1, ~0U, 0);
}

static void
watch_children(struct init *init)
{
	sigset_t children;

	(void)sigemptyset(&children);
	(void)sigaddset(&children, SIGCHLD);
	(void)signal(SIGCHLD, SIG_DFL);
	if (sigprocmask(SIG_SETMASK, &children, NULL) != 0)
		log_fatal("sigprocmask: %s", strerror(errno));
	init->signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
	if (init->signals < 0)
		log_fatal("signalfd: %s", strerror(errno));
	loop_watch(init->loop, init->signals, LOOP_READ, children_ready, init);
}

static int
serve(char **arguments)
{
	struct init init = { .home = arguments[0], .user = arguments[1], .shell = arguments[2] };
	struct message message;
	struct error err;

	log_open("init", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	protect(&init);
	init.loop = loop_new(&err);
	if (init.loop == NULL)
		log_fatal("%s", err.message);
	watch_children(&init);
	init.linger = loop_timer_new(init.loop, linger_expired, &init);
	init.driver = peer_new(init.loop, SOCKET, "init", "driver", &driver_events, &init);
	message_start(&message, LOCAL_READY);
	peer_send(init.driver, &message);
	if (loop_run(init.loop, &err) != 0)
		log_error("%s", err.message);
	if (!init.first)
		kill_everything();
	return 0;
}

int
main(int count, char **arguments)
{
	if (count == 5 && strcmp(arguments[1], "serve") == 0)
		return serve(arguments + 2);
	if (count == 3 && strcmp(arguments[1], "remove") == 0)
		return init_remove(SOCKET, arguments[2]);
	if (count > 2 && strcmp(arguments[1], "mount") == 0)
		return init_mount(MOUNT_DIRECTORY, arguments + 2);
	(void)dprintf(STDERR_FILENO, "rwsd-init is started by rwsd\n");
	return EXIT_USAGE;
}
