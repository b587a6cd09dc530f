/* SPDX-License-Identifier: ISC */
/* search: a script in the sandbox finds the lines, so that no file is shipped. */
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/snapshot_exclude.h"
#include "core/task.h"
#include "core/workspace.h"
#include "gateway/rpc_call.h"
#include "gateway/rpc_file.h"
#include "gateway/rpc_handlers.h"
#include "gateway/rpc_json.h"
#include "gateway/worker.h"

#define OUTPUT_MAX (8U * 1024U * 1024U)
#define LINE_MAX_SHOWN 1000U
#define LIMIT_STANDARD 200

struct search {
	struct rpc_call *call;
	struct task *task;
	int64_t limit;
};

/* "./PATH" NUL "LINE:TEXT" newline; NULL when it is not. Moves on behind it. */
static struct json_object *
take_match(const char **at, const char *end)
{
	const char *path, *line, *colon, *stop;
	struct json_object *match;
	int64_t number;
	char *digits;
	int result;

	path = *at;
	line = memchr(path, '\0', (size_t)(end - path));
	if (line == NULL)
		return NULL;
	line++;
	stop = memchr(line, '\n', (size_t)(end - line));
	if (stop == NULL)
		return NULL;
	*at = stop + 1;
	colon = memchr(line, ':', (size_t)(stop - line));
	if (colon == NULL || strncmp(path, "./", 2) != 0)
		return NULL;
	digits = memory_text_bounded(line, (size_t)(colon - line));
	result = number_parse(digits, 1, INT64_MAX, &number, NULL);
	memory_free(digits);
	if (result != 0)
		return NULL;
	if (stop - colon - 1 > (ptrdiff_t)LINE_MAX_SHOWN)
		stop = colon + 1 + LINE_MAX_SHOWN;
	match = json_object_new_object();
	rpc_json_put_bytes(match, "path", path + 2, strlen(path + 2));
	rpc_json_put_number(match, "line", number);
	rpc_json_put_bytes(match, "text", colon + 1, (size_t)(stop - colon - 1));
	return match;
}

static void
done(void *argument, struct buffer *output, const struct error *err)
{
	struct search *search = argument;
	struct json_object *result, *matches, *match;
	const char *at, *end;
	int64_t count;

	search->task = NULL;
	if (err != NULL) {
		rpc_call_error(search->call, err);
		return;
	}
	matches = json_object_new_array();
	at = output->length == 0 ? "" : (const char *)buffer_data(output);
	end = at + output->length;
	for (count = 0; count < search->limit && at < end; count++) {
		match = take_match(&at, end);
		if (match == NULL)
			break;
		(void)json_object_array_add(matches, match);
	}
	result = json_object_new_object();
	(void)json_object_object_add(result, "matches", matches);
	rpc_json_put_boolean(result, "truncated", at < end);
	rpc_call_result(search->call, result);
}

static const struct task_events events = { .done = done };

/* A glob without a slash is for names at any depth. */
static char *
include_expression(const char *glob, struct error *err)
{
	char *longer, *expression;

	if (glob == NULL)
		return memory_text("");
	longer = memory_text_format("%s%s", strchr(glob, '/') == NULL ? "**/" : "", glob);
	expression = snapshot_expression(longer, err);
	memory_free(longer);
	return expression;
}

static void
start_task(struct search *search, struct json_object *parameters, char *directory, char *include,
    const struct snapshot_exclude *exclude)
{
	char root[] = ".", text[] = "text", expression[] = "expression", any[] = "any";
	char exact[] = "exact", limit[24], *pattern, *arguments[10];
	struct task_setup setup = { 0 };

	pattern = memory_text(rpc_json_get_text(parameters, "pattern", ""));
	(void)snprintf(limit, sizeof(limit), "%lld", (long long)search->limit);
	arguments[0] = root;
	arguments[1] = directory;
	arguments[2] = rpc_json_get_boolean(parameters, "regex", false) ? expression : text;
	arguments[3] = rpc_json_get_boolean(parameters, "ignore_case", false) ? any : exact;
	arguments[4] = limit;
	arguments[5] = pattern;
	arguments[6] = include;
	arguments[7] = exclude->exclude;
	arguments[8] = exclude->hold;
	arguments[9] = NULL;
	setup.script = "search";
	setup.arguments = arguments;
	setup.max = OUTPUT_MAX;
	search->task = task_start(search->call->rpc->worker->workspace, &setup, &events, search);
	memory_free(pattern);
}

static void
search_start(struct rpc_call *call, struct json_object *parameters)
{
	struct snapshot_exclude exclude = { 0 };
	char **patterns, *directory, *include;
	struct search *search;
	struct error err;

	patterns = rpc_json_get_list(parameters, "exclude");
	include = include_expression(rpc_json_get_text(parameters, "glob", NULL), &err);
	if (include == NULL || snapshot_exclude_make(&exclude, patterns, &err) != 0) {
		rpc_call_error(call, &err);
	} else {
		search = memory_zeroed(1, sizeof(*search));
		search->call = call;
		search->limit = rpc_json_get_number(parameters, "limit", LIMIT_STANDARD);
		call->state = search;
		directory = file_call_path(parameters, "path", ".");
		start_task(search, parameters, directory, include, &exclude);
		memory_free(directory);
	}
	snapshot_exclude_free(&exclude);
	memory_free(include);
	memory_list_free(patterns);
}

static void
search_cancel(struct rpc_call *call)
{
	struct search *search = call->state;

	if (search != NULL && search->task != NULL)
		task_abort(search->task);
}

static void
search_drop(struct rpc_call *call)
{
	struct search *search = call->state;

	call->state = NULL;
	if (search == NULL)
		return;
	task_free(search->task);
	memory_free(search);
}

const struct rpc_handler rpc_search_handlers[] = {
	{ "search", search_start, search_cancel, search_drop, NULL, NULL },
	{ .name = NULL },
};
