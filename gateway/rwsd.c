/* SPDX-License-Identifier: ISC */
/*
 * rwsd: an SSH gateway to cloud sandboxes. This file reads the command line and enters the process
 * that it is: the listener, or what the listener started (auth, session). Workers are a program of
 * their own, rwsd-worker, so that no session carries the libraries that speak to providers.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <libssh/libssh.h>

#include "conf/conf.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/base/process.h"
#include "gateway/auth.h"
#include "gateway/listener.h"
#include "gateway/session.h"
#include "gateway/version.h"

#define STANDARD_FILE "/etc/rwsd/rwsd.conf"
#define EXIT_USAGE 64

enum action {
	ACTION_RUN,
	ACTION_TEST,
	ACTION_PRINT,
	ACTION_VERSION,
};

static const char usage[] = "usage: rwsd [-tVvx] [-f file] [-o name=value]\n";

struct arguments {
	const char *file;
	char **overrides;
	size_t override_count;
	enum action action;
	bool verbose;
};

static int
parse_arguments(int argc, char **argv, struct arguments *arguments)
{
	int letter;

	while ((letter = getopt(argc, argv, "f:o:tVvx")) != -1) {
		switch (letter) {
		case 'f':
			arguments->file = optarg;
			break;
		case 'o':
			arguments->overrides = memory_list_add(
			    arguments->overrides, arguments->override_count++, optarg);
			break;
		case 't':
			arguments->action = ACTION_TEST;
			break;
		case 'V':
			arguments->action = ACTION_VERSION;
			break;
		case 'v':
			arguments->verbose = true;
			break;
		case 'x':
			arguments->action = ACTION_PRINT;
			break;
		default:
			return -1;
		}
	}
	return optind == argc ? 0 : -1;
}

static void
open_log(const struct conf *conf, bool verbose)
{
	const struct settings *settings = conf_global(conf);
	const char *level;

	level = settings_text(settings, "log_level");
	log_open("listener",
	    verbose || strcmp(level, "debug") == 0 ? LOG_LEVEL_DEBUG
	    : strcmp(level, "error") == 0          ? LOG_LEVEL_ERROR
	    : strcmp(level, "warning") == 0        ? LOG_LEVEL_WARNING
						   : LOG_LEVEL_INFO,
	    strcmp(settings_text(settings, "log_format"), "json") == 0 ? LOG_FORMAT_JSON
								       : LOG_FORMAT_TEXT);
}

/* What is there besides the file and what it names; says what is wrong. */
static int
check_records(const struct conf *conf)
{
	struct error err;
	int result;

	result = listener_check_records(conf, &err);
	if (result != 0)
		(void)fprintf(stderr, "rwsd: %s%s\n", result > 0 ? "warning: " : "", err.message);
	return result < 0 ? 1 : 0;
}

static int
run(const struct arguments *arguments)
{
	int result = 0;
	struct conf *conf;
	struct error err;

	if (arguments->action == ACTION_VERSION)
		return printf("rwsd %s, libssh %s\n", RWSD_VERSION, ssh_version(0)) < 0;
	conf = listener_load_conf(arguments->file, arguments->overrides, &err);
	if (conf == NULL ||
	    (arguments->action != ACTION_PRINT && listener_check_conf(conf, &err) != 0)) {
		(void)fprintf(stderr, "rwsd: %s\n", err.message);
		conf_free(conf);
		return 1;
	}
	if (arguments->action == ACTION_RUN) {
		open_log(conf, arguments->verbose);
		return listener_main(conf, arguments->file, arguments->overrides);
	}
	if (arguments->action == ACTION_PRINT)
		conf_print(conf, stdout);
	else
		result = check_records(conf);
	conf_free(conf);
	return fflush(stdout) == 0 ? result : 1;
}

int
main(int argc, char **argv)
{
	struct arguments arguments = { .file = STANDARD_FILE };
	struct process_user user;
	const char *role;
	int result;

	role = process_enter(argc, argv, &user);
	if (role != NULL) {
		if (strcmp(role, "auth") == 0)
			return auth_main(&user);
		if (strcmp(role, "session") == 0)
			return session_main(&user);
	}
	if (parse_arguments(argc, argv, &arguments) != 0) {
		(void)fputs(usage, stderr);
		return EXIT_USAGE;
	}
	result = run(&arguments);
	memory_list_free(arguments.overrides);
	return result;
}
