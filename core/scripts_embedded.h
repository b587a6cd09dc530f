/* SPDX-License-Identifier: ISC */
/* What core/embed.sh makes of core/scripts; for core/scripts.c alone. */
#ifndef CORE_SCRIPTS_EMBEDDED_H
#define CORE_SCRIPTS_EMBEDDED_H

#include <stddef.h>

struct embedded_script {
	const char *name; /* of the file without ".sh" */
	const unsigned char *data;
	size_t size;
};

/* Ends with an entry without a name. */
extern const struct embedded_script embedded_scripts[];

#endif
