/* SPDX-License-Identifier: ISC */
/*
 * Memory that is there or the process ends: a session or worker serves one user, so giving up is
 * the safe answer, and the listener allocates little after its start.
 */
#ifndef CORE_BASE_MEMORY_H
#define CORE_BASE_MEMORY_H

#include <stddef.h>

/* Never NULL; size 0 gives a pointer that memory_free takes. */
void *memory_allocate(size_t size) __attribute__((malloc));

/* An array of count zeroed elements; ends the process when the product overflows. */
void *memory_zeroed(size_t count, size_t size) __attribute__((malloc));

/* As realloc(3), for an array of count elements; ends the process when the product overflows. */
void *memory_resize(void *memory, size_t count, size_t size);

/* New texts, to be freed with memory_free. */
char *memory_text(const char *text);

/* A terminated copy of length bytes. */
char *memory_text_bounded(const void *data, size_t length);

char *memory_text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A NULL-ended copy of a NULL-ended list, and its release; both accept NULL. */
char **memory_list(char *const *list);
void memory_list_free(char **list);

/* Appends a copy of text to a NULL-ended list of count entries; returns the new list. */
char **memory_list_add(char **list, size_t count, const char *text);

/* As free(3). */
void memory_free(void *memory);

/* Wipes a text and frees it; accepts NULL. */
void memory_text_wipe(char *text);

#endif
