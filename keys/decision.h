/* SPDX-License-Identifier: ISC */
/*
 * Who may log in: finds the login's block, looks for the key in its files and its own lines, and
 * applies what the line says. An unknown login and a wrong key cost the same work and get the
 * same answer.
 */
#ifndef KEYS_DECISION_H
#define KEYS_DECISION_H

struct auth_check;
struct auth_request;
struct auth_result;
struct decision;
struct error;

/* What the client may put behind NAME. */
enum decision_instances {
	DECISION_NAME_ONLY, /* instances = off */
	DECISION_INSTANCES, /* on: NAME+INSTANCE */
	DECISION_ATTACH,    /* attach: NAME=SANDBOX-ID as well */
};

struct decision_login {
	const char *name;
	char *const *files; /* paths of authorized_keys files; NULL-ended */
	char *const *keys;  /* authorized_keys lines; NULL-ended */
	enum decision_instances instances;
};

/* The value of the option instances; NAME_ONLY for a word that is none of its choices. */
enum decision_instances decision_instances_parse(const char *word);

/* One that nobody may log in by, until logins are added. */
struct decision *decision_new(void);
void decision_free(struct decision *decision); /* accepts NULL */

/*
 * Adds a login, copying it; files of the same path are read once for all. -1 when a line of keys is
 * not good, with its number (from 1) and the reason in err; nothing is added then. Files are not
 * looked at before a decision.
 */
int decision_add(struct decision *decision, const struct decision_login *login, struct error *err);

/*
 * Decides, for the query before a signature and for the signed request alike, and fills result,
 * whose texts are the caller's to free with auth_result_free. Why a known key was refused is
 * logged.
 */
void decision_make(struct decision *decision, const struct auth_check *check,
    const struct auth_request *request, struct auth_result *result);

#endif
