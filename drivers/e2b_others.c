/* SPDX-License-Identifier: ISC */
/* How others of ours are listed and released at E2B. */
#include "drivers/others.h"

#include "core/base/memory.h"
#include "core/json.h"
#include "drivers/e2b_control.h"
#include "drivers/e2b_driver.h"

static struct http_request *
list(struct driver_sandbox *sandbox, const char *page, http_done_fn *done, void *argument)
{
	struct http_request *request;
	char *path;

	path = e2b_list_path(sandbox, false, page);
	request = e2b_control_call(
	    sandbox, "GET", path, NULL, sandbox->request_timeout, done, argument);
	memory_free(path);
	return request;
}

static struct http_request *
release(struct driver_sandbox *sandbox, const char *id, bool destroys, http_done_fn *done,
    void *argument)
{
	struct http_request *request;
	char *path;

	path = memory_text_format("/sandboxes/%s%s", id, destroys ? "" : "/pause");
	request = e2b_control_call(sandbox, destroys ? "DELETE" : "POST", path,
	    destroys ? NULL : json_object_new_object(), sandbox->request_timeout, done, argument);
	memory_free(path);
	return request;
}

static bool
is_released(const struct http_answer *answer)
{
	/* It is gone, or paused already. */
	return answer->status == 404 || answer->status == 409;
}

static const struct others_kind kind = { list, e2b_list_others, release, is_released };

void
e2b_release_others(
    struct driver_sandbox *sandbox, enum driver_release how, driver_done_fn *done, void *argument)
{
	others_release(&kind, sandbox, &sandbox->others, how, done, argument);
}
