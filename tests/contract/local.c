/* SPDX-License-Identifier: ISC */
/*
 * What the local driver promises beyond the contract: isolation, and that nothing outlives its
 * worker or is spoilt by its death.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/descriptor.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "tests/contract/contract.h"
#include "tests/contract/harness.h"

static struct contract contract;

static int
open_test(void **state)
{
	(void)state;
	contract_open(&contract);
	return 0;
}

static int
close_test(void **state)
{
	(void)state;
	contract_recover(&contract);
	(void)contract_release(&contract, DRIVER_DESTROY);
	contract_close(&contract);
	return 0;
}

static int
open_connected(void **state)
{
	(void)open_test(state);
	if (!contract_connect(&contract, NULL, true))
		fail_msg("connect: %s", contract.failure.message);
	return 0;
}

/*
 * The processes of the whole machine whose command line ends in marker: how many, and one of them.
 */
static int
count_processes(const char *marker, pid_t *one)
{
	char path[300], line[4096];
	struct dirent *entry;
	int count = 0, fd;
	ssize_t length;
	size_t i, size = strlen(marker);
	DIR *proc = opendir("/proc");

	assert_non_null(proc);
	while ((entry = readdir(proc)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
		fd = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? open(path, O_RDONLY) : -1;
		if (fd < 0)
			continue;
		length = read(fd, line, sizeof(line));
		(void)close(fd);
		for (i = 0; length > 0 && i + 1 < (size_t)length; i++)
			if (line[i] == '\0')
				line[i] = ' ';
		if (length > (ssize_t)size &&
		    memcmp(line + length - 1 - (ssize_t)size, marker, size) == 0) {
			count++;
			*one = (pid_t)strtol(entry->d_name, NULL, 10);
		}
	}
	(void)closedir(proc);
	return count;
}

/* Looks until there are so many of them, at most ten seconds. */
static void
expect_processes(const char *marker, int count)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	int64_t until = loop_now() + 10000;
	pid_t unused;

	while (count_processes(marker, &unused) != count) {
		if (loop_now() > until)
			fail_msg("%d processes \"%s\", not %d", count_processes(marker, &unused),
			    marker, count);
		(void)nanosleep(&pause, NULL);
	}
}

/* A command line that no other process on this machine has. */
static const char *
unique_sleep(int number)
{
	static char text[64];

	snprintf(text, sizeof(text), "sleep %d.%d", 5000 + number, (int)getpid());
	return text;
}

static void
only_listed_files_are_there(void **state)
{
	(void)state;
	contract_check(&contract, "ls -A /root /home /mnt /srv /media /boot /sys 2>/dev/null", 2,
	    "/home:\nsandbox\n");
	contract_check(&contract, "ls -A /", 0,
	    "bin\ndev\netc\nhome\nlib\nlib32\nlib64\nproc\nrun\nsbin\ntmp\nusr\nvar\n");
	contract_check(
	    &contract, "ls /etc/shadow /etc/ssh /etc/ssl/private /etc/sudoers 2>/dev/null", 2, "");
	contract_check(&contract, "ls -A /tmp /var/tmp /run /dev/shm /var", 0,
	    "/dev/shm:\n\n/run:\n\n/tmp:\n\n/var:\ntmp\n\n/var/tmp:\n");
	contract_check(&contract,
	    "cut -d: -f1 /etc/passwd; id -un; id -u; cat /etc/hostname | cut -c1-6", 0,
	    "root\nsandbox\nnobody\nsandbox\n1000\nlocal-\n");
}

static void
the_state_directory_is_not_there(void **state)
{
	char path[PATH_MAX], link[64], script[PATH_MAX + 64];
	ssize_t length;

	(void)state;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", contract.state_directory);
	length = readlink(link, path, sizeof(path) - 1);
	assert_true(length > 0);
	path[length] = '\0';
	snprintf(script, sizeof(script), "ls -d %s 2>/dev/null", path);
	contract_check(&contract, script, 2, "");
}

