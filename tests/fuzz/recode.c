/* SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <string.h>

#include "core/base/message.h"
#include "tests/fuzz/recode.h"

void
recode_check(recode_fn *recode, uint8_t type, int fd, const uint8_t *payload, size_t size)
{
	struct message message, again;

	message_start(&message, type);
	message.fd = fd;
	if (recode != NULL && buffer_append(&message.payload, payload, size) == 0 &&
	    recode(&message, &again) == 0) {
		if (again.type != type || again.payload.length != size)
			__builtin_trap();
		if (size > 0 && memcmp(buffer_data(&again.payload), payload, size) != 0)
			__builtin_trap();
		message_free(&again);
	}
	message_free(&message);
}

void
recode_check_input(recode_fn *const recoders[256], const uint8_t *data, size_t size)
{
	int fd;

	if (size < 2)
		return;
	fd = (data[1] & 1) != 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
	recode_check(recoders[data[0]], data[0], fd, data + 2, size - 2);
}
