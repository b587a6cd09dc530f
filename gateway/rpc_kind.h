/* SPDX-License-Identifier: ISC */
/* What kind of content a file has, by its first bytes. */
#ifndef GATEWAY_RPC_KIND_H
#define GATEWAY_RPC_KIND_H

#include <stddef.h>

/* A media type; "text/plain" for other UTF-8, "application/octet-stream" for the rest. */
const char *content_kind(const unsigned char *data, size_t size);

#endif