static void
only_its_own_processes_are_there(void **state)
{
	(void)state;
	/* All of ps's output first: the rest of a pipe may not have become what it will be yet. */
	contract_check(&contract,
	    "all=$(ps -eo comm=); echo $all | tr ' ' '\\n' | sort -u | tr '\\n' ' '", 0,
	    "ps rwsd-init sh ");
	contract_check(&contract, "kill -9 -1; echo alive", 0, "alive\n");
}

static void
init_cannot_be_read_traced_or_stopped(void **state)
{
	(void)state;
	contract_check(&contract,
	    "for f in mem environ maps auxv stack syscall; do cat /proc/1/$f 2>/dev/null | head -c 1; done",
	    0, "");
	contract_check(&contract,
	    "for f in 0 1 2 3 4 5; do readlink /proc/1/fd/$f || : ; done 2>/dev/null", 0, "");
	contract_check(&contract, "readlink /proc/1/exe /proc/1/cwd /proc/1/root", 1, "");
	contract_check(&contract,
	    "for s in TERM KILL STOP INT HUP USR1 SEGV CHLD; do kill -$s 1; done; echo sent", 0,
	    "sent\n");
	contract_check(&contract,
	    "/usr/bin/python3 -c 'import ctypes; c = ctypes.CDLL(None, use_errno=True);"
	    "print(c.ptrace(16, 1, 0, 0), ctypes.get_errno())'",
	    0, "-1 1\n");
	contract_check(&contract, "echo alive", 0, "alive\n");
	assert_int_equal(contract.lost, 0);
}

/* A command's own descriptors are three, whatever else runs. */
static void
no_descriptor_of_ours_is_inherited(void **state)
{
	struct contract_command other;

	(void)state;
	contract_shell(&contract, &other, "echo ready; sleep 600");
	contract_command_expect(&other, "ready");
	contract_check(
	    &contract, "for f in 3 4 5 6 7 8 9; do test -e /proc/$$/fd/$f && echo $f; done", 1, "");
	contract_command_free(&other);
}

static void
there_are_no_rights_to_have(void **state)
{
	(void)state;
	contract_check(&contract,
	    "grep -E '^(Cap...|NoNewPrivs)' /proc/self/status | tr -d '\\t' | tr '\\n' ' '", 0,
	    "CapInh:0000000000000000 CapPrm:0000000000000000 CapEff:0000000000000000 "
	    "CapBnd:0000000000000000 CapAmb:0000000000000000 NoNewPrivs:1 ");
	contract_check(
	    &contract, "mount -t tmpfs none /tmp 2>/dev/null || echo refused", 0, "refused\n");
	contract_check(&contract, "umount /usr 2>/dev/null || echo refused", 0, "refused\n");
	contract_check(
	    &contract, "mount -o remount,rw /usr 2>/dev/null || echo refused", 0, "refused\n");
	contract_check(&contract, "hostname other 2>/dev/null || echo refused", 0, "refused\n");
}

static void
the_system_cannot_be_written(void **state)
{
	(void)state;
	contract_check(&contract,
	    "for f in /usr/x /etc/x /bin/x /x /etc/passwd /etc/hosts; do (echo x >>$f) 2>/dev/null && echo $f; done",
	    2, "");
	contract_check(&contract,
	    "find /proc/sys /proc/irq /proc/bus /proc/fs /proc/sysrq-trigger -writable 2>/dev/null",
	    1, "");
	contract_check(&contract,
	    "for d in ~ /tmp /var/tmp /run /dev/shm; do echo x >$d/x && rm $d/x || echo $d; done",
	    0, "");
}

static void
devices_are_the_harmless_ones(void **state)
{
	(void)state;
	contract_check(&contract,
	    "for f in /dev/*; do if ! [ -L $f ] && ! [ -d $f ]; then echo $f; fi; done | tr '\\n' ' '",
	    0, "/dev/full /dev/null /dev/random /dev/tty /dev/urandom /dev/zero ");
}

