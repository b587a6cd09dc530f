/* SPDX-License-Identifier: ISC */
/*
 * Lines of authorized_keys. Everything that is not understood refuses its line: a restriction that
 * is skipped would give more rights than the owner of the file meant to give.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "core/base/base64.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "keys/authorized.h"
#include "keys/publickey.h"
#include "keys/source.h"

static const char blanks[] = " \t";

/* One option of a line; value is NULL for an option without. */
struct line_option {
	const char *name;
	bool takes_value;
	int (*apply)(struct authorized_key *key, const char *value, struct error *err);
};

static int
apply_nothing(struct authorized_key *key, const char *value, struct error *err)
{
	(void)key;
	(void)value;
	(void)err;
	return 0;
}

static int
apply_no_pty(struct authorized_key *key, const char *value, struct error *err)
{
	(void)value;
	(void)err;
	key->no_pty = true;
	return 0;
}

static int
apply_pty(struct authorized_key *key, const char *value, struct error *err)
{
	(void)value;
	(void)err;
	key->no_pty = false;
	return 0;
}

static int
apply_command(struct authorized_key *key, const char *value, struct error *err)
{
	if (key->command != NULL)
		return error_set(err, ERROR_INVALID, "it is given twice");
	key->command = memory_text(value);
	return 0;
}

static int
apply_from(struct authorized_key *key, const char *value, struct error *err)
{
	if (key->from != NULL)
		return error_set(err, ERROR_INVALID, "it is given twice");
	if (source_check(value, err) != 0)
		return -1;
	key->from = memory_text(value);
	return 0;
}

/* NAME=VALUE; as with sshd, the first of a name counts. */
static int
apply_environment(struct authorized_key *key, const char *value, struct error *err)
{
	size_t length, count;

	length = strcspn(value, "=");
	if (length == 0 || value[length] == '\0' ||
	    strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") !=
		length)
		return error_set(err, ERROR_INVALID, "not of the form NAME=VALUE");
	for (count = 0; key->environment[count] != NULL; count++)
		if (strncmp(key->environment[count], value, length + 1) == 0)
			return 0;
	key->environment = memory_list_add(key->environment, count, value);
	return 0;
}

static int
two_digits(const char *text)
{
	return (text[0] - '0') * 10 + text[1] - '0';
}

/*
 * Seconds since 1970 of YYYYMMDD[HHMM[SS]] in local time or, with a Z behind, in UTC;
 * -1 for no time.
 */
static int64_t
parse_time(const char *text)
{
	struct tm parts = { .tm_isdst = -1 }, checked;
	size_t digits;
	time_t when;

	digits = strspn(text, "0123456789");
	if ((digits != 8 && digits != 12 && digits != 14) ||
	    (strcmp(text + digits, "") != 0 && strcasecmp(text + digits, "Z") != 0))
		return -1;
	parts.tm_year = two_digits(text) * 100 + two_digits(text + 2) - 1900;
	parts.tm_mon = two_digits(text + 4) - 1;
	parts.tm_mday = two_digits(text + 6);
	parts.tm_hour = digits > 8 ? two_digits(text + 8) : 0;
	parts.tm_min = digits > 8 ? two_digits(text + 10) : 0;
	parts.tm_sec = digits > 12 ? two_digits(text + 12) : 0;
	checked = parts;
	when = timegm(&checked);
	if (checked.tm_mon != parts.tm_mon || checked.tm_mday != parts.tm_mday ||
	    checked.tm_hour != parts.tm_hour || checked.tm_min != parts.tm_min ||
	    checked.tm_sec != parts.tm_sec)
		return -1; /* 30 February, 25:00 */
	if (text[digits] == '\0')
		when = mktime(&parts);
	return when > 0 ? when : -1;
}

/* Given more than once, the earliest time counts. */
static int
apply_expiry(struct authorized_key *key, const char *value, struct error *err)
{
	int64_t expiry;

	expiry = parse_time(value);
	if (expiry < 0)
		return error_set(
		    err, ERROR_INVALID, "\"%s\" is no time YYYYMMDD[HHMM[SS]][Z]", value);
	if (key->expiry == 0 || expiry < key->expiry)
		key->expiry = expiry;
	return 0;
}

