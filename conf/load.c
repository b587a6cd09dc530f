/* SPDX-License-Identifier: ISC */
/*
 * From names and texts to settings. A login's rows depend on its driver, which may be named
 * anywhere in its block or by the global part; so the file is taken apart first and given meaning
 * here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/private.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"

#define SECRET_FILE_MAX (64U * 1024U)

static const char secret_file[] = "file:";

/* The directory that path is in, absolute. */
static char *
directory_of(const char *path, struct error *err)
{
	const char *slash;
	char *directory, *absolute, *copy;

	slash = strrchr(path, '/');
	if (slash == NULL)
		directory = memory_text(".");
	else
		directory = memory_text_bounded(path, slash == path ? 1 : (size_t)(slash - path));
	absolute = realpath(directory, NULL);
	if (absolute == NULL)
		error_system(err, errno, "%s", directory);
	memory_free(directory);
	if (absolute == NULL)
		return NULL;
	copy = memory_text(strcmp(absolute, "/") == 0 ? "" : absolute);
	free(absolute);
	return copy;
}

static char *
resolve_path(const struct conf *conf, const char *path)
{
	if (*path == '/' || *path == '\0')
		return memory_text(path);
	return memory_text_format("%s/%s", conf->directory, path);
}

/* The first line of a secret's file. */
static char *
read_secret(const char *path, struct error *err)
{
	char *text;
	size_t size;

	text = descriptor_read_file(AT_FDCWD, path, SECRET_FILE_MAX, &size, err);
	if (text == NULL)
		return NULL;
	if (strlen(text) != size) {
		error_set(err, ERROR_INVALID, "%s: there is a NUL byte", path);
		explicit_bzero(text, size);
		memory_free(text);
		return NULL;
	}
	explicit_bzero(text + strcspn(text, "\r\n"), size - strcspn(text, "\r\n"));
	return text;
}

/* The value that a text of the file stands for; NULL on failure. */
static char *
resolve(const struct conf *conf, const struct option *option, const char *text, struct error *err)
{
	char *path, *value;

	if (option->type == OPTION_PATH || option->type == OPTION_PATHS)
		return resolve_path(conf, text);
	path = option->type == OPTION_SECRET ? conf_secret_path(conf, text) : NULL;
	value = path == NULL ? memory_text(text) : read_secret(path, err);
	memory_free(path);
	return value;
}

static int
check_value(const struct settings *settings, const struct option *option, const char *text,
    struct error *err)
{
	char *const *entry;

	if (!option_is_list(option))
		return conf_value_check(option, text, err);
	for (entry = settings_list(settings, option->name); *entry != NULL; entry++)
		if (conf_value_check(option, *entry, err) != 0)
			return -1;
	return 0;
}

static int
set_value(const struct conf *conf, struct settings *settings, const struct option *option,
    const char *text, struct error *err)
{
	char *value;
	int result;

	value = resolve(conf, option, text, err);
	if (value == NULL)
		return -1;
	result = settings_set(settings, option->name, value, err);
	if (result == 0)
		result = check_value(settings, option, value, err);
	memory_text_wipe(value);
	return result;
}

/* Sets what an entry says. Settings hold nothing but entries of one block at this time. */
static int
apply_entry(const struct conf *conf, struct settings *settings, const struct option *option,
    const struct conf_entry *entry, struct error *err)
{
	struct error reason;

	if (entry->line != 0 && !option_is_list(option) && settings_has(settings, option->name))
		return conf_file_blame(&conf->file, entry, "it is given twice", err);
	if (set_value(conf, settings, option, entry->text, &reason) != 0)
		return conf_file_blame(&conf->file, entry, reason.message, err);
	return 0;
}

static void
suggest(struct conf_nearest *nearest, const struct option *options, enum option_scope scope)
{
	for (; options->name != NULL; options++)
		if ((options->scope & scope) != 0)
			conf_nearest_add(nearest, options->name);
}

/* The rows that a block may use: conf_options and those of its driver, or of all without one. */
static int
blame_unknown(const struct conf *conf, const struct conf_driver *driver, enum option_scope scope,
    const struct conf_entry *entry, struct error *err)
{
	struct conf_nearest nearest;
	char reason[128];
	size_t i;

	conf_nearest_init(&nearest, entry->name);
	suggest(&nearest, conf_options, scope);
	for (i = 0; i < conf->defaults_count; i++)
		if (driver == NULL || driver == conf->defaults[i].driver)
			suggest(&nearest, conf->defaults[i].driver->options, scope);
	if (nearest.name == NULL)
		return conf_file_blame(&conf->file, entry, "unknown option", err);
	(void)snprintf(reason, sizeof(reason), "unknown option (did you mean %s?)", nearest.name);
	return conf_file_blame(&conf->file, entry, reason, err);
}

