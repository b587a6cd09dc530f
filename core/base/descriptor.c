/* SPDX-License-Identifier: ISC */
/* Descriptors: made close-on-exec, closed once, read and written whole. */
#include <errno.h>
#include <fcntl.h>
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

char *
descriptor_read_file(int directory, const char *path, size_t max, size_t *size, struct error *err)
{
	size_t length;
	ssize_t got;
	char *text;
	int fd;

	fd = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		error_system(err, errno, "open %s", path);
		return NULL;
	}
	text = memory_allocate(max + 2);
	length = 0;
	while (length <= max && (got = read(fd, text + length, max + 1 - length)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			error_system(err, errno, "read %s", path);
			goto fail;
		}
		length += (size_t)got;
	}
	if (length > max) {
		error_set(err, ERROR_TOO_LARGE, "%s is over %zu bytes", path, max);
		goto fail;
	}
	text[length] = '\0';
	if (size != NULL)
		*size = length;
	(void)close(fd);
	return text;
fail:
	memory_free(text);
	(void)close(fd);
	return NULL;
}
