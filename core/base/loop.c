/* SPDX-License-Identifier: ISC */
/*
 * The event loop. A watch that is removed while its event is being delivered is kept until the
 * round is over, so that no callback runs on freed memory.
 */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"

#define ROUND_EVENTS 64

struct loop_watch {
	struct loop *loop;
	struct loop_watch *next; /* in the list of removed watches */
	int fd;
	unsigned events;
	loop_ready_fn *ready; /* NULL once removed */
	void *argument;
};

struct loop_timer {
	struct loop *loop;
	struct loop_timer *previous, *next; /* sorted by due time while running */
	bool running;
	unsigned long round; /* of the loop when it was started */
	int64_t due;
	loop_timer_fn *expired;
	void *argument;
};

struct loop {
	int epoll;
	bool stopped;
	unsigned long round;
	struct loop_watch *removed;
	struct loop_timer *timers;
};

struct loop *
loop_new(struct error *err)
{
	struct loop *loop;

	loop = memory_zeroed(1, sizeof(*loop));
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll < 0) {
		error_system(err, errno, "epoll_create1");
		memory_free(loop);
		return NULL;
	}
	return loop;
}

static void
free_removed(struct loop *loop)
{
	struct loop_watch *watch;

	while ((watch = loop->removed) != NULL) {
		loop->removed = watch->next;
		memory_free(watch);
	}
}

void
loop_free(struct loop *loop)
{
	if (loop == NULL)
		return;
	free_removed(loop);
	(void)close(loop->epoll);
	memory_free(loop);
}

int
loop_fd(const struct loop *loop)
{
	return loop->epoll;
}

static uint32_t
epoll_events(unsigned events)
{
	return ((events & LOOP_READ) != 0 ? (uint32_t)EPOLLIN : 0U) |
	       ((events & LOOP_WRITE) != 0 ? (uint32_t)EPOLLOUT : 0U);
}

struct loop_watch *
loop_watch(struct loop *loop, int fd, unsigned events, loop_ready_fn *ready, void *argument)
{
	struct epoll_event event = { 0 };
	struct loop_watch *watch;

	watch = memory_zeroed(1, sizeof(*watch));
	watch->loop = loop;
	watch->fd = fd;
	watch->events = events;
	watch->ready = ready;
	watch->argument = argument;
	event.events = epoll_events(events);
	event.data.ptr = watch;
	/* Fails only for a descriptor that is closed or was added twice: our own mistake. */
	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		log_fatal("cannot watch descriptor %d: errno %d", fd, errno);
	return watch;
}

void
loop_watch_change(struct loop_watch *watch, unsigned events)
{
	struct epoll_event event = { 0 };

	if (watch->events == events)
		return;
	watch->events = events;
	event.events = epoll_events(events);
	event.data.ptr = watch;
	if (epoll_ctl(watch->loop->epoll, EPOLL_CTL_MOD, watch->fd, &event) != 0)
		log_fatal("cannot change the watch of descriptor %d: errno %d", watch->fd, errno);
}

void
loop_unwatch(struct loop_watch *watch)
{
	if (watch == NULL)
		return;
	if (epoll_ctl(watch->loop->epoll, EPOLL_CTL_DEL, watch->fd, NULL) != 0)
		log_fatal("cannot unwatch descriptor %d: errno %d", watch->fd, errno);
	watch->ready = NULL;
	watch->next = watch->loop->removed;
	watch->loop->removed = watch;
}

struct loop_timer *
loop_timer_new(struct loop *loop, loop_timer_fn *expired, void *argument)
{
	struct loop_timer *timer;

	timer = memory_zeroed(1, sizeof(*timer));
	timer->loop = loop;
	timer->expired = expired;
	timer->argument = argument;
	return timer;
}

void
loop_timer_start(struct loop_timer *timer, int64_t milliseconds)
{
	struct loop_timer **place, *previous;

	loop_timer_stop(timer);
	timer->due = loop_now() + (milliseconds < 0 ? 0 : milliseconds);
	previous = NULL;
	for (place = &timer->loop->timers; *place != NULL && (*place)->due <= timer->due;
	     place = &(*place)->next)
		previous = *place;
	timer->previous = previous;
	timer->next = *place;
	if (timer->next != NULL)
		timer->next->previous = timer;
	*place = timer;
	timer->round = timer->loop->round;
	timer->running = true;
}

void
loop_timer_stop(struct loop_timer *timer)
{
	if (!timer->running)
		return;
	if (timer->previous != NULL)
		timer->previous->next = timer->next;
	else
		timer->loop->timers = timer->next;
	if (timer->next != NULL)
		timer->next->previous = timer->previous;
	timer->previous = timer->next = NULL;
	timer->running = false;
}

bool
loop_timer_running(const struct loop_timer *timer)
{
	return timer->running;
}

void
loop_timer_free(struct loop_timer *timer)
{
	if (timer == NULL)
		return;
	loop_timer_stop(timer);
	memory_free(timer);
}

int64_t
loop_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int
loop_timeout(const struct loop *loop, int ceiling)
{
	int64_t left;

	if (loop->timers == NULL)
		return ceiling;
	left = loop->timers->due - loop_now();
	if (left < 0)
		left = 0;
	if (left > INT_MAX)
		left = INT_MAX;
	return ceiling >= 0 && left > ceiling ? ceiling : (int)left;
}

static void
run_timers(struct loop *loop)
{
	struct loop_timer *timer;
	int64_t now;

	/*
	 * Timers started by a callback with no delay wait for the next round: no callback can
	 * starve the rest. They stand behind all others that are due by now.
	 */
	loop->round++;
	now = loop_now();
	while ((timer = loop->timers) != NULL && timer->due <= now && timer->round != loop->round) {
		loop_timer_stop(timer);
		timer->expired(timer->argument);
	}
}

static void
deliver(struct epoll_event *event)
{
	struct loop_watch *watch;
	unsigned events;

	watch = event->data.ptr;
	if (watch->ready == NULL)
		return;
	events = 0;
	if ((event->events & EPOLLIN) != 0)
		events |= LOOP_READ;
	if ((event->events & EPOLLOUT) != 0)
		events |= LOOP_WRITE;
	if ((event->events & (EPOLLHUP | EPOLLERR)) != 0)
		events |= LOOP_HANGUP;
	watch->ready(watch->argument, events);
}

int
loop_dispatch(struct loop *loop, int timeout, struct error *err)
{
	struct epoll_event ready[ROUND_EVENTS];
	int i, count;

	count = epoll_wait(loop->epoll, ready, ROUND_EVENTS, loop_timeout(loop, timeout));
	if (count < 0 && errno != EINTR)
		return error_system(err, errno, "epoll_wait");
	for (i = 0; i < count; i++)
		deliver(&ready[i]);
	run_timers(loop);
	free_removed(loop);
	return 0;
}

int
loop_run(struct loop *loop, struct error *err)
{
	while (!loop->stopped)
		if (loop_dispatch(loop, -1, err) != 0)
			return -1;
	return 0;
}

void
loop_stop(struct loop *loop)
{
	loop->stopped = true;
}
