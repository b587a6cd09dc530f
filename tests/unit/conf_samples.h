/* SPDX-License-Identifier: ISC */
/* What the tests of the configuration share: a directory with a file in it, and two drivers. */
#ifndef TESTS_UNIT_CONF_SAMPLES_H
#define TESTS_UNIT_CONF_SAMPLES_H

#include <stddef.h>
#include <sys/types.h>

#include "conf/conf.h"
#include "core/base/error.h"

/*
 * "red" and "blue", both with an api_key that comes from another variable, as E2B and Daytona have.
 */
extern const struct conf_driver conf_sample_drivers[];

/* The file rwsd.conf of the directory, and what was wrong with it. */
extern char conf_sample_file[];
extern struct error conf_sample_err;

/* Make and remove the directory: set-up and tear-down of a test. */
int conf_sample_start(void **state);
int conf_sample_end(void **state);

/* Writes a file with a mode. */
void conf_sample_write(const char *path, const void *data, size_t size, mode_t mode);

/* The path of a name in the directory; valid until the fourth next call. */
const char *conf_sample_path(const char *name);

/* Loads a text with overrides, which may be NULL; NULL when it is refused. */
struct conf *conf_sample_try(const char *text, const char *const *overrides);

/* The same without overrides; a refusal fails the test. */
struct conf *conf_sample_load(const char *text);

/* The message without the directory in front, which differs from run to run. */
const char *conf_sample_message(void);

#endif
