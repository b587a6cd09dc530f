/* SPDX-License-Identifier: ISC */
/*
 * What a restore will do, worked out from three lists: what the archive holds, what was skipped
 * when it was made, and what is there now. The same plan is shown by a dry run and carried out.
 */
#ifndef CORE_SNAPSHOT_PLAN_H
#define CORE_SNAPSHOT_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/buffer.h"

struct error;

/* Paths below the root without "./", each ended by a NUL. */
struct snapshot_plan {
	struct buffer restored; /* everything of the archive but directories */
	struct buffer deleted;  /* what was made since */
	struct buffer kept;     /* what is left alone */
	/* For the script: with "./". */
	struct buffer remove_files, remove_directories;
	struct buffer names; /* of the archive, when not all of it can be restored; else empty */
};

/* A list in the form core/scripts/snapshot.sh gives it. */
struct snapshot_list {
	const char *data;
	size_t size;
};

/*
 * The rules. Left alone are: what the snapshot leaves out; what it skipped, and everything below;
 * regular files that it does not hold and that are over max_file; directories that hold any of
 * these. All else that it does not hold is deleted. A file of the archive where a directory must be
 * left alone, or one below a file that must be, is not restored. -1 when a list is damaged.
 */
int snapshot_plan_make(struct snapshot_plan *plan, const struct snapshot_list *entries,
    const struct snapshot_list *skipped, const struct snapshot_list *now, uint64_t max_file,
    struct error *err);
void snapshot_plan_free(struct snapshot_plan *plan);

#endif
