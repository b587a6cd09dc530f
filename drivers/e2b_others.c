/* SPDX-License-Identifier: ISC */
/*
 * Sandboxes with our label that are not the one we use: made for a worker that was killed before it
 * heard of them.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/json.h"
#include "drivers/e2b_control.h"
#include "drivers/e2b_driver.h"

#define PAGES_MAX 20

struct e2b_others {
	struct driver_sandbox *sandbox;
	bool destroys;
	driver_done_fn *done;
	void *argument;
	struct http_request *request; /* the list's, or that of one release */
	char **ids;                   /* to be released */
	size_t count, next;
	unsigned pages;
	char *page; /* the next one, or NULL */
};

static void
free_others(struct e2b_others *others)
{
	others->sandbox->others = NULL;
	http_cancel(others->request);
	memory_list_free(others->ids);
	memory_free(others->page);
	memory_free(others);
}

static void
finish(struct e2b_others *others, const struct error *err)
{
	driver_done_fn *done = others->done;
	void *argument = others->argument;

	free_others(others);
	done(argument, err);
}

static void release_next(struct e2b_others *others);

static void
one_released(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct e2b_others *others = argument;

	others->request = NULL;
	/* 404: it is gone; 409: it is paused already. */
	if (reason != NULL && answer->status != 404 && answer->status != 409) {
		finish(others, reason);
		return;
	}
	release_next(others);
}

static void list_page(struct e2b_others *others);

static void
release_next(struct e2b_others *others)
{
	char *path;
	const char *id;

	if (others->next == others->count) {
		if (others->page != NULL && ++others->pages < PAGES_MAX)
			list_page(others);
		else
			finish(others, NULL);
		return;
	}
	id = others->ids[others->next++];
	log_info("e2b: sandbox %s has our label and was made for nothing: it is %s", id,
	    others->destroys ? "destroyed" : "paused");
	path = memory_text_format("/sandboxes/%s%s", id, others->destroys ? "" : "/pause");
	others->request = e2b_control_call(others->sandbox, others->destroys ? "DELETE" : "POST",
	    path, others->destroys ? NULL : json_object_new_object(),
	    others->sandbox->request_timeout, one_released, others);
	memory_free(path);
}

static void
listed(void *argument, const struct http_answer *answer, const struct error *reason)
{
	struct e2b_others *others = argument;
	struct error err;

	others->request = NULL;
	memory_free(others->page);
	others->page = answer->next_page == NULL ? NULL : memory_text(answer->next_page);
	memory_list_free(others->ids);
	others->ids = NULL;
	others->next = 0;
	if (reason != NULL)
		finish(others, reason);
	else if (e2b_list_others(others->sandbox, answer, others->destroys, &others->ids,
		     &others->count, &err) != 0)
		finish(others, &err);
	else
		release_next(others);
}

static void
list_page(struct e2b_others *others)
{
	char *path;

	path = e2b_list_path(others->sandbox, false, others->page);
	others->request = e2b_control_call(
	    others->sandbox, "GET", path, NULL, others->sandbox->request_timeout, listed, others);
	memory_free(path);
}

void
e2b_others_cancel(struct driver_sandbox *sandbox)
{
	if (sandbox->others != NULL)
		free_others(sandbox->others);
}

void
e2b_release_others(struct driver_sandbox *sandbox, enum driver_release release,
    driver_done_fn *done, void *argument)
{
	struct e2b_others *others;

	/* Of a life before. */
	e2b_others_cancel(sandbox);
	others = memory_zeroed(1, sizeof(*others));
	others->sandbox = sandbox;
	others->destroys = release == DRIVER_DESTROY;
	others->done = done;
	others->argument = argument;
	sandbox->others = others;
	list_page(others);
}
