/* SPDX-License-Identifier: ISC */
/* scp -t: files that the client sends. Each appears in one step, once all of it is here. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/file_path.h"
#include "gateway/scp_line.h"
#include "gateway/scp_state.h"

#define BILLION INT64_C(1000000000)
#define UMASK 022U

static void
take_target(struct scp *scp, struct file_reply *reply, const struct error *err)
{
	struct error failure;

	scp->stage = SCP_LINE;
	scp->into_directory = err == NULL && S_ISDIR(reply->attributes.mode);
	if (scp->into_directory ||
	    (!scp->command.directory && (err == NULL || err->code == ERROR_NOT_FOUND))) {
		scp_put_byte(scp, '\0');
		return;
	}
	if (err == NULL)
		error_set(&failure, ERROR_NOT_DIRECTORY, "%s is not a directory",
		    scp->command.paths[0].text);
	scp_warn(scp, err == NULL ? &failure : err);
	scp_finish(scp);
}

void
scp_sink_start(struct scp *scp)
{
	struct file_request request;

	file_request_init(&request, FILE_STAT);
	request.flags = FILE_FOLLOW;
	request.path = memory_text(scp->command.paths[0].text);
	scp_ask(scp, &request, take_target);
}

/*
 * Where something of this name goes: into the directory that is being filled, or it is the target.
 */
static char *
place_of(const struct scp *scp, const char *name)
{
	const char *target = scp->command.paths[0].text;

	if (scp->depth > 0)
		return path_join(scp->levels[scp->depth - 1].path, name);
	return scp->into_directory ? path_join(target, name) : memory_text(target);
}

/* An answer to the client: the file, or directory, may come, or why not. */
static void
answer(struct scp *scp, const struct error *err)
{
	if (err == NULL)
		scp_put_byte(scp, '\0');
	else
		scp_warn(scp, err);
}

static void
file_opened(struct scp *scp, struct file_reply *reply, const struct error *err)
{
	struct error failure;

	if (err == NULL && scp->item.size > reply->limit) {
		file_too_large(&failure, scp->item.size, reply->limit);
		err = &failure;
	}
	answer(scp, err);
	if (err != NULL) {
		scp_log(scp, "write", scp->item.path, 0, err);
		scp_item_free(&scp->item);
		scp->stage = SCP_LINE;
		return;
	}
	scp->item.fd = reply->fd;
	reply->fd = -1;
	scp->stage = scp->item.size > 0 ? SCP_DATA : SCP_STATUS;
}

static void
begin_file(struct scp *scp, const struct scp_line *line)
{
	struct file_request request;
	struct scp_item *item = &scp->item;

	item->path = place_of(scp, line->name);
	item->size = line->size;
	item->mode = line->mode;
	item->has_times = scp->has_times;
	item->accessed = scp->accessed;
	item->modified = scp->modified;
	scp->has_times = false;
	file_request_init(&request, FILE_EDIT);
	request.flags = FILE_CREATE | FILE_TRUNCATE;
	request.path = memory_text(item->path);
	scp_ask(scp, &request, file_opened);
}

static void
enter_directory(struct scp *scp, const struct error *err)
{
	struct scp_level *level = &scp->levels[scp->depth - 1];

	answer(scp, err);
	if (level->is_new || err != NULL)
		scp_log(scp, "mkdir", level->path, 0, err);
	if (err != NULL)
		scp_level_pop(scp);
	scp->stage = SCP_LINE;
}

static void
directory_found(struct scp *scp, struct file_reply *reply, const struct error *err)
{
	struct error failure;

	if (err == NULL && !S_ISDIR(reply->attributes.mode)) {
		error_set(&failure, ERROR_NOT_DIRECTORY, "%s is not a directory",
		    scp->levels[scp->depth - 1].path);
		err = &failure;
	}
	enter_directory(scp, err);
}

/* One that is there already is fine. */
static void
directory_made(struct scp *scp, struct file_reply *reply, const struct error *err)
{
	struct scp_level *level = &scp->levels[scp->depth - 1];
	struct file_request request;

	(void)reply;
	if (err == NULL || err->code != ERROR_EXISTS) {
		level->is_new = err == NULL;
		enter_directory(scp, err);
		return;
	}
	file_request_init(&request, FILE_STAT);
	request.flags = FILE_FOLLOW;
	request.path = memory_text(level->path);
	scp_ask(scp, &request, directory_found);
}

