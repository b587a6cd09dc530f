/* SPDX-License-Identifier: ISC */
/*
 * libarchive pulls its input, so it runs in a thread of its own between two pipes; the loop fills
 * the first and empties the second. The thread touches nothing but its two descriptors and its
 * verdict, which the loop reads when both pipes are at their end and the thread is joined.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "core/archive.h"
#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"

#define CHUNK_SIZE 65536
#define INPUT_MAX (1024U * 1024U)
#define ENTRIES_MAX ((size_t)64 << 20)
#define BLOCK_SIZE 10240
/*
 * The end of a tar file:
 * readers do without, but then one that was cut between two entries looks whole.
 */
#define END_SIZE 512

/* The thread's side. */
struct work {
	int input, output; /* blocking; the thread's */
	uint64_t max_bytes;
	struct archive_names *names;
	struct buffer entries;
	uint64_t files, bytes;
	struct error err; /* code NONE: all is well */
};

struct archive_copy {
	struct loop *loop;
	const struct archive_events *events;
	void *argument;
	struct work work;
	pthread_t thread;
	int input, output; /* the loop's ends */
	struct loop_watch *input_watch, *output_watch;
	struct buffer waiting; /* for the thread */
	struct buffer copied;  /* not yet taken by the owner */
	bool input_ended;
};

/* What follows the end of the archive, its padding above all. */
static void
drain(int fd)
{
	char scratch[4096];
	ssize_t got;

	do
		got = read(fd, scratch, sizeof(scratch));
	while (got > 0 || (got < 0 && errno == EINTR));
}

static char
entry_type(struct archive_entry *entry)
{
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return 'f';
	case AE_IFDIR:
		return 'd';
	case AE_IFLNK:
		return 'l';
	default:
		return 0;
	}
}

/* A hard link has no type of its own in a tar file; it counts as a file. */
static int
check_entry(struct work *work, struct archive_entry *entry)
{
	const char *name, *link, *target;
	char type;

	name = archive_entry_pathname(entry);
	link = archive_entry_hardlink(entry);
	type = link != NULL ? 'f' : entry_type(entry);
	target = type == 'l' ? archive_entry_symlink(entry) : NULL;
	if (name == NULL || (type == 'l' && target == NULL))
		return error_set(
		    &work->err, ERROR_INVALID, "the archive has a name that cannot be read");
	if (type == 0)
		return error_set(&work->err, ERROR_UNSUPPORTED,
		    "entry %.200s: neither file, directory nor link", name);
	if (archive_names_add(work->names, name, type, target, link, &work->err) != 0)
		return -1;
	if (type != 'f' || link != NULL)
		return 0;
	work->files++;
	work->bytes += (uint64_t)archive_entry_size(entry);
	if (archive_entry_size(entry) < 0 || work->bytes > work->max_bytes)
		return error_set(&work->err, ERROR_TOO_LARGE,
		    "the archive's files have more than max_snapshot_bytes (%llu)",
		    (unsigned long long)work->max_bytes);
	return 0;
}

/* The entry as we write it: only what a workspace's file has. */
static struct archive_entry *
make_entry(struct archive_entry *entry)
{
	struct archive_entry *own;
	char *name;

	own = archive_entry_new();
	name = archive_name(archive_entry_pathname(entry), NULL);
	archive_entry_copy_pathname(own, name);
	memory_free(name);
	archive_entry_set_perm(own, archive_entry_perm(entry));
	archive_entry_set_uid(own, archive_entry_uid(entry));
	archive_entry_set_gid(own, archive_entry_gid(entry));
	archive_entry_set_mtime(own, archive_entry_mtime(entry), archive_entry_mtime_nsec(entry));
	if (archive_entry_hardlink(entry) != NULL) {
		name = archive_name(archive_entry_hardlink(entry), NULL);
		archive_entry_copy_hardlink(own, name);
		memory_free(name);
		archive_entry_set_filetype(own, AE_IFREG);
		archive_entry_set_size(own, 0);
		return own;
	}
	archive_entry_set_filetype(own, archive_entry_filetype(entry));
	archive_entry_set_size(own, entry_type(entry) == 'f' ? archive_entry_size(entry) : 0);
	if (archive_entry_symlink(entry) != NULL)
		archive_entry_copy_symlink(own, archive_entry_symlink(entry));
	return own;
}

/* What libarchive says of its last failure. */
static const char *
reason(struct archive *archive)
{
	const char *text;

	text = archive_error_string(archive);
	return text == NULL ? "no reason" : text;
}

/* The reader of what we write, the script in the sandbox, is gone: its own end says why. */
static int
refuse_output(struct work *work)
{
	return error_set(&work->err, ERROR_ABORTED, "nobody takes the archive");
}

