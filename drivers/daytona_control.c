/* SPDX-License-Identifier: ISC */
#include <ctype.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/base/option.h"
#include "core/json.h"
#include "drivers/daytona_control.h"
#include "drivers/http_answer.h"

#define ID_MAX 128
#define PAGE_SIZE 100
#define MINUTE INT64_C(60000)

static const char label_managed[] = "rws-managed";
static const char label_instance[] = "rws-instance";

/* Adds NAME=VALUE pairs to a new object. */
static struct json_object *
make_pairs(const struct settings *settings, const char *option)
{
	struct json_object *object;
	char *const *pair;
	char *name;

	object = json_object_new_object();
	for (pair = settings_list(settings, option); *pair != NULL; pair++) {
		name = memory_text_bounded(*pair, strcspn(*pair, "="));
		json_add_text(object, name, *pair + strlen(name) + 1);
		memory_free(name);
	}
	return object;
}

static struct json_object *
make_labels(const struct driver_sandbox *sandbox)
{
	struct json_object *labels;

	labels = make_pairs(sandbox->context.settings, "labels");
	json_add_text(labels, label_managed, "true");
	json_add_text(labels, label_instance, sandbox->context.instance);
	return labels;
}

/* cpu, memory and disk. */
static void
add_resources(struct json_object *body, const struct settings *settings)
{
	char *const *pair;
	struct error err;
	int64_t number;
	char *name;

	for (pair = settings_list(settings, "resources"); *pair != NULL; pair++) {
		name = memory_text_bounded(*pair, strcspn(*pair, "="));
		if (number_parse(*pair + strlen(name) + 1, 1, INT64_MAX, &number, &err) == 0)
			json_object_object_add(body, name, json_object_new_int64(number));
		memory_free(name);
	}
}

/* The options were checked when the sandbox was opened. */
static void
add_origin(struct json_object *body, const struct settings *settings)
{
	struct json_object *build;
	const char *image;
	char *text;

	image = settings_text(settings, "image");
	if (image == NULL) {
		json_add_text(body, "snapshot", settings_text(settings, "snapshot"));
		return;
	}
	build = json_object_new_object();
	text = memory_text_format("FROM %s\n", image);
	json_add_text(build, "dockerfileContent", text);
	memory_free(text);
	json_object_object_add(body, "buildInfo", build);
	add_resources(body, settings);
}

struct json_object *
daytona_create_body(const struct driver_sandbox *sandbox, const char *name)
{
	const struct settings *settings = sandbox->context.settings;
	struct json_object *body;
	int64_t minutes;

	body = json_object_new_object();
	add_origin(body, settings);
	json_add_text(body, "name", name);
	json_add_text(body, "target", settings_text(settings, "target"));
	json_object_object_add(body, "env", make_pairs(settings, "sandbox_env"));
	json_object_object_add(body, "labels", make_labels(sandbox));
	minutes = (settings_number(settings, "auto_stop_interval") + MINUTE - 1) / MINUTE;
	json_object_object_add(body, "autoStopInterval", json_object_new_int64(minutes));
	json_object_object_add(body, "autoDeleteInterval", json_object_new_int(-1));
	return body;
}

char *
daytona_list_path(const struct driver_sandbox *sandbox, const char *cursor)
{
	struct json_object *filter;
	char *labels, *path, *next;

	filter = json_object_new_object();
	json_add_text(filter, label_managed, "true");
	json_add_text(filter, label_instance, sandbox->context.instance);
	labels = http_escape(json_print(filter));
	next = cursor == NULL ? NULL : http_escape(cursor);
	path = memory_text_format("/sandbox?limit=%d&labels=%s%s%s", PAGE_SIZE, labels,
	    next == NULL ? "" : "&cursor=", next == NULL ? "" : next);
	memory_free(labels);
	memory_free(next);
	json_object_put(filter);
	return path;
}

static bool
is_ours(const struct driver_sandbox *sandbox, const struct json_object *object)
{
	const char *text;

	text = json_text(json_member(object, "labels", json_type_object), label_instance);
	return text != NULL && strcmp(text, sandbox->context.instance) == 0;
}

/* An id goes into paths of URLs. */
static bool
is_id(const char *text)
{
	const char *at;

	if (text == NULL || text[0] == '\0' || strlen(text) > ID_MAX)
		return false;
	for (at = text; *at != '\0'; at++)
		if (!isalnum((unsigned char)*at) && strchr("_-", *at) == NULL)
			return false;
	return true;
}

