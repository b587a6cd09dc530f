/* SPDX-License-Identifier: ISC */
/*
 * Looking through processes by way of /proc:
 * by init inside a sandbox, and by the driver where there is none.
 */
#ifndef DRIVERS_LOCAL_SCAN_H
#define DRIVERS_LOCAL_SCAN_H

#include <stdbool.h>
#include <sys/types.h>

struct local_process {
	pid_t pid, parent, session;
	bool zombie;
};

/* Calls visit for every process there is; one that comes or goes meanwhile may be missed. */
void local_scan(void (*visit)(void *argument, const struct local_process *process), void *argument);

/*
 * Signals every process of a session but the one that leads it; none that left it meanwhile is hit.
 */
void local_scan_signal(pid_t session, int number);

#endif
