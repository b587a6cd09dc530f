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

	/* of the last request */
	struct file_reply reply;
	struct error err;
	unsigned replies;
	bool done;
};

/* backend: "native", or a shell for the script: "dash", "bash" or "busybox". */
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

#endif
