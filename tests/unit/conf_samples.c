/* SPDX-License-Identifier: ISC */
/* What the tests of the configuration share. */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "tests/unit/conf_samples.h"

#define OPTION_ROW(name, type, scope, standard, environment)                         \
	{                                                                            \
		name, type, scope, 0, INT64_C(1) << 40, standard, NULL, environment, \
		    "For the tests."                                                 \
	}

/* Two drivers with an option of the same name that are two options, as E2B and Daytona have. */
static const struct option red_options[] = {
	OPTION_ROW("api_key", OPTION_SECRET, OPTION_BOTH, NULL, "RWS_TEST_RED_KEY"),
	OPTION_ROW("template", OPTION_TEXT, OPTION_BOTH, "base", NULL),
	OPTION_ROW("sandbox_id", OPTION_TEXT, OPTION_LOGIN, NULL, NULL),
	{ .name = NULL },
};
static const struct option blue_options[] = {
	OPTION_ROW("api_key", OPTION_SECRET, OPTION_BOTH, NULL, "RWS_TEST_BLUE_KEY"),
	OPTION_ROW("start_timeout", OPTION_DURATION, OPTION_BOTH, "60s", NULL),
	{ .name = NULL },
};

/* The red driver knows no sandbox of the name "none", and "both" needs a template. */
static int
check_red(const struct settings *settings, const char **option, struct error *err)
{
	const char *id;

	id = settings_text(settings, "sandbox_id");
	if (id == NULL || (strcmp(id, "none") != 0 && strcmp(id, "both") != 0))
		return 0;
	if (strcmp(id, "both") == 0)
		return error_set(err, ERROR_INVALID, "there is no template");
	*option = "sandbox_id";
	return error_set(err, ERROR_INVALID, "it is none");
}

const struct conf_driver conf_sample_drivers[] = {
	{ "red", red_options, check_red },
	{ "blue", blue_options, NULL },
	{ NULL, NULL, NULL },
};

char conf_sample_file[96];
struct error conf_sample_err;

static char directory[64];

int
conf_sample_start(void **state)
{
	(void)state;
	(void)snprintf(directory, sizeof(directory), "/tmp/test_conf.XXXXXX");
	assert_non_null(mkdtemp(directory));
	(void)snprintf(conf_sample_file, sizeof(conf_sample_file), "%s/rwsd.conf", directory);
	memset(&conf_sample_err, 0, sizeof(conf_sample_err));
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

int
conf_sample_end(void **state)
{
	(void)state;
	return nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

void
conf_sample_write(const char *path, const void *data, size_t size, mode_t mode)
{
	int fd;

	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(descriptor_write(fd, data, size, NULL), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

const char *
conf_sample_path(const char *name)
{
	static char paths[4][128];
	static size_t next;
	char *path;

	path = paths[next++ % 4];
	(void)snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

struct conf *
conf_sample_try(const char *text, const char *const *overrides)
{
	struct conf *conf;
	char **list;
	size_t i;

	conf_sample_write(conf_sample_file, text, strlen(text), 0600);
	list = memory_zeroed(1, sizeof(*list));
	for (i = 0; overrides != NULL && overrides[i] != NULL; i++)
		list = memory_list_add(list, i, overrides[i]);
	conf = conf_load(conf_sample_file, list, conf_sample_drivers, &conf_sample_err);
	memory_list_free(list);
	return conf;
}

struct conf *
conf_sample_load(const char *text)
{
	struct conf *conf;

	conf = conf_sample_try(text, NULL);
	if (conf == NULL)
		fail_msg("%s", conf_sample_err.message);
	return conf;
}

const char *
conf_sample_message(void)
{
	size_t length;

	length = strlen(directory) + 1;
	if (strncmp(conf_sample_err.message, directory, strlen(directory)) == 0)
		return conf_sample_err.message + length;
	return conf_sample_err.message;
}
