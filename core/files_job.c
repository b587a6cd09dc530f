/* SPDX-License-Identifier: ISC */
/*
 * What one operation makes of the script's replies. What is read lands in a private file here while
 * it arrives, in pieces of which some are under way at a time; what is written goes the other way
 * likewise.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/hex.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/file_glob.h"
#include "core/files.h"
#include "core/files_agent.h"
#include "core/files_backend.h"
#include "core/files_fresh.h"
#include "core/files_job.h"
#include "core/files_script.h"
#include "core/workspace.h"

/* Pieces of one file that are under way at a time. */
#define PIECES_MAX 8U
#define RECORD_SIZE_MAX (FILE_PATH_MAX + 512U)

/* A private file for content: on the disk of this workspace's state, else memory. */
int
files_job_open_spool(const struct files_far *far, struct error *err)
{
	int directory, fd = -1;

	directory = workspace_directory(files_workspace(far->files));
	if (directory >= 0)
		fd = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		fd = memfd_create("rws-spool", MFD_CLOEXEC);
	return fd >= 0 ? fd : error_system(err, errno, "make a private file");
}

void
files_job_free(struct files_job *job)
{
	struct files_job **place;

	for (place = &job->on->far->jobs; *place != job; place = &(*place)->next)
		continue;
	*place = job->next;
	loop_timer_free(job->soon);
	file_reply_free(&job->reply);
	buffer_free(&job->text);
	buffer_free(&job->records);
	descriptor_close(&job->spool);
	memory_free(job->real);
	memory_free(job);
}

void
files_job_free_if_done(struct files_job *job)
{
	if (job->operation == NULL && job->calls == 0)
		files_job_free(job);
}

void
files_job_fail(struct files_job *job, const struct error *err)
{
	struct files_operation *operation = job->operation;

	job->operation = NULL;
	if (operation != NULL)
		files_fail(operation, err);
}

/* The last reply; the job stays while requests of it are not answered. */
void
files_job_finish(struct files_job *job)
{
	struct files_operation *operation = job->operation;
	struct file_reply reply = job->reply;

	file_reply_init(&job->reply);
	job->operation = NULL;
	if (operation != NULL)
		files_reply(operation, &reply);
	else
		file_reply_free(&reply);
}

/* Tells how much has arrived; the first time with the file itself. */
static void
tell_arrived(struct files_job *job)
{
	struct file_reply reply;

	file_reply_init(&reply);
	reply.more = true;
	reply.arrived = job->reply.arrived;
	if (!job->told) {
		reply.attributes = job->reply.attributes;
		reply.limit = job->reply.limit;
		reply.text = job->real == NULL ? NULL : memory_text(job->real);
		reply.fd = descriptor_duplicate(job->spool);
	}
	job->told = true;
	if (job->operation != NULL)
		files_reply(job->operation, &reply);
	else
		file_reply_free(&reply);
}

static void
ask_pieces(struct files_job *job)
{
	uint64_t size;

	while (job->operation != NULL && !job->cut_short && job->offset < job->size &&
	       job->calls < PIECES_MAX) {
		size = job->size - job->offset < FILES_PIECE ? job->size - job->offset
							     : FILES_PIECE;
		files_job_send(job, CALL_GET,
		    files_script_get_line(files_agent_number(job->on->agent), job->real,
			job->offset, size, &job->reply.attributes),
		    (size_t)size);
		job->offset += size;
	}
}

/* Content is complete, or there is more to ask for. */
void
files_job_go_on_reading(struct files_job *job)
{
	bool whole;

	if (job->operation == NULL)
		return;
	if (job->reply.arrived >= job->size || job->cut_short) {
		if (job->calls > 0)
			return;
		if (!job->told) {
			job->reply.text = job->real;
			job->real = NULL;
			job->reply.fd = job->spool;
			job->spool = -1;
		}
		files_job_finish(job);
		return;
	}
	whole = job->verb == FILE_EDIT ||
		(files_operation_request(job->operation)->flags & FILE_WHOLE) != 0;
	if (!whole)
		tell_arrived(job);
	ask_pieces(job);
}

