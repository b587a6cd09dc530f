/* SPDX-License-Identifier: ISC */
/*
 * What the fuzz targets of our own messages share. What a decoder accepts must survive being
 * encoded again: these bytes have one form only.
 */
#ifndef TESTS_FUZZ_RECODE_H
#define TESTS_FUZZ_RECODE_H

#include <stddef.h>
#include <stdint.h>

struct message;

/*
 * Decodes message and encodes what came out into again, which takes over a descriptor; -1 when it
 * was refused.
 */
typedef int recode_fn(struct message *message, struct message *again);

/* Defines recode_NAME for a message with NAME_decode, NAME_encode and NAME_free. */
#define RECODE(name)                                                             \
	static int recode_##name(struct message *message, struct message *again) \
	{                                                                        \
		struct name value;                                               \
                                                                                 \
		if (name##_decode(message, &value, NULL) != 0)                   \
			return -1;                                               \
		name##_encode(again, &value);                                    \
		name##_free(&value);                                             \
		return 0;                                                        \
	}

/*
 * Recodes a message of this type, with a descriptor or -1, and traps when other bytes come out.
 * recode may be NULL: there is no such message.
 */
void recode_check(recode_fn *recode, uint8_t type, int fd, const uint8_t *payload, size_t size);

/*
 * The same for an input whose first byte is the type, and whose second one says whether a
 * descriptor comes with it; the rest is the payload.
 */
void recode_check_input(recode_fn *const recoders[256], const uint8_t *data, size_t size);

#endif
