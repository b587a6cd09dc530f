/* SPDX-License-Identifier: ISC */
/* Who may log in, by which name, and how soon an edit of a file of keys counts. */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/base64.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/login.h"
#include "core/protocol.h"
#include "keys/authorized.h"
#include "keys/decision.h"
#include "keys/keyfile.h"
#include "tests/unit/sample_keys.h"

static char directory[64];
static char file[96];
static struct error err;

static int
make_directory(void **state)
{
	(void)state;
	(void)snprintf(directory, sizeof(directory), "/tmp/test_decision.XXXXXX");
	assert_non_null(mkdtemp(directory));
	(void)snprintf(file, sizeof(file), "%s/keys", directory);
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
remove_directory(void **state)
{
	(void)state;
	return nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void
write_file(const char *path, const char *text)
{
	int fd;

	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(descriptor_write(fd, text, strlen(text), NULL), 0);
	assert_int_equal(close(fd), 0);
}

/* Makes a file look as if nobody had touched it for an hour, as far as its owner can. */
static void
make_old(const char *path)
{
	struct timespec times[2] = { { 0, UTIME_OMIT }, { time(NULL) - 3600, 0 } };

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Adds a login with at most one file and one key, which may be NULL. */
static void
add(struct decision *decision, const char *name, const char *path, const char *line,
    const char *instances)
{
	struct decision_login login = { .name = name };
	char **files, **keys;

	files = memory_zeroed(1, sizeof(*files));
	if (path != NULL)
		files = memory_list_add(files, 0, path);
	keys = memory_zeroed(1, sizeof(*keys));
	if (line != NULL)
		keys = memory_list_add(keys, 0, line);
	login.files = files;
	login.keys = keys;
	login.instances = decision_instances_parse(instances);
	if (decision_add(decision, &login, &err) != 0)
		fail_msg("%s", err.message);
	memory_list_free(files);
	memory_list_free(keys);
}

/* What the decision is on the key of an authorized_keys line, from an address. */
static struct auth_result
ask_from(struct decision *decision, const char *user, const char *line, const char *address)
{
	struct auth_request request = { .is_signed = true };
	struct auth_check check = { .connection = 7 };
	struct auth_result result;
	struct authorized_key key;

	assert_int_equal(authorized_parse_line(line, &key, &err), 1);
	request.user = memory_text(user);
	request.algorithm = key.algorithm;
	request.blob = key.blob;
	request.blob_size = key.blob_size;
	check.address = memory_text(address);
	decision_make(decision, &check, &request, &result);
	memory_free(request.user);
	memory_free(check.address);
	authorized_key_free(&key);
	return result;
}

static bool
may_log_in(struct decision *decision, const char *user, const char *line)
{
	struct auth_result result;
	bool allowed;

	result = ask_from(decision, user, line, "192.0.2.1");
	allowed = result.allowed;
	auth_result_free(&result);
	return allowed;
}

static void
the_answer_carries_login_workspace_and_restrictions(void **state)
{
	struct decision *decision;
	struct auth_result result;

	(void)state;
	decision = decision_new();
	add(decision, "box", NULL, "restrict,command=\"make\",environment=\"A=1\" " KEY_ED25519,
	    "attach");
	result = ask_from(decision, "box=id_1:x", KEY_ED25519, "::1");
	assert_true(result.allowed);
	assert_true(result.is_signed);
	assert_int_equal(result.connection, 7);
	assert_string_equal(result.login, "box");
	assert_string_equal(result.workspace, "box=id_1:x");
	assert_string_equal(result.fingerprint, FINGERPRINT_ED25519);
	assert_string_equal(result.restrictions.command, "make");
	assert_true(result.restrictions.no_pty);
	assert_string_equal(result.restrictions.environment[0], "A=1");
	assert_null(result.restrictions.environment[1]);
	auth_result_free(&result);
	decision_free(decision);
}

static void
a_refusal_says_nothing_but_the_fingerprint(void **state)
{
	static const char *const users[] = { "box", "nobody", "", "box+", "box==", "+", "box/..",
		"box+a+b", "box=a b" };
	struct decision *decision;
	struct auth_result result;
	size_t i;

	(void)state;
	decision = decision_new();
	add(decision, "box", NULL, KEY_ED25519, "attach");
	for (i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		result = ask_from(decision, users[i], KEY_ED25519_OTHER, "::1");
		assert_false(result.allowed);
		assert_null(result.login);
		assert_null(result.workspace);
		assert_null(result.restrictions.command);
		assert_string_equal(result.fingerprint, FINGERPRINT_ED25519_OTHER);
		auth_result_free(&result);
	}
	decision_free(decision);
}

static void
unknown_logins_never_get_in_with_another_logins_key(void **state)
{
	struct decision *decision;
	char name[16];
	int i;

	(void)state;
	decision = decision_new();
	assert_false(may_log_in(decision, "box", KEY_ED25519)); /* no logins at all */
	add(decision, "box", NULL, KEY_ED25519, "attach");
	add(decision, "other", NULL, KEY_ED25519, "attach");
	for (i = 0; i < 50; i++) {
		(void)snprintf(name, sizeof(name), "n%d", i);
		assert_false(may_log_in(decision, name, KEY_ED25519));
	}
	assert_false(may_log_in(decision, "bo", KEY_ED25519));
	assert_false(may_log_in(decision, "box2", KEY_ED25519));
	assert_false(may_log_in(decision, "Box", KEY_ED25519));
	assert_true(may_log_in(decision, "other", KEY_ED25519));
	decision_free(decision);
}

static void
instances_policy_is_kept(void **state)
{
	static const struct {
		const char *policy;
		bool name, instance, id;
	} cases[] = {
		{ "off", true, false, false },
		{ "on", true, true, false },
		{ "attach", true, true, true },
		{ "nonsense", true, false, false },
	};
	struct decision *decision;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		decision = decision_new();
		add(decision, "box", NULL, KEY_ED25519, cases[i].policy);
		assert_int_equal(may_log_in(decision, "box", KEY_ED25519), cases[i].name);
		assert_int_equal(may_log_in(decision, "box+a", KEY_ED25519), cases[i].instance);
		assert_int_equal(may_log_in(decision, "box=a", KEY_ED25519), cases[i].id);
		decision_free(decision);
	}
}

static void
from_and_expiry_are_applied(void **state)
{
	struct decision *decision;
	struct auth_result result;

	(void)state;
	decision = decision_new();
	add(decision, "near", NULL, "from=\"192.0.2.0/24\" " KEY_ED25519, "on");
	add(decision, "past", NULL, "expiry-time=\"20200101Z\" " KEY_ED25519, "on");
	add(decision, "future", NULL, "expiry-time=\"99990101Z\" " KEY_ED25519, "on");
	assert_true(may_log_in(decision, "near", KEY_ED25519));
	result = ask_from(decision, "near", KEY_ED25519, "198.51.100.1");
	assert_false(result.allowed);
	auth_result_free(&result);
	assert_false(may_log_in(decision, "past", KEY_ED25519));
	assert_true(may_log_in(decision, "future", KEY_ED25519));
	decision_free(decision);
}

static void
of_two_lines_with_the_key_the_first_that_admits_counts(void **state)
{
	struct decision *decision;
	struct auth_result result;

	(void)state;
	write_file(file, "expiry-time=\"20200101Z\",command=\"one\" " KEY_ED25519
			 "\ncommand=\"two\" " KEY_ED25519 "\ncommand=\"three\" " KEY_ED25519 "\n");
	decision = decision_new();
	add(decision, "box", file, "command=\"four\" " KEY_ED25519, "on");
	result = ask_from(decision, "box", KEY_ED25519, "::1");
	assert_true(result.allowed);
	assert_string_equal(result.restrictions.command, "two");
	auth_result_free(&result);
	decision_free(decision);
}

static void
a_bad_inline_key_is_refused_with_its_number(void **state)
{
	static char good[] = KEY_ED25519, bad[] = "future " KEY_ED25519, none[] = "# comment";
	char *files[] = { NULL };
	char *keys[] = { good, bad, NULL };
	struct decision_login login = { "box", files, keys, DECISION_INSTANCES };
	struct decision *decision;

	(void)state;
	decision = decision_new();
	assert_int_equal(decision_add(decision, &login, &err), -1);
	assert_string_equal(err.message, "key 2: unknown option \"future\"");
	keys[1] = none;
	assert_int_equal(decision_add(decision, &login, &err), -1);
	assert_string_equal(err.message, "key 2: there is no key");
	assert_false(may_log_in(decision, "box", KEY_ED25519));
	decision_free(decision);
}

static void
a_file_named_twice_is_read_once(void **state)
{
	char *files[] = { file, file, NULL };
	char *keys[] = { NULL };
	struct decision_login login = { "box", files, keys, DECISION_INSTANCES };
	struct decision *decision;

	(void)state;
	write_file(file, KEY_ED25519 "\n");
	decision = decision_new();
	assert_int_equal(decision_add(decision, &login, &err), 0);
	assert_true(may_log_in(decision, "box", KEY_ED25519));
	decision_free(decision);
}

static void
an_edit_of_a_file_counts_at_once(void **state)
{
	struct decision *decision;

	(void)state;
	decision = decision_new();
	add(decision, "box", file, NULL, "on");
	assert_false(may_log_in(decision, "box", KEY_ED25519)); /* there is no file */
	write_file(file, KEY_ED25519 "\n");
	assert_true(may_log_in(decision, "box", KEY_ED25519));
	assert_false(may_log_in(decision, "box", KEY_ED25519_OTHER));
	/* Of the same size, in place, within one tick of the clock: */
	write_file(file, KEY_ED25519_OTHER "\n");
	assert_false(may_log_in(decision, "box", KEY_ED25519));
	assert_true(may_log_in(decision, "box", KEY_ED25519_OTHER));
	/* With its modification time put back: */
	make_old(file);
	assert_true(may_log_in(decision, "box", KEY_ED25519_OTHER));
	write_file(file, KEY_ED25519 "\n");
	make_old(file);
	assert_true(may_log_in(decision, "box", KEY_ED25519));
	assert_int_equal(unlink(file), 0);
	assert_false(may_log_in(decision, "box", KEY_ED25519));
	decision_free(decision);
}

static void
unsafe_files_have_no_keys_until_they_are_safe(void **state)
{
	struct decision *decision;

	(void)state;
	decision = decision_new();
	write_file(file, KEY_ED25519 "\n");
	add(decision, "box", file, NULL, "on");
	assert_true(may_log_in(decision, "box", KEY_ED25519));
	assert_int_equal(chmod(file, 0620), 0);
	assert_false(may_log_in(decision, "box", KEY_ED25519));
	assert_int_equal(chmod(file, 0602), 0);
	assert_false(may_log_in(decision, "box", KEY_ED25519));
	assert_int_equal(chmod(file, 0644), 0);
	assert_true(may_log_in(decision, "box", KEY_ED25519));
	assert_int_equal(truncate(file, KEYFILE_SIZE_MAX + 1), 0);
	assert_false(may_log_in(decision, "box", KEY_ED25519));
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkfifo(file, 0600), 0);
	assert_false(may_log_in(decision, "box", KEY_ED25519)); /* and does not wait for a writer */
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkdir(file, 0700), 0);
	assert_false(may_log_in(decision, "box", KEY_ED25519));
	decision_free(decision);
}

