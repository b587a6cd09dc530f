/* SPDX-License-Identifier: ISC */
/*
 * Looks at the files that the configuration names before anything starts. Whoever can write a file
 * of keys can log in, and whoever can read a secret can spend it; so both are refused, as sshd
 * does.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/private.h"
#include "core/base/error.h"
#include "core/base/memory.h"

#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

/* Names the place that gave a value, or the file alone when it holds by default. */
static int
blame(const struct conf *conf, const struct conf_entry *entry, const char *option,
    const struct error *reason, struct error *err)
{
	if (entry != NULL)
		return conf_file_blame(&conf->file, entry, reason->message, err);
	return error_set(
	    err, ERROR_INVALID, "%s: %s: %s", conf->file.path, option, reason->message);
}

/* A file of public keys: readable to us, writable to its owner only. */
static int
check_key_file(const char *path, struct error *err)
{
	struct stat status;

	if (stat(path, &status) != 0)
		return error_system(err, errno, "%s", path);
	if (!S_ISREG(status.st_mode))
		return error_set(err, ERROR_INVALID, "%s: not a regular file", path);
	if ((status.st_mode & OTHERS_WRITE) != 0)
		return error_set(err, ERROR_DENIED,
		    "%s: group or others may write it (mode %03o); chmod go-w", path,
		    (unsigned)status.st_mode & 0777);
	if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0)
		return error_system(err, errno, "%s", path);
	return 0;
}

/* The directory in which another one is to be made. */
static int
check_parent(const char *path, struct error *err)
{
	struct stat status;
	size_t length;
	char *parent;
	int result;

	length = strlen(path);
	while (length > 1 && path[length - 1] == '/')
		length--;
	while (length > 1 && path[length - 1] != '/')
		length--;
	parent = memory_text_bounded(path, length);
	result = 0;
	if (stat(parent, &status) != 0)
		result = error_system(err, errno, "%s cannot be made in %s", path, parent);
	else if (!S_ISDIR(status.st_mode))
		result = error_set(err, ERROR_INVALID, "%s: not a directory", parent);
	memory_free(parent);
	return result;
}

/* A directory of ours: made when we start, but when it is there nobody else may write to it. */
static int
check_directory(const char *path, struct error *err)
{
	struct stat status;

	if (stat(path, &status) != 0)
		return errno == ENOENT ? check_parent(path, err)
				       : error_system(err, errno, "%s", path);
	if (!S_ISDIR(status.st_mode))
		return error_set(err, ERROR_INVALID, "%s: not a directory", path);
	if ((status.st_mode & OTHERS_WRITE) != 0)
		return error_set(err, ERROR_DENIED,
		    "%s: group or others may write to it (mode %03o); chmod go-w", path,
		    (unsigned)status.st_mode & 0777);
	return 0;
}

static int
check_directories(const struct conf *conf, struct error *err)
{
	static const char *const names[] = { "host_keys", "state" };
	struct error reason;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (check_directory(settings_text(conf->global, names[i]), &reason) != 0)
			return blame(conf, conf_block_find(&conf->file.blocks[0], names[i], 0),
			    names[i], &reason, err);
	return 0;
}

/* The row that an entry of a block is for; its driver's, or in the global part any driver's. */
static const struct option *
find_option(const struct conf *conf, size_t block, const char *name)
{
	const struct option *option;
	size_t i;

	if (block > 0)
		return settings_option(conf->logins[block - 1].settings, name);
	option = settings_option(conf->global, name);
	for (i = 0; option == NULL && i < conf->defaults_count; i++)
		option = settings_option(conf->defaults[i].settings, name);
	return option;
}

