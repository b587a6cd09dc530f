/* SPDX-License-Identifier: ISC */
/* Host keys: made once, checked at each start, read through descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libssh/libssh.h>
#include <openssl/crypto.h>

#include "core/base/base64.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/hex.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/random.h"
#include "keys/hostkey.h"
#include "keys/privatekey.h"
#include "keys/publickey.h"

#define KEY_SIZE_MAX 65536
/* Random bytes in the name of a file that is not finished. */
#define SALT_SIZE 8
#define OTHERS_ACCESS (S_IRWXG | S_IRWXO)
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

static const struct kind {
	const char *name; /* of the file */
	const char *algorithm;
	enum privatekey_type type;
} kinds[HOSTKEY_COUNT] = {
	{ "ssh_host_ed25519_key", "ssh-ed25519", PRIVATEKEY_ED25519 },
	{ "ssh_host_rsa_key", "ssh-rsa", PRIVATEKEY_RSA },
};

/* Is it ours or root's, with none of the rights in forbidden given away? */
static int
check_status(int fd, mode_t forbidden, const char *what, struct error *err)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return error_system(err, errno, "stat");
	if (status.st_uid != 0 && status.st_uid != geteuid())
		return error_set(err, ERROR_DENIED, "it belongs to user %lu, not to us or root",
		    (unsigned long)status.st_uid);
	if ((status.st_mode & forbidden) != 0)
		return error_set(err, ERROR_DENIED, "%s (mode %03o); chmod go-%s", what,
		    (unsigned)status.st_mode & 0777, forbidden == OTHERS_WRITE ? "w" : "rwx");
	return 0;
}

static int
open_directory(const char *path, struct error *err)
{
	int directory;

	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return error_system(err, errno, "host keys: %s", path);
	if (check_status(directory, OTHERS_WRITE, "group or others may write to it", err) != 0) {
		error_wrap(err, "host keys: %s", path);
		descriptor_close(&directory);
	}
	return directory;
}