/* The lines on standard error while a file is asked for its keys count times. */
static size_t
lines_logged(struct keyfile *keys, int count)
{
	char text[4096];
	int saved, ends[2];
	ssize_t got;
	size_t lines, i;

	assert_int_equal(descriptor_pipe(ends, &err), 0);
	assert_int_equal(descriptor_nonblock(ends[0], &err), 0);
	saved = dup(STDERR_FILENO);
	assert_true(saved >= 0);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	for (; count > 0; count--)
		(void)keyfile_keys(keys);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	got = read(ends[0], text, sizeof(text));
	lines = 0;
	for (i = 0; got > 0 && i < (size_t)got; i++)
		lines += text[i] == '\n';
	descriptor_close(&saved);
	descriptor_close(&ends[0]);
	descriptor_close(&ends[1]);
	return lines;
}

static void
what_is_wrong_with_a_file_is_logged_once_for_each_change(void **state)
{
	struct keyfile *keys;

	(void)state;
	keys = keyfile_new(file);
	assert_int_equal(lines_logged(keys, 3), 1);
	write_file(file, "nonsense\n" KEY_ED25519 "\n");
	assert_int_equal(lines_logged(keys, 3), 1);
	assert_int_equal(keyfile_keys(keys)->count, 1);
	assert_int_equal(chmod(file, 0660), 0);
	assert_int_equal(lines_logged(keys, 3), 1);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(lines_logged(keys, 3), 1);
	keyfile_free(keys);
}

