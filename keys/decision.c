/* SPDX-License-Identifier: ISC */
/*
 * An attacker must not learn which logins exist. So a login that does not exist borrows the files
 * and keys of one that does, chosen by its name: every question is answered after the same stat
 * calls and comparisons that some real login takes, and nothing is skipped on the way.
 */
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/random.h"
#include "core/login.h"
#include "core/protocol.h"
#include "keys/authorized.h"
#include "keys/decision.h"
#include "keys/keyfile.h"
#include "keys/publickey.h"

/* Bytes: nobody guesses 128 bits. */
#define SEED_SIZE 16

struct entry {
	char *name;
	struct keyfile **files; /* those of the decision */
	size_t files_count;
	struct authorized_keys keys; /* of the configuration itself */
	enum decision_instances instances;
};

struct decision {
	struct entry *entries;
	size_t entries_count;
	struct keyfile **files;
	size_t files_count;
	unsigned char seed[SEED_SIZE]; /* of the choice of stand-ins */
};

/* A search for the request's key among those of one login. */
struct search {
	const struct auth_request *request;
	const char *address;
	int64_t now;
	const struct authorized_key *found; /* the first that matches and may be used */
	struct error refusal; /* why one that matches may not be used; code NONE for none */
};

enum decision_instances
decision_instances_parse(const char *word)
{
	if (strcmp(word, "attach") == 0)
		return DECISION_ATTACH;
	return strcmp(word, "on") == 0 ? DECISION_INSTANCES : DECISION_NAME_ONLY;
}

struct decision *
decision_new(void)
{
	struct decision *decision;

	/* expiry-time is in local time; once confined, we may not be able to read the zone. */
	tzset();
	decision = memory_zeroed(1, sizeof(*decision));
	random_bytes(decision->seed, sizeof(decision->seed));
	return decision;
}

static void
free_entry(struct entry *entry)
{
	authorized_keys_free(&entry->keys);
	memory_free(entry->files);
	memory_free(entry->name);
}

void
decision_free(struct decision *decision)
{
	size_t i;

	if (decision == NULL)
		return;
	for (i = 0; i < decision->entries_count; i++)
		free_entry(&decision->entries[i]);
	for (i = 0; i < decision->files_count; i++)
		keyfile_free(decision->files[i]);
	memory_free(decision->entries);
	memory_free(decision->files);
	memory_free(decision);
}

static int
parse_keys(struct authorized_keys *keys, char *const *lines, struct error *err)
{
	struct authorized_key key;
	size_t i;
	int result;

	for (i = 0; lines[i] != NULL; i++) {
		result = authorized_parse_line(lines[i], &key, err);
		if (result == 0)
			error_set(err, ERROR_INVALID, "there is no key");
		if (result <= 0)
			return error_wrap(err, "key %zu", i + 1);
		keys->keys = memory_resize(keys->keys, keys->count + 1, sizeof(*keys->keys));
		keys->keys[keys->count++] = key;
	}
	return 0;
}

/* The file of this path, shared by all logins that name it. */
static struct keyfile *
share_file(struct decision *decision, const char *path)
{
	size_t i;

	for (i = 0; i < decision->files_count; i++)
		if (strcmp(keyfile_path(decision->files[i]), path) == 0)
			return decision->files[i];
	decision->files = memory_resize(
	    decision->files, decision->files_count + 1, sizeof(struct keyfile *));
	decision->files[decision->files_count] = keyfile_new(path);
	return decision->files[decision->files_count++];
}

/* Each file once: a second look at it may free the keys that the first one found. */
static void
add_file(struct entry *entry, struct keyfile *file)
{
	size_t i;

	for (i = 0; i < entry->files_count; i++)
		if (entry->files[i] == file)
			return;
	entry->files[entry->files_count++] = file;
}

int
decision_add(struct decision *decision, const struct decision_login *login, struct error *err)
{
	struct entry entry = { .name = NULL, .instances = login->instances };
	size_t i;

	if (parse_keys(&entry.keys, login->keys, err) != 0) {
		free_entry(&entry);
		return -1;
	}
	entry.name = memory_text(login->name);
	for (i = 0; login->files[i] != NULL; i++)
		continue;
	entry.files = memory_zeroed(i, sizeof(struct keyfile *));
	for (i = 0; login->files[i] != NULL; i++)
		add_file(&entry, share_file(decision, login->files[i]));
	decision->entries = memory_resize(
	    decision->entries, decision->entries_count + 1, sizeof(*decision->entries));
	decision->entries[decision->entries_count++] = entry;
	return 0;
}

