/* SPDX-License-Identifier: ISC */
/* The one way to turn text into numbers, durations and sizes. */
#ifndef CORE_BASE_NUMBER_H
#define CORE_BASE_NUMBER_H

#include <stdint.h>

struct error;

/*
 * A decimal number within [min, max]: digits with at most a leading '-', nothing before or after.
 */
int number_parse(const char *text, int64_t min, int64_t max, int64_t *value, struct error *err);

/* Milliseconds: a number with ms, s, m, h or d (seconds without a unit); parts add up: 1h30m. */
int number_parse_duration(const char *text, int64_t *milliseconds, struct error *err);

/*
 * Bytes: a number with B, K or KiB, M or MiB, G or GiB, T or TiB (bytes without);
 * all powers of 1024.
 */
int number_parse_size(const char *text, int64_t *bytes, struct error *err);

/* The shortest text that parses back to the value; returns out. */
#define NUMBER_TEXT_MAX 32
const char *number_format_duration(char out[NUMBER_TEXT_MAX], int64_t milliseconds);
const char *number_format_size(char out[NUMBER_TEXT_MAX], int64_t bytes);

/* For messages to people: one decimal ("12.5 MiB"). */
const char *number_describe_size(char out[NUMBER_TEXT_MAX], int64_t bytes);

#endif
