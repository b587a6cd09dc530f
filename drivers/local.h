/* SPDX-License-Identifier: ISC */
/* The local driver: sandboxes on this machine, under bubblewrap. */
#ifndef DRIVERS_LOCAL_H
#define DRIVERS_LOCAL_H

#include "core/driver.h"

extern const struct driver driver_local;

#endif
