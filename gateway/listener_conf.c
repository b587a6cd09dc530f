/* SPDX-License-Identifier: ISC */
/*
 * Reads the configuration with the options of the drivers of this build, and checks what conf/
 * cannot: whether the keys that it names are keys, whether libssh has the algorithms, and whether user and
 * sockets are such.
 */
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include <libssh/server.h>

#include "conf/conf.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/base/process.h"
#include "core/driver.h"
#include "gateway/listener.h"
#include "gateway/listener_admin.h"
#include "gateway/listener_state.h"
#include "keys/authorized.h"

#define DRIVERS_MAX 32
#define NOBODY 65534

struct conf *
listener_load_conf(const char *path, char *const *overrides, struct error *err)
{
	static struct conf_driver known[DRIVERS_MAX + 1];
	size_t i;

	/* Kept by the configuration, and the same each time. */
	for (i = 0; i < DRIVERS_MAX && driver_kinds[i] != NULL; i++) {
		known[i].name = driver_kinds[i]->name;
		known[i].options = driver_kinds[i]->options;
		known[i].check = driver_kinds[i]->check;
	}
	return conf_load(path, overrides, known, err);
}

/* Line by line, so that the one at fault can be named with its place in the file. */
static int
check_key(const struct conf *conf, size_t login, size_t entry, const char *line, struct error *err)
{
	struct authorized_key key;
	char *origin;
	int result;

	result = authorized_parse_line(line, &key, err);
	if (result > 0) {
		authorized_key_free(&key);
		return 0;
	}
	if (result == 0)
		error_set(err, ERROR_INVALID, "there is no key on the line");
	origin = conf_login_origin(conf, login, "key", entry);
	error_wrap(err, "%s: key", origin);
	memory_free(origin);
	return -1;
}

char *
listener_join_list(const struct settings *settings, const char *name)
{
	char *const *list, *joined, *longer;
	size_t i;

	list = settings_list(settings, name);
	joined = NULL;
	for (i = 0; list[i] != NULL; i++) {
		longer = joined == NULL ? memory_text(list[i])
					: memory_text_format("%s,%s", joined, list[i]);
		memory_free(joined);
		joined = longer;
	}
	return joined;
}

/* Puts in front of a message where the option of the global part stands; -1. */
static int
blame_global(const struct conf *conf, const char *option, struct error *err)
{
	char *origin;

	origin = conf_global_origin(conf, option);
	error_wrap(err, "%s: %s", origin, option);
	memory_free(origin);
	return -1;
}

/* Not what it says: it may hold a password. */
static int
check_database(const struct conf *conf, struct error *err)
{
	const char *database = settings_text(conf_global(conf), "state_database");

	if (database == NULL || strncmp(database, "postgresql://", 13) == 0 ||
	    strncmp(database, "postgres://", 11) == 0)
		return 0;
	error_set(err, ERROR_INVALID, "not a URL that begins with postgresql://");
	return blame_global(conf, "state_database", err);
}

/* As the sessions will ask it: one that refuses what it is given could serve nobody, nor its successors. */
static int
check_algorithms(const struct conf *conf, struct error *err)
{
	static const struct {
		const char *option;
		enum ssh_bind_options_e kind;
	} lists[] = {
		{ "ciphers", SSH_BIND_OPTIONS_CIPHERS_C_S },
		{ "kex", SSH_BIND_OPTIONS_KEY_EXCHANGE },
		{ "macs", SSH_BIND_OPTIONS_HMAC_C_S },
	};
	char *text;
	ssh_bind bind;
	size_t i;
	int result;

	bind = ssh_bind_new();
	if (bind == NULL)
		return error_set(err, ERROR_UNAVAILABLE, "libssh has no memory");
	result = 0;
	for (i = 0; i < sizeof(lists) / sizeof(lists[0]) && result == 0; i++) {
		text = listener_join_list(conf_global(conf), lists[i].option);
		if (text != NULL && ssh_bind_options_set(bind, lists[i].kind, text) != SSH_OK) {
			error_set(err, ERROR_INVALID, "libssh knows none of: %s", text);
			result = blame_global(conf, lists[i].option, err);
		}
		memory_free(text);
	}
	ssh_bind_free(bind);
	return result;
}

static int
check_listen(const struct conf *conf, struct error *err)
{
	char *const *list = settings_list(conf_global(conf), "listen");
	size_t count;

	for (count = 0; list[count] != NULL; count++)
		continue;
	if (count > 0 && count <= LISTEN_MAX)
		return 0;
	if (count == 0)
		error_set(err, ERROR_INVALID, "there is no address to listen on");
	else
		error_set(err, ERROR_INVALID, "there are more than %d addresses", LISTEN_MAX);
	return blame_global(conf, "listen", err);
}

int
listener_find_user(const struct conf *conf, struct process_user *user, struct error *err)
{
	const struct settings *settings = conf_global(conf);
	const struct passwd *entry;
	const char *name;

	if (geteuid() != 0)
		return 0;
	name = settings_text(settings, "user");
	entry = getpwnam(name);
	if (entry != NULL) {
		user->uid = entry->pw_uid;
		user->gid = entry->pw_gid;
		return 0;
	}
	if (settings_has(settings, "user")) {
		error_set(err, ERROR_NOT_FOUND, "there is no user \"%s\"", name);
		return blame_global(conf, "user", err);
	}
	user->uid = user->gid = NOBODY;
	log_debug("there is no user %s: processes run as nobody", name);
	return 0;
}

static int
check_places(const struct conf *conf, struct error *err)
{
	struct process_user user;

	if (check_listen(conf, err) != 0 || listener_find_user(conf, &user, err) != 0)
		return -1;
	if (listener_admin_check(conf_global(conf), err) != 0)
		return blame_global(conf, "admin_socket", err);
	return 0;
}

int
listener_check_conf(const struct conf *conf, struct error *err)
{
	char *const *keys;
	size_t login, entry;

	if (conf_check(conf, err) != 0 || check_database(conf, err) != 0 ||
	    check_algorithms(conf, err) != 0 || check_places(conf, err) != 0)
		return -1;
	for (login = 0; login < conf_login_count(conf); login++) {
		keys = settings_list(conf_login(conf, login), "key");
		for (entry = 0; keys[entry] != NULL; entry++)
			if (check_key(conf, login, entry, keys[entry], err) != 0)
				return -1;
	}
	return 0;
}
