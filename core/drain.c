/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/drain.h"

struct drain {
	struct loop *loop;
	int fd;
	struct loop_watch *watch;
};

static void
stop(struct drain *drain)
{
	loop_unwatch(drain->watch);
	drain->watch = NULL;
	descriptor_close(&drain->fd);
}

struct drain *
drain_new(struct loop *loop, int fd)
{
	struct drain *drain;

	if (fd < 0)
		return NULL;
	drain = memory_zeroed(1, sizeof(*drain));
	drain->loop = loop;
	drain->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return drain;
}

static void
ready(void *argument, unsigned events)
{
	struct drain *drain = argument;
	char scratch[65536];
	ssize_t got;

	(void)events;
	do
		got = read(drain->fd, scratch, sizeof(scratch));
	while (got > 0);
	if (got == 0 || (errno != EAGAIN && errno != EINTR))
		stop(drain);
}

void
drain_start(struct drain *drain)
{
	struct error err;

	if (drain == NULL || drain->fd < 0 || drain->watch != NULL)
		return;
	if (descriptor_nonblock(drain->fd, &err) == 0)
		drain->watch = loop_watch(drain->loop, drain->fd, LOOP_READ, ready, drain);
	else
		stop(drain);
}

void
drain_free(struct drain *drain)
{
	if (drain == NULL)
		return;
	stop(drain);
	memory_free(drain);
}