static void
logins_are_taken_apart(void **state)
{
	struct login login;

	(void)state;
	assert_int_equal(login_parse("a.b_c-D9", &login), 0);
	assert_string_equal(login.name, "a.b_c-D9");
	assert_string_equal(login.instance, "");
	assert_string_equal(login.id, "");
	assert_int_equal(login_parse("box+dev.1", &login), 0);
	assert_string_equal(login.name, "box");
	assert_string_equal(login.instance, "dev.1");
	assert_int_equal(login_parse("box=i+d=2:~!", &login), 0);
	assert_string_equal(login.name, "box");
	assert_string_equal(login.id, "i+d=2:~!");
}

static void
what_is_no_login_is_refused(void **state)
{
	static const char *const cases[] = { "", ".", "..", "+a", "=a", "a+", "a=", "a+.", "a+..",
		"a=.", "a=..", "a+b+c", "a+b=c", "a b", "a/b", "a=b/c", "a=b c", "a=b\\c", "a=b\"c",
		"a=b'c", "a=b`c", "a=b\n", "a=\x7f", "\xc3\xa4", "a=\xc3\xa4", "a:b" };
	char text[160];
	struct login login;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (login_parse(cases[i], &login) == 0)
			fail_msg("\"%s\" is taken", cases[i]);
	memset(text, 'a', sizeof(text));
	text[LOGIN_NAME_LENGTH] = '\0';
	assert_int_equal(login_parse(text, &login), 0);
	text[LOGIN_NAME_LENGTH] = 'a';
	text[LOGIN_NAME_LENGTH + 1] = '\0';
	assert_int_equal(login_parse(text, &login), -1);
	memset(text, 'a', sizeof(text));
	text[1] = '=';
	text[2 + LOGIN_ID_LENGTH] = '\0';
	assert_int_equal(login_parse(text, &login), 0);
	text[2 + LOGIN_ID_LENGTH] = 'a';
	text[3 + LOGIN_ID_LENGTH] = '\0';
	assert_int_equal(login_parse(text, &login), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_answer_carries_login_workspace_and_restrictions),
		TEST(a_refusal_says_nothing_but_the_fingerprint),
		TEST(unknown_logins_never_get_in_with_another_logins_key),
		TEST(instances_policy_is_kept),
		TEST(from_and_expiry_are_applied),
		TEST(of_two_lines_with_the_key_the_first_that_admits_counts),
		TEST(a_bad_inline_key_is_refused_with_its_number),
		TEST(a_file_named_twice_is_read_once),
		TEST(an_edit_of_a_file_counts_at_once),
		TEST(unsafe_files_have_no_keys_until_they_are_safe),
		TEST(what_is_wrong_with_a_file_is_logged_once_for_each_change),
		TEST(logins_are_taken_apart),
		TEST(what_is_no_login_is_refused),
	};

	return cmocka_run_group_tests_name("decision", tests, NULL, NULL);
}