/*
 * There are no forwardings and no ~/.ssh/rc here, so whether they are allowed makes no difference.
 * Later words win: "restrict,pty" allows a pty.
 */
static const struct line_option line_options[] = {
	{ "restrict", false, apply_no_pty },
	{ "pty", false, apply_pty },
	{ "no-pty", false, apply_no_pty },
	{ "command", true, apply_command },
	{ "environment", true, apply_environment },
	{ "expiry-time", true, apply_expiry },
	{ "from", true, apply_from },
	{ "agent-forwarding", false, apply_nothing },
	{ "no-agent-forwarding", false, apply_nothing },
	{ "port-forwarding", false, apply_nothing },
	{ "no-port-forwarding", false, apply_nothing },
	{ "X11-forwarding", false, apply_nothing },
	{ "no-X11-forwarding", false, apply_nothing },
	{ "user-rc", false, apply_nothing },
	{ "no-user-rc", false, apply_nothing },
};

static const struct line_option *
find_option(const char *name, size_t length)
{
	size_t i;

	for (i = 0; i < sizeof(line_options) / sizeof(line_options[0]); i++)
		if (strlen(line_options[i].name) == length &&
		    strncasecmp(line_options[i].name, name, length) == 0)
			return &line_options[i];
	return NULL;
}

/* The text in quotes at *at, in which \" is a quote; a new text, or NULL when it does not end. */
static char *
take_quoted(const char **at)
{
	const char *in;
	char *value, *out;

	if (**at != '"')
		return NULL;
	out = value = memory_allocate(strlen(*at) + 1);
	for (in = *at + 1; *in != '"'; in++) {
		if (in[0] == '\\' && in[1] == '"')
			in++;
		if (*in == '\0') {
			memory_free(value);
			return NULL;
		}
		*out++ = *in;
	}
	*out = '\0';
	*at = in + 1;
	return value;
}

/* How much of a foreign word goes into a message. */
static int
shown(size_t length)
{
	return length > 80 ? 80 : (int)length;
}

/* Is this the type of a key that we do not take, with the key behind it? */
static bool
is_foreign_key(const char *word, size_t length)
{
	const char *next;

	next = word + length + strspn(word + length, blanks);
	return next > word + length && strncmp(next, "AAAA", 4) == 0;
}

/* Takes one option at *at. */
static int
parse_option(const char **at, struct authorized_key *key, struct error *err)
{
	const struct line_option *option;
	const char *name;
	size_t length;
	char *value;
	int result;

	name = *at;
	length = strcspn(name, "=, \t\"");
	option = find_option(name, length);
	if (option == NULL && is_foreign_key(name, length))
		return error_set(err, ERROR_UNSUPPORTED, "keys of type \"%.*s\" are not supported",
		    shown(length), name);
	if (option == NULL)
		return error_set(
		    err, ERROR_UNSUPPORTED, "unknown option \"%.*s\"", shown(length), name);
	*at += length;
	if (option->takes_value != (**at == '='))
		return error_set(err, ERROR_INVALID, "%s: %s", option->name,
		    option->takes_value ? "the value is missing" : "takes no value");
	value = NULL;
	if (option->takes_value) {
		(*at)++;
		value = take_quoted(at);
		if (value == NULL)
			return error_set(
			    err, ERROR_INVALID, "%s: the value is not in quotes", option->name);
	}
	result = option->apply(key, value, err);
	if (result != 0)
		(void)error_wrap(err, "%s", option->name);
	memory_free(value);
	return result;
}

/* Takes the options in front of a key. */
static int
parse_options(const char **at, struct authorized_key *key, struct error *err)
{
	for (;; (*at)++) {
		if (parse_option(at, key, err) != 0)
			return -1;
		if (**at == '\0')
			return error_set(err, ERROR_INVALID, "there is no key");
		if (strchr(blanks, **at) != NULL)
			return 0;
		if (**at != ',')
			return error_set(
			    err, ERROR_INVALID, "a comma is missing between two options");
	}
}

