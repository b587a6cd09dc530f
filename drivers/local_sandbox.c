/* SPDX-License-Identifier: ISC */
/*
 * The command line for bubblewrap. The sandbox sees the system's programs, read-only, of /etc only
 * what is listed here, its own home and temporary directories, and nothing else: what is not named
 * below does not exist inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "drivers/local_program.h"
#include "drivers/local_sandbox.h"

/*
 * The descriptors of what we start;
 * drivers/local_init.c and its mount program know the first three.
 */
enum {
	SLOT_SOCKET, /* descriptor 3 */
	SLOT_PROGRAM,
	SLOT_DIRECTORY,
	SLOT_FILES, /* from here on: files that are made up for the sandbox */
};
#define SLOT_FD(slot) (3 + (slot))
#define PROGRAM_PATH "/proc/self/fd/4"

/* Where the program "mount" of our init puts the directory. */
#define MOUNT_POINT "/tmp"

#define HOME "/home/sandbox"
#define USER "sandbox"
#define USER_ID "1000"
#define BASH "/bin/bash"
#define SH "/bin/sh"

static const char *const bubblewrap_places[] = { "/usr/bin/bwrap", "/bin/bwrap",
	"/usr/local/bin/bwrap" };

/* Links into /usr on a merged system, directories of their own on others. */
static const char *const system_places[] = { "/bin", "/sbin", "/lib", "/lib32", "/lib64",
	"/libx32" };

/* What programs need of /etc and what tells nothing about this machine's people and secrets. */
static const char *const etc_files[] = { "alternatives", "bash.bashrc", "bash_completion",
	"bash_completion.d", "ca-certificates", "ca-certificates.conf", "debian_version",
	"gai.conf", "gitconfig", "host.conf", "inputrc", "ld.so.cache", "ld.so.conf",
	"ld.so.conf.d", "localtime", "lsb-release", "magic", "mime.types", "networks",
	"nsswitch.conf", "os-release", "profile", "profile.d", "protocols", "rpc", "services",
	"shells", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "vim" };

/* bubblewrap makes what lies above a file or mount, but for its owner only. */
static const char *const open_directories[] = { "/etc", "/etc/ssl", "/home", "/var" };

/*
 * Of /proc, what is not about processes. The kernel asks for the number of root there rather than
 * for rights, and a worker that runs as root makes sandboxes that have that number.
 */
static const char *const proc_places[] = { "/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs",
	"/proc/acpi", "/proc/scsi", "/proc/mtrr", "/proc/sysrq-trigger" };

