/* SPDX-License-Identifier: ISC */
/* This is the drivers' door to libarchive. */
#include <string.h>
#include <time.h>

#include <archive.h>
#include <archive_entry.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "drivers/vercel_tar.h"

/* What headers, padding and incompressible bytes may add to the content. */
#define OVERHEAD ((size_t)256 * 1024)
#define MODE 0600

struct vercel_tar {
	struct archive *archive;
	struct buffer out;
};

static la_ssize_t
take_bytes(struct archive *archive, void *argument, const void *data, size_t size)
{
	struct vercel_tar *tar = argument;

	if (buffer_append(&tar->out, data, size) == 0)
		return (la_ssize_t)size;
	archive_set_error(archive, ARCHIVE_FATAL, "the archive is too big");
	return -1;
}

static int
fail(const struct vercel_tar *tar, struct error *err)
{
	const char *text;

	text = archive_error_string(tar->archive);
	return error_set(err, ERROR_INVALID, "pack the file: %s", text == NULL ? "unknown" : text);
}

/* Speed counts for more than size: what is sent is often packed already. */
static int
open_archive(struct vercel_tar *tar)
{
	struct archive *archive = tar->archive;

	if (archive_write_set_format_pax_restricted(archive) != ARCHIVE_OK ||
	    archive_write_add_filter_gzip(archive) != ARCHIVE_OK ||
	    archive_write_set_filter_option(archive, "gzip", "compression-level", "1") !=
		ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(archive, 1) != ARCHIVE_OK)
		return -1;
	/* A name is bytes, whatever the locale. */
	(void)archive_write_set_format_option(archive, "pax", "hdrcharset", "BINARY");
	return archive_write_open(archive, tar, NULL, take_bytes, NULL) == ARCHIVE_OK ? 0 : -1;
}

static int
write_head(struct vercel_tar *tar, const char *path, size_t size)
{
	struct archive_entry *entry;
	int result;

	entry = archive_entry_new();
	archive_entry_set_pathname(entry, path + strspn(path, "/"));
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, MODE);
	archive_entry_set_size(entry, (la_int64_t)size);
	archive_entry_set_uid(entry, 0);
	archive_entry_set_gid(entry, 0);
	archive_entry_set_mtime(entry, time(NULL), 0);
	result = archive_write_header(tar->archive, entry);
	archive_entry_free(entry);
	return result == ARCHIVE_OK || result == ARCHIVE_WARN ? 0 : -1;
}

struct vercel_tar *
vercel_tar_new(const char *path, size_t size, struct error *err)
{
	struct vercel_tar *tar;

	tar = memory_zeroed(1, sizeof(*tar));
	buffer_init(&tar->out, size + size / 16 + OVERHEAD);
	tar->archive = archive_write_new();
	if (tar->archive == NULL) {
		error_set(err, ERROR_UNAVAILABLE, "there is no memory to pack the file");
	} else if (open_archive(tar) != 0 || write_head(tar, path, size) != 0) {
		fail(tar, err);
	} else {
		return tar;
	}
	vercel_tar_free(tar);
	return NULL;
}

void
vercel_tar_free(struct vercel_tar *tar)
{
	if (tar == NULL)
		return;
	if (tar->archive != NULL)
		(void)archive_write_free(tar->archive);
	buffer_wipe(&tar->out);
	memory_free(tar);
}

int
vercel_tar_put(struct vercel_tar *tar, const void *data, size_t size, struct error *err)
{
	la_ssize_t put;

	put = archive_write_data(tar->archive, data, size);
	if (put < 0)
		return fail(tar, err);
	if ((size_t)put != size)
		return error_set(err, ERROR_INVALID, "more was to be packed than was announced");
	return 0;
}

const struct buffer *
vercel_tar_finish(struct vercel_tar *tar, struct error *err)
{
	if (archive_write_close(tar->archive) == ARCHIVE_OK)
		return &tar->out;
	fail(tar, err);
	return NULL;
}