static bool
starts_with_key(const char *at)
{
	char *word;
	bool known;

	word = memory_text_bounded(at, strcspn(at, blanks));
	known = publickey_algorithm_known(word);
	memory_free(word);
	return known;
}

/* Takes the type and the key; what follows is a comment. */
static int
parse_key(const char *at, struct authorized_key *key, struct error *err)
{
	size_t length;

	length = strcspn(at, blanks);
	if (length == 0)
		return error_set(err, ERROR_INVALID, "there is no key");
	if (!starts_with_key(at))
		return error_set(err, ERROR_UNSUPPORTED, "keys of type \"%.*s\" are not supported",
		    shown(length), at);
	key->algorithm = memory_text_bounded(at, length);
	at += length;
	at += strspn(at, blanks);
	length = strcspn(at, blanks);
	if (length == 0)
		return error_set(err, ERROR_INVALID, "there is no key");
	key->blob = memory_allocate(length);
	if (base64_decode(key->blob, &key->blob_size, at, length) != 0)
		return error_set(err, ERROR_INVALID, "the key is not base64");
	return publickey_check(key->algorithm, key->blob, key->blob_size, err);
}

int
authorized_parse_line(const char *line, struct authorized_key *key, struct error *err)
{
	const char *at;

	memset(key, 0, sizeof(*key));
	at = line + strspn(line, blanks);
	if (*at == '\0' || *at == '#')
		return 0;
	key->environment = memory_zeroed(1, sizeof(*key->environment));
	if (!starts_with_key(at)) {
		if (parse_options(&at, key, err) != 0)
			goto fail;
		at += strspn(at, blanks);
	}
	if (parse_key(at, key, err) == 0)
		return 1;
fail:
	authorized_key_free(key);
	return -1;
}

void
authorized_key_free(struct authorized_key *key)
{
	memory_free(key->algorithm);
	memory_free(key->blob);
	memory_free(key->from);
	memory_free(key->command);
	memory_list_free(key->environment);
	memset(key, 0, sizeof(*key));
}

static void
add_key(struct authorized_keys *keys, const struct authorized_key *key, unsigned line)
{
	keys->keys = memory_resize(keys->keys, keys->count + 1, sizeof(*keys->keys));
	keys->keys[keys->count] = *key;
	keys->keys[keys->count++].line = line;
}

/* Adds the key of one line of length bytes. */
static int
add_line(struct authorized_keys *keys, unsigned number, const char *line, size_t length,
    struct error *err)
{
	struct authorized_key key;
	char *text;
	int result;

	if (memchr(line, '\0', length) != NULL)
		return error_set(err, ERROR_INVALID, "there is a NUL byte");
	if (length > 0 && line[length - 1] == '\r')
		length--;
	text = memory_text_bounded(line, length);
	result = authorized_parse_line(text, &key, err);
	if (result > 0)
		add_key(keys, &key, number);
	memory_free(text);
	return result;
}

void
authorized_parse(struct authorized_keys *keys, const char *name, const char *text, size_t size)
{
	const char *at, *end;
	struct error err;
	unsigned line;

	memset(keys, 0, sizeof(*keys));
	line = 1;
	for (at = text; at < text + size; at = end + 1, line++) {
		end = memchr(at, '\n', (size_t)(text + size - at));
		if (end == NULL)
			end = text + size;
		if (add_line(keys, line, at, (size_t)(end - at), &err) < 0)
			log_error("%s:%u: refused: %s", name, line, err.message);
	}
}

void
authorized_keys_free(struct authorized_keys *keys)
{
	size_t i;

	for (i = 0; i < keys->count; i++)
		authorized_key_free(&keys->keys[i]);
	memory_free(keys->keys);
	memset(keys, 0, sizeof(*keys));
}

int
authorized_admit(
    const struct authorized_key *key, const char *address, int64_t now, struct error *err)
{
	if (key->expiry != 0 && now >= key->expiry)
		return error_set(err, ERROR_DENIED, "the key has expired (expiry-time)");
	if (key->from != NULL && !source_match(key->from, address))
		return error_set(err, ERROR_DENIED, "the key may not be used from there (from)");
	return 0;
}
