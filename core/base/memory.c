/* SPDX-License-Identifier: ISC */
/* Allocation that cannot fail for its callers. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/memory.h"

void *
memory_allocate(size_t size)
{
	void *memory;

	memory = malloc(size == 0 ? 1 : size);
	if (memory == NULL)
		log_fatal("out of memory: %zu bytes", size);
	return memory;
}

void *
memory_zeroed(size_t count, size_t size)
{
	void *memory;

	memory = calloc(count == 0 ? 1 : count, size == 0 ? 1 : size);
	if (memory == NULL)
		log_fatal("out of memory: %zu times %zu bytes", count, size);
	return memory;
}

void *
memory_resize(void *memory, size_t count, size_t size)
{
	void *resized;

	if (size != 0 && count > SIZE_MAX / size)
		log_fatal("out of memory: %zu times %zu bytes", count, size);
	resized = realloc(memory, count * size == 0 ? 1 : count * size);
	if (resized == NULL)
		log_fatal("out of memory: %zu times %zu bytes", count, size);
	return resized;
}

char *
memory_text(const char *text)
{
	return memory_text_bounded(text, strlen(text));
}

char *
memory_text_bounded(const void *data, size_t length)
{
	char *text;

	text = memory_allocate(length + 1);
	if (length > 0)
		memcpy(text, data, length);
	text[length] = '\0';
	return text;
}

char *
memory_text_format(const char *format, ...)
{
	va_list arguments;
	char *text;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (length < 0)
		log_fatal("cannot format \"%s\"", format);
	text = memory_allocate((size_t)length + 1);
	va_start(arguments, format);
	(void)vsnprintf(text, (size_t)length + 1, format, arguments);
	va_end(arguments);
	return text;
}

char **
memory_list(char *const *list)
{
	char **copy;
	size_t i, count;

	if (list == NULL)
		return NULL;
	for (count = 0; list[count] != NULL; count++)
		continue;
	copy = memory_zeroed(count + 1, sizeof(*copy));
	for (i = 0; i < count; i++)
		copy[i] = memory_text(list[i]);
	return copy;
}

void
memory_list_free(char **list)
{
	size_t i;

	if (list == NULL)
		return;
	for (i = 0; list[i] != NULL; i++)
		memory_free(list[i]);
	memory_free(list);
}

char **
memory_list_add(char **list, size_t count, const char *text)
{
	list = memory_resize(list, count + 2, sizeof(*list));
	list[count] = memory_text(text);
	list[count + 1] = NULL;
	return list;
}

void
memory_free(void *memory)
{
	free(memory);
}

void
memory_text_wipe(char *text)
{
	if (text == NULL)
		return;
	explicit_bzero(text, strlen(text));
	free(text);
}
