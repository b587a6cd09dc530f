/* SPDX-License-Identifier: ISC */
#ifndef GATEWAY_VERSION_H
#define GATEWAY_VERSION_H

#define RWSD_VERSION "0.1.0"

#endif
