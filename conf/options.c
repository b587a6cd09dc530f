/* SPDX-License-Identifier: ISC */
/*
 * The one table of options. The parser, the checks, "rwsd -x" and the test of the manual page walk
 * it; rwsd.conf(5) explains each row at length.
 */
#include <stddef.h>

#include "conf/conf.h"

#define SECOND INT64_C(1000)
#define DAY (86400 * SECOND)
#define YEAR (365 * DAY)
#define KIB INT64_C(1024)
#define TIB (INT64_C(1) << 40)

#define TEXT(name, scope, standard, help)                                  \
	{                                                                  \
		name, OPTION_TEXT, scope, 0, 0, standard, NULL, NULL, help \
	}
#define SECRET(name, scope, help)                                        \
	{                                                                \
		name, OPTION_SECRET, scope, 0, 0, NULL, NULL, NULL, help \
	}
#define PATH(name, scope, standard, help)                                  \
	{                                                                  \
		name, OPTION_PATH, scope, 0, 0, standard, NULL, NULL, help \
	}
#define BOOLEAN(name, scope, standard, help)                                  \
	{                                                                     \
		name, OPTION_BOOLEAN, scope, 0, 1, standard, NULL, NULL, help \
	}
#define NUMBER(name, scope, min, max, standard, help)                            \
	{                                                                        \
		name, OPTION_NUMBER, scope, min, max, standard, NULL, NULL, help \
	}
#define DURATION(name, scope, min, max, standard, help)                            \
	{                                                                          \
		name, OPTION_DURATION, scope, min, max, standard, NULL, NULL, help \
	}
#define SIZE(name, scope, min, max, standard, help)                            \
	{                                                                      \
		name, OPTION_SIZE, scope, min, max, standard, NULL, NULL, help \
	}
#define CHOICE(name, scope, choices, standard, help)                            \
	{                                                                       \
		name, OPTION_CHOICE, scope, 0, 0, standard, choices, NULL, help \
	}
#define MANY(name, type, scope, standard, help)                     \
	{                                                           \
		name, type, scope, 0, 0, standard, NULL, NULL, help \
	}

