/* SPDX-License-Identifier: ISC */
/*
 * What a snapshot leaves out, as two extended regular expressions for find(1) in the sandbox, so
 * that excluded trees are pruned there and never listed.
 */
#ifndef CORE_SNAPSHOT_EXCLUDE_H
#define CORE_SNAPSHOT_EXCLUDE_H

struct error;

struct snapshot_exclude {
	char *exclude; /* paths ("./a/b") that are left out */
	char *hold;    /* directories whose contents are left out, though they themselves are not */
};

/*
 * Makes them from patterns (NULL-ended) as core/file_glob.h has them: "dir" and "*.o" leave out
 * what they match; with a last part of two stars only what is below it is left out. .rws,
 * node_modules and .git are always left out, at any depth. -1 for a pattern that is too long,
 * empty, or has a newline.
 */
int snapshot_exclude_make(
    struct snapshot_exclude *exclude, char *const *patterns, struct error *err);
/* The expression for "./PATH" of the one pattern, for find; new. NULL as above. */
char *snapshot_expression(const char *pattern, struct error *err);
void snapshot_exclude_free(struct snapshot_exclude *exclude);

#endif
