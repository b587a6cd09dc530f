/* SPDX-License-Identifier: ISC */
/* How others of ours are listed and released at Daytona. */
#include "drivers/others.h"

#include "core/base/memory.h"
#include "drivers/daytona_control.h"
#include "drivers/daytona_driver.h"

/* ms */
#define LIST_TIMEOUT 20000
#define RELEASE_TIMEOUT 60000

static struct http_request *
list(struct driver_sandbox *sandbox, const char *page, http_done_fn *done, void *argument)
{
	struct http_request *request;
	char *path;

	path = daytona_list_path(sandbox, page);
	request = daytona_control_call(sandbox,
	    &(struct daytona_call){
		.method = "GET", .path = path, .repeat = HTTP_IDEMPOTENT, .timeout = LIST_TIMEOUT },
	    done, argument);
	memory_free(path);
	return request;
}

static struct http_request *
release(struct driver_sandbox *sandbox, const char *id, bool destroys, http_done_fn *done,
    void *argument)
{
	struct http_request *request;
	char *path;

	path = memory_text_format("/sandbox/%s%s", id, destroys ? "" : "/stop");
	request = daytona_control_call(sandbox,
	    &(struct daytona_call){ .method = destroys ? "DELETE" : "POST",
		.path = path,
		.repeat = HTTP_IDEMPOTENT,
		.timeout = RELEASE_TIMEOUT },
	    done, argument);
	memory_free(path);
	return request;
}

/* One on its way to another state (409) is looked at again. */
static bool
is_released(const struct http_answer *answer)
{
	return answer->status == 404;
}

static const struct others_kind kind = { list, daytona_list_others, release, is_released };

void
daytona_release_others(
    struct driver_sandbox *sandbox, enum driver_release how, driver_done_fn *done, void *argument)
{
	others_release(&kind, sandbox, &sandbox->others, how, done, argument);
}