/* With the host's network, its names as well. */
static const char *const etc_network_files[] = { "hosts", "resolv.conf" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A command line in the making, and the descriptors that go with it. */
struct line {
	char **argv;
	size_t count;
	int fds[LOCAL_CHILD_FDS];
	size_t fd_count;
};

static void
add(struct line *line, const char *text)
{
	line->argv = memory_list_add(line->argv, line->count++, text);
}

static void
add_pair(struct line *line, const char *option, const char *value)
{
	add(line, option);
	add(line, value);
}

static void
add_triple(struct line *line, const char *option, const char *first, const char *second)
{
	add_pair(line, option, first);
	add(line, second);
}

static void
free_line(struct line *line)
{
	size_t i;

	/* The first two are not ours to close here. */
	for (i = SLOT_FILES; i < line->fd_count; i++)
		descriptor_close(&line->fds[i]);
	memory_list_free(line->argv);
}

static const char *
find_bubblewrap(void)
{
	size_t i;

	for (i = 0; i < COUNT(bubblewrap_places); i++)
		if (access(bubblewrap_places[i], X_OK) == 0)
			return bubblewrap_places[i];
	return NULL;
}

/* A path to the directory by which this process gets there, or -1. */
static int
find_path(int directory, char path[PATH_MAX])
{
	struct stat wanted, found;
	char link[64];
	ssize_t length;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
	length = readlink(link, path, PATH_MAX - 1);
	if (length <= 0 || path[0] != '/')
		return -1;
	path[length] = '\0';
	if (fstat(directory, &wanted) != 0 || stat(path, &found) != 0)
		return -1;
	return wanted.st_dev == found.st_dev && wanted.st_ino == found.st_ino ? 0 : -1;
}

int
local_sandbox_describe(struct local_sandbox *sandbox, struct error *err)
{
	const struct passwd *entry;
	char path[PATH_MAX];

	if (sandbox->isolated) {
		(void)snprintf(sandbox->home, sizeof(sandbox->home), HOME);
		(void)snprintf(sandbox->user, sizeof(sandbox->user), USER);
		return 0;
	}
	if (find_path(sandbox->directory, path) != 0 ||
	    snprintf(sandbox->home, sizeof(sandbox->home), "%s/home", path) >=
		(int)sizeof(sandbox->home))
		return error_set(err, ERROR_UNAVAILABLE,
		    "with isolation = none, user %u must be able to reach the state directory by its path",
		    geteuid());
	entry = getpwuid(geteuid());
	if (entry == NULL)
		(void)snprintf(sandbox->user, sizeof(sandbox->user), "%u", geteuid());
	else if (snprintf(sandbox->user, sizeof(sandbox->user), "%s", entry->pw_name) >=
		 (int)sizeof(sandbox->user))
		return error_set(err, ERROR_INVALID, "user name %s is too long", entry->pw_name);
	return 0;
}

/* A file that exists in the sandbox only; its descriptor is closed with the line. */
static int
add_file(struct line *line, const char *path, const char *text, struct error *err)
{
	char number[NUMBER_TEXT_MAX];
	int fd;

	fd = memfd_create(path, MFD_CLOEXEC);
	if (fd < 0)
		return error_system(err, errno, "memfd_create");
	line->fds[line->fd_count] = fd;
	if (descriptor_write(fd, text, strlen(text), err) != 0 || lseek(fd, 0, SEEK_SET) != 0)
		return error_system(err, errno, "write %s", path);
	(void)snprintf(number, sizeof(number), "%d", SLOT_FD((int)line->fd_count++));
	add_pair(line, "--perms", "0644");
	add_triple(line, "--file", number, path);
	return 0;
}

static const char *
login_shell(void)
{
	return access(BASH, X_OK) == 0 ? BASH : SH;
}

static int
add_files(struct line *line, const struct local_sandbox *sandbox, struct error *err)
{
	char *users, *name, *hosts;
	int result;

	users = memory_text_format("root:x:0:0:root:/root:/usr/sbin/nologin\n" USER ":x:" USER_ID
				   ":" USER_ID "::" HOME
				   ":%s\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
	    login_shell());
	name = memory_text_format("%s\n", sandbox->id);
	hosts = memory_text_format("127.0.0.1 localhost %s\n::1 localhost\n", sandbox->id);
	result = add_file(line, "/etc/passwd", users, err);
	if (result == 0)
		result = add_file(line, "/etc/group",
		    "root:x:0:\n" USER ":x:" USER_ID ":\nnogroup:x:65534:\n", err);
	if (result == 0)
		result = add_file(line, "/etc/hostname", name, err);
	if (result == 0 && !sandbox->network)
		result = add_file(line, "/etc/hosts", hosts, err);
	memory_free(users);
	memory_free(name);
	memory_free(hosts);
	return result;
}

static void
add_system(struct line *line, const struct local_sandbox *sandbox)
{
	char path[64], target[256];
	ssize_t length;
	size_t i;

	for (i = 0; i < COUNT(open_directories); i++) {
		add_pair(line, "--perms", "0755");
		add_pair(line, "--dir", open_directories[i]);
	}
	add_triple(line, "--ro-bind", "/usr", "/usr");
	for (i = 0; i < COUNT(system_places); i++) {
		length = readlink(system_places[i], target, sizeof(target) - 1);
		if (length > 0) {
			target[length] = '\0';
			add_triple(line, "--symlink", target, system_places[i]);
		} else {
			add_triple(line, "--ro-bind-try", system_places[i], system_places[i]);
		}
	}
	for (i = 0; i < COUNT(etc_files); i++) {
		(void)snprintf(path, sizeof(path), "/etc/%s", etc_files[i]);
		add_triple(line, "--ro-bind-try", path, path);
	}
	for (i = 0; sandbox->network && i < COUNT(etc_network_files); i++) {
		(void)snprintf(path, sizeof(path), "/etc/%s", etc_network_files[i]);
		add_triple(line, "--ro-bind-try", path, path);
	}
}

static void
add_namespaces(struct line *line, const struct local_sandbox *sandbox)
{
	add(line, "--unshare-user");
	add(line, "--unshare-pid");
	add(line, "--unshare-ipc");
	add(line, "--unshare-uts");
	add(line, "--unshare-cgroup-try");
	if (!sandbox->network)
		add(line, "--unshare-net");
	add_pair(line, "--uid", USER_ID);
	add_pair(line, "--gid", USER_ID);
	add_pair(line, "--hostname", sandbox->id);
	add_pair(line, "--cap-drop", "ALL");
	add(line, "--die-with-parent");
	add(line, "--new-session");
	add(line, "--as-pid-1");
}

static void
add_bind(struct line *line, const char *base, const char *name, const char *place)
{
	char *path;

	path = memory_text_format("%s/%s", base, name);
	add_triple(line, "--bind", path, place);
	memory_free(path);
}

static void
add_serve(struct line *line, const struct local_sandbox *sandbox)
{
	add_pair(line, PROGRAM_PATH, "serve");
	add_triple(line, sandbox->home, sandbox->user, login_shell());
}

static int
build_isolated(struct line *line, const struct local_sandbox *sandbox, struct error *err)
{
	const char *program;
	char base[PATH_MAX];
	size_t i;

	program = find_bubblewrap();
	if (program == NULL)
		return error_set(err, ERROR_UNAVAILABLE,
		    "bubblewrap is not installed: apt-get install bubblewrap");
	if (find_path(sandbox->directory, base) != 0) {
		(void)snprintf(base, sizeof(base), MOUNT_POINT);
		add_pair(line, PROGRAM_PATH, "mount");
	}
	add(line, program);
	add_namespaces(line, sandbox);
	add_system(line, sandbox);
	if (add_files(line, sandbox, err) != 0)
		return -1;
	add_pair(line, "--proc", "/proc");
	for (i = 0; i < COUNT(proc_places); i++)
		add_triple(line, "--ro-bind-try", proc_places[i], proc_places[i]);
	add_pair(line, "--dev", "/dev");
	add_pair(line, "--tmpfs", "/run");
	add_bind(line, base, "home", HOME);
	add_bind(line, base, "tmp", "/tmp");
	add_bind(line, base, "var-tmp", "/var/tmp");
	add_pair(line, "--remount-ro", "/");
	add_pair(line, "--chdir", "/");
	add(line, "--");
	add_serve(line, sandbox);
	return 0;
}

/* Only what our init passes on: the language. */
static char **
make_environment(void)
{
	const char *language;
	char **list, *text;

	list = memory_list_add(NULL, 0, "PATH=/usr/bin:/bin");
	language = getenv("LANG");
	if (language == NULL)
		return list;
	text = memory_text_format("LANG=%s", language);
	list = memory_list_add(list, 1, text);
	memory_free(text);
	return list;
}

static struct local_child *
start_line(const struct line *line, bool tied, struct loop *loop, local_child_fn *ended,
    void *argument, struct error *err)
{
	struct local_child_spec spec = {
		.argv = line->argv, .fds = line->fds, .count = line->fd_count, .tied = tied
	};
	struct local_child *child;
	char **environment;

	environment = make_environment();
	spec.environment = environment;
	child = local_child_start(loop, &spec, ended, argument, err);
	memory_list_free(environment);
	return child;
}

struct local_child *
local_sandbox_start(const struct local_sandbox *sandbox, struct loop *loop, local_child_fn *ended,
    void *argument, int *socket, struct error *err)
{
	struct line line = { .fd_count = SLOT_FILES };
	struct local_child *child = NULL;
	int pair[2] = { -1, -1 }, program, result;

	program = local_program_open(err);
	if (program < 0 || descriptor_pair(pair, err) != 0)
		goto out;
	line.fds[SLOT_SOCKET] = pair[1];
	line.fds[SLOT_PROGRAM] = program;
	line.fds[SLOT_DIRECTORY] = sandbox->directory;
	result = 0;
	if (sandbox->isolated)
		result = build_isolated(&line, sandbox, err);
	else
		add_serve(&line, sandbox);
	/*
	 * Without isolation init must outlive us, for the moment it takes to end what it started.
	 */
	if (result == 0)
		child = start_line(&line, sandbox->isolated, loop, ended, argument, err);
	if (child != NULL) {
		*socket = pair[0];
		pair[0] = -1;
	}
out:
	free_line(&line);
	descriptor_close(&pair[0]);
	descriptor_close(&pair[1]);
	descriptor_close(&program);
	return child;
}

struct local_child *
local_sandbox_remove(int directory, const char *name, struct loop *loop, local_child_fn *ended,
    void *argument, struct error *err)
{
	struct line line = { .fd_count = SLOT_DIRECTORY };
	struct local_child *child;
	int program;

	program = local_program_open(err);
	if (program < 0)
		return NULL;
	line.fds[SLOT_SOCKET] = directory;
	line.fds[SLOT_PROGRAM] = program;
	add_triple(&line, PROGRAM_PATH, "remove", name);
	child = start_line(&line, false, loop, ended, argument, err);
	free_line(&line);
	(void)close(program);
	return child;
}

static bool
setting_is(const char *path, const char *value)
{
	char *text;
	bool same;

	text = descriptor_read_file(AT_FDCWD, path, 64, NULL, NULL);
	if (text == NULL)
		return false;
	text[strcspn(text, "\n")] = '\0';
	same = strcmp(text, value) == 0;
	memory_free(text);
	return same;
}

static const char *
find_remedy(void)
{
	if (setting_is("/proc/sys/kernel/unprivileged_userns_clone", "0"))
		return "set sysctl kernel.unprivileged_userns_clone=1";
	if (setting_is("/proc/sys/user/max_user_namespaces", "0"))
		return "set sysctl user.max_user_namespaces to some thousands";
	if (setting_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
		return "set sysctl kernel.apparmor_restrict_unprivileged_userns=0, or load an AppArmor profile "
		       "that gives bwrap userns";
	return "user namespaces must be allowed here; in a container, by its seccomp and AppArmor profiles";
}

void
local_sandbox_explain(
    const struct local_sandbox *sandbox, int status, const char *complaint, struct error *err)
{
	if (!sandbox->isolated)
		error_set(err, ERROR_UNAVAILABLE, "the sandbox did not start: %s", complaint);
	else if (WIFSIGNALED(status))
		error_set(
		    err, ERROR_UNAVAILABLE, "bubblewrap was killed by signal %d", WTERMSIG(status));
	else
		error_set(err, ERROR_UNAVAILABLE, "the sandbox did not start: %s (%s)", complaint,
		    find_remedy());
}
