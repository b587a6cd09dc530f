/* SPDX-License-Identifier: ISC */
#include "core/news.h"

#include <stdbool.h>
#include <stdio.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/driver.h"
#include "core/marker.h"
#include "core/scripts.h"
#include "core/signal_name.h"

#define SIGNALS_MAX 16
#define OUTPUT_MAX 256

struct news {
	const struct driver *driver;
	struct driver_sandbox *sandbox;
	const struct marker *marker;
	int signals[SIGNALS_MAX]; /* wait to be sent, in order */
	size_t signal_count;
	bool resize; /* so does this size */
	uint32_t columns, rows;
	struct loop_timer *settle; /* gathers signals that are sent together */
	struct driver_operation *sending;
};

/* argv of signal.sh for this command and these signals. */
static char **
signal_argv(const struct marker *marker, const int *signals, size_t count)
{
	char pid[24], started[24], *arguments[SIGNALS_MAX + 3], **argv;
	size_t i;

	(void)snprintf(pid, sizeof(pid), "%u", marker->pid);
	(void)snprintf(started, sizeof(started), "%llu", (unsigned long long)marker->start_time);
	arguments[0] = pid;
	arguments[1] = started;
	for (i = 0; i < count; i++)
		arguments[i + 2] = memory_text(signal_name(signals[i]));
	arguments[count + 2] = NULL;
	argv = script_argv("signal", arguments);
	for (i = 0; i < count; i++)
		memory_free(arguments[i + 2]);
	return argv;
}

/* argv of resize.sh for this command. */
static char **
resize_argv(const struct news *news)
{
	char pid[24], started[24], rows[24], columns[24], *arguments[5];

	(void)snprintf(pid, sizeof(pid), "%u", news->marker->pid);
	(void)snprintf(
	    started, sizeof(started), "%llu", (unsigned long long)news->marker->start_time);
	(void)snprintf(rows, sizeof(rows), "%u", news->rows);
	(void)snprintf(columns, sizeof(columns), "%u", news->columns);
	arguments[0] = pid;
	arguments[1] = started;
	arguments[2] = rows;
	arguments[3] = columns;
	arguments[4] = NULL;
	return script_argv("resize", arguments);
}

static void
news_sent(void *argument, const struct driver_result *result, const struct error *err)
{
	struct news *news = argument;

	(void)result;
	news->sending = NULL;
	if (err != NULL)
		log_error("a signal or a new size was not delivered: %s", err->message);
	news_send(news);
}

static void
last_signal_sent(void *argument, const struct driver_result *result, const struct error *err)
{
	(void)argument;
	(void)result;
	if (err != NULL)
		log_info("the last signal was not delivered: %s", err->message);
}

static void
settled(void *argument)
{
	news_send(argument);
}

struct news *
news_new(struct loop *loop, const struct driver *driver, struct driver_sandbox *sandbox,
    const struct marker *marker)
{
	struct news *news;

	news = memory_zeroed(1, sizeof(*news));
	news->driver = driver;
	news->sandbox = sandbox;
	news->marker = marker;
	news->settle = loop_timer_new(loop, settled, news);
	return news;
}

void
news_free(struct news *news)
{
	if (news == NULL)
		return;
	if (news->sending != NULL)
		news->driver->cancel(news->sending);
	loop_timer_free(news->settle);
	memory_free(news);
}

void
news_add_signal(struct news *news, int number)
{
	if (signal_name(number) == NULL)
		return;
	if (news->signal_count == SIGNALS_MAX) {
		log_error("signal %d is dropped: %d wait to be sent", number, SIGNALS_MAX);
		return;
	}
	news->signals[news->signal_count++] = number;
	loop_timer_start(news->settle, 0);
}

void
news_set_size(struct news *news, uint32_t columns, uint32_t rows)
{
	news->columns = columns;
	news->rows = rows;
	news->resize = true;
	loop_timer_start(news->settle, 0);
}

void
news_send(struct news *news)
{
	char **argv;

	if ((news->signal_count == 0 && !news->resize) || news->sending != NULL ||
	    news->marker->pid == 0)
		return;
	/* The signals that wait, or else the size. */
	if (news->signal_count > 0) {
		argv = signal_argv(news->marker, news->signals, news->signal_count);
		news->signal_count = 0;
	} else {
		argv = resize_argv(news);
		news->resize = false;
	}
	news->sending = news->driver->run(
	    news->sandbox, argv, NULL, 0, OUTPUT_MAX, news_sent, news);
	memory_list_free(argv);
}

void
news_send_last(struct news *news, int number)
{
	char **argv;

	/* The driver frees the operation when it is done. */
	argv = signal_argv(news->marker, &number, 1);
	(void)news->driver->run(news->sandbox, argv, NULL, 0, OUTPUT_MAX, last_signal_sent, NULL);
	memory_list_free(argv);
}
