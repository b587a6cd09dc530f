/* SPDX-License-Identifier: ISC */
/* The driver of Vercel Sandbox. */
#ifndef DRIVERS_VERCEL_H
#define DRIVERS_VERCEL_H

#include "core/driver.h"

extern const struct driver driver_vercel;

#endif