static void
begin_directory(struct scp *scp, const struct scp_line *line)
{
	struct file_request request;
	struct scp_level *level;
	char *path;

	if (!scp->command.recursive || scp->depth == SCP_DEPTH_MAX) {
		scp_abort(scp, "a directory comes without -r, or too deep");
		return;
	}
	path = place_of(scp, line->name);
	level = &scp->levels[scp->depth++];
	level->path = path;
	level->mode = line->mode;
	level->has_times = scp->has_times;
	level->accessed = scp->accessed;
	level->modified = scp->modified;
	scp->has_times = false;
	file_request_init(&request, FILE_MKDIR);
	request.path = memory_text(path);
	request.change.fields = FILE_CHANGE_MODE;
	/* What follows must fit in, whatever the directory's own mode is to be. */
	request.change.mode = (line->mode & 0777) | 0700;
	scp_ask(scp, &request, directory_made);
}

static void
directory_dressed(struct scp *scp, struct file_reply *reply, const struct error *err)
{
	(void)reply;
	answer(scp, err);
	scp_level_pop(scp);
	scp->stage = SCP_LINE;
}

static void
end_directory(struct scp *scp)
{
	struct file_request request;
	struct scp_level *level;

	if (scp->depth == 0) {
		scp_abort(scp, "the end of a directory that never began");
		return;
	}
	level = &scp->levels[scp->depth - 1];
	file_request_init(&request, FILE_SETSTAT);
	request.flags = FILE_FOLLOW;
	request.path = memory_text(level->path);
	if (scp->command.times || (level->is_new && (level->mode & 0700) != 0700)) {
		request.change.fields |= FILE_CHANGE_MODE;
		request.change.mode = scp->command.times ? level->mode & 07777
							 : level->mode & 0777 & ~UMASK;
	}
	if (level->has_times) {
		request.change.fields |= FILE_CHANGE_TIMES;
		request.change.accessed = level->accessed * BILLION;
		request.change.modified = level->modified * BILLION;
	}
	if (request.change.fields != 0) {
		scp_ask(scp, &request, directory_dressed);
		return;
	}
	file_request_free(&request);
	directory_dressed(scp, NULL, NULL);
}

void
scp_sink_take_line(struct scp *scp, const char *text)
{
	struct scp_line line;
	struct error err;

	if (scp_line_parse(text, &line, &err) != 0) {
		scp_abort(scp, err.message);
		return;
	}
	if (line.type == 'C') {
		begin_file(scp, &line);
	} else if (line.type == 'D') {
		begin_directory(scp, &line);
	} else if (line.type == 'E') {
		end_directory(scp);
	} else {
		scp->has_times = true;
		scp->accessed = line.accessed;
		scp->modified = line.modified;
		scp_put_byte(scp, '\0');
	}
	scp_line_free(&line);
}

void
scp_sink_take_data(struct scp *scp, const unsigned char *data, size_t size)
{
	struct scp_item *item = &scp->item;
	ssize_t written;

	/* After a failure the rest is read over: the client sends it all the same. */
	while (size > 0 && item->trouble.code == ERROR_NONE) {
		written = pwrite(item->fd, data, size, (off_t)item->at);
		if (written < 0 && errno != EINTR)
			error_system(&item->trouble, errno, "%s", item->path);
		if (written > 0) {
			item->at += (uint64_t)written;
			data += written;
			size -= (size_t)written;
		}
	}
	item->at += size;
	if (item->at == item->size)
		scp->stage = SCP_STATUS;
}

static void
file_committed(struct scp *scp, struct file_reply *reply, const struct error *err)
{
	(void)reply;
	answer(scp, err);
	scp_log(scp, "write", scp->item.path, scp->item.size, err);
	scp_item_free(&scp->item);
	scp->stage = SCP_LINE;
}

/* The client says that what it sent is whole. */
void
scp_sink_take_status(struct scp *scp, bool ok)
{
	struct scp_item *item = &scp->item;
	struct file_request request;

	if (!ok && item->trouble.code == ERROR_NONE)
		error_set(&item->trouble, ERROR_ABORTED, "%s: the client could not send all of it",
		    item->path);
	if (item->trouble.code != ERROR_NONE) {
		file_committed(scp, NULL, &item->trouble);
		return;
	}
	file_request_init(&request, FILE_COMMIT);
	request.path = memory_text(item->path);
	request.change.fields |= FILE_CHANGE_MODE;
	request.change.mode = scp->command.times ? item->mode & 07777 : item->mode & 0777 & ~UMASK;
	/* Without -p a file that is there keeps its own. */
	request.flags = scp->command.times ? 0 : FILE_CREATE;
	if (item->has_times) {
		request.change.fields |= FILE_CHANGE_TIMES;
		request.change.accessed = item->accessed * BILLION;
		request.change.modified = item->modified * BILLION;
	}
	request.fd = item->fd;
	item->fd = -1;
	scp_ask(scp, &request, file_committed);
}
