/* SPDX-License-Identifier: ISC */
/*
 * The parts of the file server inside a local sandbox, a process of our init. Nothing outside of
 * drivers/local_init*.c includes this.
 */
#ifndef DRIVERS_LOCAL_FILES_H
#define DRIVERS_LOCAL_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/file.h"
#include "core/file_protocol.h"

struct error;
struct stat;
struct timespec;

struct file_server {
	struct file_serve serve;
	struct loop *loop;
	struct peer *asker;
	struct file_worker *workers; /* processes of long operations */
	unsigned worker_count;
	struct loop_timer *sweep;
};

/* One verb: fills the reply, or says why not. */
typedef int file_verb_fn(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err);

/*
 * Where a path leads: the directory that holds it, which is inside the root and stays the same
 * whatever its path becomes, and the name there. Nobody who works on it may follow a symlink of
 * that name: that is how an operation cannot be led out of the root.
 */
struct file_place {
	int directory; /* O_PATH */
	char *name;    /* "." for the root itself */
	char *path;    /* real, absolute */
};

/* With follow a last symlink is followed, even one that leads to nothing. */
int file_place_find(const struct file_server *server, const char *path, bool follow,
    struct file_place *place, struct error *err);
void file_place_free(struct file_place *place);

/* As fstatat, of the place itself; the error names path. */
int file_place_stat(
    const struct file_place *place, const char *path, struct stat *status, struct error *err);

/* Makes the directories that are missing above path. */
int file_place_make_parents(const struct file_server *server, const char *path, struct error *err);

/* Refuses the root itself. */
int file_place_check_name(const struct file_place *place, const char *path, struct error *err);

/* From the system's form of attributes and times, and back. */
void file_attributes_from(struct file_attributes *attributes, const struct stat *status);
void file_times_from(struct timespec times[2], const struct file_change *change);

/* local_init_place.c */
file_verb_fn file_verb_resolve;
/* local_init_entry.c: names and attributes */
file_verb_fn file_verb_stat, file_verb_mkdir, file_verb_rename, file_verb_symlink,
    file_verb_readlink, file_verb_link, file_verb_setstat, file_verb_statvfs, file_verb_names;
/* local_init_content.c: what files hold */
file_verb_fn file_verb_open, file_verb_edit, file_verb_commit, file_verb_copy;
/* local_init_hash.c */
file_verb_fn file_verb_hash;
/* local_init_list.c */
file_verb_fn file_verb_list;
/* local_init_discard.c: removing and the trash */
file_verb_fn file_verb_remove;

/*
 * local_init_leftover.c: names for unfinished files beside their targets. open gives a fresh name
 * and notes it where the next sweep finds it, close forgets it.
 */
#define LEFTOVER_NAME_SIZE 24
struct file_leftover {
	char name[LEFTOVER_NAME_SIZE]; /* ".rws-" and random digits */
	char *note;
};
void file_leftover_open(struct file_leftover *leftover, const struct file_place *place);
void file_leftover_close(struct file_leftover *leftover);

/* Removes what is older than serve.leftover_age. */
void file_leftover_sweep(const struct file_server *server);

/* local_init_remove.c: removes a tree, links not followed; -1 with errno. */
int init_remove_tree(int directory, const char *name);

#endif
