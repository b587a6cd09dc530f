/* SPDX-License-Identifier: ISC */
/* The SFTP server of a session: version 3 and what OpenSSH adds to it. */
#ifndef GATEWAY_SFTP_H
#define GATEWAY_SFTP_H

struct channel;

/* Serves SFTP on the channel; -1 when something runs on it already. */
int sftp_start(struct channel *channel);

#endif
