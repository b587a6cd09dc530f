/* SPDX-License-Identifier: ISC */
/*
 * What a driver is: the code that speaks one provider's API, for one sandbox, in one worker. It
 * implements the seed's operations (connect, read, write, run, start, release) and says in
 * capability bits what its provider does natively; core/ makes up the rest.
 *
 * Everything is asynchronous: a call returns at once and its outcome comes later through a
 * callback, never from within the call itself. Nothing blocks.
 */
#ifndef CORE_DRIVER_H
#define CORE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

struct loop;
struct option;
struct settings;

/* What a provider does natively. */
enum driver_support {
	DRIVER_STDIN = 1 << 0,        /* a command's stdin can be written while it runs */
	DRIVER_END_OF_STDIN = 1 << 1, /* and can be ended without ending the command */
	DRIVER_STDERR = 1 << 2,       /* stderr comes apart from stdout */
	DRIVER_BINARY = 1 << 3,       /* all streams carry any byte, none lost or added */
	DRIVER_PTY = 1 << 4,          /* commands on a pty, with resize */
	DRIVER_EXIT = 1 << 5,         /* an exact end: exit status, or the signal's number */
	/*
	 * Every command leads its own session; signal reaches the whole group; background processes
	 * are tracked and ended by the driver.
	 */
	DRIVER_GROUP = 1 << 6,
	DRIVER_RESUME = 1 << 7,   /* a dropped stream is picked up again without loss */
	DRIVER_STOP = 1 << 8,     /* release can stop a sandbox so that its files survive */
	DRIVER_ADOPT = 1 << 9,    /* can find again what it created, by its instance label */
	DRIVER_FLOW = 1 << 10,    /* a slow reader slows the command down, no output is lost */
	DRIVER_RAW_PTY = 1 << 11, /* a pty starts in raw mode, and takes any byte at once */
	DRIVER_HERE = 1 << 12,    /* this machine's own: another gateway cannot reach them */
};

/* One sandbox as the driver sees it; each driver has its own. */
struct driver_sandbox;

/* One started command; each driver has its own. */
struct driver_stream;

/* One read, write or run under way; each driver has its own. */
struct driver_operation;

/* What open is given. All texts are kept until close. */
struct driver_context {
	struct loop *loop;
	const struct settings *settings; /* the login block's, with the driver's own options */
	const char *instance;            /* label of the workspace: gateway id and workspace name */
	const char *login;               /* for messages only */
	int state_directory;             /* a directory of this workspace's own, or -1 */
	/* The provider's side is gone (killed, expired, unreachable): streams end by themselves. */
	void (*lost)(void *argument, const struct error *err);
	void *argument;
};

/* What to connect to. */
struct driver_target {
	/* The sandbox's id or name; NULL: adopt one with our instance label, or create. */
	const char *id;
	bool created; /* a known id was created by us earlier (not attached) */
	bool may_create;
};

/* What connect found; the texts are valid during the callback. */
struct driver_connected {
	const char *id;
	const char *directory; /* the provider's default directory, absolute */
	const char *user;      /* as whom commands run, or NULL */
	bool created;          /* by this call: on_dispose's default depends on it */
	bool started;          /* it was stopped and this call started it */
	bool attached;         /* an option of the login names it: it is not ours */
	bool nothing;          /* of a failure only; see driver_connected_fn */
};

enum driver_release {
	DRIVER_DESTROY,
	DRIVER_STOPPED,
	DRIVER_KEEP,
};

#define DRIVER_STATUS_MAX 255
/* The last of Linux's real-time signals. */
#define DRIVER_SIGNAL_MAX 64

/* How a command ended. */
struct driver_exit {
	bool signaled;
	int status; /* exit status up to DRIVER_STATUS_MAX, or the signal, up to DRIVER_SIGNAL_MAX */
	bool core;
};

/* A command to start. argv, environment and directory are copied by start. */
struct driver_command {
	char *const *argv;        /* argv[0] is looked up in the sandbox's PATH */
	char *const *environment; /* NAME=VALUE, added to the sandbox's own; NULL-ended */
	const char *directory;    /* absolute */
	bool want_stdin;          /* false: /dev/null */
	bool pty;
	const char *term; /* with pty */
	uint32_t columns, rows, x_pixels, y_pixels;
	bool keep_background; /* with DRIVER_GROUP: what it leaves running is not ended */
	uint32_t kill_grace;  /* ms between TERM and KILL, with DRIVER_GROUP */
};

/*
 * A command's descriptors, from the driver's side of the fence: bytes written to input reach its
 * stdin, output and errors are read. All are the receiver's to close. With a pty, output is the
 * pty, both ways, and the others are -1; without want_stdin input is -1. They may be pipes, sockets
 * or a pty; closing input (or shutting a socket down for writing) ends stdin.
 */
struct driver_descriptors {
	int input, output, errors;
};

struct driver_stream_events {
	/* The command runs; pid is its process group in the sandbox, 0 when unknown. */
	void (*started)(void *argument, const struct driver_descriptors *descriptors, uint32_t pid);
	/*
	 * It ended, or (ended NULL) its outcome cannot be known: err says why. Comes only after
	 * every byte of output was put into the descriptors, and once; the stream is then freed
	 * with close. NOT_FOUND: the sandbox is not there, and nothing of the command ever ran.
	 */
	void (*exited)(void *argument, const struct driver_exit *ended, const struct error *err);
	/* With DRIVER_GROUP, after exited: no process of the group is left. */
	void (*gone)(void *argument);
	/* May be NULL. A terminal's stream broke and is picked up again: output may be missing from here on. */
	void (*gap)(void *argument);
};

