/* SPDX-License-Identifier: ISC */
/*
 * A service: what runs on a channel within the session itself, instead of a command in the sandbox.
 * SFTP and scp are services. It is given the client's bytes, and puts its own into one buffer that
 * the channel empties as fast as the client reads.
 */
#ifndef GATEWAY_SERVICE_H
#define GATEWAY_SERVICE_H

#include <stddef.h>
#include <stdint.h>

struct buffer;
struct channel;
struct error;

struct service {
	/*
	 * Takes input: how many bytes,
	 * fewer than all when it must wait until channel_service_resume.
	 */
	size_t (*take)(void *argument, const unsigned char *data, size_t size);
	/* The client has no more input, and all of it was taken. */
	void (*ended)(void *argument);
	/* The client has read some of the output: there may be room to go on. */
	void (*drained)(void *argument);
	/* The channel is closed: frees it. */
	void (*close)(void *argument);
};

/* channel.c: puts the service on a channel on which nothing runs yet; -1 when something does. */
int channel_serve(
    struct channel *channel, const struct service *service, void *argument, struct buffer *output);

/* channel.c: more input is wanted. */
void channel_service_resume(struct channel *channel);

/* channel.c: the service is done: its output, then this exit status, end the channel. */
void channel_service_end(struct channel *channel, uint32_t status);

/* channel.c: as above, with a line on stderr that says why, and status 255. */
void channel_service_fail(struct channel *channel, const struct error *err);

#endif
