/* SPDX-License-Identifier: ISC */
/* Bytes that can be told from their place, and their sum. */
#include <stdint.h>

#include "tests/contract/harness.h"
