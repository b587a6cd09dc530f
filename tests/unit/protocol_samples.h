/* SPDX-License-Identifier: ISC */
#ifndef TESTS_UNIT_PROTOCOL_SAMPLES_H
#define TESTS_UNIT_PROTOCOL_SAMPLES_H

#include <stdint.h>

struct error;
struct message;

struct protocol_sample {
	const char *name;
	uint8_t type;
	void (*encode)(struct message *message);
	/* Decodes, and on success checks every field and frees. */
	int (*decode)(struct message *message, struct error *err);
};

/* Ends with a sample without a name. */
extern const struct protocol_sample protocol_samples[];

#endif
