/* SPDX-License-Identifier: ISC */
/*
 * Signals by their SSH names: without "SIG" (RFC 4254 section 6.10), and those that OpenSSH adds.
 */
#ifndef CORE_SIGNAL_NAME_H
#define CORE_SIGNAL_NAME_H

/* The Linux number, or 0 for an unknown name. */
int signal_number(const char *name);

/* The name, or NULL for a number without one. */
const char *signal_name(int number);

#endif