/*
 * The index of the login whose work is done for a name that does not exist. Secret, so that nobody
 * can work out how long a name would take if it did not exist.
 */
static size_t
stand_in(const struct decision *decision, const char *name)
{
	unsigned char digest[SHA256_DIGEST_LENGTH], text[SEED_SIZE + LOGIN_NAME_LENGTH];
	uint32_t number;
	size_t length;

	length = strnlen(name, LOGIN_NAME_LENGTH); /* a longer one is cut */
	memcpy(text, decision->seed, SEED_SIZE);
	memcpy(text + SEED_SIZE, name, length);
	(void)SHA256(text, SEED_SIZE + length, digest);
	memcpy(&number, digest, sizeof(number));
	return number % decision->entries_count;
}

/*
 * The login with this name, or with *known false one to do its work in its place; NULL without any.
 */
static struct entry *
find_entry(const struct decision *decision, const char *name, bool *known)
{
	size_t i, index;

	*known = false;
	if (decision->entries_count == 0)
		return NULL;
	index = stand_in(decision, name);
	for (i = 0; i < decision->entries_count; i++) {
		if (strcmp(decision->entries[i].name, name) == 0) {
			index = i;
			*known = true;
		}
	}
	return &decision->entries[index];
}

/* Compares with every key, also after the one that matches. */
static void
search_keys(struct search *search, const struct authorized_keys *keys)
{
	const struct authorized_key *key;
	size_t i;

	for (i = 0; i < keys->count; i++) {
		key = &keys->keys[i];
		if (key->blob_size != search->request->blob_size ||
		    CRYPTO_memcmp(key->blob, search->request->blob, key->blob_size) != 0)
			continue;
		if (authorized_admit(key, search->address, search->now, &search->refusal) == 0 &&
		    search->found == NULL)
			search->found = key;
	}
}

static bool
policy_allows(enum decision_instances instances, const struct login *login)
{
	if (login->id[0] != '\0')
		return instances == DECISION_ATTACH;
	return login->instance[0] == '\0' || instances != DECISION_NAME_ONLY;
}

static void
allow(struct auth_result *result, const struct login *login, const struct auth_request *request,
    const struct authorized_key *key)
{
	result->allowed = true;
	result->login = memory_text(login->name);
	result->workspace = memory_text(request->user);
	if (key->command != NULL)
		result->restrictions.command = memory_text(key->command);
	result->restrictions.no_pty = key->no_pty;
	result->restrictions.environment = memory_list(key->environment);
}

/* Tells the log why a key of the login was refused; whoever asked learns nothing. */
static void
log_refusal(const struct search *search, const struct auth_result *result, bool policy)
{
	if (search->found != NULL && !policy)
		log_info("%s: key %s: the login's instances option does not allow this",
		    search->request->user, result->fingerprint);
	else if (search->found == NULL && search->refusal.code != ERROR_NONE)
		log_info("%s: key %s: from %s: %s", search->request->user, result->fingerprint,
		    search->address, search->refusal.message);
}

void
decision_make(struct decision *decision, const struct auth_check *check,
    const struct auth_request *request, struct auth_result *result)
{
	struct search search = { .request = request, .address = check->address };
	struct login login;
	struct entry *entry;
	bool known, valid, policy;
	size_t i;

	memset(result, 0, sizeof(*result));
	result->connection = check->connection;
	result->is_signed = request->is_signed;
	result->fingerprint = publickey_fingerprint(request->blob, request->blob_size);
	valid = login_parse(request->user, &login) == 0;
	entry = find_entry(decision, valid ? login.name : request->user, &known);
	if (entry == NULL)
		return;
	search.now = time(NULL);
	for (i = 0; i < entry->files_count; i++)
		search_keys(&search, keyfile_keys(entry->files[i]));
	search_keys(&search, &entry->keys);
	policy = policy_allows(entry->instances, &login);
	if (!valid || !known)
		return;
	if (search.found != NULL && policy)
		allow(result, &login, request, search.found);
	else
		log_refusal(&search, result, policy);
}
