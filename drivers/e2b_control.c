/* SPDX-License-Identifier: ISC */
/* What is said to the control plane about a sandbox, and what its answers say. */
#include <ctype.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/json.h"
#include "drivers/e2b_control.h"

/* envd before 0.5.2 cannot end a command's input, which every command of ours needs. */
#define VERSION_MIN E2B_VERSION(0, 5, 2)
#define ID_MAX 64

/* Domains whose sandboxes share one host, so that one connection serves them all. */
static const char *const shared_domains[] = { "e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev" };

/* Is text made of nothing but letters, digits and the characters of others? */
static bool
consists_of(const char *text, const char *others)
{
	for (; *text != '\0'; text++)
		if (!isalnum((unsigned char)*text) && strchr(others, *text) == NULL)
			return false;
	return true;
}

/*
 * The value of rws-instance for this instance, of letters, digits and "_.-"; a new text. E2B's list
 * filter decodes three times over, which is no matter for these characters; '_' introduces the
 * others in hex.
 */
static char *
make_label(const char *instance)
{
	static const char digits[] = "0123456789abcdef";
	char *label, *out;

	label = out = memory_allocate(strlen(instance) * 3 + 1);
	for (; *instance != '\0'; instance++) {
		if (isalnum((unsigned char)*instance) || strchr(".-", *instance) != NULL) {
			*out++ = *instance;
			continue;
		}
		*out++ = '_';
		*out++ = digits[(unsigned char)*instance >> 4];
		*out++ = digits[(unsigned char)*instance & 15];
	}
	*out = '\0';
	return label;
}

static int64_t
lifetime_seconds(const struct driver_sandbox *sandbox)
{
	return (sandbox->lifetime + 999) / 1000;
}

struct json_object *
e2b_timeout_body(const struct driver_sandbox *sandbox)
{
	struct json_object *body;

	body = json_object_new_object();
	json_object_object_add(body, "timeout", json_object_new_int64(lifetime_seconds(sandbox)));
	return body;
}

static struct json_object *
make_metadata(const struct driver_sandbox *sandbox)
{
	struct json_object *metadata;
	char *const *pair;
	char *name, *label;

	metadata = json_object_new_object();
	for (pair = settings_list(sandbox->context.settings, "metadata"); *pair != NULL; pair++) {
		name = memory_text_bounded(*pair, strcspn(*pair, "="));
		json_add_text(metadata, name, *pair + strlen(name) + 1);
		memory_free(name);
	}
	label = make_label(sandbox->context.instance);
	json_add_text(metadata, "rws-managed", "true");
	json_add_text(metadata, "rws-instance", label);
	memory_free(label);
	return metadata;
}

/* Is the switch of the login on? Tests know the driver's own options only. */
static bool
is_on(const struct settings *settings, const char *name)
{
	return settings_option(settings, name) != NULL && settings_boolean(settings, name);
}

struct json_object *
e2b_create_body(const struct driver_sandbox *sandbox)
{
	struct json_object *body;

	body = e2b_timeout_body(sandbox);
	json_add_text(body, "templateID", settings_text(sandbox->context.settings, "template"));
	json_object_object_add(body, "secure", json_object_new_boolean(1));
	json_object_object_add(body, "metadata", make_metadata(sandbox));
	if (is_on(sandbox->context.settings, "never_delete"))
		json_object_object_add(body, "autoPause", json_object_new_boolean(1));
	return body;
}

char *
e2b_list_path(const struct driver_sandbox *sandbox, bool old, const char *next_page)
{
	char *label, *page, *path;

	label = make_label(sandbox->context.instance);
	page = next_page == NULL ? NULL : http_escape(next_page);
	path = memory_text_format("%s?metadata=rws-instance%%3D%s%%26rws-managed%%3Dtrue%s%s%s",
	    old ? "/sandboxes" : "/v2/sandboxes", label,
	    old ? "" : "&state=running,paused&limit=100",
	    page == NULL ? "" : "&nextToken=", page == NULL ? "" : page);
	memory_free(label);
	memory_free(page);
	return path;
}

static bool
is_ours(const struct json_object *entry, const char *label)
{
	const char *text;

	text = json_text(json_member(entry, "metadata", json_type_object), "rws-instance");
	return text != NULL && strcmp(text, label) == 0;
}

static bool
is_id(const char *text)
{
	return text != NULL && text[0] != '\0' && strlen(text) <= ID_MAX && consists_of(text, "-");
}

int
e2b_find_ours(const struct driver_sandbox *sandbox, const struct http_answer *answer, char **id,
    char **page, struct error *err)
{
	struct json_object *list, *entry;
	const char *found, *state;
	char *label;
	size_t i;
	bool is_running;

	*id = *page = NULL;
	list = json_parse(answer->body, answer->size, err);
	if (list == NULL || !json_object_is_type(list, json_type_array)) {
		json_object_put(list);
		return error_set(err, ERROR_UNAVAILABLE, "the list of sandboxes is malformed");
	}
	label = make_label(sandbox->context.instance);
	is_running = false;
	for (i = 0; i < json_object_array_length(list) && !is_running; i++) {
		entry = json_object_array_get_idx(list, i);
		found = json_text(entry, "sandboxID");
		/* A server that does not know the filter lists everything. */
		if (!is_ours(entry, label) || !is_id(found))
			continue;
		state = json_text(entry, "state");
		is_running = state == NULL || strcmp(state, "running") == 0;
		if (*id != NULL && !is_running)
			continue;
		memory_free(*id);
		*id = memory_text(found);
	}
	if (answer->next_page != NULL)
		*page = memory_text(answer->next_page);
	memory_free(label);
	json_object_put(list);
	return 0;
}

