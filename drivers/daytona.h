/* SPDX-License-Identifier: ISC */
/* Sandboxes of Daytona (providers' API v0), and of what speaks its API. */
#ifndef DRIVERS_DAYTONA_H
#define DRIVERS_DAYTONA_H

#include "core/driver.h"

extern const struct driver driver_daytona;

#endif