/* clang-format off: one row an option, its help below it */
const struct option conf_options[] = {
	/* the gateway */
	MANY("listen", OPTION_LIST, OPTION_GLOBAL, "127.0.0.1:2222",
	    "Address and port to accept connections on."),
	PATH("host_keys", OPTION_GLOBAL, "/etc/rwsd/host_keys",
	    "Directory of the host keys, which are made there when missing."),
	PATH("state", OPTION_GLOBAL, "/var/lib/rwsd", "Directory of what must outlive a restart."),
	PATH(
	    "admin_socket", OPTION_GLOBAL, NULL, "Socket on which rws admin reaches this gateway."),
	SECRET("state_database", OPTION_GLOBAL,
	    "URL of the PostgreSQL database of records that several gateways share."),
	TEXT("user", OPTION_GLOBAL, "rwsd", "User the processes run as when started as root."),
	TEXT("gateway", OPTION_GLOBAL, "rwsd",
	    "Name of this gateway in the labels of the sandboxes it makes."),
	CHOICE(
	    "log_level", OPTION_GLOBAL, "error warning info debug", "info", "How much is logged."),
	CHOICE("log_format", OPTION_GLOBAL, "text json", "text", "How a line of the log looks."),
	TEXT("banner", OPTION_GLOBAL, NULL, "Text shown before authentication."),
	MANY("ciphers", OPTION_LIST, OPTION_GLOBAL, NULL, "Ciphers offered, best first."),
	MANY("kex", OPTION_LIST, OPTION_GLOBAL, NULL, "Key exchange methods offered, best first."),
	MANY("macs", OPTION_LIST, OPTION_GLOBAL, NULL,
	    "Message authentication codes offered, best first."),

	/* what one client, and all of them, may take */
	DURATION("login_grace_time", OPTION_GLOBAL, SECOND, DAY, "30s",
	    "Time in which a client must have authenticated."),
	NUMBER("max_auth_tries", OPTION_GLOBAL, 1, 1000, "6",
	    "Failed attempts to authenticate after which a connection ends."),
	NUMBER("max_startups", OPTION_GLOBAL, 1, 100000, "100",
	    "Connections at once that have not authenticated."),
	NUMBER("max_startups_per_source", OPTION_GLOBAL, 1, 100000, "20",
	    "The same from one address."),
	NUMBER("max_connections", OPTION_GLOBAL, 1, 100000, "4096", "Connections at once."),
	NUMBER("max_channels", OPTION_GLOBAL, 1, 1024, "64",
	    "Channels open at once on one connection."),
	NUMBER("spare_sessions", OPTION_GLOBAL, 0, 64, "2",
	    "Session processes kept ready for the next connections."),
	DURATION("client_alive_interval", OPTION_GLOBAL, 0, DAY, "60s",
	    "Silence after which a client is asked whether it is there; 0 never asks."),
	NUMBER("client_alive_count", OPTION_GLOBAL, 1, 1000, "3",
	    "Unanswered questions after which a connection ends."),
	DURATION("drain_grace", OPTION_GLOBAL, 0, DAY, "10s",
	    "Time that running commands get when the gateway stops."),

	/* who may log in, and to what */
	TEXT("driver", OPTION_BOTH, NULL, "Driver of the login's sandboxes."),
	MANY("authorized_keys", OPTION_PATHS, OPTION_BOTH, NULL, "File of keys that may log in."),
	MANY("key", OPTION_LINES, OPTION_BOTH, NULL,
	    "A key that may log in, as a line of such a file."),
	CHOICE(
	    "instances", OPTION_BOTH, "off on attach", "on", "Which sandboxes a client may name."),
	NUMBER("max_instances", OPTION_BOTH, 1, 100000, "16", "Sandboxes of the login at once."),

	/* the workspace */
	TEXT("root", OPTION_BOTH, NULL,
	    "Root directory of the workspace, absolute or below the provider's directory."),
	BOOLEAN("create_root", OPTION_BOTH, "on", "Make the root when it is missing."),
	TEXT("cwd", OPTION_BOTH, ".", "Where commands start, relative to the root."),
	MANY("env", OPTION_PAIRS, OPTION_BOTH, NULL, "Environment variable of every command."),
	MANY("accept_env", OPTION_LIST, OPTION_BOTH, "LANG LC_* TERM COLORTERM GIT_PROTOCOL",
	    "Environment variables a client may set."),
	DURATION("timeout", OPTION_BOTH, 0, YEAR, "120s",
	    "Time after which a command is stopped; 0 for never."),
	DURATION("kill_grace", OPTION_BOTH, 0, DAY, "2s", "Time between SIGTERM and SIGKILL."),
	CHOICE("background", OPTION_BOTH, "kill keep", "kill",
	    "What becomes of what a command left running."),
	SIZE("max_output_bytes", OPTION_BOTH, KIB, TIB, "1MiB",
	    "Bytes of stdout and of stderr that a result keeps."),
	SIZE("max_file_bytes", OPTION_BOTH, KIB, TIB, "10MiB",
	    "Largest file that is read or written."),
	DURATION("leftover_age", OPTION_BOTH, SECOND, DAY, "1h",
	    "Age at which what an interrupted file operation left is removed."),
	SIZE("max_stream_bytes", OPTION_BOTH, 0, 1024 * TIB, "64MiB",
	    "Output after which a command is stopped; 0 for never."),
	SIZE("max_snapshot_bytes", OPTION_BOTH, KIB, 1024 * TIB, "1GiB",
	    "Bytes of files that a snapshot may hold."),

	/* the sandbox's life */
	DURATION("idle_timeout", OPTION_BOTH, 0, YEAR, "30m",
	    "Time without a channel after which the workspace is disposed of."),
	CHOICE("on_dispose", OPTION_BOTH, "destroy stop keep", NULL,
	    "What becomes of the sandbox then."),
	CHOICE("on_lost", OPTION_BOTH, "create report", "create",
	    "What happens when the provider has ended the sandbox meanwhile."),
	BOOLEAN("never_delete", OPTION_BOTH, "off",
	    "Stop sandboxes, and never delete what a provider holds."),
	{ .name = NULL },
};
/* clang-format on */
