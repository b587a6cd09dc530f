/* SPDX-License-Identifier: ISC */
/*
 * The event loop of every process: descriptors and timers. What is to be done before the next wait,
 * but not below the caller, is a timer that is started with no delay.
 */
#ifndef CORE_BASE_LOOP_H
#define CORE_BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct error;
struct loop;
struct loop_watch;
struct loop_timer;

enum loop_events {
	LOOP_READ = 1,
	LOOP_WRITE = 2,
	LOOP_HANGUP = 4, /* always reported: the other end is gone or in error */
};

typedef void loop_ready_fn(void *argument, unsigned events);
typedef void loop_timer_fn(void *argument);

/* NULL when the kernel gives none. */
struct loop *loop_new(struct error *err);

/* Watches must be gone, and timers stopped for good; accepts NULL. */
void loop_free(struct loop *loop);

/*
 * The descriptor that is readable when loop_dispatch has something to do (timers excepted). Tests see by it
 * whether a loop is at rest.
 */
int loop_fd(const struct loop *loop);

/*
 * Calls ready when fd has one of events. The watch belongs to the loop until loop_unwatch, which
 * must come before fd is closed and may be called from any callback.
 */
struct loop_watch *loop_watch(
    struct loop *loop, int fd, unsigned events, loop_ready_fn *ready, void *argument);
void loop_watch_change(struct loop_watch *watch, unsigned events);
void loop_unwatch(struct loop_watch *watch); /* accepts NULL */

/* A timer that is not running; the callback may start it again, or free it. */
struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn *expired, void *argument);
void loop_timer_start(struct loop_timer *timer, int64_t milliseconds);
void loop_timer_stop(struct loop_timer *timer);
bool loop_timer_running(const struct loop_timer *timer);
void loop_timer_free(struct loop_timer *timer); /* accepts NULL */

/* Milliseconds of the monotonic clock. */
int64_t loop_now(void);

/* Milliseconds until the next timer, -1 for none, never more than ceiling (-1: no ceiling). */
int loop_timeout(const struct loop *loop, int ceiling);

/* Waits at most timeout ms (-1: for ever) and runs what is due, once. */
int loop_dispatch(struct loop *loop, int timeout, struct error *err);

/* Dispatches until loop_stop. */
int loop_run(struct loop *loop, struct error *err);
void loop_stop(struct loop *loop);

#endif
