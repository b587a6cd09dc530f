/* SPDX-License-Identifier: ISC */
/*
 * Configuration files: whatever one says, it is refused with a reason or printed as a file that
 * loads again and prints the same.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conf/conf.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct option local_options[] = {
	{ "network", OPTION_CHOICE, OPTION_BOTH, 0, 0, "none", "none host", NULL,
	    "For the fuzzer." },
	{ "name", OPTION_TEXT, OPTION_LOGIN, 0, 0, NULL, NULL, NULL, "For the fuzzer." },
	{ "token", OPTION_TEXT, OPTION_BOTH, 0, 0, NULL, NULL, "RWS_FUZZ_TOKEN",
	    "For the fuzzer." },
	{ .name = NULL },
};
static const struct option cloud_options[] = {
	{ "name", OPTION_TEXT, OPTION_BOTH, 0, 0, NULL, NULL, NULL, "For the fuzzer." },
	{ "labels", OPTION_PAIRS, OPTION_BOTH, 0, 0, NULL, NULL, NULL, "For the fuzzer." },
	{ "vcpus", OPTION_NUMBER, OPTION_BOTH, 1, 64, "2", NULL, NULL, "For the fuzzer." },
	{ .name = NULL },
};
static const struct conf_driver drivers_known[] = {
	{ "local", local_options, NULL },
	{ "cloud", cloud_options, NULL },
	{ NULL, NULL, NULL },
};

/* Loads a text as a file; NULL when it is refused. */
static struct conf *
load(const void *text, size_t size)
{
	struct conf *conf;
	struct error err;
	char path[32];
	int fd;

	memset(&err, 0, sizeof(err));
	fd = memfd_create("conf", MFD_CLOEXEC);
	if (fd < 0 || descriptor_write(fd, text, size, &err) != 0)
		abort();
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	conf = conf_load(path, NULL, drivers_known, &err);
	if (conf == NULL && (err.code == ERROR_NONE || err.message[0] == '\0'))
		abort(); /* refused without a reason */
	if (conf != NULL)
		(void)conf_check(conf, &err);
	(void)close(fd);
	return conf;
}

static char *
print(const struct conf *conf, size_t *size)
{
	FILE *stream;
	char *text;

	stream = open_memstream(&text, size);
	if (stream == NULL)
		abort();
	conf_print(conf, stream);
	(void)fclose(stream);
	return text;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf *conf, *again;
	char *first, *second;
	size_t first_size, second_size;

	conf = load(data, size);
	if (conf == NULL)
		return 0;
	first = print(conf, &first_size);
	again = load(first, first_size);
	/* Defaults are printed too, so a file near the limits may print as one beyond them. */
	if (again == NULL && first_size < 65536)
		abort();
	if (again != NULL) {
		second = print(again, &second_size);
		if (strcmp(first, second) != 0)
			abort();
		free(second);
	}
	free(first);
	conf_free(again);
	conf_free(conf);
	return 0;
}
