/* SPDX-License-Identifier: ISC */
/*
 * How others of ours are listed and released at Vercel: a destruction is asked for by the name of
 * the sandbox, a stop by the id of its session.
 */
#include "drivers/others.h"

#include "core/base/memory.h"
#include "drivers/vercel_control.h"
#include "drivers/vercel_driver.h"

/* ms */
#define LIST_TIMEOUT 20000
#define RELEASE_TIMEOUT 80000

static struct http_request *
list(struct driver_sandbox *sandbox, const char *page, http_done_fn *done, void *argument)
{
	struct http_request *request;
	char *query;

	query = vercel_list_query(sandbox, page);
	request = vercel_start_call(sandbox, &(struct vercel_call){ .method = "GET",
						 .path = "/v2/sandboxes",
						 .query = query,
						 .repeat = HTTP_IDEMPOTENT,
						 .timeout = LIST_TIMEOUT,
						 .done = done,
						 .argument = argument });
	memory_free(query);
	return request;
}

static struct http_request *
release(struct driver_sandbox *sandbox, const char *id, bool destroys, http_done_fn *done,
    void *argument)
{
	struct http_request *request;
	char *escaped, *path, *query;

	escaped = http_escape(id);
	path = memory_text_format(
	    destroys ? "/v2/sandboxes/%s" : "/v2/sandboxes/sessions/%s/stop", escaped);
	query = memory_text_format(
	    "&projectId=%s&deleteOrphanSnapshots=true", sandbox->credentials.project);
	request = vercel_start_call(
	    sandbox, &(struct vercel_call){ .method = destroys ? "DELETE" : "POST",
			 .path = path,
			 .query = destroys ? query : NULL,
			 .repeat = HTTP_IDEMPOTENT,
			 .timeout = RELEASE_TIMEOUT,
			 .done = done,
			 .argument = argument });
	memory_free(query);
	memory_free(path);
	memory_free(escaped);
	return request;
}

/* One on its way to another state (422) is looked at again. */
static bool
is_released(const struct http_answer *answer)
{
	return answer->status == 404 || answer->status == 410;
}

static const struct others_kind kind = { list, vercel_list_others, release, is_released };

void
vercel_release_others(
    struct driver_sandbox *sandbox, enum driver_release how, driver_done_fn *done, void *argument)
{
	others_release(&kind, sandbox, &sandbox->others, how, done, argument);
}