/*
 * On failure connected is NULL, or says nothing but that: nothing was there or was made by this call, and
 * nothing will be. Without that a create may yet come true.
 */
typedef void driver_connected_fn(
    void *argument, const struct driver_connected *connected, const struct error *err);
typedef void driver_done_fn(void *argument, const struct error *err); /* err NULL: success */

/* What run gives: status as in driver_exit, the output bounded by the caller's limit. */
struct driver_result {
	struct driver_exit ended;
	const unsigned char *output, *errors;
	size_t output_size, errors_size;
	bool truncated;
};
typedef void driver_result_fn(
    void *argument, const struct driver_result *result, const struct error *err);

/*
 * What can be known of a driver without its code: the listener reads configurations with it and
 * must not carry every provider's libraries. In drivers/NAME_kind.c.
 */
struct driver_kind {
	const char *name;             /* in the login block: driver = NAME */
	unsigned supports;            /* bits of enum driver_support */
	const struct option *options; /* its own options, ending with a row without a name */
	/*
	 * NULL, or whether the options make sense, of their own and together: open refuses what this does.
	 * Looks at nothing but them and the files that they name. -1 with the reason, which has no secret in
	 * it, and *option (NULL before) as the one at fault; it stays NULL when one is missing.
	 */
	int (*check)(const struct settings *settings, const char **option, struct error *err);
	/* on_dispose when the block has none and we created the sandbox. */
	const char *standard_dispose;
	/* NULL, or an option that names a sandbox, and on_dispose when that is set and the block has none. */
	const char *name_option, *named_dispose;
};

struct driver {
	const struct driver_kind *kind;

	/*
	 * Checks the settings and makes the object; no input or output. NULL with err on failure.
	 */
	struct driver_sandbox *(*open)(const struct driver_context *context, struct error *err);

	/* Frees everything; callbacks of what is under way do not come any more. */
	void (*close)(struct driver_sandbox *sandbox);

	/* Creates a sandbox or connects to one, starting it when it is stopped. */
	void (*connect)(struct driver_sandbox *sandbox, const struct driver_target *target,
	    driver_connected_fn *done, void *argument);

	/* Destroys, stops or keeps the sandbox. What it cannot do is UNSUPPORTED. */
	void (*release)(struct driver_sandbox *sandbox, enum driver_release release,
	    driver_done_fn *done, void *argument);

	/*
	 * Destroys or stops the sandbox of this id, as it was told by connect once, without starting
	 * it first. For an object that is not connected; NULL where only what runs can be released.
	 */
	void (*put_away)(struct driver_sandbox *sandbox, const char *id,
	    enum driver_release release, driver_done_fn *done, void *argument);

	/*
	 * Pushes the end of the sandbox's life back, or tells the provider that it is used;
	 * cheap when not due.
	 */
	void (*extend)(struct driver_sandbox *sandbox, driver_done_fn *done, void *argument);

	/*
	 * Streams a file (absolute path) into the descriptor sink, which the driver closes at the
	 * end: at most max + 1 bytes, so that the caller sees what is over its limit.
	 */
	struct driver_operation *(*read)(struct driver_sandbox *sandbox, const char *path,
	    uint64_t max, int sink, driver_done_fn *done, void *argument);

	/*
	 * Makes or replaces a file (absolute path, mode 0600) with exactly size bytes from source,
	 * which it closes.
	 */
	struct driver_operation *(*write)(struct driver_sandbox *sandbox, const char *path,
	    uint64_t size, int source, driver_done_fn *done, void *argument);

	/* Runs argv to its end with a small stdin and bounded output, which it gathers. */
	struct driver_operation *(*run)(struct driver_sandbox *sandbox, char *const *argv,
	    const void *input, size_t input_size, size_t max_output, driver_result_fn *done,
	    void *argument);

	/* Gives up: done does not come any more; what the provider does with it is unknown. */
	void (*cancel)(struct driver_operation *operation);

	/* Starts a command; its events come later. */
	struct driver_stream *(*start)(struct driver_sandbox *sandbox,
	    const struct driver_command *command, const struct driver_stream_events *events,
	    void *argument);

	/* With DRIVER_PTY. */
	void (*resize)(struct driver_stream *stream, uint32_t columns, uint32_t rows,
	    uint32_t x_pixels, uint32_t y_pixels);

	/*
	 * Sends a signal by its Linux number: to the group with DRIVER_GROUP, else to the leader.
	 */
	void (*signal)(struct driver_stream *stream, int number);

	/* Frees the stream; no event comes any more. Ends a command that still runs with KILL. */
	void (*close_stream)(struct driver_stream *stream);

	/*
	 * NULL, or for a connected sandbox: a socket to a file server of the driver's own that
	 * speaks core/file_protocol.h and passes descriptors of the files themselves. It is the
	 * caller's; -1 with err when there is none (UNSUPPORTED: then core/ makes it up).
	 */
	int (*open_files)(struct driver_sandbox *sandbox, struct error *err);

	/*
	 * NULL where there cannot be two, or for a connected sandbox: releases (destroys or stops)
	 * every other one with our instance label. Such were made by a worker that was killed before
	 * it heard of them.
	 */
	void (*release_others)(struct driver_sandbox *sandbox, enum driver_release release,
	    driver_done_fn *done, void *argument);
};

/*
 * The drivers of this build, NULL-ended; in drivers/kinds.c and, with their code, drivers/driver.c.
 */
extern const struct driver_kind *const driver_kinds[];
extern const struct driver *const drivers[];

/* The driver with this name, or NULL; in drivers/driver.c. */
const struct driver *driver_find(const char *name);

#endif
