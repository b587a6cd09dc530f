/* SPDX-License-Identifier: ISC */
/*
 * The session channels of a connection and the commands behind them. channel.c opens and ends
 * channels, channel_request.c answers requests, channel_stream.c moves the bytes and
 * channel_input.c those from the client.
 */
#ifndef GATEWAY_CHANNEL_H
#define GATEWAY_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include "core/admin_protocol.h"
#include "core/base/buffer.h"
#include "core/protocol.h"

struct loop_timer;
struct loop_watch;
struct service;
struct session;

/* One descriptor of a command. */
struct stream {
	struct channel *channel;
	struct loop_watch *watch;
	int fd;     /* -1: not there yet, or closed */
	bool ready; /* the loop saw it readable or writable */
	bool ended; /* no more bytes will come or go */
};

/*
 * The most that a client which honours its window can have waiting in libssh, which decides about
 * the window: 1.92 MB in 0.10 (up to half a window that waits, and a whole one), 2 MiB since; and a
 * packet.
 */
#define CHANNEL_WINDOW (2U * 1024U * 1024U + CHANNEL_PACKET)
#define CHANNEL_PACKET 65536U

/* Where bytes are on their way: shared by all channels, and empty whenever the loop waits. */
#define CHANNEL_SCRATCH_SIZE (4U * 1024U * 1024U)
extern unsigned char channel_scratch[CHANNEL_SCRATCH_SIZE];

enum channel_stage {
	CHANNEL_IDLE,     /* open, nothing asked for yet */
	CHANNEL_STARTING, /* the worker was asked */
	CHANNEL_RUNNING,  /* all descriptors are here */
	CHANNEL_CLOSED,   /* the end was sent, or the client closed it: nothing moves any more */
};

struct channel {
	struct channel *next;
	struct session *session;
	ssh_channel ssh;
	struct ssh_channel_callbacks_struct callbacks;
	enum channel_stage stage;
	bool left;        /* the client has closed it: libssh forgets it when we do */
	uint32_t command; /* 0 until started */

	/* for the operator (session_report.c) */
	uint32_t number;
	enum channel_kind kind;
	int64_t since;
	uint64_t bytes_in,
	    bytes_out; /* what was taken from the client, and given to libssh for it */

	/* what the client asked for before the command */
	bool pty;
	char *term;
	uint32_t columns, rows, x_pixels, y_pixels;
	char **environment;
	size_t environment_count, environment_size;

	/* or a service in its place: then all streams stay closed */
	const struct service *service;
	void *service_argument;
	struct buffer *service_output;

	/* towards the command */
	struct stream input; /* a pty's descriptor is output.fd; input.fd is then its duplicate */
	size_t unread;       /* bytes that wait in libssh's buffer */
	size_t window;       /* the most that the client may have on its way to us */
	struct buffer input_held; /* taken from libssh, not yet by the command */
	bool input_eof;           /* the client sent EOF */
	size_t taken;             /* bytes since the window was last raised */

	/* towards the client */
	struct stream output, errors;
	struct buffer output_held; /* taken from a stream, not yet by libssh */
	bool held_is_errors;
	uint64_t sent, max_stream;
	bool limit_told;
	/* Runs while nothing but time tells whether a pty has more to say. */
	struct loop_timer *quiet;
	int64_t quiet_end; /* loop_now; when that is over at the latest, 0: not known yet */
	size_t late;       /* bytes read since the command has ended */

	bool has_ended;
	struct command_exit ended;
	bool note_sent;
};

/*
 * channel_request.c: a line of the log for what is refused;
 * after a few the client has no more of them.
 */
void channel_log_refusal(struct session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* channel_request.c: sends the channel's command a signal by its SSH name. */
void channel_signal(struct channel *channel, const char *name);

/* channel_request.c: prepares the callbacks; channel_open sets them. */
void channel_set_callbacks(struct channel *channel);

/* The callback of libssh for "session" channels. */
ssh_channel channel_open(ssh_session ssh, void *argument);

/*
 * Moves what can be moved on all channels and ends those that are done. Returns true when there may
 * be more to move once libssh has sent what it was given.
 */
bool channels_advance(struct session *session);

/* Says what the loop should wait for. */
void channels_watch(struct session *session);

/* Ends every channel: HUP and the rest of it for what runs. */
void channels_free(struct session *session);

/* Ends every command with an error (the worker is gone). */
void channels_fail(struct session *session, const struct error *err);

/* Says something on every terminal. */
void channels_announce(struct session *session, const char *text);

/* Messages of the worker. */
int channel_take_stream(void *argument, struct message *message, struct error *err);
int channel_take_progress(void *argument, struct message *message, struct error *err);
int channel_take_exit(void *argument, struct message *message, struct error *err);

/*
 * channel_input.c: libssh's callback for data, and what is done when more can be passed on.
 */
int channel_data(ssh_session ssh, ssh_channel ssh_channel, void *data, uint32_t size, int is_stderr,
    void *argument);
void channel_input_advance(struct channel *channel);

/* channel_stream.c */
void stream_open(struct stream *stream, int fd);
void stream_close(struct stream *stream);
bool channel_stream_advance(struct channel *channel);
void channel_stream_watch(struct channel *channel);
void channel_quiet_expired(void *argument);

/*
 * Gives back the memory that a transfer has touched, up to 5 MiB that a connection would hold for
 * as long as it is open. For a time when nothing moves; it costs a fraction of a millisecond.
 */
void channels_rest(void);

/*
 * Writes to the client's stderr, on a pty too: not a byte of ours is on stdout.
 * What does not fit now is held.
 */
void channel_say(struct channel *channel, const char *text);

#endif
