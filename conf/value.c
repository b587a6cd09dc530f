/* SPDX-License-Identifier: ISC */
/* Values with a form of their own. */
#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include "conf/listen.h"
#include "conf/private.h"
#include "core/base/error.h"
#include "core/base/number.h"
#include "core/base/option.h"
#include "core/login.h"

static int
parse_port(const char *text, in_port_t *port, struct error *err)
{
	int64_t number;

	if (number_parse(text, 0, UINT16_MAX, &number, err) != 0)
		return error_wrap(err, "port");
	*port = htons((uint16_t)number);
	return 0;
}

int
conf_listen_parse(
    const char *text, struct sockaddr_storage *address, socklen_t *size, struct error *err)
{
	struct sockaddr_in *v4;
	struct sockaddr_in6 *v6;
	char host[INET6_ADDRSTRLEN];
	const char *end, *start;
	bool bracket;

	memset(address, 0, sizeof(*address));
	v4 = (struct sockaddr_in *)address;
	v6 = (struct sockaddr_in6 *)address;
	bracket = *text == '[';
	start = bracket ? text + 1 : text;
	end = strchr(text, bracket ? ']' : ':');
	if (end == NULL || (bracket && end[1] != ':') || (size_t)(end - start) >= sizeof(host))
		return error_set(err, ERROR_INVALID,
		    "\"%s\" is not of the form ADDRESS:PORT or [ADDRESS]:PORT", text);
	memcpy(host, start, (size_t)(end - start));
	host[end - start] = '\0';
	if (bracket && inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		address->ss_family = AF_INET6;
		*size = sizeof(*v6);
		return parse_port(end + 2, &v6->sin6_port, err);
	}
	if (!bracket && inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		address->ss_family = AF_INET;
		*size = sizeof(*v4);
		return parse_port(end + 1, &v4->sin_port, err);
	}
	return error_set(err, ERROR_INVALID, "\"%s\" is no numeric address%s", host,
	    bracket ? " of IPv6" : " (IPv6 stands in brackets)");
}

static int
check_listen(const char *text, struct error *err)
{
	struct sockaddr_storage address;
	socklen_t size;

	return conf_listen_parse(text, &address, &size, err);
}

static int
check_name(const char *text, struct error *err)
{
	if (login_name_valid(text))
		return 0;
	return error_set(err, ERROR_INVALID, "\"%s\" is not 1 to %d of A-Z a-z 0-9 . _ -", text,
	    LOGIN_NAME_LENGTH);
}

/* The name of a variable as POSIX has it (XBD 8.1), of the given length. */
static bool
is_variable(const char *text, size_t length, const char *also)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (!isalpha((unsigned char)text[i]) && text[i] != '_' &&
		    (i == 0 || !isdigit((unsigned char)text[i])) && strchr(also, text[i]) == NULL)
			return false;
	return length > 0;
}

static int
check_env(const char *text, struct error *err)
{
	size_t length;

	length = strcspn(text, "=");
	if (is_variable(text, length, ""))
		return 0;
	return error_set(err, ERROR_INVALID, "\"%.*s\" cannot name a variable", (int)length, text);
}

static int
check_accept_env(const char *text, struct error *err)
{
	if (is_variable(text, strlen(text), "*?"))
		return 0;
	return error_set(err, ERROR_INVALID,
	    "\"%s\" is no name of a variable, with or without the wildcards * and ?", text);
}

static const struct {
	const char *name;
	int (*check)(const char *text, struct error *err);
} forms[] = {
	{ "listen", check_listen },
	{ "gateway", check_name },
	{ "env", check_env },
	{ "accept_env", check_accept_env },
};

int
conf_value_check(const struct option *option, const char *text, struct error *err)
{
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (strcmp(forms[i].name, option->name) == 0)
			return forms[i].check(text, err);
	return 0;
}
