/* SPDX-License-Identifier: ISC */
/*
 * Giving up rights. Order matters: identity first (it needs the rights), then no_new_privs, which
 * Landlock and an unprivileged seccomp filter require, then the filters.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <seccomp.h>

#include "core/base/confine.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/process.h"

/* The sanitizers' runtime makes calls of its own, at moments of its choosing. */
#if defined(__SANITIZE_ADDRESS__)
#define UNDER_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif
#ifndef UNDER_SANITIZER
#define UNDER_SANITIZER 0
#endif

#define LANDLOCK_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* The rights of Landlock ABI 1, which every kernel with Landlock knows. */
#define LANDLOCK_ALL ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)

/* Refused to everyone, bubblewrap and the sandboxes below it included. */
static const char *const refused_always[] = {
	"acct",
	"add_key",
	"bpf",
	"delete_module",
	"finit_module",
	"init_module",
	"ioperm",
	"iopl",
	"kexec_file_load",
	"kexec_load",
	"keyctl",
	"lookup_dcookie",
	"nfsservctl",
	"open_by_handle_at",
	"perf_event_open",
	"quotactl",
	"quotactl_fd",
	"reboot",
	"request_key",
	"settimeofday",
	"clock_settime",
	"clock_adjtime",
	"adjtimex",
	"stime",
	"swapoff",
	"swapon",
	"syslog",
	"uselib",
	"userfaultfd",
	"vhangup",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
};

/* Memory, time, signals and work on descriptors that are there. */
static const char *const allowed_plain[] = {
	"accept4",
	"arch_prctl",
	"brk",
	"clock_getres",
	"clock_gettime",
	"clock_nanosleep",
	"close",
	"close_range",
	"dup",
	"dup2",
	"dup3",
	"epoll_create1",
	"epoll_ctl",
	"epoll_pwait",
	"epoll_pwait2",
	"epoll_wait",
	"eventfd2",
	"exit",
	"exit_group",
	"fcntl",
	"fdatasync",
	"fstat",
	"fstatfs",
	"fsync",
	"ftruncate",
	"futex",
	"futex_waitv",
	"getegid",
	"geteuid",
	"getgid",
	"getpeername",
	"getpid",
	"getppid",
	"getpriority",
	"getrandom",
	"getresgid",
	"getresuid",
	"getrlimit",
	"getrusage",
	"getsockname",
	"getsockopt",
	"gettid",
	"gettimeofday",
	"getuid",
	"ioctl",
	"lseek",
	"madvise",
	"membarrier",
	"memfd_create",
	"mlock",
	"mlock2",
	"mmap",
	"mprotect",
	"mremap",
	"munlock",
	"munmap",
	"nanosleep",
	"pipe2",
	"poll",
	"ppoll",
	"prctl",
	"pread64",
	"preadv",
	"preadv2",
	"prlimit64",
	"pselect6",
	"pwrite64",
	"pwritev",
	"pwritev2",
	"read",
	"readv",
	"recvfrom",
	"recvmmsg",
	"recvmsg",
	"restart_syscall",
	"rseq",
	"rt_sigaction",
	"rt_sigpending",
	"rt_sigprocmask",
	"rt_sigreturn",
	"rt_sigtimedwait",
	"sched_getaffinity",
	"sched_yield",
	"select",
	"sendfile",
	"sendmmsg",
	"sendmsg",
	"sendto",
	"set_robust_list",
	"set_tid_address",
	"setsockopt",
	"shutdown",
	"sigaltstack",
	"signalfd4",
	"socketpair",
	"splice",
	"sysinfo",
	"tee",
	"tgkill",
	"time",
	"timerfd_create",
	"timerfd_gettime",
	"timerfd_settime",
	"uname",
	"vmsplice",
	"write",
	"writev",
};

static const char *const allowed_files[] = {
	"access",
	"faccessat",
	"faccessat2",
	"fadvise64",
	"fallocate",
	"fchmod",
	"fchmodat",
	"fchown",
	"flock",
	"getcwd",
	"getdents64",
	"lstat",
	"mkdir",
	"mkdirat",
	"newfstatat",
	"open",
	"openat",
	"openat2",
	"readlink",
	"readlinkat",
	"rename",
	"renameat",
	"renameat2",
	"rmdir",
	"stat",
	"statfs",
	"statx",
	"umask",
	"unlink",
	"unlinkat",
	"utimensat",
	"copy_file_range",
};

