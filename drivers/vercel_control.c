/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/base/option.h"
#include "core/json.h"
#include "drivers/check.h"
#include "drivers/http_answer.h"
#include "drivers/vercel_control.h"

#define MEMORY_PER_VCPU 2048

#define ID_MAX 128 /* of names too */
#define PAGE_SIZE 50

static const char tag_managed[] = "rws-managed";
static const char tag_instance[] = "rws-instance";

char *
vercel_own_name(const struct driver_sandbox *sandbox)
{
	const char *name, *instance;
	char *whole, *at;

	name = settings_text(sandbox->context.settings, "name");
	if (name == NULL)
		return NULL;
	instance = strchr(sandbox->context.login, '+');
	if (instance == NULL)
		return memory_text(name);
	/* Two workspaces of one block are two sandboxes. The only other character in the name of an
	 * instance is a dot. */
	whole = memory_text_format("%s--%s", name, instance + 1);
	for (at = whole; *at != '\0'; at++)
		if (*at == '.')
			*at = '_';
	return whole;
}

/* Is this the value of an option of the login block? Tests know the driver's own options only. */
static bool
is_option(const struct settings *settings, const char *name, const char *value)
{
	return settings_option(settings, name) != NULL && settings_text(settings, name) != NULL &&
	       strcmp(settings_text(settings, name), value) == 0;
}

/* Will a sandbox that we make leave a snapshot when it stops? */
static bool
wants_persistent(const struct settings *settings)
{
	/* One without a name leaves nothing behind, unless it is to survive its end. */
	return settings_text(settings, "name") != NULL ||
	       is_option(settings, "on_dispose", "stop") ||
	       (settings_option(settings, "never_delete") != NULL &&
		   settings_boolean(settings, "never_delete"));
}

const char *
vercel_create_path(const struct driver_sandbox *sandbox)
{
	return settings_text(sandbox->context.settings, "runtime") != NULL ? "/v2/sandboxes"
									   : "/v3/sandboxes";
}

static struct json_object *
make_ports(char *const *ports)
{
	struct json_object *list;
	int64_t number;

	list = json_object_new_array();
	for (; *ports != NULL; ports++)
		if (number_parse(*ports, 1, UINT16_MAX, &number, NULL) == 0)
			json_object_array_add(list, json_object_new_int64(number));
	return list;
}

static void
add_resources(struct json_object *body, int64_t vcpus)
{
	struct json_object *resources;

	if (vcpus == 0)
		return;
	resources = json_object_new_object();
	json_object_object_add(resources, "vcpus", json_object_new_int64(vcpus));
	json_object_object_add(resources, "memory", json_object_new_int64(vcpus * MEMORY_PER_VCPU));
	json_object_object_add(body, "resources", resources);
}

struct json_object *
vercel_create_body(const struct driver_sandbox *sandbox, const char *name)
{
	const struct settings *settings = sandbox->context.settings;
	struct json_object *body, *tags;

	body = json_object_new_object();
	json_add_text(body, "projectId", sandbox->credentials.project);
	json_add_text(body, "name", name);
	json_object_object_add(
	    body, "persistent", json_object_new_boolean(wants_persistent(settings)));
	json_object_object_add(body, "ports", make_ports(settings_list(settings, "ports")));
	json_object_object_add(body, "timeout", json_object_new_int64(sandbox->lifetime));
	json_add_text(body, "image", settings_text(settings, "image"));
	json_add_text(body, "runtime", settings_text(settings, "runtime"));
	add_resources(body, settings_number(settings, "vcpus"));
	tags = json_object_new_object();
	json_add_text(tags, tag_managed, "true");
	json_add_text(tags, tag_instance, sandbox->context.instance);
	json_object_object_add(body, "tags", tags);
	/* The official command line says so when it will want terminals, as we do. */
	json_object_object_add(body, "__interactive", json_object_new_boolean(1));
	return body;
}

char *
vercel_list_query(const struct driver_sandbox *sandbox, const char *cursor)
{
	char *tag, *instance, *next, *query;

	tag = memory_text_format("%s:%s", tag_instance, sandbox->context.instance);
	instance = http_escape(tag);
	next = cursor == NULL ? NULL : http_escape(cursor);
	query = memory_text_format("&project=%s&limit=%d&tags=%s%s%s", sandbox->credentials.project,
	    PAGE_SIZE, instance, next == NULL ? "" : "&cursor=", next == NULL ? "" : next);
	memory_free(tag);
	memory_free(instance);
	memory_free(next);
	return query;
}

static bool
is_ours(const struct driver_sandbox *sandbox, const struct json_object *object)
{
	const char *text;

	text = json_text(json_member(object, "tags", json_type_object), tag_instance);
	return text != NULL && strcmp(text, sandbox->context.instance) == 0;
}

static enum vercel_state
read_state(const char *word)
{
	static const struct {
		const char *word;
		enum vercel_state state;
	} states[] = {
		{ "running", VERCEL_RUNNING },
		{ "stopping", VERCEL_ENDING },
		{ "snapshotting", VERCEL_ENDING },
		{ "stopped", VERCEL_STOPPED },
		{ "failed", VERCEL_FAILED },
		{ "aborted", VERCEL_FAILED },
	};
	size_t i;

	for (i = 0; word != NULL && i < sizeof(states) / sizeof(states[0]); i++)
		if (strcmp(word, states[i].word) == 0)
			return states[i].state;
	return VERCEL_PENDING;
}

