/* SPDX-License-Identifier: ISC */
/*
 * The control lines of scp's old protocol, of which there is no standard: C and D announce a file
 * and a directory, E ends one, T tells the times of what comes next.
 */
#ifndef GATEWAY_SCP_LINE_H
#define GATEWAY_SCP_LINE_H

#include <stdint.h>

struct error;

struct scp_line {
	char type; /* C, D, E or T */
	uint32_t mode;
	uint64_t size;
	int64_t accessed, modified; /* seconds since 1970 */
	char *name;                 /* of C and D: one name, without slashes */
};

/* text is the line without its newline. INVALID for anything a right client does not send. */
int scp_line_parse(const char *text, struct scp_line *line, struct error *err);
void scp_line_free(struct scp_line *line);

#endif
