/* SPDX-License-Identifier: ISC */
/* The far side of scp's old protocol, served by the session on the workspace's files. */
#ifndef GATEWAY_SCP_H
#define GATEWAY_SCP_H

struct channel;
struct scp_command;

/*
 * Serves it on the channel, and takes over what command holds;
 * -1 when something runs on it already.
 */
int scp_start(struct channel *channel, struct scp_command *command);

#endif
