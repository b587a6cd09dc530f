/* SPDX-License-Identifier: ISC */
/*
 * scp -f: files that the client fetches. Directories are read one after another, each by a listing;
 * symlinks are followed, as scp does.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/file_path.h"
#include "gateway/scp_state.h"

#define BILLION INT64_C(1000000000)

static void go_on(struct scp *scp);

/* Waits for the client's yes, and then goes on with answered. */
static void
await(struct scp *scp, void (*answered)(struct scp *scp))
{
	scp->answered = answered;
	scp->stage = SCP_STATUS;
}

/* What cannot be sent is told of, and the next is looked at. */
static void
skip(struct scp *scp, const char *path, const struct error *err)
{
	scp_log(scp, "read", path, 0, err);
	scp_warn(scp, err);
	scp_item_free(&scp->item);
	go_on(scp);
}

static void
file_sent(struct scp *scp)
{
	scp_log(scp, "read", scp->item.path, scp->item.size, NULL);
	scp_item_free(&scp->item);
	go_on(scp);
}

static void
end_of_data(struct scp *scp)
{
	if (scp->item.trouble.code != ERROR_NONE)
		scp_warn(scp, &scp->item.trouble);
	else
		scp_put_byte(scp, '\0');
	await(scp, file_sent);
}

/* Puts the next piece; zeros for what turned out not to be there: so many bytes were promised. */
static bool
put_piece(struct scp *scp)
{
	struct scp_item *item = &scp->item;
	unsigned char *place;
	uint64_t left;
	ssize_t got;
	size_t size;

	left = item->size - item->at;
	size = left < SCP_CHUNK ? (size_t)left : SCP_CHUNK;
	if (scp->arrival != NULL && item->arrived < item->at + size)
		return false;
	place = buffer_reserve(&scp->output, size);
	got = pread(item->fd, place, size, (off_t)item->at);
	if (got <= 0) {
		if (item->trouble.code == ERROR_NONE && got == 0)
			error_set(&item->trouble, ERROR_UNAVAILABLE,
			    "%s became shorter while it was sent", item->path);
		else if (item->trouble.code == ERROR_NONE)
			error_system(&item->trouble, errno, "%s", item->path);
		memset(place, 0, size);
		got = (ssize_t)size;
	}
	buffer_extend(&scp->output, (size_t)got);
	item->at += (uint64_t)got;
	return true;
}

void
scp_source_send_data(struct scp *scp)
{
	while (scp->item.at < scp->item.size && scp->output.length < SCP_OUTPUT_HIGH)
		if (!put_piece(scp))
			return;
	if (scp->item.at == scp->item.size)
		end_of_data(scp);
}

static void
send_data(struct scp *scp)
{
	scp->stage = SCP_DATA;
	scp_source_send_data(scp);
}

static void
put_file_line(struct scp *scp)
{
	(void)buffer_append_format(&scp->output, "C%04o %llu %s\n", scp->item.mode & 07777U,
	    (unsigned long long)scp->item.size, path_last(scp->item.path));
	await(scp, send_data);
}

static void
put_times(struct scp *scp, int64_t accessed, int64_t modified, void (*answered)(struct scp *scp))
{
	(void)buffer_append_format(&scp->output, "T%lld 0 %lld 0\n",
	    (long long)(modified / BILLION), (long long)(accessed / BILLION));
	await(scp, answered);
}

static void
file_opened(struct scp *scp, struct file_reply *reply, const struct error *err)
{
	struct scp_item *item = &scp->item;

	if (item->fd >= 0) {
		/* More of it has arrived, or never will. */
		if (err == NULL)
			item->arrived = reply->arrived;
		else
			item->trouble = *err;
		if (scp->stage == SCP_DATA)
			scp_source_send_data(scp);
		return;
	}
	if (err != NULL) {
		skip(scp, item->path, err);
		return;
	}
	item->fd = reply->fd;
	reply->fd = -1;
	item->size = reply->attributes.size;
	item->mode = reply->attributes.mode;
	item->arrived = reply->arrived;
	if (scp->command.times)
		put_times(
		    scp, reply->attributes.accessed, reply->attributes.modified, put_file_line);
	else
		put_file_line(scp);
}

