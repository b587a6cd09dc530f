/* SPDX-License-Identifier: ISC */
/*
 * Files by our script in the sandbox, for every driver that has nothing better. Two agents run it:
 * one for what is quick, one for what may take long, so that a hash of a big file holds up no
 * listing. Content goes in pieces, some under way at a time, with other requests in between; what
 * is read lands in a private file here while it arrives, and what is written is collected in one
 * before it is sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/file_glob.h"
#include "core/file_path.h"
#include "core/files.h"
#include "core/files_agent.h"
#include "core/files_backend.h"
#include "core/files_script.h"
#include "core/workspace.h"

/* Pieces of one file that are under way at a time. */
#define PIECES_MAX 8U
#define TEXT_SIZE_MAX (256U * 1024U)
#define RECORD_SIZE_MAX (FILE_PATH_MAX + 512U)
#define SWEEP_MIN 1000

enum {
	AGENT_QUICK,
	AGENT_LONG,
	AGENTS,
};

enum call_kind {
	CALL_MAIN, /* the verb itself */
	CALL_FEED, /* a piece of content on its way there */
	CALL_GET,  /* one on its way here */
};

struct far_agent {
	struct files_far *far;
	struct files_agent *agent; /* NULL until needed */
	struct call *first, *last; /* requests that are not answered, in their order */
};

/* One operation. */
struct job {
	struct job *next;
	struct far_agent *on;
	struct files_operation
	    *operation; /* NULL: cancelled, or answered with replies still to come */
	enum file_verb verb;
	unsigned calls;          /* not answered */
	struct file_reply reply; /* in the making */
	struct buffer text;      /* data that is no file's content */
	unsigned texts;          /* data lines so far */
	struct buffer records;   /* of a listing, to be written to reply.fd */
	int spool;               /* content */
	uint64_t offset, size;   /* of content: asked for or sent so far, and in all */
	char *real;
	uint32_t upload;
	bool told;               /* the first reply of several was given */
	bool cut_short;          /* the file ended before its size */
	struct loop_timer *soon; /* answers what needs no question */
	struct error failure;    /* what it answers */
};

struct call {
	struct call *next;
	struct job *job; /* NULL: a sweep */
	uint32_t number;
	enum call_kind kind;
	uint64_t wanted, got; /* bytes of a piece */
};

struct files_far {
	struct files *files;
	struct far_agent agents[AGENTS];
	struct job *jobs;
	uint32_t last_upload;
	struct loop_timer *sweep;
};

/* A private file for content: on the disk of this workspace's state, else memory. */
static int
open_spool(const struct files_far *far, struct error *err)
{
	int directory, fd = -1;

	directory = workspace_directory(files_workspace(far->files));
	if (directory >= 0)
		fd = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		fd = memfd_create("rws-spool", MFD_CLOEXEC);
	return fd >= 0 ? fd : error_system(err, errno, "make a private file");
}