static const char *const allowed_network[] = {
	"bind",
	"clone",
	"clone3",
	"connect",
	"getdents64",
	"listen",
	"sched_setaffinity",
	"setitimer",
	"socket",
	"wait4",
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static int
become_user(const struct confine *confine, struct error *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (confine->user == NULL || confine->user->uid == 0 || geteuid() != 0)
		return 0;
	if (confine->keep_reading && prctl(PR_SET_KEEPCAPS, 1) != 0)
		return error_system(err, errno, "keep capabilities");
	if (setgroups(0, NULL) != 0 ||
	    setresgid(confine->user->gid, confine->user->gid, confine->user->gid) != 0 ||
	    setresuid(confine->user->uid, confine->user->uid, confine->user->uid) != 0)
		return error_system(
		    err, errno, "become user %lu", (unsigned long)confine->user->uid);
	if (confine->keep_reading) {
		data[0].effective = data[0].permitted = 1U << CAP_DAC_READ_SEARCH;
		if (syscall(SYS_capset, &header, data) != 0)
			return error_system(err, errno, "keep only the right to read");
	}
	return 0;
}

/*
 * Nothing of this process's memory may reach a file,
 * a debugger or another process of the same user.
 */
static int
hide_memory(struct error *err)
{
	struct rlimit none = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &none) != 0)
		return error_system(err, errno, "switch core dumps off");
	if (prctl(PR_SET_DUMPABLE, 0) != 0)
		return error_system(err, errno, "hide memory");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return error_system(err, errno, "set no_new_privs");
	return 0;
}

static int
allow_path(int ruleset, const char *path, uint64_t access, struct error *err)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = access };
	int result;

	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0 && errno == ENOENT)
		return 0;
	if (rule.parent_fd < 0)
		return error_system(err, errno, "open %s", path);
	result = (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	if (result != 0)
		error_system(err, errno, "landlock_add_rule for %s", path);
	(void)close(rule.parent_fd);
	return result;
}

static int
allow_paths(int ruleset, const char *const *paths, uint64_t access, struct error *err)
{
	size_t i;

	for (i = 0; paths != NULL && paths[i] != NULL; i++)
		if (allow_path(ruleset, paths[i], access, err) != 0)
			return -1;
	return 0;
}

static int
limit_files(const struct confine *confine, struct error *err)
{
	struct landlock_ruleset_attr attributes = { .handled_access_fs = LANDLOCK_ALL };
	int ruleset, result;

	if (confine->files)
		return 0;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
	if (ruleset < 0) {
		log_debug("this kernel has no Landlock: errno %d", errno);
		return 0;
	}
	result = -1;
	if (allow_paths(ruleset, confine->readable, LANDLOCK_READ, err) == 0 &&
	    allow_paths(
		ruleset, confine->writable, LANDLOCK_ALL & ~LANDLOCK_ACCESS_FS_EXECUTE, err) == 0) {
		result = (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
		if (result != 0)
			error_system(err, errno, "landlock_restrict_self");
	}
	(void)close(ruleset);
	return result;
}

/* Adds a rule a call; names that this architecture or libseccomp does not know are passed over. */
static int
add_calls(scmp_filter_ctx filter, uint32_t action, const char *const *names, size_t count)
{
	size_t i;
	int number, result;

	for (i = 0; i < count; i++) {
		number = seccomp_syscall_resolve_name(names[i]);
		if (number == __NR_SCMP_ERROR)
			continue;
		result = seccomp_rule_add(filter, action, number, 0);
		if (result != 0 && result != -EEXIST)
			return result;
	}
	return 0;
}

static int
add_rules(scmp_filter_ctx filter, enum confine_calls calls)
{
	int result;

	if (calls == CONFINE_CALLS_LISTENER)
		return add_calls(
		    filter, SCMP_ACT_ERRNO(EPERM), refused_always, COUNT(refused_always));
	result = add_calls(filter, SCMP_ACT_ALLOW, allowed_plain, COUNT(allowed_plain));
	if (result == 0 && calls != CONFINE_CALLS_PLAIN)
		result = add_calls(filter, SCMP_ACT_ALLOW, allowed_files, COUNT(allowed_files));
	if (result == 0 && calls == CONFINE_CALLS_NETWORK)
		result = add_calls(filter, SCMP_ACT_ALLOW, allowed_network, COUNT(allowed_network));
	return result;
}

/*
 * A call outside the list fails with EPERM (what a library tries and can live without) rather
 * than killing the process: the C library's choice of calls differs between releases.
 */
static int
limit_calls(enum confine_calls calls, struct error *err)
{
	scmp_filter_ctx filter;
	int result;

	if (UNDER_SANITIZER)
		return 0;
	filter = seccomp_init(
	    calls == CONFINE_CALLS_LISTENER ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EPERM));
	if (filter == NULL)
		return error_set(err, ERROR_UNAVAILABLE, "seccomp_init failed");
	result = add_rules(filter, calls);
	if (result == 0)
		result = seccomp_load(filter);
	seccomp_release(filter);
	if (result != 0)
		return error_system(err, -result, "load the system call filter");
	return 0;
}

int
confine_enter(const struct confine *confine, struct error *err)
{
	if (become_user(confine, err) != 0 || hide_memory(err) != 0 ||
	    limit_files(confine, err) != 0 || limit_calls(confine->calls, err) != 0)
		return error_wrap(err, "give up rights");
	return 0;
}
