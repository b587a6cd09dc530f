/* SPDX-License-Identifier: ISC */
/* The value of listen: where to accept connections. */
#ifndef CONF_LISTEN_H
#define CONF_LISTEN_H

#include <sys/socket.h>

struct error;

/* An address of IPv4 or IPv6 and a port, from "ADDRESS:PORT" or "[ADDRESS]:PORT"; numbers only. */
int conf_listen_parse(
    const char *text, struct sockaddr_storage *address, socklen_t *size, struct error *err);

#endif
