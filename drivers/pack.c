/* SPDX-License-Identifier: ISC */
/* This is the drivers' door to libarchive. */
#include <string.h>
#include <time.h>

#include <archive.h>
#include <archive_entry.h>

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "drivers/pack.h"

/* What headers, padding and incompressible bytes may add to the content. */
#define OVERHEAD ((size_t)256 * 1024)
#define MODE 0600

struct pack {
	struct archive *archive;
	struct buffer out;
};

static la_ssize_t
take_bytes(struct archive *archive, void *argument, const void *data, size_t size)
{
	struct pack *pack = argument;

	if (buffer_append(&pack->out, data, size) == 0)
		return (la_ssize_t)size;
	archive_set_error(archive, ARCHIVE_FATAL, "the archive is too big");
	return -1;
}

static int
fail(const struct pack *pack, struct error *err)
{
	const char *text;

	text = archive_error_string(pack->archive);
	return error_set(err, ERROR_INVALID, "pack the file: %s", text == NULL ? "unknown" : text);
}

/* Speed counts for more than size: what is sent is often packed already. */
static int
open_archive(struct pack *pack)
{
	struct archive *archive = pack->archive;

	if (archive_write_set_format_pax_restricted(archive) != ARCHIVE_OK ||
	    archive_write_add_filter_gzip(archive) != ARCHIVE_OK ||
	    archive_write_set_filter_option(archive, "gzip", "compression-level", "1") !=
		ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(archive, 1) != ARCHIVE_OK)
		return -1;
	/* A name is bytes, whatever the locale. */
	(void)archive_write_set_format_option(archive, "pax", "hdrcharset", "BINARY");
	return archive_write_open(archive, pack, NULL, take_bytes, NULL) == ARCHIVE_OK ? 0 : -1;
}

static int
write_head(struct pack *pack, const char *path, size_t size)
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
	result = archive_write_header(pack->archive, entry);
	archive_entry_free(entry);
	return result == ARCHIVE_OK || result == ARCHIVE_WARN ? 0 : -1;
}

struct pack *
pack_new(const char *path, size_t size, struct error *err)
{
	struct pack *pack;

	pack = memory_zeroed(1, sizeof(*pack));
	buffer_init(&pack->out, size + size / 16 + OVERHEAD);
	pack->archive = archive_write_new();
	if (pack->archive == NULL) {
		error_set(err, ERROR_UNAVAILABLE, "there is no memory to pack the file");
	} else if (open_archive(pack) != 0 || write_head(pack, path, size) != 0) {
		fail(pack, err);
	} else {
		return pack;
	}
	pack_free(pack);
	return NULL;
}

void
pack_free(struct pack *pack)
{
	if (pack == NULL)
		return;
	if (pack->archive != NULL)
		(void)archive_write_free(pack->archive);
	buffer_wipe(&pack->out);
	memory_free(pack);
}

int
pack_put(struct pack *pack, const void *data, size_t size, struct error *err)
{
	la_ssize_t put;

	put = archive_write_data(pack->archive, data, size);
	if (put < 0)
		return fail(pack, err);
	if ((size_t)put != size)
		return error_set(err, ERROR_INVALID, "more was to be packed than was announced");
	return 0;
}

const struct buffer *
pack_finish(struct pack *pack, struct error *err)
{
	if (archive_write_close(pack->archive) == ARCHIVE_OK)
		return &pack->out;
	fail(pack, err);
	return NULL;
}
