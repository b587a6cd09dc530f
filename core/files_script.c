/* SPDX-License-Identifier: ISC */
/* Our script in the sandbox. */
#include <stddef.h>

#include "core/base/error.h"
#include "core/files_backend.h"

static struct files_far *
open_script(struct files *files, struct error *err)
{
	(void)files;
	error_set(err, ERROR_UNSUPPORTED, "this driver has no files yet");
	return NULL;
}

const struct files_backend files_script = {
	.open = open_script,
};
