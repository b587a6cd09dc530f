/* SPDX-License-Identifier: ISC */
/*
 * Keeps the keys of a file for as long as the file stays the same one, unchanged: a login costs one
 * stat, and an edit takes effect at the next login.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "keys/authorized.h"
#include "keys/keyfile.h"

/* A file changed less than this ago may change again without a change of its times. */
#define SETTLED_SECONDS 2

struct keyfile {
	char *path;
	/* Status and keys are of the file as it is, or was when it was looked at. */
	bool is_current;
	struct stat status;
	char *text; /* what keys was made of */
	size_t size;
	struct authorized_keys keys;
	char *complaint; /* what was logged last, NULL when all was well */
};

struct keyfile *
keyfile_new(const char *path)
{
	struct keyfile *file;

	file = memory_zeroed(1, sizeof(*file));
	file->path = memory_text(path);
	return file;
}

static void
forget(struct keyfile *file)
{
	authorized_keys_free(&file->keys);
	memory_free(file->text);
	file->text = NULL;
	file->size = 0;
	file->is_current = false;
}

void
keyfile_free(struct keyfile *file)
{
	if (file == NULL)
		return;
	forget(file);
	memory_free(file->complaint);
	memory_free(file->path);
	memory_free(file);
}

const char *
keyfile_path(const struct keyfile *file)
{
	return file->path;
}

static bool
same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* The change time stands in for those edits that put the modification time back. */
static bool
same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mode == b->st_mode && same_time(&a->st_mtim, &b->st_mtim) &&
	       same_time(&a->st_ctim, &b->st_ctim);
}

static int
check_status(const struct stat *status, struct error *err)
{
	if (!S_ISREG(status->st_mode))
		return error_set(err, ERROR_INVALID, "not a regular file");
	if ((status->st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return error_set(err, ERROR_DENIED, "group or others may write it (mode %03o)",
		    (unsigned)status->st_mode & 0777);
	if (status->st_size > (off_t)KEYFILE_SIZE_MAX)
		return error_set(err, ERROR_TOO_LARGE, "over %u bytes", KEYFILE_SIZE_MAX);
	return 0;
}

/* Parses a new text, which becomes the file's; the same text again would only be logged again. */
static void
take_text(struct keyfile *file, char *text, size_t size)
{
	if (file->text != NULL && file->size == size && memcmp(file->text, text, size) == 0) {
		memory_free(text);
		return;
	}
	forget(file);
	file->text = text;
	file->size = size;
	authorized_parse(&file->keys, file->path, text, size);
}

static int
load(struct keyfile *file, struct error *err)
{
	struct stat status;
	time_t settled;
	size_t size;
	char *text;
	int fd;

	text = NULL;
	/* O_NONBLOCK: a pipe in the file's place must not stop all logins. */
	fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return error_system(err, errno, "open");
	if (fstat(fd, &status) != 0) {
		error_system(err, errno, "stat");
		goto fail;
	}
	if (check_status(&status, err) != 0)
		goto fail;
	/* One that grows meanwhile is changed, and read again at the next look. */
	text = memory_allocate((size_t)status.st_size);
	if (descriptor_read(fd, text, (size_t)status.st_size, &size, err) != 0)
		goto fail;
	take_text(file, text, size);
	settled = time(NULL) - SETTLED_SECONDS;
	file->is_current = status.st_mtim.tv_sec < settled && status.st_ctim.tv_sec < settled;
	file->status = status;
	descriptor_close(&fd);
	return 0;
fail:
	memory_free(text);
	descriptor_close(&fd);
	return -1;
}

/* Logs what is wrong with the file, when that is news. */
static void
complain(struct keyfile *file, const struct error *err)
{
	if (file->complaint != NULL && strcmp(file->complaint, err->message) == 0)
		return;
	log_error("%s: no keys are taken from it: %s", file->path, err->message);
	memory_free(file->complaint);
	file->complaint = memory_text(err->message);
}

const struct authorized_keys *
keyfile_keys(struct keyfile *file)
{
	struct stat status;
	struct error err;

	if (file->is_current && stat(file->path, &status) == 0 && same_file(&status, &file->status))
		return &file->keys;
	if (load(file, &err) != 0) {
		forget(file);
		complain(file, &err);
		return &file->keys;
	}
	memory_free(file->complaint);
	file->complaint = NULL;
	return &file->keys;
}
