/* SPDX-License-Identifier: ISC */
/* from="...", for numeric addresses only. */
#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/number.h"
#include "keys/source.h"

#define PATTERN_MAX 256
/* Bytes of ::ffff:0:0 in front of an IPv4 address (RFC 4291 section 2.5.5.2). */
#define PREFIX_MAPPED 12

struct address {
	int family;
	unsigned char bytes[16];
	unsigned bits; /* 32 or 128 */
};

/* One pattern of a list, without its "!". */
struct pattern {
	char text[PATTERN_MAX];
	bool forbids;
};

/* A numeric address; -1 when text is none. */
static int
parse_address(const char *text, struct address *address)
{
	static const unsigned char mapped[PREFIX_MAPPED] = { [10] = 0xff, [11] = 0xff };

	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, text, address->bytes) == 1) {
		address->family = AF_INET;
		address->bits = 32;
		return 0;
	}
	if (inet_pton(AF_INET6, text, address->bytes) != 1)
		return -1;
	address->family = AF_INET6;
	address->bits = 128;
	if (memcmp(address->bytes, mapped, sizeof(mapped)) == 0) {
		memmove(address->bytes, address->bytes + PREFIX_MAPPED, 4);
		address->family = AF_INET;
		address->bits = 32;
	}
	return 0;
}

/* Is every bit from the first-th on zero? */
static bool
tail_is_zero(const struct address *address, unsigned first)
{
	unsigned i;

	for (i = first; i < address->bits; i++)
		if ((address->bytes[i / 8] & (0x80 >> i % 8)) != 0)
			return false;
	return true;
}

static bool
prefix_matches(const struct address *network, unsigned bits, const struct address *address)
{
	unsigned mask;

	if (network->family != address->family ||
	    memcmp(network->bytes, address->bytes, bits / 8) != 0)
		return false;
	mask = 0xff00U >> bits % 8 & 0xff;
	return bits % 8 == 0 ||
	       (network->bytes[bits / 8] & mask) == (address->bytes[bits / 8] & mask);
}

/* ADDRESS/BITS, with no bit of the address set behind the first BITS. */
static int
parse_network(const char *text, struct address *network, unsigned *bits, struct error *err)
{
	char host[PATTERN_MAX];
	const char *slash;
	int64_t number;

	*bits = 0;
	slash = strchr(text, '/');
	memcpy(host, text, (size_t)(slash - text));
	host[slash - text] = '\0';
	if (parse_address(host, network) != 0)
		return error_set(err, ERROR_INVALID, "\"%s\" is no numeric address", host);
	if (number_parse(slash + 1, 0, network->bits, &number, err) != 0)
		return error_wrap(err, "%s", text);
	*bits = (unsigned)number;
	if (!tail_is_zero(network, *bits))
		return error_set(
		    err, ERROR_INVALID, "%s has bits set behind the first %u", text, *bits);
	return 0;
}

/* Takes the next pattern off a list; -1 when it is empty or too long. */
static int
next_pattern(const char **list, struct pattern *pattern)
{
	size_t length, i;

	pattern->forbids = **list == '!';
	if (pattern->forbids)
		(*list)++;
	length = strcspn(*list, ",");
	if (length == 0 || length >= sizeof(pattern->text))
		return -1;
	for (i = 0; i < length; i++)
		pattern->text[i] = (char)tolower((unsigned char)(*list)[i]);
	pattern->text[length] = '\0';
	*list += length;
	return 0;
}

int
source_check(const char *patterns, struct error *err)
{
	struct address network;
	struct pattern pattern;
	unsigned bits;

	for (;; patterns++) {
		if (next_pattern(&patterns, &pattern) != 0)
			return error_set(err, ERROR_INVALID, "a pattern is empty or too long");
		if (strchr(pattern.text, '/') != NULL &&
		    parse_network(pattern.text, &network, &bits, err) != 0)
			return -1;
		/* It would forbid nothing, as names are not looked up. */
		if (pattern.forbids &&
		    pattern.text[strspn(pattern.text, "0123456789abcdef:./*?")] != '\0')
			return error_set(
			    err, ERROR_UNSUPPORTED, "!%s is the name of a host", pattern.text);
		if (*patterns == '\0')
			return 0;
	}
}

/*
 * * matches any text and ? any one character.
 * Goes back to the last * only, so it takes no long time.
 */
static bool
wildcard_matches(const char *pattern, const char *text)
{
	const char *star, *mark;

	star = mark = NULL;
	while (*text != '\0') {
		if (*pattern == '*') {
			star = pattern++;
			mark = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star != NULL) {
			pattern = star + 1;
			text = ++mark;
		} else {
			return false;
		}
	}
	pattern += strspn(pattern, "*");
	return *pattern == '\0';
}

static bool
pattern_matches(const char *pattern, const struct address *address, const char *text)
{
	struct address network;
	unsigned bits;

	if (strchr(pattern, '/') != NULL)
		return parse_network(pattern, &network, &bits, NULL) == 0 &&
		       prefix_matches(&network, bits, address);
	if (parse_address(pattern, &network) == 0)
		return prefix_matches(&network, network.bits, address);
	return wildcard_matches(pattern, text);
}

bool
source_match(const char *patterns, const char *text)
{
	char plain[INET6_ADDRSTRLEN], canonical[INET6_ADDRSTRLEN];
	struct address address;
	struct pattern pattern;
	bool matches;

	matches = false;
	(void)snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(text, "%"), text); /* no zone */
	if (parse_address(plain, &address) != 0 ||
	    inet_ntop(address.family, address.bytes, canonical, sizeof(canonical)) == NULL)
		return false;
	for (;; patterns++) {
		if (next_pattern(&patterns, &pattern) != 0)
			return false;
		if (pattern_matches(pattern.text, &address, canonical)) {
			if (pattern.forbids)
				return false;
			matches = true;
		}
		if (*patterns == '\0')
			return matches;
	}
}
