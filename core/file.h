/* SPDX-License-Identifier: ISC */
/*
 * What can be asked of a workspace's files, and what comes back. One request type serves SFTP, scp
 * and rws, and travels unchanged from the session to the worker and to the far end
 * (core/file_protocol.h); core/files.h is how to ask.
 *
 * Paths are bytes without NUL, absolute or relative to the root. They are normalised, then resolved
 * in the sandbox with every symlink followed (the last one as each verb says), and must end inside
 * the root: else OUTSIDE_ROOT.
 */
#ifndef CORE_FILE_H
#define CORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer;
struct error;

#define FILE_PATH_MAX 4095U /* as Linux has it, without the terminator */
#define FILE_NAME_LENGTH_MAX 255U
#define FILE_LIST_BYTES_MAX (64U * 1024U * 1024U)
#define FILE_NUMBERS_MAX 1024U

/* clang-format off */
/*
 * The verbs, with the fields of the request and the flags that count beside path, and what the
 * reply has. "A last symlink itself" means that path's last name is not followed.
 *
 * RESOLVE   the real path, which need not exist. Reply: text; attributes when it does (else mode 0)
 * STAT      FOLLOW, else a last symlink itself. Reply: attributes
 * LIST      a directory. HIDDEN, RECURSIVE; limit, glob, skip. Reply: count; fd for file_list_open;
 *           attributes of the directory
 * OPEN      a regular file to read, of at most max_file_bytes. WHOLE. Reply: fd, attributes,
 *           arrived, limit; more while bytes are still arriving in fd
 * EDIT      begins to write. CREATE, EXCLUSIVE, TRUNCATE. Reply: fd of a private file with the
 *           present content, seen by nobody until COMMIT; attributes of the file that is there
 *           (else mode 0); limit; text, the real path to COMMIT to. Whoever creates and truncates
 *           in a directory that he just made may be told neither attributes nor text
 * COMMIT    path becomes what fd (EDIT's or any other file) holds, in one step. EXCLUSIVE, PARENTS;
 *           change: mode and times, else the mode of the file that is there, or 0644, and now;
 *           CREATE: change's mode is only for a file that is not there yet.
 *           Reply: attributes; text, the real path
 * MKDIR     PARENTS: with what is missing above it, and no error when it is there; change: mode
 * REMOVE    a last symlink itself. RECURSIVE, TRASH, ONLY_DIRECTORY, ONLY_FILE, UNLESS_BUSY
 * RENAME    path to other, last symlinks themselves. OVERWRITE, PARENTS (of other), UNLESS_BUSY
 * SYMLINK   makes path a symlink that says other
 * READLINK  Reply: text
 * LINK      makes other one more name of path, of a last symlink itself
 * SETSTAT   change. FOLLOW, else a last symlink itself; with fd, which OPEN or EDIT gave, that file
 * STATVFS   Reply: volume
 * COPY      a regular file, path to other, in one step. OVERWRITE, PARENTS
 * HASH      algorithm, offset, size (0: to the end), block (0: one hash of all, else one each so
 *           many bytes). Reply: bytes, the hashes one after another
 * NAMES     path does not count; numbers: user_count user numbers, then group numbers. Reply:
 *           names in that order, "" for an unknown one
 */
/* clang-format on */
enum file_verb {
	FILE_RESOLVE = 1,
	FILE_STAT,
	FILE_LIST,
	FILE_OPEN,
	FILE_EDIT,
	FILE_COMMIT,
	FILE_MKDIR,
	FILE_REMOVE,
	FILE_RENAME,
	FILE_SYMLINK,
	FILE_READLINK,
	FILE_LINK,
	FILE_SETSTAT,
	FILE_STATVFS,
	FILE_COPY,
	FILE_HASH,
	FILE_NAMES,
	FILE_VERBS,
};

enum file_flags {
	FILE_FOLLOW = 1 << 0,
	FILE_RECURSIVE = 1 << 1,
	FILE_HIDDEN = 1 << 2,
	FILE_TRASH = 1 << 3,     /* into .rws/trash of the root instead of away */
	FILE_OVERWRITE = 1 << 4, /* without it what is there already is EXISTS */
	FILE_PARENTS = 1 << 5,
	FILE_CREATE = 1 << 6,
	FILE_EXCLUSIVE = 1 << 7, /* with CREATE: what is there already is EXISTS */
	FILE_TRUNCATE = 1 << 8,
	FILE_WHOLE = 1 << 9,           /* reply once everything has arrived, not before */
	FILE_ONLY_DIRECTORY = 1 << 10, /* rmdir */
	FILE_ONLY_FILE = 1 << 11,      /* unlink */
	FILE_UNLESS_BUSY = 1 << 12,    /* BUSY while a command runs or left processes */
	FILE_FLAGS_ALL = (1 << 13) - 1,
};

