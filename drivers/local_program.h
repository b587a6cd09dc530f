/* SPDX-License-Identifier: ISC */
/*
 * The program build/rwsd-init, which is part of this binary: a worker may have no right to read the
 * place it was installed in, and both are always of one build.
 */
#ifndef DRIVERS_LOCAL_PROGRAM_H
#define DRIVERS_LOCAL_PROGRAM_H

struct error;

/* A new descriptor, close-on-exec, from which the program can be run; nobody can change it. */
int local_program_open(struct error *err);

#endif