static void
the_network_is_the_loopback_only(void **state)
{
	const char *network = contract_setting("network");

	(void)state;
	if (network != NULL && strcmp(network, "none") != 0)
		return;
	contract_check(&contract, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '", 0, "lo\n");
	contract_check(&contract,
	    "/usr/bin/python3 -c 'import socket; s = socket.create_server((\"localhost\", 0));"
	    "socket.create_connection(s.getsockname()); print(\"up\")'",
	    0, "up\n");
	contract_check(&contract, "tail -n +2 /proc/net/unix", 0, "");
}

static void
one_sandbox_sees_nothing_of_another(void **state)
{
	struct contract_command command;
	struct contract other;
	char script[128];

	(void)state;
	contract_open(&other);
	if (!contract_connect(&other, NULL, true))
		fail_msg("connect: %s", other.failure.message);
	snprintf(script, sizeof(script), "echo secret >/tmp/secret; echo ready; exec %s",
	    unique_sleep(1));
	contract_shell(&other, &command, script);
	contract_command_expect(&command, "ready");
	contract_check(&contract, "ls -A /tmp /home; ps -e | grep -c sleep", 1,
	    "/home:\nsandbox\n\n/tmp:\n0\n");
	contract_command_free(&command);
	(void)contract_release(&other, DRIVER_DESTROY);
	contract_close(&other);
}

static void
temporary_files_are_not_in_memory(void **state)
{
	(void)state;
	contract_check(&contract, "stat -f -c %T /tmp /var/tmp | grep -c tmpfs", 1, "0\n");
}

/* --- what follows holds without isolation too --- */

static pid_t
child_of_this_process(void)
{
	char path[300], text[512];
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	pid_t found = 0;
	int parent;
	FILE *file;

	assert_non_null(proc);
	while (found == 0 && (entry = readdir(proc)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "r") : NULL;
		if (file == NULL)
			continue;
		if (fgets(text, sizeof(text), file) != NULL && strrchr(text, ')') != NULL &&
		    sscanf(strrchr(text, ')') + 1, " %*c %d", &parent) == 1 && parent == getpid())
			found = (pid_t)strtol(entry->d_name, NULL, 10);
		(void)fclose(file);
	}
	(void)closedir(proc);
	return found;
}

static void
expect_loss(struct contract_command *command, const char *sleeping)
{
	contract_wait(&contract, &command->exited);
	contract_wait(&contract, &command->output.ended);
	assert_true(command->unknown);
	assert_int_equal(command->failure.code, ERROR_UNAVAILABLE);
	assert_non_null(strstr(command->failure.message, contract.id));
	assert_null(strchr(command->failure.message, '\n'));
	assert_int_equal(contract.lost, 1);
	contract_command_free(command);
	expect_processes(sleeping, 0);
}

static void
a_sandbox_that_dies_ends_its_commands_with_one_error(void **state)
{
	struct contract_command command;
	const char *sleeping = unique_sleep(2);
	char script[128];

	(void)state;
	contract_check(&contract, "echo mine >file", 0, "");
	snprintf(script, sizeof(script), "%s & echo ready; wait", sleeping);
	contract_shell(&contract, &command, script);
	contract_command_expect(&command, "ready");
	expect_processes(sleeping, 1);
	assert_int_equal(kill(child_of_this_process(), SIGKILL), 0);
	expect_loss(&command, sleeping);
	if (!contract_connect(&contract, NULL, true))
		fail_msg("connect: %s", contract.failure.message);
	assert_true(contract.started);
	contract_check(&contract, "cat file", 0, "mine\n");
}

/* Everything a worker has under way: a command, a background process, a session of its own. */
static _Noreturn void
be_a_worker(int ready, const char *sleeping)
{
	struct contract_command command, kept;
	const char *argv[] = { "sh", "-c", NULL, NULL };
	struct contract_start start = { .argv = argv, .keep_background = true };
	char script[256];

	contract_reopen(&contract);
	if (!contract_connect(&contract, NULL, true))
		_exit(1);
	snprintf(script, sizeof(script),
	    "setsid setsid %s >/dev/null 2>&1 & trap '' HUP TERM; %s; :", sleeping, sleeping);
	contract_shell(&contract, &command, script);
	snprintf(script, sizeof(script), "%s >/dev/null 2>&1 &", sleeping);
	argv[2] = script;
	contract_command_start(&contract, &kept, &start);
	contract_wait(&contract, &kept.exited);
	(void)!write(ready, "r", 1);
	contract_wait(&contract, &command.exited);
	_exit(2);
}

static void
a_worker_that_dies_takes_everything_with_it(void **state)
{
	const char *sleeping = unique_sleep(3);
	int ready[2], status;
	pid_t worker;
	char byte;

	(void)state;
	assert_int_equal(descriptor_pipe(ready, NULL), 0);
	worker = fork();
	if (worker == 0)
		be_a_worker(ready[1], sleeping);
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	expect_processes(sleeping, 3);
	assert_int_equal(kill(worker, SIGKILL), 0);
	assert_int_equal(waitpid(worker, &status, 0), worker);
	expect_processes(sleeping, 0);
	if (!contract_connect(&contract, NULL, true))
		fail_msg("connect: %s", contract.failure.message);
	contract_check(&contract, "echo again", 0, "again\n");
}

/* Every state that a kill at some step of creating or destroying leaves. */
static void
whatever_a_kill_leaves_can_be_used(void **state)
{
	int fd, at = contract.state_directory;

	(void)state;
	fd = openat(at, "sandbox.new", O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "loc", 3), 3);
	(void)close(fd);
	if (!contract_connect(&contract, NULL, true))
		fail_msg("connect: %s", contract.failure.message);
	assert_int_equal(faccessat(at, "sandbox.new", F_OK, 0), -1);
	assert_true(contract_release(&contract, DRIVER_DESTROY));
	fd = openat(at, "sandbox", O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "local-0123456789ab\n", 19), 19);
	(void)close(fd);
	if (!contract_connect(&contract, NULL, true))
		fail_msg("connect: %s", contract.failure.message);
	assert_string_equal(contract.id, "local-0123456789ab");
	contract_check(&contract, "pwd >file && cat /tmp/nothing 2>/dev/null", 1, "");
	assert_true(contract_release(&contract, DRIVER_STOPPED));
	assert_int_equal(unlinkat(at, "sandbox", 0), 0);
	if (!contract_connect(&contract, NULL, true))
		fail_msg("connect: %s", contract.failure.message);
	assert_string_not_equal(contract.id, "local-0123456789ab");
	assert_true(contract_release(&contract, DRIVER_DESTROY));
	assert_int_equal(faccessat(at, "local-0123456789ab", F_OK, 0), -1);
}

