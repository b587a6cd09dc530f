/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/driver.h"
#include "drivers/probe.h"

int
probe_read(const struct driver_result *result, char **directory, char **user, struct error *err)
{
	char *text, *end;

	text = memory_text_bounded(result->output, result->output_size);
	end = strchr(text, '\n');
	if (text[0] != '/' || end == NULL) {
		memory_free(text);
		return error_set(err, ERROR_UNAVAILABLE, "it tells no directory");
	}
	memory_free(*directory);
	memory_free(*user);
	*directory = memory_text_bounded(text, (size_t)(end - text));
	end++;
	*user = memory_text_bounded(end, strcspn(end, "\n"));
	memory_free(text);
	return 0;
}