/* A secret: neither the file that holds it nor the configuration itself may be read by everyone. */
static int
check_secret(const struct conf *conf, const struct conf_entry *entry, struct error *err)
{
	struct stat status;
	struct error reason;
	const char *path;
	char *secret;
	int result;

	secret = conf_secret_path(conf, entry->text);
	if (secret == NULL && entry->line == 0)
		return 0;
	path = secret == NULL ? conf->file.path : secret;
	result = 0;
	if (stat(path, &status) != 0)
		result = error_system(&reason, errno, "%s", path);
	else if (S_ISREG(status.st_mode) && (status.st_mode & S_IROTH) != 0)
		result = error_set(&reason, ERROR_DENIED,
		    "%s: everyone may read this secret (mode %03o); chmod o-r", path,
		    (unsigned)status.st_mode & 0777);
	if (result != 0)
		(void)conf_file_blame(&conf->file, entry, reason.message, err);
	memory_free(secret);
	return result;
}

static int
check_secrets(const struct conf *conf, struct error *err)
{
	const struct conf_block *block;
	const struct option *option;
	size_t i, entry;

	for (i = 0; i < conf->file.count; i++) {
		block = &conf->file.blocks[i];
		for (entry = 0; entry < block->count; entry++) {
			option = find_option(conf, i, block->entries[entry].name);
			if (option != NULL && option->type == OPTION_SECRET &&
			    check_secret(conf, &block->entries[entry], err) != 0)
				return -1;
		}
	}
	return 0;
}

/* The driver's judgement on its options, with the place of the one at fault. */
static int
check_driver(const struct conf *conf, size_t index, struct error *err)
{
	const struct conf_login *login = &conf->logins[index];
	const char *option;
	struct error reason;
	char *origin;

	option = NULL;
	if (login->driver->check == NULL ||
	    login->driver->check(login->settings, &option, &reason) == 0)
		return 0;
	if (option == NULL)
		return error_set(err, reason.code, "%s:%u: login %s: %s", conf->file.path,
		    login->block->line, login->block->name, reason.message);
	origin = conf_login_origin(conf, index, option, 0);
	error_set(err, reason.code, "%s: %s: %s", origin, option, reason.message);
	memory_free(origin);
	return -1;
}

static int
check_login(const struct conf *conf, size_t index, struct error *err)
{
	const struct conf_login *login;
	char *const *files;
	struct error reason;
	size_t i;

	login = &conf->logins[index];
	if (login->driver == NULL)
		return error_set(err, ERROR_INVALID, "%s:%u: login %s: no driver is named",
		    conf->file.path, login->block->line, login->block->name);
	files = settings_list(login->settings, "authorized_keys");
	if (*files == NULL && *settings_list(login->settings, "key") == NULL)
		return error_set(err, ERROR_INVALID,
		    "%s:%u: login %s: neither authorized_keys nor key says who may log in",
		    conf->file.path, login->block->line, login->block->name);
	for (i = 0; files[i] != NULL; i++)
		if (check_key_file(files[i], &reason) != 0)
			return blame(conf, conf_entry_find(conf, index, "authorized_keys", i),
			    "authorized_keys", &reason, err);
	return check_driver(conf, index, err);
}

/* Whoever can write the configuration can do all that it can. */
static int
check_itself(const struct conf *conf, struct error *err)
{
	struct stat status;

	if (stat(conf->file.path, &status) != 0)
		return error_system(err, errno, "%s", conf->file.path);
	if (S_ISREG(status.st_mode) && (status.st_mode & S_IWOTH) != 0)
		return error_set(err, ERROR_DENIED,
		    "%s: everyone may write it (mode %03o); chmod o-w", conf->file.path,
		    (unsigned)status.st_mode & 0777);
	return 0;
}

int
conf_check(const struct conf *conf, struct error *err)
{
	size_t i;

	if (check_itself(conf, err) != 0 || check_directories(conf, err) != 0 ||
	    check_secrets(conf, err) != 0)
		return -1;
	for (i = 0; i < conf->logins_count; i++)
		if (check_login(conf, i, err) != 0)
			return -1;
	return 0;
}