static void
a_spoilt_state_file_is_an_error(void **state)
{
	int fd;

	(void)state;
	fd = openat(contract.state_directory, "sandbox", O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "../../etc\n", 10), 10);
	(void)close(fd);
	assert_false(contract_connect(&contract, NULL, true));
	assert_int_equal(contract.failure.code, ERROR_INVALID);
	assert_int_equal(unlinkat(contract.state_directory, "sandbox", 0), 0);
}

static void
destroying_follows_no_link_and_takes_any_tree(void **state)
{
	char path[32] = "victim-XXXXXX", script[512];
	int fd;

	(void)state;
	fd = mkstemp(path);
	assert_true(fd >= 0);
	if (!contract_connect(&contract, NULL, true))
		fail_msg("connect: %s", contract.failure.message);
	contract_check(&contract,
	    "i=0; while [ $i -lt 400 ]; do mkdir deep; cd -P deep; : >file; i=$((i+1)); done; chmod 000 .",
	    0, "");
	snprintf(script, sizeof(script),
	    "ln -s ../../../%s link; ln -s .. up; ln -s ../../.. far; ln -s / root; mkdir shut; touch shut/x; chmod 000 shut",
	    path);
	contract_check(&contract, script, 0, "");
	assert_true(contract_release(&contract, DRIVER_DESTROY));
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(
	    faccessat(contract.state_directory, contract.id, F_OK, AT_SYMLINK_NOFOLLOW), -1);
	(void)close(fd);
	(void)unlink(path);
}

