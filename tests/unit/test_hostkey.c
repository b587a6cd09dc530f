/* SPDX-License-Identifier: ISC */
/* Host keys: made when missing, in a form that ssh-keygen and libssh read, and never half. */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libssh/libssh.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "keys/hostkey.h"

static const char *const names[HOSTKEY_COUNT] = { "ssh_host_ed25519_key", "ssh_host_rsa_key" };

static char parent[64];
static char directory[96];
static struct error err;

static int
make_parent(void **state)
{
	(void)state;
	(void)snprintf(parent, sizeof(parent), "/tmp/test_hostkey.XXXXXX");
	assert_non_null(mkdtemp(parent));
	(void)snprintf(directory, sizeof(directory), "%s/keys", parent);
	log_set_level(LOG_LEVEL_ERROR);
	return 0;
}

static int
remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status;
	(void)kind;
	(void)where;
	return remove(path);
}

static int
remove_parent(void **state)
{
	(void)state;
	return nftw(parent, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *
key_path(size_t key)
{
	static char paths[HOSTKEY_COUNT][160];

	(void)snprintf(paths[key], sizeof(paths[key]), "%s/%s", directory, names[key]);
	return paths[key];
}

static void
ensure(void)
{
	if (hostkey_ensure(directory, &err) != 0)
		fail_msg("%s", err.message);
}

static char *
read_key(size_t key)
{
	char *text;

	text = descriptor_read_file(AT_FDCWD, key_path(key), 65536, NULL, &err);
	assert_non_null(text);
	return text;
}

/* Writes a text in place of a key. */
static void
write_key(size_t key, const char *text)
{
	int fd;

	fd = open(key_path(key), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(descriptor_write(fd, text, strlen(text), NULL), 0);
	assert_int_equal(close(fd), 0);
}

/* The first line of what a program prints; the caller frees it. */
static char *
output_of(const char *const *argv)
{
	char **copy, text[1024];
	ssize_t got;
	size_t i;
	int ends[2], status;
	pid_t pid;

	assert_int_equal(descriptor_pipe(ends, &err), 0);
	copy = memory_zeroed(1, sizeof(*copy));
	for (i = 0; argv[i] != NULL; i++)
		copy = memory_list_add(copy, i, argv[i]);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		execvp(copy[0], copy);
		_exit(127);
	}
	descriptor_close(&ends[1]);
	got = read(ends[0], text, sizeof(text) - 1);
	descriptor_close(&ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(got > 0);
	memory_list_free(copy);
	return memory_text_bounded(
	    text, strcspn(text, "\n") < (size_t)got ? strcspn(text, "\n") : (size_t)got);
}

static void
keys_are_made_private_and_openssh_reads_them(void **state)
{
	static const char *const starts[HOSTKEY_COUNT] = { "ssh-ed25519 AAAA", "ssh-rsa AAAA" };
	static const char *const sizes[HOSTKEY_COUNT] = { "256 SHA256:", "3072 SHA256:" };
	struct stat status;
	char *line;
	size_t i;

	(void)state;
	ensure();
	assert_int_equal(stat(directory, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	for (i = 0; i < HOSTKEY_COUNT; i++) {
		const char *const public[] = { "ssh-keygen", "-y", "-f", key_path(i), NULL };
		const char *const print[] = { "ssh-keygen", "-l", "-f", key_path(i), NULL };

		assert_int_equal(stat(key_path(i), &status), 0);
		assert_int_equal(status.st_mode & 07777, 0600);
		assert_int_equal(status.st_nlink, 1);
		line = output_of(public);
		assert_memory_equal(line, starts[i], strlen(starts[i]));
		memory_free(line);
		line = output_of(print);
		assert_memory_equal(line, sizes[i], strlen(sizes[i]));
		memory_free(line);
	}
}

/* A session signs with them through libssh, so that has to agree about both halves of a key. */
static void
libssh_reads_them_too(void **state)
{
	static const enum ssh_keytypes_e types[] = { SSH_KEYTYPE_ED25519, SSH_KEYTYPE_RSA };
	ssh_key key;
	char *text;
	size_t i;

	(void)state;
	ensure();
	for (i = 0; i < HOSTKEY_COUNT; i++) {
		text = read_key(i);
		assert_int_equal(
		    ssh_pki_import_privkey_base64(text, NULL, NULL, NULL, &key), SSH_OK);
		assert_int_equal(ssh_key_type(key), types[i]);
		ssh_key_free(key);
		memory_text_wipe(text);
	}
}

static void
keys_that_are_there_stay(void **state)
{
	char *before[HOSTKEY_COUNT], *after;
	size_t i;

	(void)state;
	ensure();
	for (i = 0; i < HOSTKEY_COUNT; i++)
		before[i] = read_key(i);
	ensure();
	for (i = 0; i < HOSTKEY_COUNT; i++) {
		after = read_key(i);
		assert_string_equal(before[i], after);
		memory_text_wipe(before[i]);
		memory_text_wipe(after);
	}
}

static void
keys_made_by_ssh_keygen_are_used(void **state)
{
	static const char script[] = "ssh-keygen -q -t ed25519 -N '' -f \"$0\" && "
				     "ssh-keygen -q -t rsa -b 2048 -m PEM -N '' -f \"$1\" && "
				     "echo made";
	const char *const make[] = { "sh", "-c", script, key_path(0), key_path(1), NULL };
	char *line;

	(void)state;
	assert_int_equal(mkdir(directory, 0755), 0);
	line = output_of(make);
	assert_string_equal(line, "made");
	memory_free(line);
	ensure();
}

/* The message of a refusal, without the directory in front. */
static const char *
refusal(void)
{
	int keys[HOSTKEY_COUNT];
	size_t i;

	assert_int_equal(hostkey_ensure(directory, &err), -1);
	if (err.code == ERROR_DENIED) {
		assert_int_equal(hostkey_open(directory, keys, &err), -1);
		for (i = 0; i < HOSTKEY_COUNT; i++)
			assert_int_equal(keys[i], -1);
	}
	assert_memory_equal(err.message, directory, strlen(directory));
	return err.message + strlen(directory) + 2;
}

static void
keys_that_others_may_read_are_refused(void **state)
{
	(void)state;
	ensure();
	assert_int_equal(chmod(key_path(1), 0640), 0);
	assert_string_equal(refusal(),
	    "host key ssh_host_rsa_key: group or others have access to it "
	    "(mode 640); chmod go-rwx");
	assert_int_equal(chmod(key_path(1), 0604), 0);
	assert_non_null(strstr(refusal(), "(mode 604)"));
	assert_int_equal(chmod(key_path(1), 0400), 0);
	ensure();
}

static void
a_directory_that_others_may_write_is_refused(void **state)
{
	(void)state;
	ensure();
	assert_int_equal(chmod(directory, 0770), 0);
	assert_int_equal(hostkey_ensure(directory, &err), -1);
	assert_non_null(
	    strstr(err.message, "group or others may write to it (mode 770); chmod go-w"));
	assert_int_equal(chmod(directory, 0755), 0);
	ensure();
}

static void
keys_that_cannot_be_used_are_refused_and_kept(void **state)
{
	char *rsa, *text;

	(void)state;
	ensure();
	rsa = read_key(1);
	write_key(0, rsa);
	assert_string_equal(
	    refusal(), "host key ssh_host_ed25519_key: the key is not of the type ssh-ed25519");
	rsa[strlen(rsa) / 2] = '\0';
	write_key(0, rsa);
	assert_non_null(strstr(refusal(), "no private key that can be used without a passphrase"));
	text = read_key(0);
	assert_string_equal(text, rsa);
	write_key(0, "");
	assert_non_null(strstr(refusal(), "no private key"));
	memory_text_wipe(text);
	memory_text_wipe(rsa);
	assert_int_equal(unlink(key_path(0)), 0);
	assert_int_equal(mkdir(key_path(0), 0700), 0);
	assert_string_equal(refusal(), "host key ssh_host_ed25519_key: not a regular file");
}

static void
a_missing_parent_is_named(void **state)
{
	char path[160];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/none/keys", directory);
	assert_int_equal(hostkey_ensure(path, &err), -1);
	assert_non_null(strstr(err.message, "/none/keys: No such file or directory"));
}

static void
descriptors_can_be_read_again_and_again(void **state)
{
	int keys[HOSTKEY_COUNT];
	char *first, *second;
	size_t i;

	(void)state;
	ensure();
	assert_int_equal(hostkey_open(directory, keys, &err), 0);
	for (i = 0; i < HOSTKEY_COUNT; i++) {
		assert_true((fcntl(keys[i], F_GETFD) & FD_CLOEXEC) != 0);
		first = hostkey_read(keys[i], &err);
		second = hostkey_read(keys[i], &err);
		assert_non_null(first);
		assert_string_equal(first, second);
		assert_memory_equal(first, "-----BEGIN OPENSSH PRIVATE KEY-----\n", 36);
		memory_text_wipe(first);
		memory_text_wipe(second);
		descriptor_close(&keys[i]);
	}
}

static void
gateways_that_start_at_once_share_the_keys_of_one(void **state)
{
	pid_t pids[4];
	int barrier[2], status;
	char *entries, byte;
	size_t i;
	const char *const list[] = { "sh", "-c", "ls -A \"$0\" | tr '\\n' ' '", directory, NULL };

	(void)state;
	assert_int_equal(descriptor_pipe(barrier, &err), 0);
	for (i = 0; i < 4; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			descriptor_close(&barrier[1]);
			(void)!read(barrier[0], &byte, 1); /* until the parent closes it */
			_exit(hostkey_ensure(directory, &err) == 0 ? 0 : 1);
		}
	}
	descriptor_close(&barrier[0]);
	descriptor_close(&barrier[1]);
	for (i = 0; i < 4; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	entries = output_of(list);
	assert_string_equal(entries, "ssh_host_ed25519_key ssh_host_rsa_key ");
	memory_free(entries);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_parent, remove_parent)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(keys_are_made_private_and_openssh_reads_them),
		TEST(libssh_reads_them_too),
		TEST(keys_that_are_there_stay),
		TEST(keys_made_by_ssh_keygen_are_used),
		TEST(keys_that_others_may_read_are_refused),
		TEST(a_directory_that_others_may_write_is_refused),
		TEST(keys_that_cannot_be_used_are_refused_and_kept),
		TEST(a_missing_parent_is_named),
		TEST(descriptors_can_be_read_again_and_again),
		TEST(gateways_that_start_at_once_share_the_keys_of_one),
	};

	return cmocka_run_group_tests_name("hostkey", tests, NULL, NULL);
}
