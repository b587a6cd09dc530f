/* SPDX-License-Identifier: ISC */
/*
 * The driver contract test: one suite that every driver passes.
 *
 *	contract [-d DIRECTORY] [-u UID] [-k PATTERN] DRIVER [NAME=VALUE ...]
 *
 * State directories are made in DIRECTORY (/tmp). With -u the program first opens it and then
 * becomes a worker as root starts one: that user, no_new_privs, not dumpable, maybe without a path
 * to it.
 */
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/number.h"
#include "core/driver.h"
#include "tests/contract/contract.h"
#include "tests/contract/harness.h"

static void
usage(void)
{
	fprintf(stderr,
	    "usage: contract [-d DIRECTORY] [-u UID] [-k PATTERN] DRIVER [NAME=VALUE ...]\n");
	exit(64);
}

static void
become_worker(const char *user)
{
	int64_t uid;

	if (number_parse(user, 1, 65535, &uid, NULL) != 0)
		usage();
	if (setgroups(0, NULL) != 0 || setresgid((gid_t)uid, (gid_t)uid, (gid_t)uid) != 0 ||
	    setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) != 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0) {
		perror("become a worker");
		exit(71);
	}
}

int
main(int count, char **arguments)
{
	const char *directory = "/tmp", *user = NULL;
	int option, failed;

	while ((option = getopt(count, arguments, "d:u:k:")) >= 0) {
		if (option == 'd')
			directory = optarg;
		else if (option == 'u')
			user = optarg;
		else if (option == 'k')
			cmocka_set_test_filter(optarg);
		else
			usage();
	}
	if (optind >= count)
		usage();
	(void)signal(SIGPIPE, SIG_IGN);
	if (chdir(directory) != 0) {
		perror(directory);
		return 66;
	}
	if (user != NULL)
		become_worker(user);
	contract_choose(arguments[optind], arguments + optind + 1);
	failed = contract_test_lifetime() + contract_test_commands() + contract_test_files();
	if (contract_supports(DRIVER_PTY))
		failed += contract_test_terminals();
	if (strcmp(arguments[optind], "local") == 0)
		failed += contract_test_local();
	return failed == 0 ? 0 : 1;
}