/* A key's descriptor; -1 with code NOT_FOUND when there is none yet. */
static int
open_key(int directory, const struct kind *kind, struct error *err)
{
	struct stat status;
	int fd;

	fd = openat(directory, kind->name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return error_system(err, errno, "host key %s", kind->name);
	if (fstat(fd, &status) == 0 && !S_ISREG(status.st_mode))
		error_set(err, ERROR_INVALID, "host key %s: not a regular file", kind->name);
	else if (check_status(fd, OTHERS_ACCESS, "group or others have access to it", err) == 0)
		return fd;
	else
		error_wrap(err, "host key %s", kind->name);
	descriptor_close(&fd);
	return -1;
}

/* Gives a finished temporary file the key's name, unless another gateway was faster. */
static int
publish(int directory, const char *temporary, const char *name, struct error *err)
{
	if (linkat(directory, temporary, directory, name, 0) != 0 && errno != EEXIST)
		return error_system(err, errno, "link");
	if (fsync(directory) != 0)
		return error_system(err, errno, "fsync");
	return 0;
}

static int
write_key(int directory, const struct kind *kind, const char *text, struct error *err)
{
	char temporary[64], salt[HEX_SIZE(SALT_SIZE)];
	int fd, result;

	random_hex(salt, SALT_SIZE);
	(void)snprintf(temporary, sizeof(temporary), ".%s.%s", kind->name, salt);
	fd = openat(
	    directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_system(err, errno, "create");
	result = descriptor_write(fd, text, strlen(text), err);
	if (result == 0 && fsync(fd) != 0)
		result = error_system(err, errno, "fsync");
	descriptor_close(&fd);
	if (result == 0)
		result = publish(directory, temporary, kind->name, err);
	(void)unlinkat(directory, temporary, 0);
	return result;
}

static int
make_key(int directory, const struct kind *kind, struct error *err)
{
	char *text;
	int result;

	text = privatekey_generate(kind->type, "rwsd", err);
	if (text == NULL)
		return error_wrap(err, "host key %s", kind->name);
	result = write_key(directory, kind, text, err);
	memory_text_wipe(text);
	if (result != 0)
		return error_wrap(err, "make host key %s", kind->name);
	log_info("made host key %s", kind->name);
	return 0;
}

/* The public half as a blob, through libssh, which will have to use the key; a new allocation. */
static unsigned char *
public_blob(const char *text, size_t *size, struct error *err)
{
	unsigned char *blob;
	ssh_key key, public;
	char *encoded;

	key = public = NULL;
	encoded = NULL;
	blob = NULL;
	if (ssh_pki_import_privkey_base64(text, NULL, NULL, NULL, &key) != SSH_OK ||
	    ssh_pki_export_privkey_to_pubkey(key, &public) != SSH_OK ||
	    ssh_pki_export_pubkey_base64(public, &encoded) != SSH_OK) {
		error_set(
		    err, ERROR_INVALID, "no private key that can be used without a passphrase");
		goto out;
	}
	blob = memory_allocate(strlen(encoded));
	if (base64_decode(blob, size, encoded, strlen(encoded)) != 0) {
		error_set(err, ERROR_INVALID, "libssh gives no public key for it");
		memory_free(blob);
		blob = NULL;
	}
out:
	ssh_string_free_char(encoded);
	ssh_key_free(public);
	ssh_key_free(key);
	return blob;
}

/* Checks that a key is of its kind and can be used, and logs its fingerprint. */
static int
check_key(int fd, const struct kind *kind, struct error *err)
{
	unsigned char *blob;
	char *text, *fingerprint;
	size_t size;
	int result;

	text = hostkey_read(fd, err);
	if (text == NULL)
		return error_wrap(err, "host key %s", kind->name);
	blob = public_blob(text, &size, err);
	memory_text_wipe(text);
	if (blob == NULL)
		return error_wrap(err, "host key %s", kind->name);
	result = publickey_check(kind->algorithm, blob, size, err);
	if (result == 0) {
		fingerprint = publickey_fingerprint(blob, size);
		log_info("host key %s %s", kind->algorithm, fingerprint);
		memory_free(fingerprint);
	} else {
		error_wrap(err, "host key %s", kind->name);
	}
	memory_free(blob);
	return result;
}

static int
ensure_key(int directory, const struct kind *kind, struct error *err)
{
	int fd, result;

	fd = open_key(directory, kind, err);
	if (fd < 0 && err->code == ERROR_NOT_FOUND) {
		if (make_key(directory, kind, err) != 0)
			return -1;
		fd = open_key(directory, kind, err);
	}
	if (fd < 0)
		return -1;
	result = check_key(fd, kind, err);
	descriptor_close(&fd);
	return result;
}

void
hostkey_save_memory(void)
{
	/* Fails only when OpenSSL cannot be used at all, which the first key will show. */
	(void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS, NULL);
}

int
hostkey_ensure(const char *path, struct error *err)
{
	int directory, result;
	size_t i;

	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return error_system(err, errno, "host keys: make %s", path);
	directory = open_directory(path, err);
	if (directory < 0)
		return -1;
	result = 0;
	for (i = 0; i < HOSTKEY_COUNT && result == 0; i++)
		result = ensure_key(directory, &kinds[i], err);
	if (result != 0)
		error_wrap(err, "%s", path);
	descriptor_close(&directory);
	return result;
}

int
hostkey_open(const char *path, int keys[HOSTKEY_COUNT], struct error *err)
{
	int directory, result;
	size_t i;

	for (i = 0; i < HOSTKEY_COUNT; i++)
		keys[i] = -1;
	directory = open_directory(path, err);
	if (directory < 0)
		return -1;
	result = 0;
	for (i = 0; i < HOSTKEY_COUNT && result == 0; i++) {
		keys[i] = open_key(directory, &kinds[i], err);
		if (keys[i] < 0)
			result = error_wrap(err, "%s", path);
	}
	descriptor_close(&directory);
	for (i = 0; i < HOSTKEY_COUNT && result != 0; i++)
		descriptor_close(&keys[i]);
	return result;
}

char *
hostkey_read(int key, struct error *err)
{
	size_t length;
	ssize_t got;
	char *text;

	text = memory_zeroed(KEY_SIZE_MAX + 1, 1);
	length = 0;
	while (length < KEY_SIZE_MAX &&
	       (got = pread(key, text + length, KEY_SIZE_MAX - length, (off_t)length)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			error_system(err, errno, "read");
			goto fail;
		}
		length += (size_t)got;
	}
	if (length < KEY_SIZE_MAX && memchr(text, '\0', length) == NULL)
		return text;
	error_set(err, ERROR_INVALID, "no private key");
fail:
	explicit_bzero(text, KEY_SIZE_MAX);
	memory_free(text);
	return NULL;
}
