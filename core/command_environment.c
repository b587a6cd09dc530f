/* SPDX-License-Identifier: ISC */
/* What a command is told of where it runs. */
#include "core/command_environment.h"

#include <stddef.h>

#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/driver.h"
#include "core/workspace.h"

/* Adds an entry, which it takes over. */
static char **
add(char **environment, size_t *count, char *entry)
{
	environment = memory_list_add(environment, (*count)++, entry);
	memory_free(entry);
	return environment;
}

char **
command_environment(const struct workspace *workspace, char *const *more, bool is_internal)
{
	char **environment;
	size_t count;

	environment = memory_list(settings_list(workspace_settings(workspace), "env"));
	for (count = 0; environment[count] != NULL; count++)
		continue;
	for (; more != NULL && *more != NULL; more++)
		environment = memory_list_add(environment, count++, *more);
	environment = add(
	    environment, &count, memory_text_format("RWS_LOGIN=%s", workspace_login(workspace)));
	environment = add(environment, &count,
	    memory_text_format("RWS_DRIVER=%s", workspace_driver(workspace)->kind->name));
	if (!is_internal)
		environment = add(environment, &count,
		    memory_text_format("RWS_SANDBOX_ID=%s", workspace_id(workspace)));
	return environment;
}
