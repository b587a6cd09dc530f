/* SPDX-License-Identifier: ISC */
/* The embedded scripts by name. */
#include <string.h>

#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/scripts.h"
#include "core/scripts_embedded.h"

char *
script_text(const char *name)
{
	const struct embedded_script *script;

	for (script = embedded_scripts; script->name != NULL; script++)
		if (strcmp(script->name, name) == 0)
			return memory_text_bounded(script->data, script->size);
	log_fatal("there is no script %s", name);
}

char **
script_argv(const char *name, char *const *arguments)
{
	char **argv, *text;
	size_t i, count;

	text = script_text(name);
	argv = memory_zeroed(1, sizeof(*argv));
	count = 0;
	argv = memory_list_add(argv, count++, "sh");
	argv = memory_list_add(argv, count++, "-c");
	argv = memory_list_add(argv, count++, text);
	argv = memory_list_add(argv, count++, name);
	for (i = 0; arguments[i] != NULL; i++)
		argv = memory_list_add(argv, count++, arguments[i]);
	memory_free(text);
	return argv;
}
