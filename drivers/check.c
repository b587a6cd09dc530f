/* SPDX-License-Identifier: ISC */
/* Whether a driver's options make sense, without its code. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/option.h"
#include "core/driver.h"
#include "drivers/check.h"

bool
check_is_name(const char *text, size_t max)
{
	size_t length;

	for (length = 0; text[length] != '\0'; length++)
		if (length == max ||
		    (!isalnum((unsigned char)text[length]) && strchr("_-", text[length]) == NULL))
			return false;
	return length > 0;
}

bool
check_is_token(const char *text, size_t max)
{
	size_t length;

	for (length = 0; text[length] != '\0'; length++)
		if (length == max || !isgraph((unsigned char)text[length]))
			return false;
	return length > 0;
}

int
check_key(
    const struct settings *settings, const char *variable, const char **option, struct error *err)
{
	const char *key;

	key = settings_text(settings, "api_key");
	if (key == NULL || key[0] == '\0')
		return error_set(
		    err, ERROR_INVALID, "there is no api_key, and no %s either", variable);
	if (strcspn(key, "\r\n") == strlen(key))
		return 0;
	*option = "api_key";
	return error_set(err, ERROR_INVALID, "it is no key");
}

int
check_url(const struct settings *settings, const char *name, const char **option, struct error *err)
{
	const char *url, *host;

	url = settings_text(settings, name);
	if (url == NULL)
		return 0;
	host = strncasecmp(url, "https://", 8) == 0  ? url + 8
	       : strncasecmp(url, "http://", 7) == 0 ? url + 7
						     : "";
	if (host[0] != '/' && check_is_token(host, SIZE_MAX))
		return 0;
	*option = name;
	return error_set(err, ERROR_INVALID, "it is no URL that begins with https:// or http://");
}

int
check_ca_file(const struct settings *settings, const char **option, struct error *err)
{
	struct stat status;
	const char *path;

	path = settings_text(settings, "ca_file");
	if (path == NULL)
		return 0;
	*option = "ca_file";
	if (stat(path, &status) != 0 || faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0)
		return error_system(err, errno, "%s", path);
	if (!S_ISREG(status.st_mode))
		return error_set(err, ERROR_INVALID, "%s: not a regular file", path);
	*option = NULL;
	return 0;
}

int
check_options(const struct driver_kind *kind, const struct settings *settings, struct error *err)
{
	const char *option;

	option = NULL;
	if (kind->check == NULL || kind->check(settings, &option, err) == 0)
		return 0;
	return option == NULL ? -1 : error_wrap(err, "%s", option);
}