/* Data blocks have offsets: what lies between them are holes. */
static int
copy_data(struct work *work, struct archive *in, struct archive *out)
{
	static const char zeros[CHUNK_SIZE];
	const void *block;
	size_t size, gap;
	int64_t offset, at;
	int status;

	for (at = 0;
	     (status = archive_read_data_block(in, &block, &size, &offset)) == ARCHIVE_OK;) {
		for (; at < offset; at += (int64_t)gap) {
			gap = offset - at < CHUNK_SIZE ? (size_t)(offset - at) : CHUNK_SIZE;
			if (archive_write_data(out, zeros, gap) < 0)
				return refuse_output(work);
		}
		if (size > 0 && archive_write_data(out, block, size) < 0)
			return refuse_output(work);
		at += (int64_t)size;
	}
	if (status != ARCHIVE_EOF)
		return error_set(
		    &work->err, ERROR_INVALID, "the archive is damaged: %.200s", reason(in));
	return 0;
}

static int
copy_entry(struct work *work, struct archive *in, struct archive *out, struct archive_entry *entry)
{
	struct archive_entry *own;
	bool is_root;
	char *name;
	int status;

	if (check_entry(work, entry) != 0)
		return -1;
	name = archive_name(archive_entry_pathname(entry), NULL);
	is_root = name != NULL && strcmp(name, "./") == 0;
	memory_free(name);
	/* The root itself is no entry of a snapshot. */
	if (is_root)
		return 0;
	own = make_entry(entry);
	status = archive_write_header(out, own);
	archive_entry_free(own);
	if (status < ARCHIVE_WARN)
		return error_set(&work->err, ERROR_INVALID,
		    "the archive has an entry that cannot be kept: %.200s", reason(out));
	if (entry_type(entry) != 'f' || archive_entry_hardlink(entry) != NULL)
		return 0;
	return copy_data(work, in, out);
}

static int
copy_entries(struct work *work, struct archive *in, struct archive *out)
{
	struct archive_entry *entry;
	int64_t end;
	int status;

	end = 0;
	while ((status = archive_read_next_header(in, &entry)) == ARCHIVE_OK ||
	       status == ARCHIVE_WARN) {
		if (copy_entry(work, in, out, entry) != 0)
			return -1;
		(void)archive_read_data_skip(in);
		end = archive_filter_bytes(in, 0);
	}
	if (status != ARCHIVE_EOF)
		return error_set(&work->err, ERROR_INVALID,
		    "no tar archive, or a damaged one: %.200s", reason(in));
	if (archive_filter_bytes(in, 0) - end < END_SIZE)
		return error_set(&work->err, ERROR_INVALID, "the archive is cut: it has no end");
	if (archive_write_close(out) != ARCHIVE_OK)
		return refuse_output(work);
	return archive_names_finish(work->names, &work->entries, &work->err);
}

/* Only plain tar: a compressed one could be far larger than it looks. */
static void
copy_archive(struct work *work)
{
	struct archive *in, *out;

	in = archive_read_new();
	out = archive_write_new();
	if (in == NULL || out == NULL || archive_read_support_filter_none(in) != ARCHIVE_OK ||
	    archive_read_support_format_tar(in) != ARCHIVE_OK ||
	    archive_read_open_fd(in, work->input, BLOCK_SIZE) != ARCHIVE_OK ||
	    archive_write_set_format_gnutar(out) != ARCHIVE_OK ||
	    archive_write_open_fd(out, work->output) != ARCHIVE_OK)
		error_set(&work->err, ERROR_INVALID, "no tar archive");
	else
		(void)copy_entries(work, in, out);
	archive_read_free(in);
	/*
	 * Its last words after a fault are read and dropped:
	 * archive_write_fail would leak its buffer.
	 */
	archive_write_free(out);
}

static void *
run_thread(void *argument)
{
	struct work *work = argument;
	locale_t own;
	sigset_t all;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, NULL);
	/* libarchive takes names apart in the locale's character set. */
	own = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (own != (locale_t)0)
		(void)uselocale(own);
	copy_archive(work);
	if (own != (locale_t)0) {
		(void)uselocale(LC_GLOBAL_LOCALE);
		freelocale(own);
	}
	if (work->err.code == ERROR_NONE)
		drain(work->input);
	(void)close(work->input);
	(void)close(work->output);
	return NULL;
}

static void
stop_watching(struct loop_watch **watch, int *fd)
{
	loop_unwatch(*watch);
	*watch = NULL;
	descriptor_close(fd);
}

/* The thread has closed its end: it is over. */
static void
finish(struct archive_copy *copy)
{
	struct work *work = &copy->work;

	(void)pthread_join(copy->thread, NULL);
	stop_watching(&copy->input_watch, &copy->input);
	stop_watching(&copy->output_watch, &copy->output);
	copy->events->done(copy->argument, &work->entries, work->files, work->bytes,
	    work->err.code == ERROR_NONE ? NULL : &work->err);
	archive_names_free(work->names);
	buffer_free(&work->entries);
	buffer_free(&copy->waiting);
	buffer_free(&copy->copied);
	memory_free(copy);
}