static enum daytona_state
read_state(const char *word)
{
	static const struct {
		const char *word;
		enum daytona_state state;
	} states[] = {
		{ "started", DAYTONA_STARTED },
		{ "stopped", DAYTONA_STOPPED },
		{ "archived", DAYTONA_STOPPED },
		{ "paused", DAYTONA_STOPPED },
		{ "destroyed", DAYTONA_GONE },
		{ "destroying", DAYTONA_GONE },
		{ "error", DAYTONA_FAILED },
		{ "build_failed", DAYTONA_FAILED },
	};
	size_t i;

	for (i = 0; word != NULL && i < sizeof(states) / sizeof(states[0]); i++)
		if (strcmp(word, states[i].word) == 0)
			return states[i].state;
	return DAYTONA_MOVING;
}

int
daytona_find_ours(const struct driver_sandbox *sandbox, const struct http_answer *answer, char **id,
    char **cursor, struct error *err)
{
	struct json_object *object, *list, *entry;
	enum daytona_state state;
	const char *text;
	size_t i;

	*id = *cursor = NULL;
	object = http_answer_object(answer, err);
	if (object == NULL)
		return error_wrap(err, "the list of sandboxes");
	list = json_member(object, "items", json_type_array);
	for (i = 0; list != NULL && i < json_object_array_length(list); i++) {
		entry = json_object_array_get_idx(list, i);
		text = json_text(entry, "id");
		state = read_state(json_text(entry, "state"));
		if (!is_ours(sandbox, entry) || !is_id(text) || state == DAYTONA_GONE ||
		    state == DAYTONA_FAILED || (*id != NULL && state != DAYTONA_STARTED))
			continue;
		memory_free(*id);
		*id = memory_text(text);
		if (state == DAYTONA_STARTED)
			break;
	}
	text = json_text(object, "nextCursor");
	if (text != NULL)
		*cursor = memory_text(text);
	json_object_put(object);
	return 0;
}

int
daytona_list_others(const struct driver_sandbox *sandbox, const struct http_answer *answer,
    bool destroys, char ***ids, size_t *count, char **cursor, struct error *err)
{
	struct json_object *object, *list, *entry;
	enum daytona_state state;
	const char *text;
	size_t i;

	if (sandbox->id == NULL || sandbox->is_lost)
		return error_set(err, ERROR_UNAVAILABLE, "the sandbox is lost");
	object = http_answer_object(answer, err);
	if (object == NULL)
		return error_wrap(err, "the list of sandboxes");
	*ids = memory_zeroed(1, sizeof(**ids));
	list = json_member(object, "items", json_type_array);
	for (i = 0; list != NULL && i < json_object_array_length(list); i++) {
		entry = json_object_array_get_idx(list, i);
		text = json_text(entry, "id");
		state = read_state(json_text(entry, "state"));
		if (is_ours(sandbox, entry) && is_id(text) && strcmp(text, sandbox->id) != 0 &&
		    state != DAYTONA_GONE && (destroys || state == DAYTONA_STARTED))
			*ids = memory_list_add(*ids, (*count)++, text);
	}
	text = json_text(object, "nextCursor");
	if (text != NULL)
		*cursor = memory_text(text);
	json_object_put(object);
	return 0;
}

int
daytona_read_look(const struct driver_sandbox *sandbox, const struct http_answer *answer,
    struct daytona_look *look, struct error *err)
{
	struct json_object *object;
	const char *text;

	memset(look, 0, sizeof(*look));
	object = http_answer_object(answer, err);
	if (object == NULL)
		return error_wrap(err, "the answer");
	text = json_text(object, "id");
	if (!is_id(text)) {
		json_object_put(object);
		return error_set(err, ERROR_UNAVAILABLE, "the answer names no sandbox");
	}
	look->id = memory_text(text);
	text = json_text(object, "state");
	look->state = read_state(text);
	look->word = memory_text(text == NULL ? "unknown" : text);
	text = json_text(object, "errorReason");
	look->reason = memory_text(text == NULL ? "no reason is given" : text);
	text = json_text(object, "toolboxProxyUrl");
	if (text != NULL && strncmp(text, "http", 4) == 0)
		look->toolbox = memory_text_bounded(
		    text, strlen(text) - (text[strlen(text) - 1] == '/' ? 1 : 0));
	look->is_ours = is_ours(sandbox, object);
	json_object_put(object);
	return 0;
}

void
daytona_look_clear(struct daytona_look *look)
{
	memory_free(look->id);
	memory_free(look->toolbox);
	memory_free(look->reason);
	memory_free(look->word);
	memset(look, 0, sizeof(*look));
}