int
vercel_find_ours(const struct driver_sandbox *sandbox, const struct http_answer *answer,
    char **name, char **cursor, struct error *err)
{
	struct json_object *object, *list, *entry;
	const char *text;
	bool is_running;
	size_t i;

	*name = *cursor = NULL;
	object = http_answer_object(answer, err);
	if (object == NULL)
		return error_wrap(err, "the list of sandboxes");
	list = json_member(object, "sandboxes", json_type_array);
	is_running = false;
	for (i = 0; list != NULL && i < json_object_array_length(list) && !is_running; i++) {
		entry = json_object_array_get_idx(list, i);
		text = json_text(entry, "name");
		is_running = read_state(json_text(entry, "status")) == VERCEL_RUNNING;
		/* A server that does not know the filter lists everything. */
		if (!is_ours(sandbox, entry) || text == NULL || !check_is_name(text, ID_MAX) ||
		    (*name != NULL && !is_running)) {
			is_running = false;
			continue;
		}
		memory_free(*name);
		*name = memory_text(text);
	}
	text = json_text(json_member(object, "pagination", json_type_object), "next");
	if (text != NULL)
		*cursor = memory_text(text);
	json_object_put(object);
	return 0;
}

int
vercel_list_others(const struct driver_sandbox *sandbox, const struct http_answer *answer,
    bool destroys, char ***ids, size_t *count, char **cursor, struct error *err)
{
	struct json_object *object, *list, *entry;
	const char *name, *id, *text;
	bool is_running;
	size_t i;

	if (sandbox->name == NULL || sandbox->is_lost)
		return error_set(err, ERROR_UNAVAILABLE, "the sandbox is lost");
	object = http_answer_object(answer, err);
	if (object == NULL)
		return error_wrap(err, "the list of sandboxes");
	*ids = memory_zeroed(1, sizeof(**ids));
	list = json_member(object, "sandboxes", json_type_array);
	for (i = 0; list != NULL && i < json_object_array_length(list); i++) {
		entry = json_object_array_get_idx(list, i);
		name = json_text(entry, "name");
		id = destroys ? name : json_text(entry, "currentSessionId");
		is_running = read_state(json_text(entry, "status")) == VERCEL_RUNNING;
		if (is_ours(sandbox, entry) && name != NULL && id != NULL &&
		    check_is_name(id, ID_MAX) && strcmp(name, sandbox->name) != 0 &&
		    (destroys || is_running))
			*ids = memory_list_add(*ids, (*count)++, id);
	}
	text = json_text(json_member(object, "pagination", json_type_object), "next");
	if (text != NULL)
		*cursor = memory_text(text);
	json_object_put(object);
	return 0;
}

static char *
copy_text(const struct json_object *object, const char *name)
{
	const char *text;

	text = json_text(object, name);
	return text == NULL ? NULL : memory_text(text);
}

static void
take_session(struct vercel_look *look, const struct json_object *session)
{
	const char *text;

	look->session = copy_text(session, "id");
	text = json_text(session, "status");
	look->state = read_state(text);
	look->word = memory_text(text == NULL ? "unknown" : text);
	text = json_text(session, "cwd");
	if (text != NULL && text[0] == '/')
		look->directory = memory_text(text);
	look->timeout = json_number(session, "timeout", 0, INT64_MAX / 4, 0);
	look->began = json_number(session, "startedAt", 1, INT64_MAX / 4, 0);
	if (look->began == 0)
		look->began = json_number(session, "createdAt", 1, INT64_MAX / 4, 0);
}

int
vercel_read_look(const struct driver_sandbox *sandbox, const struct http_answer *answer,
    struct vercel_look *look, struct error *err)
{
	struct json_object *object, *named;
	int result;

	memset(look, 0, sizeof(*look));
	object = http_answer_object(answer, err);
	if (object == NULL)
		return error_wrap(err, "the answer");
	take_session(look, json_member(object, "session", json_type_object));
	named = json_member(object, "sandbox", json_type_object);
	look->name = copy_text(named, "name");
	look->is_persistent = json_boolean(named, "persistent");
	look->is_resumed = json_boolean(object, "resumed");
	look->is_ours = is_ours(sandbox, named);
	look->has_snapshot = json_member(object, "snapshot", json_type_object) != NULL;
	json_object_put(object);
	result = 0;
	/* Both go into URLs' paths, and the name to terminals. */
	if (look->session == NULL || !check_is_name(look->session, ID_MAX)) {
		vercel_look_clear(look);
		result = error_set(err, ERROR_UNAVAILABLE, "the answer names no session");
	} else if (look->name != NULL && !check_is_name(look->name, ID_MAX)) {
		vercel_look_clear(look);
		result = error_set(err, ERROR_UNAVAILABLE, "the answer has a name that is none");
	}
	return result;
}

void
vercel_look_clear(struct vercel_look *look)
{
	memory_free(look->name);
	memory_free(look->session);
	memory_free(look->directory);
	memory_free(look->word);
	memset(look, 0, sizeof(*look));
}
