/* SPDX-License-Identifier: ISC */
/* "rwsd -x": what is in effect, as a file that could be loaded. */
#include <stdbool.h>
#include <stdio.h>

#include "conf/conf.h"
#include "conf/private.h"
#include "core/base/buffer.h"
#include "core/base/memory.h"

struct printer {
	const struct settings *settings;
	enum option_scope scope;
	FILE *file;
};

/* Line number index of an option's value as it would be written; NULL after the last. */
static char *
value_line(const struct settings *settings, const struct option *option, size_t index)
{
	struct buffer line;
	char *value;
	size_t i;

	if (option->type != OPTION_LIST)
		return settings_print(settings, option, index);
	if (index > 0)
		return NULL;
	buffer_init(&line, CONF_FILE_SIZE_MAX);
	for (i = 0; (value = settings_print(settings, option, i)) != NULL; i++) {
		(void)buffer_append_format(&line, "%s%s", i > 0 ? " " : "", value);
		memory_free(value);
	}
	value = i == 0 ? NULL : memory_text_bounded(buffer_data(&line), line.length);
	buffer_free(&line);
	return value;
}

static int
print_option(void *argument, const struct option *option)
{
	const struct printer *printer;
	char *value, *quoted;
	bool is_set;
	size_t i;

	printer = argument;
	is_set = settings_has(printer->settings, option->name);
	if ((option->scope & printer->scope) == 0)
		return 0;
	for (i = 0; (value = value_line(printer->settings, option, i)) != NULL; i++) {
		quoted = conf_file_quote(value);
		(void)fprintf(
		    printer->file, "%s%s = %s\n", is_set ? "" : "#", option->name, quoted);
		memory_text_wipe(quoted);
		memory_text_wipe(value);
	}
	return 0;
}

static void
print_settings(const struct settings *settings, enum option_scope scope, FILE *file)
{
	struct printer printer = { .settings = settings, .scope = scope, .file = file };

	(void)settings_each(settings, print_option, &printer);
}

/* A driver's option that the global part gives, once though several drivers may have it. */
static void
print_default(const struct conf *conf, const char *name, FILE *file)
{
	struct printer printer = { .scope = OPTION_GLOBAL, .file = file };
	const struct option *option;
	size_t i;

	for (i = 0; i < conf->defaults_count; i++) {
		printer.settings = conf->defaults[i].settings;
		option = settings_option(printer.settings, name);
		if (option != NULL) {
			(void)print_option(&printer, option);
			return;
		}
	}
}

static void
print_defaults(const struct conf *conf, FILE *file)
{
	const struct conf_block *block;
	size_t i;

	block = &conf->file.blocks[0];
	for (i = 0; i < block->count; i++)
		if (conf_block_find(block, block->entries[i].name, 0) == &block->entries[i])
			print_default(conf, block->entries[i].name, file);
}

void
conf_print(const struct conf *conf, FILE *file)
{
	size_t i;

	print_settings(conf->global, OPTION_GLOBAL, file);
	print_defaults(conf, file);
	for (i = 0; i < conf->logins_count; i++) {
		(void)fprintf(file, "\n[login %s]\n", conf_login_name(conf, i));
		print_settings(conf_login(conf, i), OPTION_LOGIN, file);
	}
}
