/* SPDX-License-Identifier: ISC */
/*
 * The marker lines of core/scripts/command.sh and transport.sh, found in a stream of output. A
 * marker carries a token that the command cannot know, so nothing the command writes can be taken
 * for one.
 */
#ifndef CORE_MARKER_H
#define CORE_MARKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer;
struct error;

/* 128 bits in hex, and a terminator. */
#define MARKER_TOKEN_SIZE 33

/* What comes before the start marker is noise of shells; more than this is an error. */
#define MARKER_NOISE_MAX 65536

enum marker_stage {
	MARKER_BEFORE,  /* nothing is output yet */
	MARKER_RUNNING, /* between the markers */
	MARKER_ENDED,   /* what comes now is dropped, unless follows is set */
};

struct marker {
	char token[MARKER_TOKEN_SIZE];
	/* A stream that has an end marker only (stderr): starts in MARKER_RUNNING. */
	bool without_start;
	/* What comes behind the end is output too: of what was left running. */
	bool follows;
	enum marker_stage stage;
	size_t noise;
	unsigned char held[128]; /* the start of what may become a marker */
	size_t held_size;
	/* from the start marker */
	uint32_t pid;
	uint64_t start_time;
	uint64_t turns; /* turn markers so far: core/scripts/transport.sh */
	/* from the end marker */
	bool signaled;
	uint32_t number; /* exit status 0..255 or signal 1..64 */
};

/* Makes a token of the system's random numbers. */
void marker_make_token(char token[MARKER_TOKEN_SIZE]);

/* A decoder at the start of a stream; it holds no memory of its own. */
void marker_init(struct marker *marker, const char token[MARKER_TOKEN_SIZE], bool without_start);

/*
 * Takes size bytes and appends what is the command's output to output, which needs room for size +
 * sizeof(marker->held). Returns -1 when a marker is malformed, noise is too long, or output is
 * full.
 */
int marker_decode(
    struct marker *marker, const void *data, size_t size, struct buffer *output, struct error *err);

/* The stream is at its end: what is held back can be no marker any more, and is output. */
int marker_finish(struct marker *marker, struct buffer *output, struct error *err);

#endif
