/* SPDX-License-Identifier: ISC */
/* A workspace whose files are under test, over any backend, and asking it without a callback. */
#ifndef TESTS_UNIT_FILES_SUBJECT_H
#define TESTS_UNIT_FILES_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"
#include "core/file.h"

struct subject {
	struct loop *loop;
	struct settings *settings;
	struct workspace *workspace;
	char *directory; /* temporary */
	char *root;
	char *outside; /* a directory beside it */
	int state;
	char *path; /* PATH of the script, NULL for our own */

	/* of the last request */
	struct file_reply reply;
	struct error err;
	unsigned replies;
	bool done;
};

/*
 * backend: "native", or a shell for the script: "dash", "bash" or "busybox", or "bare": dash with
 * nothing in its PATH but the commands that the start check asks for.
 */
void subject_open(struct subject *subject, const char *backend);
void subject_close(struct subject *subject);

/* Asks and waits: 0, or -1 with subject->err. The request is freed, its paths as well. */
int subject_ask(struct subject *subject, struct file_request *request);

/* A request for path, below the root unless absolute. */
struct file_request subject_request(enum file_verb verb, const char *path);

/* COMMIT of a text, and the text that OPEN gives (new). */
int subject_write(struct subject *subject, const char *path, const char *text, unsigned flags);
char *subject_read(struct subject *subject, const char *path);

/* LIST as one text: the paths, a line each (new). */
char *subject_list(struct subject *subject, struct file_request *request);

/* An absolute path below the root (new). */
char *subject_path(const struct subject *subject, const char *path);

/* As files_start with these; subject_try is subject_ask of one path. */
struct file_request subject_request_two(
    enum file_verb verb, const char *path, const char *other, unsigned flags);
int subject_try(struct subject *subject, enum file_verb verb, const char *path, unsigned flags);

/* Fail the test when it is not so. */
void subject_expect_error(struct subject *subject, int result, enum error_code code);
void subject_expect_content(struct subject *subject, const char *path, const char *text);
void subject_expect_list(struct subject *subject, struct file_request request, const char *lines);

/* A shell command with the root as its directory, which must succeed. */
void subject_prepare(const struct subject *subject, const char *command);

/* Runs the tests on every backend, each with a subject of its own as its state. */
struct CMUnitTest;
int subject_set_up(void **state);
int subject_tear_down(void **state);
int subject_run_tests(const struct CMUnitTest *tests, size_t count);
#define SUBJECT_TEST(name) cmocka_unit_test_setup_teardown(name, subject_set_up, subject_tear_down)

#endif
