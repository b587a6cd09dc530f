/* SPDX-License-Identifier: ISC */
/* The few kinds that MCP has blocks for, and what a model may want to know of others. */
#include <string.h>

#include "core/base/utf8.h"
#include "gateway/rpc_kind.h"

static const struct {
	size_t offset;
	const char *bytes;
	size_t length;
	const char *kind;
} marks[] = {
	{ 0, "\x89PNG\r\n\x1a\n", 8, "image/png" },
	{ 0, "\xff\xd8\xff", 3, "image/jpeg" },
	{ 0, "GIF87a", 6, "image/gif" },
	{ 0, "GIF89a", 6, "image/gif" },
	{ 8, "WEBP", 4, "image/webp" },
	{ 8, "WAVE", 4, "audio/wav" },
	{ 0, "ID3", 3, "audio/mpeg" },
	{ 0, "\xff\xfb", 2, "audio/mpeg" },
	{ 0, "OggS", 4, "audio/ogg" },
	{ 0, "fLaC", 4, "audio/flac" },
	{ 0, "%PDF-", 5, "application/pdf" },
	{ 0, "PK\x03\x04", 4, "application/zip" },
	{ 0, "\x1f\x8b", 2, "application/gzip" },
};

const char *
content_kind(const unsigned char *data, size_t size)
{
	size_t i;

	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (size >= marks[i].offset + marks[i].length &&
		    memcmp(data + marks[i].offset, marks[i].bytes, marks[i].length) == 0)
			return marks[i].kind;
	if (size == 0 || utf8_valid((const char *)data, size))
		return "text/plain";
	return "application/octet-stream";
}
