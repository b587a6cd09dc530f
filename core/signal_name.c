/* SPDX-License-Identifier: ISC */
/* One table of signals; a sandbox is always Linux, whose numbers these are. */
#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "core/signal_name.h"

static const struct {
	const char *name;
	int number;
} signals[] = {
	{ "ABRT", SIGABRT },
	{ "ALRM", SIGALRM },
	{ "FPE", SIGFPE },
	{ "HUP", SIGHUP },
	{ "ILL", SIGILL },
	{ "INT", SIGINT },
	{ "KILL", SIGKILL },
	{ "PIPE", SIGPIPE },
	{ "QUIT", SIGQUIT },
	{ "SEGV", SIGSEGV },
	{ "TERM", SIGTERM },
	{ "USR1", SIGUSR1 },
	{ "USR2", SIGUSR2 },
	{ "BUS", SIGBUS },
	{ "CHLD", SIGCHLD },
	{ "CONT", SIGCONT },
	{ "IO", SIGIO },
	{ "PROF", SIGPROF },
	{ "PWR", SIGPWR },
	{ "STKFLT", SIGSTKFLT },
	{ "STOP", SIGSTOP },
	{ "SYS", SIGSYS },
	{ "TRAP", SIGTRAP },
	{ "TSTP", SIGTSTP },
	{ "TTIN", SIGTTIN },
	{ "TTOU", SIGTTOU },
	{ "URG", SIGURG },
	{ "VTALRM", SIGVTALRM },
	{ "WINCH", SIGWINCH },
	{ "XCPU", SIGXCPU },
	{ "XFSZ", SIGXFSZ },
};

int
signal_number(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (strcmp(signals[i].name, name) == 0)
			return signals[i].number;
	return 0;
}

const char *
signal_name(int number)
{
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (signals[i].number == number)
			return signals[i].name;
	return NULL;
}
