/* SPDX-License-Identifier: ISC */
/*
 * The commands of a workspace that run in its sandbox, as files in its directory on our side. Should
 * the process that keeps them die, they are known to the next one, which ends them.
 */
#ifndef CORE_LEDGER_H
#define CORE_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A command in the sandbox of this id, by its process group and the time when that was started. Not
 * being able to write it down is logged only: the command itself goes on. directory -1: none is kept.
 */
void ledger_add(int directory, const char *sandbox, uint32_t pid, uint64_t start_time);
void ledger_remove(int directory, uint32_t pid, uint64_t start_time);

/*
 * Those in this sandbox, at most LEDGER_MAX, as a new list of PID, STARTTIME, PID, ... in decimal;
 * what ran in other sandboxes is forgotten.
 */
#define LEDGER_MAX 256U
char **ledger_list(int directory, const char *sandbox);

/* Is nothing known to run? */
bool ledger_is_empty(int directory);

#endif