/* As struct stat has them. Times are nanoseconds since 1970. */
struct file_attributes {
	uint32_t mode; /* with the type: S_IFMT of <sys/stat.h>; 0: there is no such file */
	uint32_t user, group;
	uint32_t links;
	uint64_t size;
	uint64_t device, inode;
	int64_t accessed, modified;
};

enum file_change_fields {
	FILE_CHANGE_MODE = 1, /* the permission bits, 07777 */
	FILE_CHANGE_OWNER = 2,
	FILE_CHANGE_TIMES = 4,
	FILE_CHANGE_SIZE = 8,
	FILE_CHANGE_ALL = 15,
};
struct file_change {
	unsigned fields;
	uint32_t mode;
	uint32_t user, group;
	int64_t accessed, modified;
	uint64_t size;
};

/* As struct statvfs has them. */
struct file_volume {
	uint64_t block_size, fragment_size;
	uint64_t blocks, blocks_free, blocks_available;
	uint64_t files, files_free, files_available;
	uint64_t id, flags, name_max;
};

/* What a verb does not name is zero. Texts and lists belong to the caller. */
struct file_request {
	enum file_verb verb;
	unsigned flags;
	char *path, *other;
	struct file_change change;
	uint64_t offset, size; /* of HASH */
	uint32_t block;
	char *algorithm; /* of HASH: md5, sha1, sha224, sha256, sha384 or sha512 */
	uint32_t limit;  /* of LIST: entries at most, 0 for all */
	char *glob;  /* of LIST: pattern for the path below the listed directory, NULL for all */
	char **skip; /* of LIST: names of directories that are listed but not entered; or NULL */
	uint32_t *numbers; /* of NAMES */
	uint32_t number_count, user_count;
	int fd; /* of COMMIT, and SETSTAT or -1. files_start takes it over */
};

/* Valid in the callback; to keep fd, take it and leave -1. */
struct file_reply {
	bool more; /* this was not the last reply to the request */
	struct file_attributes attributes;
	uint64_t arrived; /* bytes that can be read from fd so far */
	uint64_t limit;   /* of OPEN and EDIT: max_file_bytes */
	uint64_t count;   /* of LIST */
	struct file_volume volume;
	char *text;
	unsigned char *bytes;
	size_t bytes_size;
	char **names; /* NULL-ended */
	int fd;       /* or -1 */
};

/* Frees what a request or reply holds, and closes fd. Both accept what file_*_init made. */
void file_request_init(struct file_request *request, enum file_verb verb);
void file_request_free(struct file_request *request);
void file_reply_init(struct file_reply *reply);
void file_reply_free(struct file_reply *reply);

/* "12 MiB is over max_file_bytes (10 MiB)", as TOO_LARGE; returns -1. */
int file_too_large(struct error *err, uint64_t size, uint64_t limit);

/*
 * A descriptor, for COMMIT, of a private file that holds these bytes; -1 with err on failure. It is
 * memory until the file server has it.
 */
int file_content(const void *data, size_t size, struct error *err);

/* All that fd holds, at most max bytes, as new memory with a terminator; NULL on failure. */
unsigned char *file_content_read(int fd, size_t max, size_t *size, struct error *err);

/*
 * A listing: what LIST gives, from first to last. path is relative to the listed directory; entries
 * come sorted by name with each directory's contents right after it. Links are not followed.
 */
struct file_entry {
	char *path;
	struct file_attributes attributes;
};

struct file_list;

/* Reads a listing from fd, which it takes over. */
struct file_list *file_list_open(int fd);
void file_list_free(struct file_list *list); /* accepts NULL */

/*
 * The next entry, whose path belongs to the list until the next call: 1, or 0 after the last, -1
 * when the listing is damaged.
 */
int file_list_next(struct file_list *list, struct file_entry *entry, struct error *err);

/* For whoever makes a listing: appends an entry as file_list_next reads it; -1 when it is full. */
int file_list_put(struct buffer *buffer, const struct file_entry *entry);

#endif
