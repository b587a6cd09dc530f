/* SPDX-License-Identifier: ISC */
/*
 * Requests on the content of open files. Bytes are read from a descriptor that may still be filled
 * by the worker: a read of what has not arrived waits.
 */
#include <errno.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "gateway/sftp_state.h"

/* Answers with what can be read at the offset; at the end of the file there is nothing. */
static void
put_data(struct sftp *sftp, uint32_t id, struct sftp_file *file, uint64_t offset, uint32_t size)
{
	struct buffer *output = &sftp->output;
	unsigned char *place;
	struct error err;
	size_t start;
	ssize_t got;

	start = sftp_put_start(output, SFTP_DATA, id);
	sftp_put_u32(output, 0);
	place = buffer_reserve(output, size);
	got = place == NULL ? -1 : pread(file->fd, place, size, (off_t)offset);
	if (got > 0) {
		place[-4] = (unsigned char)(got >> 24);
		place[-3] = (unsigned char)(got >> 16);
		place[-2] = (unsigned char)(got >> 8);
		place[-1] = (unsigned char)got;
		buffer_extend(output, (size_t)got);
		sftp_put_finish(output, start);
		file->read += (uint64_t)got;
		return;
	}
	error_system(&err, errno, "%s", file->path);
	output->length = start;
	if (got == 0)
		sftp_put_status(output, id, SFTP_EOF, "End of file");
	else
		sftp_put_error(output, id, &err);
}

/* Can the read be answered with what has arrived? */
static bool
has_arrived(const struct sftp_file *file, uint64_t offset, uint32_t size)
{
	return file->arrival == NULL || file->arrived >= offset + size;
}

void
sftp_answer_waits(struct sftp_file *file)
{
	struct sftp_wait **place, *wait;

	for (place = &file->waits;
	     (wait = *place) != NULL && file->sftp->output.length < SFTP_OUTPUT_HIGH;) {
		if (!has_arrived(file, wait->offset, wait->size)) {
			place = &wait->next;
			continue;
		}
		*place = wait->next;
		if (file->spoiled && file->arrived <= wait->offset)
			sftp_put_error(&file->sftp->output, wait->id, &file->trouble);
		else
			put_data(file->sftp, wait->id, file, wait->offset, wait->size);
		file->sftp->call_count--;
		memory_free(wait);
	}
}

static void
wait_for_bytes(
    struct sftp *sftp, uint32_t id, struct sftp_file *file, uint64_t offset, uint32_t size)
{
	struct sftp_wait **place, *wait;

	wait = memory_zeroed(1, sizeof(*wait));
	wait->id = id;
	wait->offset = offset;
	wait->size = size;
	for (place = &file->waits; *place != NULL; place = &(*place)->next)
		continue;
	*place = wait;
	sftp->call_count++;
}

void
sftp_serve_read(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct sftp_handle *handle;
	uint64_t offset;
	uint32_t size;

	handle = sftp_get_file(sftp, id, input);
	offset = sftp_get_u64(input);
	size = sftp_get_u32(input);
	if (handle == NULL)
		return;
	if (size > SFTP_DATA_MAX)
		size = SFTP_DATA_MAX;
	if (input->failed || !handle->reads || size == 0 || offset > INT64_MAX - SFTP_DATA_MAX)
		sftp_put_refusal(sftp, id, SFTP_BAD_MESSAGE, "a READ that makes no sense");
	else if (!has_arrived(handle->file, offset, size))
		wait_for_bytes(sftp, id, handle->file, offset, size);
	else
		put_data(sftp, id, handle->file, offset, size);
}

static int
write_all(int fd, const unsigned char *data, size_t size, off_t offset)
{
	ssize_t written;

	while (size > 0) {
		written = pwrite(fd, data, size, offset);
		if (written < 0 && errno != EINTR)
			return -1;
		if (written > 0) {
			data += written;
			size -= (size_t)written;
			offset += written;
		}
	}
	return 0;
}

static int
write_data(struct sftp_handle *handle, uint64_t offset, const unsigned char *data, size_t size,
    struct error *err)
{
	struct sftp_file *file = handle->file;
	off_t end;

	if (handle->appends) {
		end = lseek(file->fd, 0, SEEK_END);
		if (end < 0)
			return error_system(err, errno, "%s", file->path);
		offset = (uint64_t)end;
	}
	if (offset > file->limit || size > file->limit - offset)
		return file_too_large(err, offset + size, file->limit);
	if (write_all(file->fd, data, size, (off_t)offset) != 0)
		return error_system(err, errno, "%s", file->path);
	file->written += size;
	file->dirty = true;
	/* What was said about its times holds no longer. */
	file->change.fields &= ~(unsigned)FILE_CHANGE_TIMES;
	return 0;
}

void
sftp_serve_write(struct sftp *sftp, uint32_t id, struct sftp_input *input)
{
	struct sftp_handle *handle;
	const unsigned char *data;
	struct error err;
	uint64_t offset;
	size_t size;

	handle = sftp_get_file(sftp, id, input);
	offset = sftp_get_u64(input);
	data = sftp_get_string(input, &size);
	if (handle == NULL)
		return;
	if (input->failed || !handle->writes || offset > INT64_MAX - SFTP_PACKET_MAX) {
		sftp_put_refusal(sftp, id, SFTP_BAD_MESSAGE, "a WRITE that makes no sense");
	} else if (write_data(handle, offset, data, size, &err) == 0) {
		sftp_put_done(sftp, id, NULL);
	} else {
		log_info("sftp: write %s: %s", handle->path, err.message);
		handle->file->spoiled = true;
		handle->file->trouble = err;
		sftp_put_error(&sftp->output, id, &err);
	}
}
