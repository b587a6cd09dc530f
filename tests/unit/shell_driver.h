/* SPDX-License-Identifier: ISC */
/*
 * A driver for tests: its sandbox is a directory and its commands are plain processes of this
 * machine, run by a shell of the test's choice. It has no file server, so that the script serves.
 */
#ifndef TESTS_UNIT_SHELL_DRIVER_H
#define TESTS_UNIT_SHELL_DRIVER_H

#include "core/driver.h"

extern const struct driver shell_driver;

/* The command line that stands in for "sh": at most two words. Set before anything is started. */
void shell_driver_choose(const char *program, const char *applet);

/* The PATH of what is started from now on; NULL for our own. Kept, not copied. */
void shell_driver_set_path(const char *path);

/* The process of the command that was started last, 0 when there is none. */
int shell_driver_last(void);

#endif
