/* SPDX-License-Identifier: ISC */
/*
 * Makes a key and writes it down. libssh could make one too, but until 0.11 writes RSA keys in
 * another format, and from 0.12 on by other functions; the format is small enough to write it here.
 */
#include <stdint.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>

#include "core/base/base64.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "keys/privatekey.h"

#define RSA_BITS 3072
#define ED25519_SIZE 32
#define CIPHER_BLOCK 8 /* what the cipher "none" pads to */
#define LINE_LENGTH 70
#define TEXT_MAX 16384

static void
append(struct buffer *buffer, const void *data, size_t size)
{
	if (buffer_append(buffer, data, size) != 0)
		log_fatal("a private key is over %d bytes", TEXT_MAX);
}

static void
put_u32(struct buffer *buffer, size_t value)
{
	unsigned char bytes[4] = { (unsigned char)(value >> 24), (unsigned char)(value >> 16),
		(unsigned char)(value >> 8), (unsigned char)value };

	append(buffer, bytes, sizeof(bytes));
}

static void
put_string(struct buffer *buffer, const void *data, size_t size)
{
	put_u32(buffer, size);
	append(buffer, data, size);
}

static void
put_text(struct buffer *buffer, const char *text)
{
	put_string(buffer, text, strlen(text));
}

/* One number of an RSA key as an mpint (RFC 4251 section 5); -1 when it cannot be had. */
static int
put_number(struct buffer *buffer, const EVP_PKEY *key, const char *name)
{
	unsigned char bytes[RSA_BITS / 8 + 1];
	BIGNUM *number;
	size_t size;

	number = NULL;
	if (EVP_PKEY_get_bn_param(key, name, &number) != 1)
		return -1;
	size = (size_t)BN_num_bits(number) / 8 + 1; /* with room for a zero sign bit, and no more */
	if (size > sizeof(bytes) || BN_bn2binpad(number, bytes, (int)size) < 0) {
		BN_clear_free(number);
		return -1;
	}
	put_string(buffer, bytes, size);
	explicit_bzero(bytes, sizeof(bytes));
	BN_clear_free(number);
	return 0;
}

static int
put_numbers(struct buffer *buffer, const EVP_PKEY *key, const char *const *names)
{
	for (; *names != NULL; names++)
		if (put_number(buffer, key, *names) != 0)
			return -1;
	return 0;
}

static int
write_ed25519(const EVP_PKEY *key, struct buffer *public, struct buffer *private)
{
	unsigned char both[2 * ED25519_SIZE]; /* seed and public key, as RFC 8032 has it */
	size_t seed_size, point_size;

	seed_size = point_size = ED25519_SIZE;
	if (EVP_PKEY_get_raw_private_key(key, both, &seed_size) != 1 ||
	    EVP_PKEY_get_raw_public_key(key, both + ED25519_SIZE, &point_size) != 1)
		return -1;
	put_text(public, "ssh-ed25519");
	put_string(public, both + ED25519_SIZE, ED25519_SIZE);
	put_text(private, "ssh-ed25519");
	put_string(private, both + ED25519_SIZE, ED25519_SIZE);
	put_string(private, both, sizeof(both));
	explicit_bzero(both, sizeof(both));
	return 0;
}

static int
write_rsa(const EVP_PKEY *key, struct buffer *public, struct buffer *private)
{
	static const char *const public_numbers[] = { OSSL_PKEY_PARAM_RSA_E, OSSL_PKEY_PARAM_RSA_N,
		NULL };
	static const char *const private_numbers[] = { OSSL_PKEY_PARAM_RSA_N, OSSL_PKEY_PARAM_RSA_E,
		OSSL_PKEY_PARAM_RSA_D, OSSL_PKEY_PARAM_RSA_COEFFICIENT1,
		OSSL_PKEY_PARAM_RSA_FACTOR1, OSSL_PKEY_PARAM_RSA_FACTOR2, NULL };

	put_text(public, "ssh-rsa");
	put_text(private, "ssh-rsa");
	if (put_numbers(public, key, public_numbers) != 0)
		return -1;
	return put_numbers(private, key, private_numbers);
}

/*
 * The private section:
 * a random number twice (which shows a wrong passphrase), the key, the comment.
 */
static int
write_private(enum privatekey_type type, const EVP_PKEY *key, const char *comment,
    struct buffer *public, struct buffer *private)
{
	unsigned char check[4], padding;
	int result;

	if (RAND_bytes(check, sizeof(check)) != 1)
		return -1;
	append(private, check, sizeof(check));
	append(private, check, sizeof(check));
	if (type == PRIVATEKEY_RSA)
		result = write_rsa(key, public, private);
	else
		result = write_ed25519(key, public, private);
	put_text(private, comment);
	for (padding = 1; private->length % CIPHER_BLOCK != 0; padding++)
		append(private, &padding, 1);
	return result;
}

/* The whole in base64 between its two lines. */
static char *
armour(const struct buffer *binary)
{
	struct buffer text;
	char *encoded, *out;
	size_t length, at;

	encoded = base64_text(buffer_data(binary), binary->length);
	length = strlen(encoded);
	buffer_init(&text, TEXT_MAX);
	buffer_append_text(&text, "-----BEGIN OPENSSH PRIVATE KEY-----\n");
	for (at = 0; at < length; at += LINE_LENGTH) {
		append(&text, encoded + at, length - at < LINE_LENGTH ? length - at : LINE_LENGTH);
		append(&text, "\n", 1);
	}
	buffer_append_text(&text, "-----END OPENSSH PRIVATE KEY-----\n");
	out = memory_text_bounded(buffer_data(&text), text.length);
	memory_text_wipe(encoded);
	buffer_wipe(&text);
	return out;
}

static char *
write_key(enum privatekey_type type, const EVP_PKEY *key, const char *comment)
{
	static const char magic[] = "openssh-key-v1"; /* with its terminator */
	struct buffer public, private, binary;
	char *text;

	text = NULL;
	buffer_init(&public, TEXT_MAX);
	buffer_init(&private, TEXT_MAX);
	buffer_init(&binary, TEXT_MAX);
	if (write_private(type, key, comment, &public, &private) != 0)
		goto out;
	append(&binary, magic, sizeof(magic));
	put_text(&binary, "none"); /* cipher */
	put_text(&binary, "none"); /* key derivation */
	put_text(&binary, "");
	put_u32(&binary, 1); /* keys */
	put_string(&binary, buffer_data(&public), public.length);
	put_string(&binary, buffer_data(&private), private.length);
	text = armour(&binary);
out:
	buffer_wipe(&public);
	buffer_wipe(&private);
	buffer_wipe(&binary);
	return text;
}

char *
privatekey_generate(enum privatekey_type type, const char *comment, struct error *err)
{
	EVP_PKEY *key;
	char *text;

	if (type == PRIVATEKEY_RSA)
		key = EVP_RSA_gen(RSA_BITS);
	else
		key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	text = key == NULL ? NULL : write_key(type, key, comment);
	EVP_PKEY_free(key);
	if (text == NULL)
		error_set(err, ERROR_UNAVAILABLE, "OpenSSL cannot make a key");
	return text;
}