int
e2b_list_others(const struct driver_sandbox *sandbox, const struct http_answer *answer,
    bool destroys, char ***ids, size_t *count, char **page, struct error *err)
{
	struct json_object *list, *entry;
	const char *found, *state;
	char *label;
	size_t i;

	if (sandbox->id == NULL || sandbox->is_lost)
		return error_set(err, ERROR_UNAVAILABLE, "the sandbox is lost");
	list = json_parse(answer->body, answer->size, err);
	if (list == NULL || !json_object_is_type(list, json_type_array)) {
		json_object_put(list);
		return error_set(err, ERROR_UNAVAILABLE, "the list of sandboxes is malformed");
	}
	*ids = memory_zeroed(1, sizeof(**ids));
	label = make_label(sandbox->context.instance);
	for (i = 0; i < json_object_array_length(list); i++) {
		entry = json_object_array_get_idx(list, i);
		found = json_text(entry, "sandboxID");
		state = json_text(entry, "state");
		if (is_ours(entry, label) && is_id(found) && strcmp(found, sandbox->id) != 0 &&
		    (destroys || state == NULL || strcmp(state, "running") == 0))
			*ids = memory_list_add(*ids, (*count)++, found);
	}
	if (answer->next_page != NULL)
		*page = memory_text(answer->next_page);
	memory_free(label);
	json_object_put(list);
	return 0;
}

/* 0.6.13 as one number, 0 for what is no version; what follows the third part is passed over. */
static unsigned
parse_version(const char *text)
{
	unsigned version, part, digits, i;

	version = 0;
	for (i = 0; text != NULL && i < 3; i++) {
		part = 0;
		for (digits = 0; digits < 4 && isdigit((unsigned char)*text); digits++)
			part = part * 10 + (unsigned)(*text++ - '0');
		if (digits == 0 || part > 999 || (i < 2 && *text++ != '.'))
			return 0;
		version = version * 1000 + part;
	}
	return version;
}

static char *
make_base(const struct driver_sandbox *sandbox, const char *domain)
{
	const char *url;
	size_t i;

	url = settings_text(sandbox->context.settings, "sandbox_url");
	if (url != NULL)
		return memory_text_bounded(
		    url, strlen(url) - (url[strlen(url) - 1] == '/' ? 1 : 0));
	if (domain == NULL || domain[0] == '\0' || !consists_of(domain, ".-:"))
		domain = settings_text(sandbox->context.settings, "domain");
	for (i = 0; i < sizeof(shared_domains) / sizeof(shared_domains[0]); i++)
		if (strcmp(domain, shared_domains[i]) == 0)
			return memory_text_format("https://sandbox.%s", domain);
	return memory_text_format("https://49983-%s.%s", sandbox->id, domain);
}

void
e2b_forget(struct driver_sandbox *sandbox)
{
	memory_free(sandbox->id);
	memory_free(sandbox->id_header);
	memory_free(sandbox->base);
	memory_text_wipe(sandbox->token_header);
	memory_free(sandbox->directory);
	memory_free(sandbox->user);
	sandbox->id = sandbox->id_header = sandbox->base = sandbox->token_header = NULL;
	sandbox->directory = sandbox->user = NULL;
	sandbox->version = 0;
	sandbox->no_stream_input = sandbox->stream_input_works = false;
	sandbox->is_lost = false;
}

/* Control characters in a token would be headers of somebody else's. */
static bool
is_token(const char *text)
{
	for (; *text != '\0'; text++)
		if (!isgraph((unsigned char)*text))
			return false;
	return true;
}

static int
take_sandbox(struct driver_sandbox *sandbox, const struct json_object *object, struct error *err)
{
	const char *id, *token, *version;

	id = json_text(object, "sandboxID");
	if (!is_id(id))
		return error_set(err, ERROR_UNAVAILABLE, "the answer names no sandbox");
	e2b_forget(sandbox);
	sandbox->id = memory_text(id);
	sandbox->id_header = memory_text_format("E2b-Sandbox-Id: %s", id);
	sandbox->base = make_base(sandbox, json_text(object, "domain"));
	token = json_text(object, "envdAccessToken");
	if (token != NULL && is_token(token))
		sandbox->token_header = memory_text_format("X-Access-Token: %s", token);
	version = json_text(object, "envdVersion");
	sandbox->version = parse_version(version);
	if (sandbox->version == 0)
		return error_set(
		    err, ERROR_UNSUPPORTED, "sandbox %s does not tell the version of its envd", id);
	if (sandbox->version < VERSION_MIN)
		return error_set(err, ERROR_UNSUPPORTED,
		    "envd %.20s of sandbox %s cannot end a command's input; build its template again "
		    "to get 0.5.2 or later",
		    version, id);
	return 0;
}

int
e2b_take_answer(struct driver_sandbox *sandbox, const struct http_answer *answer, struct error *err)
{
	struct json_object *object;
	int result;

	object = json_parse_object(answer->body, answer->size, err);
	if (object == NULL)
		return error_wrap(err, "the answer");
	result = take_sandbox(sandbox, object, err);
	json_object_put(object);
	return result;
}