static void
free_job(struct job *job)
{
	struct job **place;

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

static void
free_if_done(struct job *job)
{
	if (job->operation == NULL && job->calls == 0)
		free_job(job);
}

static void
fail_job(struct job *job, const struct error *err)
{
	struct files_operation *operation = job->operation;

	job->operation = NULL;
	if (operation != NULL)
		files_fail(operation, err);
}

/* The last reply; the job stays while requests of it are not answered. */
static void
finish_job(struct job *job)
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

static void send_call(struct job *job, enum call_kind kind, char *line, size_t size);

/* Tells how much has arrived; the first time with the file itself. */
static void
tell_arrived(struct job *job)
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
ask_pieces(struct job *job)
{
	uint64_t size;

	while (job->operation != NULL && !job->cut_short && job->offset < job->size &&
	       job->calls < PIECES_MAX) {
		size = job->size - job->offset < FILES_PIECE ? job->size - job->offset
							     : FILES_PIECE;
		send_call(job, CALL_GET,
		    files_script_get_line(files_agent_number(job->on->agent), job->real,
			job->offset, size, &job->reply.attributes),
		    (size_t)size);
		job->offset += size;
	}
}

/* Content is complete, or there is more to ask for. */
static void
go_on_reading(struct job *job)
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
		finish_job(job);
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
content_known(struct job *job)
{
	uint64_t limit = files_limit(job->on->far->files);
	struct error err;

	job->size = job->reply.attributes.size;
	job->offset = job->reply.arrived;
	if (job->size > limit) {
		file_too_large(&err, job->size, limit);
		fail_job(job, &err);
		return;
	}
	/* So much was asked for at once; when less came, the file has shrunk. */
	job->cut_short = job->verb == FILE_OPEN && job->reply.arrived < job->size &&
			 job->reply.arrived < FILES_PIECE;
	go_on_reading(job);
}

/* Feeds pieces as long as the window lets it, and the verb behind the last of them. */
static void
feed_pieces(struct job *job)
{
	struct file_request *request;
	struct files_agent *agent = job->on->agent;
	uint64_t size;
	uint32_t number;

	while (job->operation != NULL && job->offset < job->size && job->calls < PIECES_MAX) {
		size = job->size - job->offset < FILES_PIECE ? job->size - job->offset
							     : FILES_PIECE;
		number = files_agent_number(agent);
		send_call(job, CALL_FEED,
		    memory_text_format(
			"%u feed %llu %u", number, (unsigned long long)size, job->upload),
		    (size_t)size);
		job->offset += size;
	}
	if (job->operation == NULL || job->offset < job->size || job->told)
		return;
	job->told = true;
	request = files_operation_request(job->operation);
	/* In the script's words: a mode that is only for a new file. */
	send_call(job, CALL_MAIN,
	    files_script_line(files_agent_number(agent), request, job->upload, job->size, 0), 0);
}

/* A listing's record is whole. */
static int
take_record(struct job *job, char *record, struct error *err)
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
static int
take_records(struct job *job, const unsigned char *data, size_t size, struct error *err)
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
static int
take_content(struct call *call, const unsigned char *data, size_t size, struct error *err)
{
	struct job *job = call->job;
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
decode_hashes(struct job *job, const char *text, struct error *err)
{
	static const char digits[] = "0123456789abcdef";
	const char *high, *low;

	job->reply.bytes = memory_allocate(strlen(text) / 2 + 1);
	while (*text != '\0') {
		while ((high = strchr(digits, text[0])) != NULL && *high != '\0' &&
		       (low = strchr(digits, text[1])) != NULL && *low != '\0') {
			job->reply.bytes[job->reply.bytes_size++] = (unsigned char)((high - digits)
											<< 4 |
										    (low - digits));
			text += 2;
		}
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	if (job->reply.bytes_size > 0)
		return 0;
	return error_set(err, ERROR_INVALID, "the script sent no hash");
}

static void
decode_names(struct job *job, const char *text)
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

/* Where listings go. */
static int
end_listing(struct job *job, struct error *err)
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
end_text(struct job *job, struct error *err)
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
static void
end_main(struct job *job)
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
		finish_job(job);
		return;
	}
	result = job->verb == FILE_LIST ? end_listing(job, &err) : end_text(job, &err);
	if (result == 0)
		finish_job(job);
	else
		fail_job(job, &err);
}

static void
send_drop(struct job *job)
{
	if (job->verb == FILE_COMMIT && !job->told)
		send_call(job, CALL_FEED,
		    memory_text_format(
			"%u drop %u", files_agent_number(job->on->agent), job->upload),
		    0);
	job->told = true;
}

static void
call_ended(struct call *call, const struct error *failure)
{
	struct job *job = call->job;

	job->calls--;
	if (failure != NULL) {
		fail_job(job, failure);
		send_drop(job);
	} else if (call->kind == CALL_MAIN) {
		end_main(job);
	} else if (call->kind == CALL_GET) {
		/* The file has shrunk; what pieces behind it held belongs elsewhere. */
		if (call->got < call->wanted)
			job->cut_short = true;
		go_on_reading(job);
	} else {
		feed_pieces(job);
	}
	free_if_done(job);
}

static int
take_line(void *argument, const struct files_reply_line *line, struct error *err)
{
	struct far_agent *on = argument;
	struct call *call = on->first;

	if (call == NULL || call->number != line->number)
		return error_set(err, ERROR_INVALID, "the script answers what was not asked");
	if (call->job == NULL && line->kind != FILES_REPLY_OK && line->kind != FILES_REPLY_FAIL)
		return error_set(err, ERROR_INVALID, "the script answers what was not asked");
	if (line->kind == FILES_REPLY_ATTRIBUTES && call->kind == CALL_MAIN) {
		call->job->reply.attributes = line->attributes;
	} else if (line->kind == FILES_REPLY_VOLUME) {
		call->job->reply.volume = line->volume;
	} else if (line->kind == FILES_REPLY_DATA) {
		call->job->texts++;
	} else if (line->kind == FILES_REPLY_OK || line->kind == FILES_REPLY_FAIL) {
		on->first = call->next;
		if (on->first == NULL)
			on->last = NULL;
		if (call->job != NULL)
			call_ended(call, line->kind == FILES_REPLY_FAIL ? &line->failure : NULL);
		memory_free(call);
	}
	return 0;
}

static int
take_real_path(struct job *job, const unsigned char *data, size_t size, struct error *err)
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

static int
take_data(
    void *argument, uint32_t number, const unsigned char *data, size_t size, struct error *err)
{
	struct far_agent *on = argument;
	struct call *call = on->first;
	struct job *job = call->job;

	(void)number;
	if (job == NULL)
		return error_set(err, ERROR_INVALID, "the script answers what was not asked");
	if (job->verb == FILE_LIST)
		return take_records(job, data, size, err);
	if (job->verb == FILE_OPEN || job->verb == FILE_EDIT) {
		/* Of OPEN the path comes first, then the file's beginning. */
		if (call->kind == CALL_MAIN && job->texts == 1)
			return take_real_path(job, data, size, err);
		return take_content(call, data, size, err);
	}
	if (size > buffer_room(&job->text))
		return error_set(err, ERROR_INVALID, "the script's reply is too long");
	return buffer_append(&job->text, data, size);
}

static void
agent_lost(void *argument, const struct error *err)
{
	struct far_agent *on = argument;

	files_lost(on->far->files, err);
}

static const struct files_agent_events agent_events = {
	.replies = { .line = take_line, .data = take_data },
	.lost = agent_lost,
};

/* A request that was just numbered: its number was the last one given. */
static struct call *
add_call(struct far_agent *on, struct job *job, enum call_kind kind)
{
	struct call *call;

	call = memory_zeroed(1, sizeof(*call));
	call->job = job;
	call->kind = kind;
	call->number = files_agent_last_number(on->agent);
	if (on->last != NULL)
		on->last->next = call;
	else
		on->first = call;
	on->last = call;
	return call;
}

/* Sends a line, which is freed here; of a piece size bytes, with FEED those of the spool at the
 * offset. */
static void
send_call(struct job *job, enum call_kind kind, char *line, size_t size)
{
	bool feeds = kind == CALL_FEED && size > 0;

	add_call(job->on, job, kind)->wanted = size;
	job->calls++;
	files_agent_send(
	    job->on->agent, line, feeds ? job->spool : -1, job->offset, feeds ? size : 0);
	memory_free(line);
}

/* Has the script look for what is left of others, now and then. */
static void
send_sweep(void *argument)
{
	struct files_far *far = argument;
	struct far_agent *on = &far->agents[AGENT_QUICK];
	int64_t age;
	char *line;

	age = settings_number(workspace_settings(files_workspace(far->files)), "leftover_age");
	line = memory_text_format("%u sweep", files_agent_number(on->agent));
	(void)add_call(on, NULL, CALL_MAIN);
	files_agent_send(on->agent, line, -1, 0, 0);
	memory_free(line);
	loop_timer_start(far->sweep, age < SWEEP_MIN ? SWEEP_MIN : age);
}

static bool
takes_long(const struct file_request *request)
{
	return ((request->verb == FILE_LIST || request->verb == FILE_REMOVE) &&
		   (request->flags & (FILE_RECURSIVE | FILE_TRASH)) == FILE_RECURSIVE) ||
	       request->verb == FILE_COPY || request->verb == FILE_HASH;
}

static struct far_agent *
choose_agent(struct files_far *far, const struct file_request *request)
{
	struct far_agent *on;

	on = &far->agents[takes_long(request) ? AGENT_LONG : AGENT_QUICK];
	on->far = far;
	if (on->agent != NULL)
		return on;
	on->agent = files_agent_open(files_workspace(far->files), &agent_events, on);
	if (on == &far->agents[AGENT_QUICK])
		send_sweep(far);
	return on;
}

/* Paths go out absolute and normal. */
static int
normalize(const struct files_far *far, char **path, struct error *err)
{
	char *normal;

	if (*path == NULL)
		return 0;
	normal = path_normalize(workspace_root(files_workspace(far->files)), *path, err);
	if (normal == NULL)
		return -1;
	memory_free(*path);
	*path = normal;
	return 0;
}

static int
prepare(struct job *job, struct file_request *request, struct error *err)
{
	const struct files_far *far = job->on->far;
	uint64_t limit = files_limit(far->files);
	struct stat status;

	if (normalize(far, &request->path, err) != 0 ||
	    (request->verb != FILE_SYMLINK && normalize(far, &request->other, err) != 0))
		return -1;
	if (request->verb == FILE_OPEN || request->verb == FILE_EDIT ||
	    request->verb == FILE_LIST) {
		job->spool = open_spool(far, err);
		return job->spool < 0 ? -1 : 0;
	}
	if (request->verb == FILE_SETSTAT && (request->change.fields & FILE_CHANGE_SIZE) != 0 &&
	    request->change.size > limit)
		return file_too_large(err, request->change.size, limit);
	if (request->verb != FILE_COMMIT)
		return 0;
	job->spool = request->fd;
	request->fd = -1;
	if (fstat(job->spool, &status) != 0 || !S_ISREG(status.st_mode))
		return error_set(err, ERROR_INVALID, "the content is not a regular file");
	job->size = (uint64_t)status.st_size;
	return job->size > limit ? file_too_large(err, job->size, limit) : 0;
}

static void
answer_soon(void *argument)
{
	struct job *job = argument;

	finish_job(job);
	free_if_done(job);
}

static void
fail_soon(void *argument)
{
	struct job *job = argument;
	struct error err = job->failure;

	fail_job(job, &err);
	free_if_done(job);
}

/*
 * Whoever begins a file anew need not wait to hear that this may be done: the trip that would take
 * is one of two for a small file, and COMMIT says the same.
 */
static void
begin_anew(struct job *job)
{
	job->reply.fd = job->spool;
	job->spool = -1;
	job->reply.limit = files_limit(job->on->far->files);
	job->soon = loop_timer_new(
	    workspace_loop(files_workspace(job->on->far->files)), answer_soon, job);
	loop_timer_start(job->soon, 0);
}

static void
send_script(struct files_far *far, struct files_operation *operation)
{
	struct file_request *request = files_operation_request(operation);
	const unsigned anew = FILE_CREATE | FILE_TRUNCATE;
	struct job *job;

	job = memory_zeroed(1, sizeof(*job));
	job->on = choose_agent(far, request);
	job->operation = operation;
	job->verb = request->verb;
	job->spool = -1;
	job->next = far->jobs;
	far->jobs = job;
	file_reply_init(&job->reply);
	buffer_init(&job->text, TEXT_SIZE_MAX);
	buffer_init(&job->records, FILES_PIECE);
	*files_operation_state(operation) = job;
	if (prepare(job, request, &job->failure) != 0) {
		job->soon = loop_timer_new(
		    workspace_loop(files_workspace(far->files)), fail_soon, job);
		loop_timer_start(job->soon, 0);
	} else if (job->verb == FILE_EDIT && (request->flags & (anew | FILE_EXCLUSIVE)) == anew) {
		begin_anew(job);
	} else if (job->verb == FILE_COMMIT) {
		job->upload = ++far->last_upload;
		feed_pieces(job);
	} else {
		send_call(job, CALL_MAIN,
		    files_script_line(
			files_agent_number(job->on->agent), request, 0, 0, files_limit(far->files)),
		    0);
	}
}

static void
cancel_script(struct files_far *far, struct files_operation *operation)
{
	struct job *job = *files_operation_state(operation);

	(void)far;
	job->operation = NULL;
	if (job->calls > 0)
		send_drop(job);
	free_if_done(job);
}

static void
close_script(struct files_far *far)
{
	struct call *call;
	size_t i;

	for (i = 0; i < AGENTS; i++) {
		files_agent_close(far->agents[i].agent);
		while ((call = far->agents[i].first) != NULL) {
			far->agents[i].first = call->next;
			memory_free(call);
		}
	}
	while (far->jobs != NULL)
		free_job(far->jobs);
	loop_timer_free(far->sweep);
	memory_free(far);
}

static struct files_far *
open_script(struct files *files, struct error *err)
{
	struct files_far *far;

	(void)err;
	far = memory_zeroed(1, sizeof(*far));
	far->files = files;
	far->sweep = loop_timer_new(workspace_loop(files_workspace(files)), send_sweep, far);
	return far;
}

const struct files_backend files_script = {
	.open = open_script,
	.close = close_script,
	.send = send_script,
	.cancel = cancel_script,
};
