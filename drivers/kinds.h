/* SPDX-License-Identifier: ISC */
/*
 * The kinds of the drivers of this build,
 * each in a file NAME_kind.c that needs no other of its driver.
 */
#ifndef DRIVERS_KINDS_H
#define DRIVERS_KINDS_H

#include "core/driver.h"

extern const struct driver_kind driver_local_kind;
extern const struct driver_kind driver_daytona_kind;
extern const struct driver_kind driver_e2b_kind;
extern const struct driver_kind driver_vercel_kind;

#endif
