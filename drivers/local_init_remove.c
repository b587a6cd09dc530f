/* SPDX-License-Identifier: ISC */
/*
 * Two small jobs outside of any sandbox, done by the same program because it starts clean: without
 * a secret in its memory and without a descriptor that it was not given.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "drivers/local_files.h"
#include "drivers/local_init.h"

/* A tree deeper than this is flattened as it is removed, so that descriptors suffice for any. */
#define DEPTH_MAX 64

static int remove_entry(int directory, const char *name, int top, int depth);

/* Moves a directory that lies too deep up to the top, under a name that is free there. */
static int
flatten(int directory, const char *name, int top)
{
	static unsigned serial;
	char moved[32];

	do {
		(void)snprintf(moved, sizeof(moved), "deep-%u", serial++);
		if (renameat2(directory, name, top, moved, RENAME_NOREPLACE) == 0)
			return 0;
	} while (errno == EEXIST);
	return -1;
}

/* Opens a directory and nothing else, after taking back rights that its owner gave away. */
static DIR *
open_directory(int directory, const char *name)
{
	char path[64];
	DIR *stream;
	int place, fd;

	place = openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (place < 0)
		return NULL;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	(void)chmod(path, 0700);
	fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)close(place);
	stream = fd < 0 ? NULL : fdopendir(fd);
	if (stream == NULL)
		descriptor_close(&fd);
	return stream;
}

static int
remove_content(int directory, const char *name, int top, int depth)
{
	struct dirent *entry;
	int result = 0;
	DIR *stream;

	stream = open_directory(directory, name);
	if (stream == NULL)
		return -1;
	while (result == 0 && (entry = readdir(stream)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			result = remove_entry(
			    dirfd(stream), entry->d_name, top < 0 ? dirfd(stream) : top, depth + 1);
	(void)closedir(stream);
	return result;
}

static int
remove_entry(int directory, const char *name, int top, int depth)
{
	struct stat status;

	if (unlinkat(directory, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode))
		return -1;
	if (depth > DEPTH_MAX && top >= 0)
		return flatten(directory, name, top);
	do {
		if (remove_content(directory, name, top, depth) != 0)
			return -1;
		if (unlinkat(directory, name, AT_REMOVEDIR) == 0)
			return 0;
	} while (errno == ENOTEMPTY); /* what was moved up came after its place was read */
	return -1;
}

int
init_remove_tree(int directory, const char *name)
{
	return remove_entry(directory, name, -1, 0);
}

int
init_remove(int directory, const char *name)
{
	if (init_remove_tree(directory, name) == 0)
		return 0;
	(void)dprintf(STDERR_FILENO, "remove %s: %s\n", name, strerror(errno));
	return 1;
}

static int
write_text(const char *path, const char *text)
{
	ssize_t written;
	int fd;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	written = write(fd, text, strlen(text));
	(void)close(fd);
	return written == (ssize_t)strlen(text) ? 0 : -1;
}

/*
 * A user namespace in which the user is who it was,
 * with the right to mount in a mount namespace of its own.
 */
static int
enter_namespaces(void)
{
	char users[64], groups[64];

	(void)snprintf(users, sizeof(users), "%u %u 1", getuid(), getuid());
	(void)snprintf(groups, sizeof(groups), "%u %u 1", getgid(), getgid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
	    write_text("/proc/self/setgroups", "deny") != 0 ||
	    write_text("/proc/self/uid_map", users) != 0 ||
	    write_text("/proc/self/gid_map", groups) != 0)
		return -1;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/*
 * bubblewrap wants a path to every directory it shows, and a worker without rights may have none to
 * its own: only a descriptor. So that directory is put where everybody has a path to: over /tmp,
 * which no sandbox sees, in a mount namespace of its own. The working directory moves along into
 * the new namespace; a descriptor would not.
 */
int
init_mount(int directory, char *const *command)
{
	pid_t parent = getppid();

	if (fchdir(directory) != 0 || enter_namespaces() != 0 ||
	    mount(".", LOCAL_MOUNT_POINT, NULL, MS_BIND | MS_REC, NULL) != 0 || chdir("/") != 0) {
		(void)dprintf(
		    STDERR_FILENO, "mount the sandbox's directory: %s\n", strerror(errno));
		return 1;
	}
	/* Lost with the change of rights above. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		return 1;
	(void)execv(command[0], command);
	(void)dprintf(STDERR_FILENO, "%s: %s\n", command[0], strerror(errno));
	return 1;
}