static const char *
misplaced(enum option_scope scope)
{
	if (scope == OPTION_GLOBAL)
		return "this option belongs in a [login NAME] block";
	return "this option belongs in front of the first [login NAME] block";
}

/*
 * An entry of the global part that is no row of conf_options: a default for drivers that have it.
 */
static int
apply_default(struct conf *conf, const struct conf_entry *entry, struct error *err)
{
	const struct option *option;
	bool found;
	size_t i;

	found = false;
	for (i = 0; i < conf->defaults_count; i++) {
		option = settings_option(conf->defaults[i].settings, entry->name);
		if (option == NULL)
			continue;
		if ((option->scope & OPTION_GLOBAL) == 0)
			return conf_file_blame(&conf->file, entry, misplaced(OPTION_GLOBAL), err);
		if (apply_entry(conf, conf->defaults[i].settings, option, entry, err) != 0)
			return -1;
		found = true;
	}
	if (!found)
		return blame_unknown(conf, NULL, OPTION_GLOBAL, entry, err);
	return 0;
}

static int
load_global(struct conf *conf, struct error *err)
{
	const struct conf_block *block;
	const struct conf_entry *entry;
	const struct option *option;
	size_t i;
	int result;

	block = &conf->file.blocks[0];
	for (i = 0; i < block->count; i++) {
		entry = &block->entries[i];
		option = settings_option(conf->global, entry->name);
		if (option == NULL)
			result = apply_default(conf, entry, err);
		else if ((option->scope & OPTION_GLOBAL) == 0)
			result = conf_file_blame(&conf->file, entry, misplaced(OPTION_GLOBAL), err);
		else
			result = apply_entry(conf, conf->global, option, entry, err);
		if (result != 0)
			return -1;
	}
	return 0;
}

struct environment {
	const struct conf *conf;
	struct settings *settings;
	struct error *err;
};

/* Lets a variable of our environment stand in for a value that nobody gave. */
static int
apply_variable(void *argument, const struct option *option)
{
	struct environment *environment = argument;
	struct settings *settings = environment->settings;
	const char *value;

	if (option->environment == NULL || settings_has(settings, option->name))
		return 0;
	value = getenv(option->environment);
	if (value == NULL || *value == '\0')
		return 0;
	if (set_value(environment->conf, settings, option, value, environment->err) != 0)
		return error_wrap(environment->err, "environment variable %s", option->environment);
	return 0;
}

static int
apply_environment(const struct conf *conf, struct settings *settings, struct error *err)
{
	struct environment environment = { .conf = conf, .settings = settings, .err = err };

	return settings_each(settings, apply_variable, &environment);
}

/* Finds the driver a login names, in its block or by the global part; none is no error yet. */
static int
find_driver(const struct conf *conf, struct conf_login *login,
    const struct conf_defaults **defaults, struct error *err)
{
	const struct conf_entry *entry;
	struct conf_nearest nearest;
	char reason[160];
	size_t i;

	*defaults = NULL;
	entry = conf_block_find(login->block, "driver", SIZE_MAX);
	if (entry == NULL)
		entry = conf_block_find(&conf->file.blocks[0], "driver", SIZE_MAX);
	if (entry == NULL)
		return 0;
	conf_nearest_init(&nearest, entry->text);
	for (i = 0; i < conf->defaults_count; i++) {
		conf_nearest_add(&nearest, conf->defaults[i].driver->name);
		if (strcmp(conf->defaults[i].driver->name, entry->text) == 0) {
			*defaults = &conf->defaults[i];
			login->driver = conf->defaults[i].driver;
			return 0;
		}
	}
	(void)snprintf(reason, sizeof(reason), "there is no driver \"%.40s\"%s%s%s", entry->text,
	    nearest.name == NULL ? "" : " (did you mean ", nearest.name == NULL ? "" : nearest.name,
	    nearest.name == NULL ? "" : "?)");
	return conf_file_blame(&conf->file, entry, reason, err);
}

