/* SPDX-License-Identifier: ISC */
/*
 * Takes a public key's blob apart just far enough to know that it is one whole key of its type. A
 * blob has one spelling only, so two of them are the same key when their bytes are the same.
 */
#include <stdint.h>
#include <string.h>

#include <openssl/sha.h>

#include "core/base/base64.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "keys/publickey.h"

#define RSA_BITS_MIN 2048
#define RSA_BITS_MAX 16384
#define ED25519_SIZE 32
#define POINT_UNCOMPRESSED 4 /* SEC 1 section 2.3.3 */
#define APPLICATION_MAX 256

/* What is left of a blob. */
struct reader {
	const unsigned char *data;
	size_t size;
};

struct field {
	const unsigned char *data;
	size_t size;
};

struct algorithm {
	const char *name;
	int (*check)(struct reader *reader, const struct algorithm *algorithm, struct error *err);
	const char *curve;
	size_t point_size;
	bool security_key; /* an application follows (PROTOCOL.u2f) */
};

/* A string: RFC 4251 section 5. */
static int
read_string(struct reader *reader, struct field *field, struct error *err)
{
	size_t size;

	field->data = reader->data;
	field->size = 0;
	if (reader->size < 4)
		return error_set(err, ERROR_INVALID, "the key is cut short");
	size = (size_t)reader->data[0] << 24 | (size_t)reader->data[1] << 16 |
	       (size_t)reader->data[2] << 8 | reader->data[3];
	if (size > reader->size - 4)
		return error_set(err, ERROR_INVALID, "the key is cut short");
	field->data = reader->data + 4;
	field->size = size;
	reader->data += 4 + size;
	reader->size -= 4 + size;
	return 0;
}

static bool
field_is(const struct field *field, const char *text)
{
	return field->size == strlen(text) && memcmp(field->data, text, field->size) == 0;
}

/* The bits of a positive mpint (RFC 4251 section 5) in its shortest form. */
static int
read_mpint(struct reader *reader, size_t *bits, struct error *err)
{
	struct field field;
	unsigned top;

	*bits = 0;
	if (read_string(reader, &field, err) != 0)
		return -1;
	if (field.size == 0 || (field.data[0] & 0x80) != 0)
		return error_set(err, ERROR_INVALID, "a number of the key is not positive");
	if (field.data[0] == 0) {
		if (field.size == 1 || (field.data[1] & 0x80) == 0)
			return error_set(
			    err, ERROR_INVALID, "a number of the key has zeros in front");
		field.data++;
		field.size--;
	}
	*bits = (field.size - 1) * 8;
	for (top = field.data[0]; top != 0; top >>= 1)
		(*bits)++;
	return 0;
}

static int
check_ed25519(struct reader *reader, const struct algorithm *algorithm, struct error *err)
{
	struct field field = { 0 };

	(void)algorithm;
	if (read_string(reader, &field, err) != 0)
		return -1;
	if (field.size != ED25519_SIZE)
		return error_set(
		    err, ERROR_INVALID, "the key has %zu bytes, not %d", field.size, ED25519_SIZE);
	return 0;
}

/* RFC 5656 section 3.1. */
static int
check_ecdsa(struct reader *reader, const struct algorithm *algorithm, struct error *err)
{
	struct field curve, point;

	if (read_string(reader, &curve, err) != 0 || read_string(reader, &point, err) != 0)
		return -1;
	if (!field_is(&curve, algorithm->curve))
		return error_set(err, ERROR_INVALID, "the key is not on %s", algorithm->curve);
	if (point.size != algorithm->point_size || point.data[0] != POINT_UNCOMPRESSED)
		return error_set(err, ERROR_INVALID, "the key is no point of %s", algorithm->curve);
	return 0;
}

/* RFC 4253 section 6.6. */
static int
check_rsa(struct reader *reader, const struct algorithm *algorithm, struct error *err)
{
	size_t exponent_bits, bits;

	(void)algorithm;
	if (read_mpint(reader, &exponent_bits, err) != 0 || read_mpint(reader, &bits, err) != 0)
		return -1;
	if (bits < RSA_BITS_MIN || bits > RSA_BITS_MAX)
		return error_set(err, ERROR_INVALID, "the RSA key has %zu bits, not %d to %d", bits,
		    RSA_BITS_MIN, RSA_BITS_MAX);
	return 0;
}

static const struct algorithm algorithms[] = {
	{ "ssh-ed25519", check_ed25519, NULL, 0, false },
	{ "ecdsa-sha2-nistp256", check_ecdsa, "nistp256", 65, false },
	{ "ecdsa-sha2-nistp384", check_ecdsa, "nistp384", 97, false },
	{ "ecdsa-sha2-nistp521", check_ecdsa, "nistp521", 133, false },
	{ "ssh-rsa", check_rsa, NULL, 0, false },
	{ "sk-ssh-ed25519@openssh.com", check_ed25519, NULL, 0, true },
	{ "sk-ecdsa-sha2-nistp256@openssh.com", check_ecdsa, "nistp256", 65, true },
};

static const struct algorithm *
find_algorithm(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++)
		if (strcmp(algorithms[i].name, name) == 0)
			return &algorithms[i];
	return NULL;
}

bool
publickey_algorithm_known(const char *name)
{
	return find_algorithm(name) != NULL;
}

static int
check_application(struct reader *reader, struct error *err)
{
	struct field application;

	if (read_string(reader, &application, err) != 0)
		return -1;
	if (application.size == 0 || application.size > APPLICATION_MAX)
		return error_set(err, ERROR_INVALID, "the security key's application is missing");
	return 0;
}

int
publickey_check(const char *name, const unsigned char *blob, size_t size, struct error *err)
{
	const struct algorithm *algorithm;
	struct reader reader = { blob, size };
	struct field type;

	algorithm = find_algorithm(name);
	if (algorithm == NULL)
		return error_set(err, ERROR_UNSUPPORTED, "unknown key type %.80s", name);
	if (size > PUBLICKEY_BLOB_MAX)
		return error_set(
		    err, ERROR_TOO_LARGE, "the key is over %d bytes", PUBLICKEY_BLOB_MAX);
	if (read_string(&reader, &type, err) != 0)
		return -1;
	if (!field_is(&type, name))
		return error_set(err, ERROR_INVALID, "the key is not of the type %s", name);
	if (algorithm->check(&reader, algorithm, err) != 0)
		return -1;
	if (algorithm->security_key && check_application(&reader, err) != 0)
		return -1;
	if (reader.size != 0)
		return error_set(err, ERROR_INVALID, "%zu bytes follow the key", reader.size);
	return 0;
}

char *
publickey_fingerprint(const unsigned char *blob, size_t size)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	char text[BASE64_SIZE(SHA256_DIGEST_LENGTH) + 1];

	(void)SHA256(blob, size, hash);
	base64_encode(text, hash, sizeof(hash));
	text[strcspn(text, "=")] = '\0';
	return memory_text_format("SHA256:%s", text);
}
