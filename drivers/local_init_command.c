/* SPDX-License-Identifier: ISC */
/*
 * The life of commands inside the sandbox. Each leads its own session and process group. Its leader
 * stays a zombie until nothing of the session is left: as long as it does, the kernel gives its
 * number to nobody else, so a signal to the group can never reach a stranger.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "drivers/local_init.h"
#include "drivers/local_protocol.h"
#include "drivers/local_scan.h"

/* How often groups without a leader are looked at; most of their ends show at once as SIGCHLD. */
#define LINGER_INTERVAL 250

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
send_streams(const struct init *init, uint32_t id, const int streams[LOCAL_STREAM_KINDS])
{
	struct local_stream stream = { .id = id };
	struct message message;
	unsigned kind;

	for (kind = 0; kind < LOCAL_STREAM_KINDS; kind++) {
		if (streams[kind] < 0)
			continue;
		stream.kind = (enum local_stream_kind)kind;
		local_stream_encode(&message, &stream);
		message.fd = streams[kind];
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
	int streams[LOCAL_STREAM_KINDS];
	struct error err;
	pid_t leader;

	leader = init_process_start(init, start, streams, &err);
	if (leader < 0) {
		error_wrap(&err, "start %s", start->argv[0]);
		send_failure(init, start->id, &err);
	} else {
		send_streams(init, start->id, streams);
		add_command(init, start, leader);
	}
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
