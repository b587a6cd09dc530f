/* SPDX-License-Identifier: ISC */
/* Nothing is kept here: a number may be a key, or what a key is told apart by. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/hex.h"
#include "core/base/log.h"
#include "core/base/random.h"

#define NUMBER_MAX 64

void
random_bytes(void *out, size_t size)
{
	if (getrandom(out, size, 0) != (ssize_t)size)
		log_fatal("no random numbers: errno %d", errno);
}

void
random_hex(char *out, size_t size)
{
	unsigned char number[NUMBER_MAX];

	if (size > sizeof(number))
		log_fatal("a random number of %zu bytes", size);
	random_bytes(number, size);
	hex_encode(out, number, size);
	explicit_bzero(number, sizeof(number));
}
