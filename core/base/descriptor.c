/* SPDX-License-Identifier: ISC */
/* Descriptors: made close-on-exec, closed once, read and written whole. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"

void
descriptor_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

int
descriptor_duplicate(int fd)
{
	int duplicate;

	duplicate = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (duplicate < 0)
		log_fatal("cannot duplicate descriptor %d: errno %d", fd, errno);
	return duplicate;
}

int
descriptor_stat(int fd, struct stat *status)
{
#if defined(SYS_fstat) && defined(__LP64__)
	/* The C library of today makes it newfstatat with an empty path. */
	return (int)syscall(SYS_fstat, fd, status);
#else
	return fstat(fd, status);
#endif
}

int
descriptor_nonblock(int fd, struct error *err)
{
	int flags;

	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
		return error_system(err, errno, "make descriptor %d non-blocking", fd);
	return 0;
}

int
descriptor_pair(int pair[2], struct error *err)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return error_system(err, errno, "socketpair");
	return 0;
}

int
descriptor_pipe(int ends[2], struct error *err)
{
	if (pipe2(ends, O_CLOEXEC) != 0)
		return error_system(err, errno, "pipe2");
	return 0;
}

int
descriptor_write(int fd, const void *data, size_t size, struct error *err)
{
	const char *at;
	ssize_t written;

	for (at = data; size > 0; at += written, size -= (size_t)written) {
		written = write(fd, at, size);
		if (written < 0 && errno == EINTR)
			written = 0;
		else if (written < 0)
			return error_system(err, errno, "write");
	}
	return 0;
}

int
descriptor_read(int fd, void *data, size_t size, size_t *got, struct error *err)
{
	ssize_t count;

	*got = 0;
	while (*got < size && (count = read(fd, (char *)data + *got, size - *got)) != 0) {
		if (count > 0)
			*got += (size_t)count;
		else if (errno != EINTR)
			return error_system(err, errno, "read");
	}
	return 0;
}

/* Opens what has to be a regular file: a pipe in its place would be waited for. */
static int
open_regular(int directory, const char *path, struct error *err)
{
	struct stat status;
	int fd;

	fd = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return error_system(err, errno, "open %s", path);
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		return fd;
	(void)close(fd);
	return error_set(err, ERROR_INVALID, "%s is not a regular file", path);
}

char *
descriptor_read_file(int directory, const char *path, size_t max, size_t *size, struct error *err)
{
	size_t length;
	char *text;
	int fd, result;

	fd = open_regular(directory, path, err);
	if (fd < 0)
		return NULL;
	/* One byte more than may be there, which is the terminator's when it is not. */
	text = memory_allocate(max + 1);
	result = descriptor_read(fd, text, max + 1, &length, err);
	(void)close(fd);
	if (result != 0)
		error_wrap(err, "%s", path);
	else if (length > max)
		result = error_set(err, ERROR_TOO_LARGE, "%s is over %zu bytes", path, max);
	if (result != 0) {
		explicit_bzero(text, length);
		memory_free(text);
		return NULL;
	}
	text[length] = '\0';
	if (size != NULL)
		*size = length;
	return text;
}