/*
 * Connects in a user namespace whose limits the test may change;
 * the exit status is 0 when the message holds text.
 */
static _Noreturn void
be_unable(bool (*hinder)(void), const char *text)
{
	char map[32];
	int fd;

	(void)prctl(PR_SET_DUMPABLE, 1);
	snprintf(map, sizeof(map), "0 %u 1", getuid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
	    (fd = open("/proc/self/uid_map", O_WRONLY)) < 0 ||
	    write(fd, map, strlen(map)) != (ssize_t)strlen(map) || !hinder())
		_exit(2);
	contract_reopen(&contract);
	if (contract_connect(&contract, NULL, true) || contract.failure.code != ERROR_UNAVAILABLE)
		_exit(3);
	if (strstr(contract.failure.message, text) == NULL)
		print_error("%s\n", contract.failure.message);
	_exit(strstr(contract.failure.message, text) == NULL ? 4 : 0);
}

static void
expect_unable(bool (*hinder)(void), const char *text)
{
	pid_t child;
	int status;

	child = fork();
	if (child == 0)
		be_unable(hinder, text);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static bool
forbid_namespaces(void)
{
	int fd = open("/proc/sys/user/max_user_namespaces", O_WRONLY);

	return fd >= 0 && write(fd, "0", 1) == 1;
}

static bool
hide_bubblewrap(void)
{
	return mount("/dev/null", "/usr/bin/bwrap", NULL, MS_BIND, NULL) == 0;
}

static void
what_is_missing_is_named(void **state)
{
	(void)state;
	expect_unable(hide_bubblewrap, "apt-get install bubblewrap");
	expect_unable(forbid_namespaces, "user.max_user_namespaces");
}

#define CONNECTED(name) cmocka_unit_test_setup_teardown(name, open_connected, close_test)
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_test, close_test)

int
contract_test_local(void)
{
	const struct CMUnitTest isolation_tests[] = {
		CONNECTED(only_listed_files_are_there),
		CONNECTED(the_state_directory_is_not_there),
		CONNECTED(only_its_own_processes_are_there),
		CONNECTED(init_cannot_be_read_traced_or_stopped),
		CONNECTED(no_descriptor_of_ours_is_inherited),
		CONNECTED(there_are_no_rights_to_have),
		CONNECTED(the_system_cannot_be_written),
		CONNECTED(devices_are_the_harmless_ones),
		CONNECTED(the_network_is_the_loopback_only),
		CONNECTED(one_sandbox_sees_nothing_of_another),
		CONNECTED(temporary_files_are_not_in_memory),
		TEST(what_is_missing_is_named),
	};
	const struct CMUnitTest tests[] = {
		CONNECTED(a_sandbox_that_dies_ends_its_commands_with_one_error),
		TEST(a_worker_that_dies_takes_everything_with_it),
		TEST(whatever_a_kill_leaves_can_be_used),
		TEST(a_spoilt_state_file_is_an_error),
		TEST(destroying_follows_no_link_and_takes_any_tree),
	};
	const char *isolation = contract_setting("isolation");
	int failed;

	failed = cmocka_run_group_tests_name("local", tests, NULL, NULL);
	if (isolation == NULL || strcmp(isolation, "none") != 0)
		failed += cmocka_run_group_tests_name("isolation", isolation_tests, NULL, NULL);
	return failed;
}