/* A name that is no row of the login's: is it an option of a driver that is not the login's? */
static int
blame_login_entry(const struct conf *conf, const struct conf_login *login,
    const struct conf_entry *entry, struct error *err)
{
	char reason[160];
	size_t i;

	for (i = 0; i < conf->defaults_count; i++) {
		if (settings_option(conf->defaults[i].settings, entry->name) == NULL)
			continue;
		(void)snprintf(reason, sizeof(reason), "this is an option of driver %s, and %s%s",
		    conf->defaults[i].driver->name,
		    login->driver == NULL ? "the login has none" : "the login's is ",
		    login->driver == NULL ? "" : login->driver->name);
		return conf_file_blame(&conf->file, entry, reason, err);
	}
	return blame_unknown(conf, login->driver, OPTION_LOGIN, entry, err);
}

static int
load_entries(const struct conf *conf, struct conf_login *login, struct error *err)
{
	const struct conf_block *block;
	const struct conf_entry *entry;
	const struct option *option;
	size_t i;

	block = login->block;
	for (i = 0; i < block->count; i++) {
		entry = &block->entries[i];
		option = settings_option(login->settings, entry->name);
		if (option == NULL)
			return blame_login_entry(conf, login, entry, err);
		if ((option->scope & OPTION_LOGIN) == 0)
			return conf_file_blame(&conf->file, entry, misplaced(OPTION_LOGIN), err);
		if (apply_entry(conf, login->settings, option, entry, err) != 0)
			return -1;
	}
	return 0;
}

static int
load_login(const struct conf *conf, struct conf_login *login, struct error *err)
{
	const struct conf_defaults *defaults;
	const struct option *tables[3] = { conf_options, NULL, NULL };

	if (find_driver(conf, login, &defaults, err) != 0)
		return -1;
	if (login->driver != NULL)
		tables[1] = login->driver->options;
	login->settings = settings_new(tables);
	if (load_entries(conf, login, err) != 0)
		return -1;
	settings_inherit(login->settings, conf->global);
	if (defaults != NULL)
		settings_inherit(login->settings, defaults->settings);
	return apply_environment(conf, login->settings, err);
}

static void
make_tables(struct conf *conf, const struct conf_driver *known)
{
	const struct option *tables[2] = { conf_options, NULL };
	size_t i;

	conf->global = settings_new(tables);
	for (i = 0; known[i].name != NULL; i++)
		continue;
	conf->defaults = memory_zeroed(i, sizeof(*conf->defaults));
	conf->defaults_count = i;
	for (i = 0; i < conf->defaults_count; i++) {
		tables[0] = known[i].options;
		conf->defaults[i].driver = &known[i];
		conf->defaults[i].settings = settings_new(tables);
	}
}

static int
load_logins(struct conf *conf, struct error *err)
{
	size_t i;

	conf->logins_count = conf->file.count - 1;
	conf->logins = memory_zeroed(conf->logins_count, sizeof(*conf->logins));
	for (i = 0; i < conf->logins_count; i++) {
		conf->logins[i].block = &conf->file.blocks[i + 1];
		if (load_login(conf, &conf->logins[i], err) != 0)
			return -1;
	}
	return 0;
}

char *
conf_secret_path(const struct conf *conf, const char *text)
{
	if (strncmp(text, secret_file, strlen(secret_file)) != 0)
		return NULL;
	return resolve_path(conf, text + strlen(secret_file));
}

struct conf *
conf_load(
    const char *path, char *const *overrides, const struct conf_driver *known, struct error *err)
{
	struct conf *conf;

	conf = memory_zeroed(1, sizeof(*conf));
	make_tables(conf, known);
	if (conf_file_read(&conf->file, path, err) != 0)
		goto fail;
	conf->directory = directory_of(path, err);
	if (conf->directory == NULL)
		goto fail;
	for (; overrides != NULL && *overrides != NULL; overrides++)
		if (conf_file_override(&conf->file, *overrides, err) != 0)
			goto fail;
	if (load_global(conf, err) != 0 || apply_environment(conf, conf->global, err) != 0 ||
	    load_logins(conf, err) != 0)
		goto fail;
	return conf;
fail:
	conf_free(conf);
	return NULL;
}

void
conf_free(struct conf *conf)
{
	size_t i;

	if (conf == NULL)
		return;
	for (i = 0; i < conf->logins_count; i++)
		settings_free(conf->logins[i].settings);
	for (i = 0; i < conf->defaults_count; i++)
		settings_free(conf->defaults[i].settings);
	settings_free(conf->global);
	memory_free(conf->logins);
	memory_free(conf->defaults);
	memory_free(conf->directory);
	conf_file_free(&conf->file);
	memory_free(conf);
}