/* OPEN, or an EDIT that keeps what is there, was answered. */
static void
content_known(struct files_job *job)
{
	uint64_t limit = files_limit(job->on->far->files);
	struct error err;

	job->size = job->reply.attributes.size;
	job->offset = job->reply.arrived;
	if (job->size > limit) {
		file_too_large(&err, job->size, limit);
		files_job_fail(job, &err);
		return;
	}
	/* So much was asked for at once; when less came, the file has shrunk. */
	job->cut_short = job->verb == FILE_OPEN && job->reply.arrived < job->size &&
			 job->reply.arrived < FILES_PIECE;
	files_job_go_on_reading(job);
}

/* Feeds pieces as long as the window lets it, and the verb behind the last of them. */
void
files_job_feed(struct files_job *job)
{
	struct file_request *request;
	struct files_agent *agent = job->on->agent;
	uint64_t size;
	uint32_t number;

	while (job->operation != NULL && job->offset < job->size && job->calls < PIECES_MAX) {
		size = job->size - job->offset < FILES_PIECE ? job->size - job->offset
							     : FILES_PIECE;
		number = files_agent_number(agent);
		files_job_send(job, CALL_FEED,
		    memory_text_format(
			"%u feed %llu %u", number, (unsigned long long)size, job->upload),
		    (size_t)size);
		job->offset += size;
	}
	if (job->operation == NULL || job->offset < job->size || job->told)
		return;
	job->told = true;
	request = files_operation_request(job->operation);
	files_job_send(job, CALL_MAIN,
	    files_script_line(files_agent_number(agent), request, job->upload, job->size, 0), 0);
}

/* A listing's record is whole. */
static int
take_record(struct files_job *job, char *record, struct error *err)
{
	struct file_request *request;
	struct file_entry entry;

	if (files_reply_entry(record, &entry, err) != 0)
		return -1;
	if (job->operation == NULL)
		return 0;
	request = files_operation_request(job->operation);
	if (request->glob != NULL && !glob_match(request->glob, entry.path))
		return 0;
	if (request->limit != 0 && job->reply.count >= request->limit)
		return 0;
	job->reply.count++;
	(void)file_list_put(&job->records, &entry);
	if (job->records.length < FILES_PIECE / 4)
		return 0;
	if (descriptor_write(job->spool, buffer_data(&job->records), job->records.length, err) != 0)
		return -1;
	buffer_consume(&job->records, job->records.length);
	return 0;
}

/* Bytes of a listing, which come as they fall. */
int
files_job_take_records(
    struct files_job *job, const unsigned char *data, size_t size, struct error *err)
{
	const unsigned char *end;
	size_t part;

	for (; size > 0; data += part, size -= part) {
		end = memchr(data, '\0', size);
		part = end == NULL ? size : (size_t)(end - data) + 1;
		if (job->text.length + part > RECORD_SIZE_MAX)
			return error_set(err, ERROR_INVALID, "the script's listing makes no sense");
		(void)buffer_append(&job->text, data, part);
		if (end == NULL)
			return 0;
		if (take_record(job, (char *)buffer_data(&job->text), err) != 0)
			return -1;
		buffer_consume(&job->text, job->text.length);
	}
	return 0;
}

/* What a file grew by since it was looked at is left out. */
int
files_job_take_content(
    struct files_call *call, const unsigned char *data, size_t size, struct error *err)
{
	struct files_job *job = call->job;
	uint64_t room;
	ssize_t written;

	room = job->reply.attributes.size - job->reply.arrived;
	if (size > room)
		size = (size_t)room;
	call->got += size;
	while (size > 0 && !job->cut_short) {
		written = pwrite(job->spool, data, size, (off_t)job->reply.arrived);
		if (written < 0 && errno != EINTR)
			return error_system(err, errno, "write a private file");
		if (written > 0) {
			data += written;
			size -= (size_t)written;
			job->reply.arrived += (uint64_t)written;
		}
	}
	return 0;
}

