/* SPDX-License-Identifier: ISC */
/* The driver of E2B and of servers that speak its protocol. */
#ifndef DRIVERS_E2B_H
#define DRIVERS_E2B_H

#include "core/driver.h"

extern const struct driver driver_e2b;

#endif
