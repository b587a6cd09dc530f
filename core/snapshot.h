/* SPDX-License-Identifier: ISC */
/*
 * Snapshots of a workspace: archives that live in the sandbox, below .rws/snapshots of the root.
 * Everything ends in a callback from the loop. What is stopped leaves the workspace as it was: only
 * a restore that has begun to change something cannot be stopped, and says what it did.
 */
#ifndef CORE_SNAPSHOT_H
#define CORE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct snapshot;
struct workspace;

#define SNAPSHOT_ID_MAX 64

/* What is known of a snapshot. */
struct snapshot_record {
	char id[SNAPSHOT_ID_MAX + 1];
	int64_t created; /* seconds since 1970 */
	char *label;     /* or NULL */
	char **metadata; /* NAME=VALUE, NULL-ended */
	char **exclude;  /* as given, NULL-ended */
	uint64_t max_file_bytes;
	uint64_t files, bytes;  /* regular files that it holds, and their sizes together */
	uint64_t archive_bytes; /* of the archive */
};

/* Paths below the root, each ended by a NUL, in no order; may be NULL for none. */
struct snapshot_paths {
	const char *data;
	size_t size;
};

/* What an operation gives; valid in the callback. */
struct snapshot_outcome {
	/* Of list all, oldest first; of the others one or none. */
	const struct snapshot_record *records;
	size_t count;
	struct snapshot_paths skipped;                 /* of create and show */
	struct snapshot_paths restored, deleted, kept; /* of restore */
	uint64_t sent;                                 /* of export: bytes of the archive */
};

struct snapshot_events {
	void (*progress)(void *argument, const char *text); /* may be NULL */
	/* Of export: as task_events.output. */
	size_t (*output)(void *argument, const unsigned char *data, size_t size);
	/* Of import: bytes were taken, there is room for more. */
	void (*hungry)(void *argument);
	/* Once and last: the operation is gone afterwards. */
	void (*done)(
	    void *argument, const struct snapshot_outcome *outcome, const struct error *err);
};

/* What create and import say of a new one; all is copied. */
struct snapshot_request {
	const char *label;
	char *const *metadata;
	char *const *exclude;
	uint64_t max_file_bytes;
};

/*
 * Each begins an operation, which waits for the workspace to be ready, and is never NULL: what is
 * wrong with the request is told to done. dry_run restores nothing and says what it would do.
 */
struct snapshot *snapshot_create(struct workspace *workspace,
    const struct snapshot_request *request, const struct snapshot_events *events, void *argument);
struct snapshot *snapshot_list(
    struct workspace *workspace, const struct snapshot_events *events, void *argument);
struct snapshot *snapshot_show(struct workspace *workspace, const char *id,
    const struct snapshot_events *events, void *argument);
struct snapshot *snapshot_delete(struct workspace *workspace, const char *id,
    const struct snapshot_events *events, void *argument);
struct snapshot *snapshot_restore(struct workspace *workspace, const char *id, bool dry_run,
    const struct snapshot_events *events, void *argument);

/* Streams the archive, a tar file, to events->output. */
struct snapshot *snapshot_export(struct workspace *workspace, const char *id,
    const struct snapshot_events *events, void *argument);
void snapshot_resume(struct snapshot *snapshot);

/*
 * Takes an archive in with snapshot_input. Every entry is checked (core/archive.h): what could
 * leave the root is refused, and nothing of it stays.
 */
struct snapshot *snapshot_import(struct workspace *workspace,
    const struct snapshot_request *request, const struct snapshot_events *events, void *argument);

/*
 * Returns how many of the bytes were taken: for the rest wait for hungry.
 * end counts once all were taken.
 */
size_t snapshot_input(struct snapshot *snapshot, const void *data, size_t size, bool end);

/* done is told ABORTED, if it can be stopped. */
void snapshot_abort(struct snapshot *snapshot);

/* Nobody wants to know any more: stops what can be stopped, lets end what cannot. Accepts NULL. */
void snapshot_close(struct snapshot *snapshot);

#endif