/* The hashes as bytes: a line each, that starts with them in hexadecimal. */
static int
decode_hashes(struct files_job *job, const char *text, struct error *err)
{
	size_t size;

	job->reply.bytes = memory_allocate(strlen(text) / 2 + 1);
	for (; *text != '\0'; text += *text == '\n') {
		size = hex_length(text);
		(void)hex_decode(job->reply.bytes + job->reply.bytes_size, size, text);
		job->reply.bytes_size += size;
		text += strcspn(text, "\n");
	}
	if (job->reply.bytes_size > 0)
		return 0;
	return error_set(err, ERROR_INVALID, "the script sent no hash");
}

static void
decode_names(struct files_job *job, const char *text)
{
	size_t length, count = 0;
	char *name;

	job->reply.names = memory_zeroed(1, sizeof(*job->reply.names));
	for (; *text != '\0'; text += length + 1) {
		length = strcspn(text, "\n");
		name = memory_text_bounded(text, length);
		job->reply.names = memory_list_add(job->reply.names, count++, name);
		memory_free(name);
		if (text[length] == '\0')
			break;
	}
}

/* The listing is whole: the owner reads it from its start. */
static int
end_listing(struct files_job *job, struct error *err)
{
	if (job->spool < 0)
		return error_set(err, ERROR_INVALID, "the script sent no listing");
	if (descriptor_write(job->spool, buffer_data(&job->records), job->records.length, err) != 0)
		return -1;
	(void)lseek(job->spool, 0, SEEK_SET);
	job->reply.fd = job->spool;
	job->spool = -1;
	return 0;
}

/* The verb's text, made what the reply has of it. */
static int
end_text(struct files_job *job, struct error *err)
{
	char *text;
	int result = 0;

	text = memory_text_bounded(buffer_data(&job->text), job->text.length);
	buffer_consume(&job->text, job->text.length);
	if (job->verb == FILE_HASH)
		result = decode_hashes(job, text, err);
	else if (job->verb == FILE_NAMES)
		decode_names(job, text);
	else if (job->texts > 0)
		job->reply.text = memory_text(text);
	memory_free(text);
	return result;
}

/* The verb itself went well. */
void
files_job_end(struct files_job *job)
{
	struct error err;
	int result;

	if (job->operation == NULL)
		return;
	if (job->verb == FILE_OPEN || job->verb == FILE_EDIT) {
		job->reply.limit = files_limit(job->on->far->files);
		if (job->verb == FILE_OPEN ||
		    (files_operation_request(job->operation)->flags & FILE_TRUNCATE) == 0) {
			content_known(job);
			return;
		}
		job->reply.text = job->real;
		job->real = NULL;
		job->reply.fd = job->spool;
		job->spool = -1;
		files_job_finish(job);
		return;
	}
	if (job->verb == FILE_MKDIR)
		files_fresh_add(job->on->far->fresh, files_operation_request(job->operation)->path);
	result = job->verb == FILE_LIST ? end_listing(job, &err) : end_text(job, &err);
	if (result == 0)
		files_job_finish(job);
	else
		files_job_fail(job, &err);
}

void
files_job_drop(struct files_job *job)
{
	if (job->verb == FILE_COMMIT && !job->told)
		files_job_send(job, CALL_FEED,
		    memory_text_format(
			"%u drop %u", files_agent_number(job->on->agent), job->upload),
		    0);
	job->told = true;
}

int
files_job_take_path(
    struct files_job *job, const unsigned char *data, size_t size, struct error *err)
{
	char *whole;

	if (job->text.length + size > FILE_PATH_MAX)
		return error_set(err, ERROR_INVALID, "the script's path is too long");
	(void)buffer_append(&job->text, data, size);
	whole = memory_text_bounded(buffer_data(&job->text), job->text.length);
	memory_free(job->real);
	job->real = whole;
	return 0;
}
