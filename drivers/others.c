/* SPDX-License-Identifier: ISC */
/* Page by page, and on each page one after another: there are hardly ever any. */
#include "drivers/others.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"

#define PAGES_MAX 20

struct others {
	const struct others_kind *kind;
	struct driver_sandbox *sandbox;
	struct others **place;
	bool destroys;
	driver_done_fn *done;
	void *argument;
	struct http_request *request; /* the list's, or that of one release */
	char **ids;                   /* to be released */
	size_t count, next;
	unsigned pages;
	char *page; /* the next one, or NULL */
};

void
others_cancel(struct others **place)
{
	struct others *others = *place;

	if (others == NULL)
		return;
	*place = NULL;
	http_cancel(others->request);
	memory_list_free(others->ids);
	memory_free(others->page);
	memory_free(others);
}

static void
finish(struct others *others, const struct error *err)
{
	driver_done_fn *done = others->done;
	void *argument = others->argument;

	others_cancel(others->place);
	done(argument, err);
}

static void release_next(struct others *others);

static void
one_released(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct others *others = argument;

	others->request = NULL;
	if (reason != NULL && !others->kind->is_released(answer))
		finish(others, reason);
	else
		release_next(others);
}

static void list_page(struct others *others);

static void
release_next(struct others *others)
{
	const char *id;

	if (others->next == others->count) {
		if (others->page != NULL && ++others->pages < PAGES_MAX)
			list_page(others);
		else
			finish(others, NULL);
		return;
	}
	id = others->ids[others->next++];
	log_info("sandbox %s has our label and was made for nothing: it is %s", id,
	    others->destroys ? "destroyed" : "stopped");
	others->request = others->kind->release(
	    others->sandbox, id, others->destroys, one_released, others);
}

static void
listed(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct others *others = argument;
	struct error err;

	others->request = NULL;
	if (reason != NULL) {
		finish(others, reason);
		return;
	}
	memory_list_free(others->ids);
	memory_free(others->page);
	others->ids = NULL;
	others->page = NULL;
	others->next = others->count = 0;
	if (others->kind->read(others->sandbox, answer, others->destroys, &others->ids,
		&others->count, &others->page, &err) != 0)
		finish(others, &err);
	else
		release_next(others);
}

static void
list_page(struct others *others)
{
	others->request = others->kind->list(others->sandbox, others->page, listed, others);
}

void
others_release(const struct others_kind *kind, struct driver_sandbox *sandbox,
    struct others **place, enum driver_release release, driver_done_fn *done, void *argument)
{
	struct others *others;

	/* Of a life before. */
	others_cancel(place);
	others = memory_zeroed(1, sizeof(*others));
	others->kind = kind;
	others->sandbox = sandbox;
	others->place = place;
	others->destroys = release == DRIVER_DESTROY;
	others->done = done;
	others->argument = argument;
	*place = others;
	list_page(others);
}
