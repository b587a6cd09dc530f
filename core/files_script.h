/* SPDX-License-Identifier: ISC */
/*
 * The request lines of core/scripts/files.sh:
 * what files_script.c sends, made in files_script_line.c.
 */
#ifndef CORE_FILES_SCRIPT_H
#define CORE_FILES_SCRIPT_H

#include <stdint.h>

#include "core/file.h"

/* Bytes of content that go in one piece; small enough that others get their turn in between. */
#define FILES_PIECE (1024U * 1024U)

/*
 * The line for a request whose paths are absolute, a new text. upload is the number under which its
 * content was fed, size that content's; limit is max_file_bytes.
 */
char *files_script_line(uint32_t number, const struct file_request *request, uint32_t upload,
    uint64_t size, uint64_t limit);

/* The line for a piece of a file that was opened, a new text. */
char *files_script_get_line(uint32_t number, const char *path, uint64_t offset, uint64_t size,
    const struct file_attributes *attributes);

#endif