static void
begin_entries(struct scp *scp)
{
	go_on(scp);
}

static void
put_directory_line(struct scp *scp)
{
	const struct scp_level *level = &scp->levels[scp->depth - 1];

	(void)buffer_append_format(
	    &scp->output, "D%04o 0 %s\n", level->mode & 07777U, path_last(level->path));
	await(scp, begin_entries);
}

static void
directory_listed(struct scp *scp, struct file_reply *reply, const struct error *err)
{
	struct scp_level *level = &scp->levels[scp->depth - 1];

	if (err != NULL) {
		scp_warn(scp, err);
		scp_log(scp, "read", level->path, 0, err);
		scp_level_pop(scp);
		go_on(scp);
		return;
	}
	level->list = file_list_open(reply->fd);
	reply->fd = -1;
	level->mode = reply->attributes.mode;
	if (scp->command.times)
		put_times(scp, reply->attributes.accessed, reply->attributes.modified,
		    put_directory_line);
	else
		put_directory_line(scp);
}

static void
begin_directory(struct scp *scp)
{
	struct file_request request;
	struct error err;

	if (!scp->command.recursive || scp->depth == SCP_DEPTH_MAX) {
		error_set(&err, ERROR_IS_DIRECTORY, "%s is a directory%s", scp->item.path,
		    scp->command.recursive ? ", and too deep" : "");
		skip(scp, scp->item.path, &err);
		return;
	}
	scp->levels[scp->depth++].path = scp->item.path;
	scp->item.path = NULL;
	scp_item_free(&scp->item);
	file_request_init(&request, FILE_LIST);
	request.flags = FILE_HIDDEN;
	request.path = memory_text(scp->levels[scp->depth - 1].path);
	scp_ask(scp, &request, directory_listed);
}

static void
item_known(struct scp *scp, struct file_reply *reply, const struct error *err)
{
	struct file_request request;

	if (err != NULL) {
		skip(scp, scp->item.path, err);
	} else if (S_ISDIR(reply->attributes.mode)) {
		begin_directory(scp);
	} else {
		file_request_init(&request, FILE_OPEN);
		request.path = memory_text(scp->item.path);
		scp_ask(scp, &request, file_opened);
	}
}

/* Looks at the path, which is handed over. */
static void
begin_item(struct scp *scp, char *path)
{
	struct file_request request;

	scp->item.path = path;
	file_request_init(&request, FILE_STAT);
	request.flags = FILE_FOLLOW;
	request.path = memory_text(path);
	scp_ask(scp, &request, item_known);
}

static void
directory_ended(struct scp *scp)
{
	go_on(scp);
}

/* A line of the protocol has no way to say a newline. */
static bool
can_be_said(struct scp *scp, const char *name)
{
	struct error err;

	if (strchr(name, '\n') == NULL)
		return true;
	error_set(&err, ERROR_INVALID, "%s: scp cannot send a name with a newline", name);
	scp_warn(scp, &err);
	return false;
}

/* The next entry of the directory under way, or its end. */
static void
next_entry(struct scp *scp)
{
	struct scp_level *level = &scp->levels[scp->depth - 1];
	struct file_entry entry;
	struct error err;
	int result;

	do
		result = file_list_next(level->list, &entry, &err);
	while (result == 1 && !can_be_said(scp, entry.path));
	if (result == 1) {
		begin_item(scp, path_join(level->path, entry.path));
		return;
	}
	if (result < 0)
		scp_warn(scp, &err);
	scp_level_pop(scp);
	(void)buffer_append_text(&scp->output, "E\n");
	await(scp, directory_ended);
}