/* Offers what is held; true when all was taken. */
static bool
offer(struct archive_copy *copy)
{
	size_t taken;

	if (copy->copied.length == 0)
		return true;
	taken = copy->events->output(
	    copy->argument, buffer_data(&copy->copied), copy->copied.length);
	buffer_consume(&copy->copied, taken);
	return copy->copied.length == 0;
}

static void
output_ready(void *argument, unsigned events)
{
	struct archive_copy *copy = argument;
	unsigned char *place;
	ssize_t got;

	(void)events;
	if (!offer(copy)) {
		loop_unwatch(copy->output_watch);
		copy->output_watch = NULL;
		return;
	}
	place = buffer_reserve(&copy->copied, CHUNK_SIZE);
	got = read(copy->output, place, CHUNK_SIZE);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		finish(copy);
		return;
	}
	buffer_extend(&copy->copied, (size_t)got);
	(void)offer(copy);
}

static void
input_ready(void *argument, unsigned events)
{
	struct archive_copy *copy = argument;
	ssize_t written;

	written = 0;
	if ((events & LOOP_WRITE) == 0) {
		stop_watching(&copy->input_watch, &copy->input);
		buffer_free(&copy->waiting);
		return;
	}
	if (copy->waiting.length > 0)
		written = write(copy->input, buffer_data(&copy->waiting), copy->waiting.length);
	if (written < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	buffer_consume(&copy->waiting, written < 0 ? copy->waiting.length : (size_t)written);
	if (copy->waiting.length == 0 && copy->input_ended)
		stop_watching(&copy->input_watch, &copy->input);
	else if (copy->waiting.length == 0)
		loop_watch_change(copy->input_watch, 0);
	if (!copy->input_ended)
		copy->events->hungry(copy->argument);
}

static int
open_pipes(struct archive_copy *copy, struct error *err)
{
	int in[2], out[2];

	if (descriptor_pipe(in, err) != 0)
		return -1;
	if (descriptor_pipe(out, err) != 0) {
		descriptor_close(&in[0]);
		descriptor_close(&in[1]);
		return -1;
	}
	copy->work.input = in[0];
	copy->input = in[1];
	copy->output = out[0];
	copy->work.output = out[1];
	(void)descriptor_nonblock(copy->input, NULL);
	(void)descriptor_nonblock(copy->output, NULL);
	return 0;
}

struct archive_copy *
archive_copy_new(struct loop *loop, uint64_t max_bytes, const struct archive_events *events,
    void *argument, struct error *err)
{
	struct archive_copy *copy;
	int status;

	copy = memory_zeroed(1, sizeof(*copy));
	copy->loop = loop;
	copy->events = events;
	copy->argument = argument;
	copy->work.max_bytes = max_bytes;
	if (open_pipes(copy, err) != 0) {
		memory_free(copy);
		return NULL;
	}
	copy->work.names = archive_names_new();
	buffer_init(&copy->work.entries, ENTRIES_MAX);
	buffer_init(&copy->waiting, INPUT_MAX);
	buffer_init(&copy->copied, (size_t)CHUNK_SIZE * 2);
	status = pthread_create(&copy->thread, NULL, run_thread, &copy->work);
	if (status != 0) {
		error_system(err, status, "start a thread for the archive");
		descriptor_close(&copy->input);
		descriptor_close(&copy->output);
		descriptor_close(&copy->work.input);
		descriptor_close(&copy->work.output);
		archive_names_free(copy->work.names);
		memory_free(copy);
		return NULL;
	}
	copy->input_watch = loop_watch(loop, copy->input, 0, input_ready, copy);
	copy->output_watch = loop_watch(loop, copy->output, LOOP_READ, output_ready, copy);
	return copy;
}

size_t
archive_copy_input(struct archive_copy *copy, const void *data, size_t size)
{
	if (copy->input < 0)
		return size;
	if (size > buffer_room(&copy->waiting))
		size = buffer_room(&copy->waiting);
	(void)buffer_append(&copy->waiting, data, size);
	loop_watch_change(copy->input_watch, LOOP_WRITE);
	return size;
}

void
archive_copy_end(struct archive_copy *copy)
{
	copy->input_ended = true;
	if (copy->input_watch != NULL)
		loop_watch_change(copy->input_watch, LOOP_WRITE);
}

void
archive_copy_resume(struct archive_copy *copy)
{
	if (copy->output >= 0 && copy->output_watch == NULL)
		copy->output_watch = loop_watch(
		    copy->loop, copy->output, LOOP_READ, output_ready, copy);
}

void
archive_copy_free(struct archive_copy *copy)
{
	if (copy == NULL)
		return;
	/* With both pipes closed on our side the thread ends at once. */
	stop_watching(&copy->input_watch, &copy->input);
	stop_watching(&copy->output_watch, &copy->output);
	(void)pthread_join(copy->thread, NULL);
	archive_names_free(copy->work.names);
	buffer_free(&copy->work.entries);
	buffer_free(&copy->waiting);
	buffer_free(&copy->copied);
	memory_free(copy);
}
