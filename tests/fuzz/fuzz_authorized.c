/* SPDX-License-Identifier: ISC */
/*
 * authorized_keys files: the keys that are taken are well formed, and each is found again by what
 * it says itself. The bytes are tried as a user name too, which comes from anyone.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/base64.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/login.h"
#include "keys/authorized.h"
#include "keys/publickey.h"
#include "keys/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Another line with the same key alone is the same key. */
static void
check_key(const struct authorized_key *key)
{
	struct authorized_key again;
	struct error err;
	char *encoded, *line;

	if (publickey_check(key->algorithm, key->blob, key->blob_size, &err) != 0)
		abort();
	encoded = base64_text(key->blob, key->blob_size);
	line = memory_text_format("%s %s", key->algorithm, encoded);
	if (authorized_parse_line(line, &again, &err) != 1)
		abort();
	if (again.blob_size != key->blob_size || memcmp(again.blob, key->blob, key->blob_size) != 0)
		abort();
	authorized_key_free(&again);
	memory_free(encoded);
	memory_free(line);
	(void)authorized_admit(key, "192.0.2.7", 1700000000, &err);
	(void)authorized_admit(key, "2001:db8::7", 1700000000, &err);
}

static void
check_login(const char *text)
{
	struct login login;

	if (login_parse(text, &login) == 0 &&
	    strlen(text) != strlen(login.name) +
				(login.instance[0] != '\0' ? 1 + strlen(login.instance) : 0) +
				(login.id[0] != '\0' ? 1 + strlen(login.id) : 0))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct authorized_keys keys;
	struct error err;
	char *text;
	size_t i;

	text = memory_text_bounded(data, size);
	authorized_parse(&keys, "fuzz", text, size);
	for (i = 0; i < keys.count; i++)
		check_key(&keys.keys[i]);
	authorized_keys_free(&keys);
	check_login(text);
	if (source_check(text, &err) == 0)
		(void)source_match(text, "192.0.2.7");
	memory_free(text);
	return 0;
}