static void
pattern_listed(struct scp *scp, struct file_reply *reply, const struct error *err)
{
	if (err == NULL) {
		scp->matches = file_list_open(reply->fd);
		reply->fd = -1;
	}
	go_on(scp);
}

/*
 * The pattern of the current path:
 * what stands before its first part with a wildcard is where to look.
 */
static void
begin_pattern(struct scp *scp, const char *pattern)
{
	struct file_request request;
	size_t wildcard, part;
	char *c, *out;

	wildcard = strcspn(pattern, "*?[");
	for (part = wildcard; part > 0 && pattern[part - 1] != '/'; part--)
		continue;
	scp->matched = false;
	scp->matches_base = part == 0 ? memory_text(".") : memory_text_bounded(pattern, part);
	for (c = out = scp->matches_base; *c != '\0'; c++) {
		if (*c == '\\' && c[1] != '\0')
			c++;
		*out++ = *c;
	}
	*out = '\0';
	file_request_init(&request, FILE_LIST);
	request.path = memory_text(scp->matches_base);
	request.glob = memory_text(pattern + part);
	if (strchr(request.glob, '/') != NULL)
		request.flags |= FILE_RECURSIVE;
	/* As in a shell, a leading dot must be asked for. */
	if (strncmp(request.glob, ".", 1) == 0 || strstr(request.glob, "/.") != NULL)
		request.flags |= FILE_HIDDEN;
	scp_ask(scp, &request, pattern_listed);
}

static void
end_path(struct scp *scp)
{
	file_list_free(scp->matches);
	memory_free(scp->matches_base);
	scp->matches = NULL;
	scp->matches_base = NULL;
	scp->next++;
}

/* What matches the current path's pattern; when nothing does, it is a name like any other. */
static void
next_match(struct scp *scp)
{
	const char *text = scp->command.paths[scp->next].text;
	struct file_entry entry;

	while (scp->matches != NULL && file_list_next(scp->matches, &entry, NULL) == 1) {
		scp->matched = true;
		if (!can_be_said(scp, entry.path))
			continue;
		begin_item(scp, path_join(scp->matches_base, entry.path));
		return;
	}
	end_path(scp);
	if (scp->matched)
		go_on(scp);
	else
		begin_item(scp, memory_text(text));
}

/*
 * The name of what is sent comes from its path:
 * without slashes at its end, and of "." the root's own.
 */
static char *
clean_path(const char *text)
{
	size_t length = strlen(text);

	while (length > 1 && text[length - 1] == '/')
		length--;
	return memory_text_bounded(text, length);
}

/* The next thing to send, of the directory, the pattern or the command line. */
static void
go_on(struct scp *scp)
{
	const struct scp_path *path;

	/* What was still arriving of a file that is done with. */
	scp_cancel(scp);
	scp_item_free(&scp->item);
	if (scp->stage == SCP_DONE)
		return;
	if (scp->depth > 0) {
		next_entry(scp);
	} else if (scp->matches_base != NULL) {
		next_match(scp);
	} else if (scp->next == scp->command.count) {
		scp_finish(scp);
	} else {
		path = &scp->command.paths[scp->next];
		if (path->pattern != NULL) {
			begin_pattern(scp, path->pattern);
		} else {
			scp->next++;
			begin_item(scp, clean_path(path->text));
		}
	}
}

void
scp_source_take_status(struct scp *scp, bool ok)
{
	void (*answered)(struct scp *) = scp->answered;

	scp->answered = NULL;
	if (ok) {
		answered(scp);
	} else if (answered == put_directory_line || answered == begin_entries) {
		/* The client does not want the directory. */
		scp_level_pop(scp);
		go_on(scp);
	} else {
		go_on(scp);
	}
}

/* The client says the first word. */
void
scp_source_start(struct scp *scp)
{
	await(scp, go_on);
}
