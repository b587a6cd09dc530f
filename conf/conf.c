/* SPDX-License-Identifier: ISC */
/* What a loaded configuration answers. */
#include <string.h>

#include "conf/conf.h"
#include "conf/private.h"
#include "core/base/memory.h"

const struct settings *
conf_global(const struct conf *conf)
{
	return conf->global;
}

size_t
conf_login_count(const struct conf *conf)
{
	return conf->logins_count;
}

const char *
conf_login_name(const struct conf *conf, size_t index)
{
	return conf->logins[index].block->name;
}

const struct settings *
conf_login(const struct conf *conf, size_t index)
{
	return conf->logins[index].settings;
}

int
conf_login_find(const struct conf *conf, const char *name)
{
	size_t i;

	for (i = 0; i < conf->logins_count; i++)
		if (strcmp(conf_login_name(conf, i), name) == 0)
			return (int)i;
	return -1;
}

const struct conf_entry *
conf_block_find(const struct conf_block *block, const char *option, size_t entry)
{
	const struct conf_entry *found;
	size_t i;

	found = NULL;
	for (i = 0; i < block->count; i++) {
		if (strcmp(block->entries[i].name, option) != 0)
			continue;
		found = &block->entries[i];
		if (entry-- == 0)
			break;
	}
	return found;
}

const struct conf_entry *
conf_entry_find(const struct conf *conf, size_t login, const char *option, size_t entry)
{
	const struct conf_entry *found;

	found = conf_block_find(conf->logins[login].block, option, entry);
	if (found == NULL)
		found = conf_block_find(&conf->file.blocks[0], option, entry);
	return found;
}

/* Where an entry stands, or without one the value of an option that has no entry; a new text. */
static char *
origin(const struct conf *conf, const struct conf_entry *found, const struct settings *settings,
    const char *option)
{
	const struct option *row;

	if (found != NULL && found->line == 0)
		return memory_text("-o");
	if (found != NULL)
		return memory_text_format("%s:%u", conf->file.path, found->line);
	row = settings_option(settings, option);
	if (row != NULL && row->environment != NULL && settings_has(settings, option))
		return memory_text(row->environment);
	return memory_text(conf->file.path);
}

char *
conf_global_origin(const struct conf *conf, const char *option)
{
	return origin(
	    conf, conf_block_find(&conf->file.blocks[0], option, 0), conf_global(conf), option);
}

char *
conf_login_origin(const struct conf *conf, size_t index, const char *option, size_t entry)
{
	return origin(
	    conf, conf_entry_find(conf, index, option, entry), conf_login(conf, index), option);
}
